#include "scenario/gpu_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "scenario/embedded.hpp"
#include "scenario/fields.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

constexpr std::array<std::string_view, 18> kTopLevelKeys{"name",
                                                         "aliases",
                                                         "architecture",
                                                         "num_sms",
                                                         "l2_bytes",
                                                         "l2_effective_bytes",
                                                         "l2_effective_reason",
                                                         "l2_effective_provenance",
                                                         "smem_per_block_bytes",
                                                         "smem_per_sm_bytes",
                                                         "registers_per_sm_bytes",
                                                         "hbm_bytes",
                                                         "hbm_bandwidth_bytes_per_s",
                                                         "peak_flop_per_s",
                                                         "launch_overhead_s",
                                                         "measured_roofs",
                                                         "sm_clock_hz",
                                                         "sources"};
constexpr std::array<std::string_view, 3> kValueKeys{"value", "source", "note"};
constexpr std::array<std::string_view, 2> kSourceKeys{"title", "date"};

constexpr std::int64_t kMaxSms = 100'000;
/// Less would not hold a tile of one row, and no chip is near either.
constexpr std::int64_t kMinSmem = 1024, kMaxSmem = std::int64_t{1} << 40;

/// Reads the values of one file and collects where each comes from.
class GpuReader {
 public:
  GpuReader(const nlohmann::json& document, std::string_view source_name)
      : top_(document, source_name), source_name_(source_name) {
    top_.allow_only(kTopLevelKeys);
    if (top_.find("sources") == nullptr) return;
    const Fields table = top_.require_object("sources");
    for (const auto& [key, entry] : table.object().items()) {
      const Fields source = table.require_object(key.c_str());
      source.allow_only(kSourceKeys);
      titles_[key] = {source.require_string("title"), source.optional_string("date").value_or("")};
    }
  }

  GpuSpec read() {
    GpuSpec gpu;
    gpu.name = top_.require_string("name");
    if (gpu.name.empty()) top_.fail("name", "must not be empty", "name the GPU");
    gpu.aliases = top_.optional_strings("aliases");
    gpu.architecture = top_.optional_string("architecture").value_or("unknown");
    gpu.num_sms = integer("num_sms", kMaxSms);
    gpu.l2_bytes = bytes("l2_bytes");
    read_l2_effective(gpu);
    gpu.smem_per_block_bytes = Bytes(integer("smem_per_block_bytes", kMaxSmem, kMinSmem));
    gpu.smem_per_sm_bytes = Bytes(integer("smem_per_sm_bytes", kMaxSmem, kMinSmem));
    if (gpu.smem_per_block_bytes > gpu.smem_per_sm_bytes) {
      top_.fail("smem_per_block_bytes",
                "must not be larger than smem_per_sm_bytes, but " + std::to_string(gpu.smem_per_block_bytes.value()) +
                    " > " + std::to_string(gpu.smem_per_sm_bytes.value()),
                "a block has a part of its SM's shared memory");
    }
    gpu.registers_per_sm_bytes = bytes("registers_per_sm_bytes");
    gpu.hbm_bytes = bytes("hbm_bytes");
    gpu.hbm_bandwidth = {
        real(require_place("hbm_bandwidth_bytes_per_s"), {1e9, 1e14, "in bytes per second: 3.35 TB/s is 3.35e12"})};
    read_peaks(gpu);
    if (top_.find("launch_overhead_s") == nullptr) {
      gpu.launch_overhead = kAssumedLaunchOverhead;
      sources_["launch_overhead_s"] = {"assumed: typical back-to-back kernel launch", ""};
    } else {
      gpu.launch_overhead = {real(require_place("launch_overhead_s"), {0, 1, "in seconds: 4 microseconds are 4e-6"})};
    }
    read_measured_roofs(gpu);
    read_clocks(gpu);
    gpu.sources = std::move(sources_);
    return gpu;
  }

 private:
  /// Where a number stands: beside its source, or bare.
  struct Place {
    Fields fields;
    const char* key;
  };

  /// The place of the number behind `key`, nothing if it is null; its source is noted under `source_key`.
  std::optional<Place> locate(const Fields& parent, const char* key, const std::string& source_key) {
    if (!parent.require(key).is_object()) {
      sources_[source_key] = {"given in " + std::string(source_name_), ""};
      return Place{parent, key};
    }
    const Fields member = parent.require_object(key);
    member.allow_only(kValueKeys);
    const std::string source = member.require_string("source");
    const auto known = titles_.find(source);
    if (known == titles_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, entry] : titles_) names.push_back(name);
      member.fail("source", in_quotes(source) + " is not a key of /sources", did_you_mean(source, names));
    }
    if (member.object().contains("value") && member.find("value") == nullptr) return std::nullopt;
    Source noted = known->second;
    if (const auto note = member.optional_string("note")) noted.title += "; " + *note;
    sources_[source_key] = std::move(noted);
    return Place{member, "value"};
  }
  Place require_place(const char* key) {
    const auto place = locate(top_, key, key);
    if (!place) top_.fail(key, "must not be null", "give it a value");
    return *place;
  }

  std::int64_t integer(const char* key, std::int64_t max = Fields::kMax, std::int64_t min = 1) {
    const Place place = require_place(key);
    return place.fields.require_integer(place.key, min, max);
  }
  Bytes bytes(const char* key) { return Bytes(integer(key)); }

  struct Range {
    double min, max;
    std::string_view hint;
  };
  static double real(const Place& place, const Range& plausible) {
    const double number = place.fields.require_real(place.key);
    const std::string hint(plausible.hint);
    if (number <= 0)
      place.fields.fail(place.key, "must be more than 0, got " + place.fields.require(place.key).dump(), hint);
    if (number < plausible.min || number > plausible.max) {
      place.fields.fail(place.key, "is implausible: " + place.fields.require(place.key).dump(), hint);
    }
    return number;
  }

  void read_l2_effective(GpuSpec& gpu) {
    if (top_.find("l2_effective_bytes") == nullptr) {
      gpu.l2_effective_bytes = gpu.l2_bytes;
      gpu.l2_effective_reason = "not given: taken as the whole L2";
      sources_["l2_effective_bytes"] = {"assumed: the whole L2", ""};
      return;
    }
    gpu.l2_effective_bytes = bytes("l2_effective_bytes");
    if (gpu.l2_effective_bytes > gpu.l2_bytes) {
      top_.fail("l2_effective_bytes",
                "must not be larger than l2_bytes, but " + std::to_string(gpu.l2_effective_bytes.value()) + " > " +
                    std::to_string(gpu.l2_bytes.value()),
                "give the part of the L2 that one SM can fill, or leave it out");
    }
    gpu.l2_effective_reason = top_.require_string("l2_effective_reason");
    const std::string provenance = top_.optional_string("l2_effective_provenance").value_or("assumed");
    std::vector<std::string_view> names;
    for (int p = 0; p <= static_cast<int>(Provenance::quoted); ++p) {
      names.push_back(hbmscope::name(static_cast<Provenance>(p)));
      if (provenance == names.back()) gpu.l2_effective_provenance = static_cast<Provenance>(p);
    }
    if (std::find(names.begin(), names.end(), provenance) == names.end()) {
      top_.fail("l2_effective_provenance", "is not a provenance: " + in_quotes(provenance),
                did_you_mean(provenance, names));
    }
  }

  void read_peaks(GpuSpec& gpu) {
    const Fields peaks = top_.require_object("peak_flop_per_s");
    std::vector<std::string_view> names;
    for (const DtypeInfo& dtype : kDtypes) names.push_back(dtype.name);
    peaks.allow_only(names);
    bool has_any = false;
    for (const DtypeInfo& dtype : kDtypes) {
      const std::string key(dtype.name);
      if (peaks.find(key.c_str()) == nullptr) continue;
      const auto place = locate(peaks, key.c_str(), "peak_flop_per_s." + key);
      if (!place) continue;
      const double rate = real(*place, {1e9, 1e18, "in FLOP/s, dense: 989.5 TFLOP/s are 989.5e12"});
      gpu.peak[static_cast<std::size_t>(dtype.dtype)] = FlopPerSecond{rate};
      has_any = true;
    }
    if (!has_any)
      top_.fail("peak_flop_per_s", "needs the rate of at least one of fp32, fp16, bf16 and fp8",
                "write {\"fp16\": 989.5e12}, in FLOP/s");
  }

  void read_measured_roofs(GpuSpec& gpu) {
    if (top_.find("measured_roofs") == nullptr) return;
    const Fields roofs = top_.require_object("measured_roofs");
    std::vector<std::string_view> keys;
    for (const RoofKind& kind : kRoofKinds) keys.push_back(kind.key);
    roofs.allow_only(keys);
    for (const RoofKind& kind : kRoofKinds) {
      const std::string key(kind.key);
      if (roofs.find(key.c_str()) == nullptr) continue;
      const auto place = locate(roofs, key.c_str(), "measured_roofs." + key);
      if (!place) continue;
      constexpr Range kBytes{1e9, 1e15, "in bytes per second, as gpu probe --json has it"},
          kOthers{1e9, 1e18, "in operations per second, as gpu probe --json has it"};
      gpu.measured_roofs.push_back(
          measured_roof(kind, real(*place, kind.unit == RoofUnit::byte_per_s ? kBytes : kOthers)));
    }
  }

  void read_clocks(GpuSpec& gpu) {
    if (top_.find("sm_clock_hz") == nullptr) return;
    const auto place = locate(top_, "sm_clock_hz", "sm_clock_hz");
    if (!place) return;
    (void)place->fields.require(place->key);
    gpu.sm_clocks = hbmscope::read_sm_clocks(place->fields, place->key);
    if (std::ssize(gpu.sm_clocks) == gpu.num_sms) return;
    place->fields.fail(place->key,
                       "must have a clock for each of the " + std::to_string(gpu.num_sms) + " SMs, but has " +
                           std::to_string(gpu.sm_clocks.size()),
                       "in Hz, as gpu probe --json has them");
  }

  Fields top_;
  std::string_view source_name_;
  std::map<std::string, Source> titles_;   ///< the file's table of sources
  std::map<std::string, Source> sources_;  ///< by JSON key, for GpuSpec
};

const GpuSpec* find_embedded(std::string_view name) {
  const std::string wanted = fold_name(name);
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    const auto matches = [&](const std::string& other) { return fold_name(other) == wanted; };
    if (matches(gpu.name) || std::any_of(gpu.aliases.begin(), gpu.aliases.end(), matches)) return &gpu;
  }
  return nullptr;
}

[[noreturn]] void fail_unknown(std::string_view name) {
  std::vector<std::string_view> known;
  for (const GpuSpec& gpu : embedded_gpus_parsed()) known.push_back(gpu.name);
  throw Error(ErrorKind::usage, "there is no GPU and no GPU file " + in_quotes(name),
              did_you_mean(name, known) + " (or give the path of a file that ends in .json)");
}

}  // namespace

std::vector<double> read_sm_clocks(const Fields& fields, const char* key) {
  constexpr std::int64_t kSlowest = 100'000'000, kFastest = 10'000'000'000;
  std::vector<double> clocks;
  for (const std::int64_t hz : fields.optional_integers(key, kSlowest, kFastest)) {
    clocks.push_back(static_cast<double>(hz));
  }
  if (clocks.empty()) return clocks;
  const auto [slowest, fastest] = std::minmax_element(clocks.begin(), clocks.end());
  if (*fastest > 2 * *slowest) {
    fields.fail(key, "is implausible: one clock is more than twice another", "the clock of each SM at one time, in Hz");
  }
  return clocks;
}

GpuSpec parse_gpu(std::string_view text, std::string_view source_name) {
  const nlohmann::json document = parse_json(text, source_name);
  return GpuReader(document, source_name).read();
}

const std::vector<GpuSpec>& embedded_gpus_parsed() {
  static const std::vector<GpuSpec> gpus = [] {
    std::vector<GpuSpec> parsed;
    for (const EmbeddedFile& file : embedded_gpus()) parsed.push_back(parse_gpu(file.text, file.name));
    return parsed;
  }();
  return gpus;
}

const GpuSpec& embedded_gpu(std::string_view name) {
  const GpuSpec* const gpu = find_embedded(name);
  if (gpu == nullptr) fail_unknown(name);
  return *gpu;
}

GpuSpec find_gpu(std::string_view name_or_path) {
  if (const GpuSpec* const gpu = find_embedded(name_or_path)) return *gpu;
  if (!name_or_path.ends_with(".json")) fail_unknown(name_or_path);
  const std::string path(name_or_path);
  return parse_gpu(read_text_file(path), path);
}

const GpuSpec* gpu_of_device(std::string_view device_name) {
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    if (std::find(gpu.aliases.begin(), gpu.aliases.end(), device_name) != gpu.aliases.end()) return &gpu;
  }
  return nullptr;
}

}  // namespace hbmscope
