#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/probe.hpp"
#include "model/gpu_spec.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// The roofs that `gpu probe` measured, beside the datasheet's where a GPU file knows this GPU (null: none does), and
/// the counters' check.
Document probe_document(const ProbeResult& result, const GpuSpec* datasheet);
nlohmann::ordered_json probe_to_json(const ProbeResult& result, const GpuSpec* datasheet,
                                     const std::vector<std::string>& argv);

}  // namespace hbmscope
