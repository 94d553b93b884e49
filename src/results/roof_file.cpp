#include "results/roof_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "results/result_file.hpp"
#include "scenario/fields.hpp"
#include "scenario/gpu_file.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {

RoofFile read_roofs(const std::string& path) {
  constexpr const char* kRoofHint = "roofs are what `hbmscope gpu probe --json FILE` writes";
  if (path == "-")
    throw Error(ErrorKind::usage, "--roofs: does not read standard input", "name the file that gpu probe --json wrote");
  const nlohmann::json document = parse_json(read_text_file(path, Pipes::taken), path);
  const Fields top(document, path);
  const nlohmann::json* const list = top.find("roofs");
  if (list == nullptr || !list->is_array()) top.fail("roofs", "is no list: this is no probe of a GPU", kRoofHint);
  check_schema_version(top);
  RoofFile file;
  file.gpu = top.require_object("meta").require_string("gpu");
  std::size_t index = 0;
  for (const nlohmann::json& element : *list) {
    const Fields one(element, path, "/roofs/" + std::to_string(index++));
    const RoofKind* const kind = find_roof_kind(one.require_string("name"));
    const std::optional<double> rate = one.optional_real("rate");
    if (kind == nullptr || !rate) continue;  // of a later hbmscope, or not measured on that GPU
    // As in a GPU file: beyond lies a slip of the unit.
    const double most = kind->unit == RoofUnit::byte_per_s ? 1e15 : 1e18;
    if (*rate <= 0) one.fail("rate", "must be larger than 0, got " + one.require("rate").dump(), kRoofHint);
    if (*rate < 1e9 || *rate > most)
      one.fail("rate", "is implausible: " + one.require("rate").dump(), "rates are in units of one a second");
    if (one.require_string("unit") != hbmscope::name(kind->unit))
      one.fail("unit", "must be \"" + std::string(hbmscope::name(kind->unit)) + "\" for this roof", kRoofHint);
    add_measured_roof(file.roofs, *kind, *rate);
  }
  if (file.roofs.empty()) top.fail("roofs", "holds no rate", kRoofHint);
  file.sm_clocks = read_sm_clocks(top, "sm_clock_hz");
  return file;
}

void add_measured_roof(std::vector<GpuRoof>& roofs, const RoofKind& kind, double rate) {
  if (std::none_of(roofs.begin(), roofs.end(), [&](const GpuRoof& roof) { return roof.name == kind.name; }))
    roofs.push_back(measured_roof(kind, rate));
}

bool is_same_gpu(const std::string& driver_name, const std::string& gpu_name) {
  const GpuSpec* const known = gpu_of_device(driver_name);
  return fold_name(driver_name) == fold_name(gpu_name) || (known != nullptr && known->name == gpu_name);
}

}  // namespace hbmscope
