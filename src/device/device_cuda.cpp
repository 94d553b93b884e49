#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "device/clocks.hpp"
#include "device/device.hpp"
#include "kernels/check.hpp"
#include "kernels/random_inputs.hpp"
#include "kernels/yardsticks.hpp"
#include "simulate/numerics/inputs.hpp"

namespace hbmscope {
namespace {

/// Errors of an earlier kernel surface at any later call, so the sentence names both the call and where it stands.
void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  throw Error(ErrorKind::output,
              std::string("the GPU failed: ") + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ") from " +
                  call + " at " + file + ":" + std::to_string(line),
              "numbers of this run are void; compute-sanitizer can name the access at fault");
}
#define HBMSCOPE_CUDA(call) check(call, #call, __FILE__, __LINE__)

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::size_t size_of(Bytes bytes) {
  return static_cast<std::size_t>(bytes.value());
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) {
    HBMSCOPE_CUDA(cudaSetDevice(ordinal));
    cudaDeviceProp p{};
    HBMSCOPE_CUDA(cudaGetDeviceProperties(&p, ordinal));
    int driver = 0, runtime = 0;
    HBMSCOPE_CUDA(cudaDriverGetVersion(&driver));
    HBMSCOPE_CUDA(cudaRuntimeGetVersion(&runtime));
    properties_ = {.name = p.name,
                   .ordinal = ordinal,
                   .compute_major = p.major,
                   .compute_minor = p.minor,
                   .num_sms = p.multiProcessorCount,
                   .l2 = Bytes(p.l2CacheSize),
                   .smem_per_block = Bytes(static_cast<std::int64_t>(p.sharedMemPerBlockOptin)),
                   .memory = Bytes(static_cast<std::int64_t>(p.totalGlobalMem)),
                   .driver = driver_version().value_or("CUDA " + version_text(driver)),
                   .runtime = version_text(runtime),
                   .bus_id = bus_id(ordinal)};
    HBMSCOPE_CUDA(cudaStreamCreate(&stream_));
  }
  ~CudaDevice() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    if (normal_table_ != nullptr) cudaFree(normal_table_);
    if (contents_ != nullptr) cudaFree(contents_);
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] const DeviceProperties& properties() const override { return properties_; }
  [[nodiscard]] Bytes free_memory() const override {
    std::size_t free = 0, total = 0;
    HBMSCOPE_CUDA(cudaMemGetInfo(&free, &total));
    return Bytes(static_cast<std::int64_t>(free));
  }
  [[nodiscard]] ClockState clocks() const override { return clock_state(properties_.bus_id); }

  void* allocate(Bytes bytes) override {
    void* p = nullptr;
    HBMSCOPE_CUDA(cudaMalloc(&p, std::max<std::size_t>(size_of(bytes), 16)));
    return p;
  }
  void release(void* p) noexcept override { cudaFree(p); }
  void upload(void* to, const void* from, Bytes bytes) override {
    HBMSCOPE_CUDA(cudaMemcpyAsync(to, from, size_of(bytes), cudaMemcpyHostToDevice, stream_));
    synchronize();
  }
  void download(void* to, const void* from, Bytes bytes) override {
    HBMSCOPE_CUDA(cudaMemcpyAsync(to, from, size_of(bytes), cudaMemcpyDeviceToHost, stream_));
    synchronize();
  }
  void fill_bytes(void* to, int byte, Bytes bytes) override {
    HBMSCOPE_CUDA(cudaMemsetAsync(to, byte, size_of(bytes), stream_));
  }
  void synchronize() override { HBMSCOPE_CUDA(cudaStreamSynchronize(stream_)); }
  [[nodiscard]] CUstream_st* stream() const override { return stream_; }

  void launch(const kernels::Stage& stage, kernels::Call call) override {
    call.stream = stream_;
    stage.launch(call);
  }
  void yardstick(Yardstick kind, void* to, const void* from, Bytes bytes) override {
    switch (kind) {
      case Yardstick::copy:
        return kernels::launch_copy(to, from, bytes.value(), nullptr, stream_);
      case Yardstick::read:
        return kernels::launch_read(to, from, bytes.value(), nullptr, stream_);
      case Yardstick::fill:
        return kernels::launch_fill(to, bytes.value(), nullptr, stream_);
    }
  }
  void random_inputs(void* to, Tensor tensor, const AttentionShape& shape, std::uint64_t seed) override {
    if (normal_table_ == nullptr) {
      const std::span<const numerics::NormalSegment> table = numerics::normal_segments();
      normal_table_ = allocate(Bytes(static_cast<std::int64_t>(table.size_bytes())));
      upload(normal_table_, table.data(), Bytes(static_cast<std::int64_t>(table.size_bytes())));
    }
    kernels::launch_random_inputs(to, tensor, shape, seed, normal_table_, stream_);
  }

  std::vector<double> time(std::span<const std::function<void()>> work) override {
    while (events_.size() < work.size() + 1) {
      cudaEvent_t event = nullptr;
      HBMSCOPE_CUDA(cudaEventCreate(&event));
      events_.push_back(event);
    }
    HBMSCOPE_CUDA(cudaEventRecord(events_[0], stream_));
    for (std::size_t i = 0; i < work.size(); ++i) {
      work[i]();
      HBMSCOPE_CUDA(cudaEventRecord(events_[i + 1], stream_));
    }
    synchronize();
    std::vector<double> seconds;
    for (std::size_t i = 0; i < work.size(); ++i) {
      float ms = 0;
      HBMSCOPE_CUDA(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]));
      seconds.push_back(static_cast<double>(ms) / 1e3);
    }
    return seconds;
  }
  Contents look(const void* at, std::int64_t elements, Dtype dtype) override {
    constexpr Bytes kSize{2 * sizeof(unsigned long long)};
    if (contents_ == nullptr) contents_ = allocate(kSize);
    fill_bytes(contents_, 0, kSize);
    kernels::launch_look(at, elements, dtype, static_cast<unsigned long long*>(contents_), stream_);
    unsigned long long sums[2];
    download(sums, contents_, kSize);
    return {static_cast<std::int64_t>(sums[0]), sums[1]};
  }

 private:
  static std::string bus_id(int ordinal) {
    char text[32] = {};
    HBMSCOPE_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, ordinal));
    return text;
  }

  DeviceProperties properties_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  void* normal_table_ = nullptr;
  void* contents_ = nullptr;
};

std::string why_not(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "no CUDA driver, or one too old for CUDA " + version_text(CUDART_VERSION);
    case cudaErrorNoDevice:
      return "no CUDA device";
    default:
      return std::string("the CUDA driver reports ") + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")";
  }
}

}  // namespace

DeviceStatus device_status(int ordinal) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return {false, "", why_not(error)};
  if (ordinal < 0 || ordinal >= count) {
    return {false, "", "no device " + std::to_string(ordinal) + ": this machine has " + std::to_string(count)};
  }
  cudaDeviceProp p{};
  const cudaError_t asked = cudaGetDeviceProperties(&p, ordinal);
  if (asked != cudaSuccess) return {false, "", why_not(asked)};
  if (p.major < 8) {
    return {false, "",
            std::string(p.name) + " has compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor) +
                ", and the kernels need 8.0"};
  }
  return {true, p.name, ""};
}

std::unique_ptr<Device> open_device(int ordinal) {
  const DeviceStatus status = device_status(ordinal);
  if (!status.present) {
    throw Error(ErrorKind::device, "no GPU to run on: " + status.reason,
                "nvidia-smi lists the GPUs that there are; hbmscope run predicts without one");
  }
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace hbmscope
