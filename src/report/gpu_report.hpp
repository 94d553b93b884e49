#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/gpu_spec.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// One line a GPU, at most 100 columns.
Document gpu_list_document(std::span<const GpuSpec> gpus);
nlohmann::ordered_json gpu_list_to_json(std::span<const GpuSpec> gpus, const std::vector<std::string>& argv);

/// Every value with its unit, its source and the source's date; what nobody measured is marked as assumed.
Document gpu_document(const GpuSpec& gpu);
/// A GPU file: what `--gpu FILE.json` reads, ready to be changed.
nlohmann::ordered_json gpu_to_json(const GpuSpec& gpu);

}  // namespace hbmscope
