#include <cmath>
#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "kernels/yardsticks.hpp"
#include "simulate/numerics/inputs.hpp"

namespace hbmscope {
namespace {

constexpr Bytes bytes_of(std::int64_t elements, std::int64_t each) {
  return Count(elements) * Bytes(each);
}

class L2Read final : public ProbeKernel {
 public:
  explicit L2Read(Device& device) : device_(device), from_(device, kSize), checksum_(device, Bytes(8)) {
    // A third of what one half of the L2 holds, so that both halves may keep a copy.
    device_.fill_bytes(from_.data(), 1, kSize);
  }
  void launch(std::int64_t times) override {
    device_.fill_bytes(checksum_.data(), 0, Bytes(8));
    kernels::launch_l2_read(probe(times), device_.stream());
  }
  [[nodiscard]] double work(std::int64_t times) const override {
    return kernels::l2_read_bytes(probe(times)).as_double();
  }
  std::string check(std::int64_t times) override {
    std::uint64_t sum = 0;
    device_.download(&sum, checksum_.data(), Bytes(8));
    const std::vector<unsigned char> host(static_cast<std::size_t>(kSize.value()), 1);
    const std::uint64_t expected = static_cast<std::uint64_t>(times) * kernels::checksum_of(host.data(), kSize.value());
    return sum == expected ? "" : "what it read does not add up";
  }

 private:
  static constexpr Bytes kSize{16 << 20};
  [[nodiscard]] kernels::L2ReadProbe probe(std::int64_t times) const {
    return {from_.data(), kSize.value(), times, static_cast<unsigned long long*>(checksum_.data())};
  }
  Device& device_;
  DeviceBuffer from_, checksum_;
};

/// mma.sync or wgmma: A and B are random bf16, and every sum must be that of their product.
class TensorRate final : public ProbeKernel {
 public:
  struct Kind {
    int rows, columns, depth;
    std::int64_t results;
    void (*launch)(const kernels::TensorProbe&, CUstream_st*);
    Flop (*flops)(const kernels::TensorProbe&);
  };
  TensorRate(Device& device, Kind kind)
      : device_(device),
        kind_(kind),
        operands_(device, bytes_of(std::int64_t{kind.rows + kind.columns} * kind.depth, 2)),
        sums_(device, bytes_of(kind.results, 4)) {
    AttentionShape shape;
    shape.seqlen_q = kind.rows + kind.columns;
    shape.head_dim = kind.depth;
    shape.dtype = Dtype::bf16;
    device_.random_inputs(operands_.data(), Tensor::Q, shape, 1);
    host_.resize(static_cast<std::size_t>(operands_.size().value() / 2));
    device_.download(host_.data(), operands_.data(), operands_.size());
  }
  void launch(std::int64_t times) override { launch(times, nullptr); }
  void launch(std::int64_t times, kernels::SmClock* clocks) {
    kernels::TensorProbe of = probe(times);
    of.clocks = clocks;
    kind_.launch(of, device_.stream());
  }
  [[nodiscard]] double work(std::int64_t times) const override { return kind_.flops(probe(times)).as_double(); }
  std::string check(std::int64_t times) override {
    std::vector<float> sums(static_cast<std::size_t>(kind_.results));
    device_.download(sums.data(), sums_.data(), sums_.size());
    const double expected = kernels::expected_sum(host_.data(), kind_.rows, kind_.columns, kind_.depth, times);
    // Sums of fp32 drift by rounding at every step, and operands may cancel: a per cent of the largest possible sum.
    const double slack = 0.02 * std::fabs(expected) + static_cast<double>(times) * kind_.depth;
    for (const float sum : sums) {
      if (!(std::fabs(static_cast<double>(sum) - expected) <= slack)) {
        return "a sum is " + std::to_string(sum) + " where " + std::to_string(expected) + " is right";
      }
    }
    return {};
  }

 private:
  [[nodiscard]] kernels::TensorProbe probe(std::int64_t times) const {
    return {operands_.data(), static_cast<float*>(sums_.data()), times};
  }
  Device& device_;
  Kind kind_;
  DeviceBuffer operands_, sums_;
  std::vector<std::uint16_t> host_;
};

class ExpRate final : public ProbeKernel {
 public:
  explicit ExpRate(Device& device) : device_(device), means_(device, bytes_of(kernels::exp2_results(), 4)) {}
  void launch(std::int64_t times) override { kernels::launch_exp2(probe(times), device_.stream()); }
  [[nodiscard]] double work(std::int64_t times) const override {
    return kernels::exp2_operations(probe(times)).as_double();
  }
  std::string check(std::int64_t) override {
    std::vector<float> means(static_cast<std::size_t>(kernels::exp2_results()));
    device_.download(means.data(), means_.data(), means_.size());
    for (const float mean : means) {
      if (!(std::fabs(mean - kernels::kExp2Fixpoint) <= 1e-5F)) return "it does not arrive at the fixpoint of 2^-x";
    }
    return {};
  }

 private:
  [[nodiscard]] kernels::Exp2Probe probe(std::int64_t times) const {
    return {static_cast<float*>(means_.data()), times};
  }
  Device& device_;
  DeviceBuffer means_;
};

using kernels::MmaSync, kernels::Wgmma;
TensorRate::Kind mma_sync_kind() {
  return {MmaSync::kRows,           MmaSync::kColumns,      MmaSync::kDepth, kernels::mma_sync_results(),
          kernels::launch_mma_sync, kernels::mma_sync_flops};
}
TensorRate::Kind wgmma_kind() {
  return {Wgmma::kRows,          Wgmma::kColumns,     Wgmma::kDepth, kernels::wgmma_results(),
          kernels::launch_wgmma, kernels::wgmma_flops};
}

}  // namespace

std::vector<double> measure_sm_clocks(Device& device) {
  constexpr std::int64_t kTimes = 10'000;  // of wgmma some 5 ms
  const std::int64_t sms = device.properties().num_sms;
  const DeviceBuffer clocks(device, Count(sms) * Bytes(sizeof(kernels::SmClock)));
  device.fill_bytes(clocks.data(), 0, clocks.size());
  TensorRate work(device, kernels::wgmma_unsupported().empty() ? wgmma_kind() : mma_sync_kind());
  work.launch(kTimes, static_cast<kernels::SmClock*>(clocks.data()));
  std::vector<kernels::SmClock> of_sm(static_cast<std::size_t>(sms));
  device.download(of_sm.data(), clocks.data(), clocks.size());
  std::vector<double> hz;
  for (const kernels::SmClock& c : of_sm) {
    hz.push_back(c.nanoseconds > 0 ? static_cast<double>(c.cycles) / (static_cast<double>(c.nanoseconds) * 1e-9) : 0);
  }
  return hz;
}

std::unique_ptr<ProbeKernel> make_probe(Device& device, Probe probe, std::string& reason) {
  switch (probe) {
    case Probe::l2_read:
      return std::make_unique<L2Read>(device);
    case Probe::mma_sync:
      return std::make_unique<TensorRate>(device, mma_sync_kind());
    case Probe::wgmma:
      reason = kernels::wgmma_unsupported();
      if (!reason.empty()) return nullptr;
      return std::make_unique<TensorRate>(device, wgmma_kind());
    case Probe::exp2:
      return std::make_unique<ExpRate>(device);
  }
  return nullptr;
}

}  // namespace hbmscope
