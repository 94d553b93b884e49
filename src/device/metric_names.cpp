#include "device/metric_names.hpp"

namespace hbmscope {

namespace {

struct Row {
  std::string_view name;
  std::array<std::string_view, 2> candidates;  // empty: no further one
};

// In the order of HwQuantity. The names before a second one are those of Volta to Hopper and GB100; consumer
// Blackwell (GB20x) says op_read and op_write. A GPU that shares its host's memory (GA10B, GB10B, GB20B) has no dram__
// counters at all.
constexpr std::array<Row, kNumHwQuantities> kRows{{
    {"dram_read_bytes", {"dram__bytes_read.sum", "dram__bytes_op_read.sum"}},
    {"dram_write_bytes", {"dram__bytes_write.sum", "dram__bytes_op_write.sum"}},
    // Not lts__t_bytes: that one counts the hop between the two halves of L2 too.
    {"xbar_read_bytes", {"l1tex__m_xbar2l1tex_read_bytes.sum", ""}},
    {"l2_write_sectors", {"lts__t_sectors_srcunit_tex_op_write.sum", ""}},
    {"tensor_instructions", {"smsp__inst_executed_pipe_tensor.sum", ""}},
    {"gpu_time_ns", {"gpu__time_duration.sum", ""}},
    {"sm_cycles", {"sm__cycles_elapsed.max", ""}},
    {"sm_cycles_least", {"sm__cycles_elapsed.min", ""}},
    {"executed_instructions", {"smsp__inst_executed.sum", ""}},
    {"l2_lookup_sectors", {"lts__t_sectors_srcunit_tex_op_read.sum", ""}},
}};

const Row& row_of(HwQuantity quantity) {
  return kRows[static_cast<std::size_t>(quantity)];
}

std::string missing_privilege(std::string_view driver_params) {
  constexpr std::string_view kKey = "RmProfilingAdminOnly: ";
  const std::size_t at = driver_params.find(kKey);
  std::string what = "the driver refuses the counters to this user";
  if (at == std::string_view::npos)
    what += " (/proc/driver/nvidia/params does not tell why)";
  else if (driver_params.substr(at + kKey.size(), 1) == "0")
    what += ", although RmProfilingAdminOnly is 0 in /proc/driver/nvidia/params";
  else
    what =
        "the driver lets only administrators read the counters (RmProfilingAdminOnly is 1 in "
        "/proc/driver/nvidia/params)";
  return what +
         ": run as root or with CAP_SYS_ADMIN (a container: --cap-add=SYS_ADMIN), or load the nvidia module with "
         "NVreg_RestrictProfilingToAdminUsers=0";
}

}  // namespace

std::string_view hw_quantity_name(HwQuantity quantity) {
  return row_of(quantity).name;
}

std::span<const std::string_view> metric_candidates(HwQuantity quantity) {
  const auto& candidates = row_of(quantity).candidates;
  return {candidates.data(), candidates[1].empty() ? std::size_t{1} : candidates.size()};
}

// The numbers are CUptiResult's, which CUPTI never renumbers; naming them would need its header.
std::string counter_refusal(int cupti_code, std::string_view driver_params) {
  switch (cupti_code) {
    case 15:  // NOT_INITIALIZED
      return "CUPTI could not start: libnvperf_host.so has to lie beside libcupti, and the driver must be new enough "
             "for it";
    case 23:  // DISABLED
    case 39:  // MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
      return "another profiler is attached to this program (ncu, nsys, cuda-gdb or another client of CUPTI): run the "
             "program without it";
    case 26:  // HARDWARE_BUSY
      return "another process is using this GPU's counters: end the other profiler, or wait for it";
    case 27:  // NOT_SUPPORTED
      return "CUPTI offers no counters on this GPU or system: it takes a GPU of compute capability 7.5 or newer";
    case 33:  // VIRTUALIZED_DEVICE_NOT_SUPPORTED
      return "this virtual GPU has no counters: use a whole GPU, or a vGPU type that allows profiling";
    case 35:  // INSUFFICIENT_PRIVILEGES
      return missing_privilege(driver_params);
    case 36:  // OLD_PROFILER_API_INITIALIZED
      return "another part of this program has already started CUPTI's legacy profiler: run the program without it";
    case 40:  // VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
      return "the hypervisor keeps the counters from this virtual machine: whoever runs it has to allow profiling "
             "there";
    case 41:  // CONFIDENTIAL_COMPUTING_NOT_SUPPORTED
      return "the GPU is in confidential computing mode, which hides the counters: turn that mode off";
    case 42:  // CMP_DEVICE_NOT_SUPPORTED
      return "CUPTI offers no counters on mining processors (CMP): use another GPU";
    case 43:  // MIG_DEVICE_NOT_SUPPORTED
      return "the GPU is split into MIG instances, on which CUPTI cannot count: turn MIG off, or use another GPU";
    case 44:  // SLI_DEVICE_NOT_SUPPORTED
      return "CUPTI cannot count on GPUs joined by SLI: turn SLI off";
    case 45:  // WSL_DEVICE_NOT_SUPPORTED
      return "CUPTI cannot count under this WSL: use Linux itself, or a newer Windows driver";
    case 46:  // INVALID_CHIP_NAME
      return "this libcupti does not know the GPU's chip: install the one of a newer CUDA toolkit";
    default:
      return {};
  }
}

}  // namespace hbmscope
