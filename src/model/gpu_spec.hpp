#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/gpu_roofs.hpp"
#include "model/traffic.hpp"

namespace hbmscope {

struct Source {
  std::string title;
  std::string date;  ///< ISO date or month of the document
};

/// A GPU as data: datasheet values, dense rates only. Each value's source stands in `sources` under the value's JSON
/// key.
struct GpuSpec {
  std::string name;
  std::vector<std::string> aliases;
  std::string architecture;  ///< "NVIDIA Hopper, compute capability 9.0"
  std::int64_t num_sms = 0;
  Bytes l2_bytes;
  Bytes l2_effective_bytes;  ///< what a stream shared by all SMs really finds: see l2_effective_reason
  std::string l2_effective_reason;
  Provenance l2_effective_provenance = Provenance::assumed;
  Bytes smem_per_block_bytes;  ///< the most one CTA may use; the papers' M
  Bytes smem_per_sm_bytes;
  Bytes registers_per_sm_bytes;
  Bytes hbm_bytes;
  BytesPerSecond hbm_bandwidth;
  std::array<std::optional<FlopPerSecond>, kDtypes.size()>
      peak;                 ///< dense matmul rate with fp32 accumulation, by input dtype; none: not supported
  Seconds launch_overhead;  ///< of one kernel
  std::vector<GpuRoof> measured_roofs;    ///< what `gpu probe` measured on one; often none
  std::vector<double> sm_clocks;          ///< Hz, of each SM at one time, as `gpu probe` measured them; often none
  std::map<std::string, Source> sources;  ///< by JSON key
};

}  // namespace hbmscope
