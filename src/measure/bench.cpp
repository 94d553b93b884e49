#include "measure/bench.hpp"

#include <array>

#include "core/decode.hpp"

namespace hbmscope {
namespace {

constexpr std::array<Tensor, 5> kTensorsOnDevice{Tensor::Q, Tensor::K, Tensor::V, Tensor::O, Tensor::LSE};
constexpr Bytes kCounterBytes{2 * static_cast<std::int64_t>(kTensorCount) * 8};
constexpr int kPoison = 0xff;  // NaN in every dtype

}  // namespace

Bytes tensor_bytes(const AttentionShape& s, Tensor tensor) {
  const Count batch(s.batch), heads(s.num_heads), kv_heads(s.num_kv_heads), q(s.seqlen_q), kv(s.seqlen_kv);
  const Bytes e(s.element_bytes());
  switch (tensor) {
    case Tensor::Q:
      return batch * heads * q * Count(s.head_dim) * e;
    case Tensor::K:
      return batch * kv_heads * kv * Count(s.head_dim) * e;
    case Tensor::V:
      return batch * kv_heads * kv * Count(s.head_dim_v) * e;
    case Tensor::O:
      return batch * heads * q * Count(s.head_dim_v) * e;
    default:
      return batch * heads * q * Bytes(kStatisticBytes);
  }
}

Bytes memory_needed(const MeasureRequest& request, const DeviceProperties& device) {
  Bytes needed = kCounterBytes + Count(Bench::kSweepFactor) * device.l2;
  for (const Tensor t : kTensorsOnDevice) needed += tensor_bytes(request.shape, t);
  Bytes most(0);
  for (const MeasureRequest::Item& item : request.items) {
    Bytes own(0);
    for (const kernels::Temporary& t : item.pipeline->temporaries(request.shape, item.plan)) own += t.bytes;
    most = std::max(most, own);
  }
  return needed + most;
}

Bench::Bench(Device& device, const MeasureRequest& request)
    : device_(device),
      request_(request),
      counters_(device, kCounterBytes),
      sweep_(device, Count(kSweepFactor) * device.properties().l2),
      sweep_sum_(device, Bytes(16)) {
  device_.fill_bytes(sweep_.data(), 0, sweep_.size());
  free_before_ = device_.free_memory();
  for (const Tensor t : kTensorsOnDevice) tensors_.emplace(t, DeviceBuffer(device_, tensor_bytes(request.shape, t)));
  for (const Tensor t : {Tensor::Q, Tensor::K, Tensor::V}) {
    device_.random_inputs(tensor(t), t, request.shape, request.seed);
  }
  device_.synchronize();
}

std::int64_t Bench::elements(Tensor t) const {
  return tensors_.at(t).size().value() / (t == Tensor::LSE ? kStatisticBytes : request_.shape.element_bytes());
}

void Bench::prepare(const MeasureRequest::Item& item) {
  temporaries_.clear();
  for (const kernels::Temporary& t : item.pipeline->temporaries(request_.shape, item.plan)) {
    temporaries_.emplace(t.tensor, DeviceBuffer(device_, t.bytes));
  }
  stages_ = item.pipeline->stages(request_.shape, item.plan);
  const Bytes free = device_.free_memory();
  memory_taken_ = free_before_ > free ? free_before_ - free : Bytes(0);
}

void Bench::launch(const MeasureRequest::Item& item, std::size_t stage, bool counted,
                   kernels::KernelResources* resources) {
  kernels::Call call;
  call.args = kernels::make_args(request_.shape, item.plan);
  for (const auto* buffers : {&tensors_, &temporaries_}) {
    for (const auto& [t, buffer] : *buffers) call.args.tensors[static_cast<std::size_t>(t)] = buffer.data();
  }
  call.dtype = request_.shape.dtype;
  call.plan = item.plan;
  call.counted = counted;
  call.resources = resources;
  if (counted) call.args.byte_counters = static_cast<unsigned long long*>(counters_.data());
  const Bytes predicted = stage < item.stage_bytes.size() ? item.stage_bytes[stage] : Bytes(0);
  const ProfilerRange range(std::string(stages_[stage].name), predicted);
  device_.launch(stages_[stage], call);
}

void Bench::launch(const MeasureRequest::Item& item, bool counted) {
  Bytes predicted(0);
  for (const Bytes b : item.stage_bytes) predicted += b;
  const ProfilerRange range(std::string(item.pipeline->name), predicted);
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) launch(item, stage, counted);
}

void Bench::poison(const MeasureRequest::Item&) {
  for (const Tensor t : {Tensor::O, Tensor::LSE}) device_.fill_bytes(tensor(t), kPoison, tensors_.at(t).size());
  for (const auto& [t, buffer] : temporaries_) device_.fill_bytes(buffer.data(), kPoison, buffer.size());
}

void Bench::sweep_l2() {
  device_.yardstick(Yardstick::read, sweep_sum_.data(), sweep_.data(), sweep_.size());
}

Traffic Bench::take_kernel_counts() {
  std::array<std::uint64_t, 2 * kTensorCount> counts{};
  device_.download(counts.data(), counters_.data(), counters_.size());
  device_.fill_bytes(counters_.data(), 0, counters_.size());
  device_.synchronize();
  Traffic traffic(Boundary::sm_l2);
  for (const TensorInfo& t : kTensors) {
    const auto i = 2 * static_cast<std::size_t>(t.tensor);
    traffic.read(t.tensor, Bytes(static_cast<std::int64_t>(counts[i])));
    traffic.write(t.tensor, Bytes(static_cast<std::int64_t>(counts[i + 1])));
  }
  return traffic;
}

AttentionResult Bench::download(const RowSample& sample, bool with_lse) {
  const AttentionShape& s = request_.shape;
  AttentionResult result;
  std::vector<std::byte> row(static_cast<std::size_t>(s.head_dim_v * s.element_bytes()));
  for (const std::int64_t head : sample.batch_heads) {
    for (const std::int64_t q : sample.rows) {
      const std::int64_t place = head * s.seqlen_q + q;
      const auto* o = static_cast<const std::byte*>(tensor(Tensor::O)) + place * static_cast<std::int64_t>(row.size());
      device_.download(row.data(), o, Bytes(static_cast<std::int64_t>(row.size())));
      const std::size_t before = result.o.size();
      decode(row, s.dtype, result.o);
      for (std::size_t i = before; i < result.o.size(); ++i) result.o[i] /= kernels::output_scale(s.dtype);
      if (!with_lse) continue;
      float& lse = result.lse.emplace_back();
      device_.download(&lse, static_cast<const float*>(tensor(Tensor::LSE)) + place, Bytes(sizeof lse));
    }
  }
  return result;
}

}  // namespace hbmscope
