#include "analysis/profile_import.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "analysis/name_pattern.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kMostNamesInHint = 4;

std::string listed_names(const std::vector<NcuKernel>& kernels) {
  std::vector<std::string> names;
  for (const NcuKernel& kernel : kernels) {
    if (std::find(names.begin(), names.end(), kernel.name) == names.end()) names.push_back(kernel.name);
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamesInHint); ++i)
    list += (i > 0 ? ", " : "") + in_quotes(names[i]);
  if (names.size() > kMostNamesInHint) list += " and " + std::to_string(names.size() - kMostNamesInHint) + " more";
  return list;
}

std::string counted(std::size_t n, const char* noun, const char* plural) {
  return std::to_string(n) + " " + (n == 1 ? noun : plural);
}

std::vector<NcuKernel> select(const std::vector<NcuKernel>& kernels, const std::string& expression) {
  if (expression.empty()) return kernels;
  const NamePattern pattern(expression);
  std::map<std::string_view, bool> known;  // a file has many launches of few kernels
  std::vector<NcuKernel> selected;
  for (const NcuKernel& kernel : kernels) {
    const auto [entry, is_new] = known.try_emplace(kernel.name, false);
    if (is_new) entry->second = pattern.is_in(kernel.name);
    if (entry->second) selected.push_back(kernel);
  }
  if (selected.empty()) {
    throw Error(ErrorKind::usage, "--kernel: " + in_quotes(expression) + " matches no kernel of the file",
                "there is " + listed_names(kernels));
  }
  return selected;
}

std::string how_to_count(HwQuantity quantity) {
  return "not collected; ncu --metrics " + std::string(metric_candidates(quantity).front()) + " counts it";
}

CountedBytes count_bytes(const NcuKernel& kernel, HwQuantity quantity, std::string_view source) {
  const std::optional<NcuReading> reading = read_quantity(kernel, quantity, source);
  if (!reading) return {Known<Bytes>::missing(Status::skipped, how_to_count(quantity)), {}, 0};
  return {Known<Bytes>::of(Bytes(reading->count)), reading->metric, reading->step};
}

CountedLaunch count(const NcuKernel& kernel, std::string_view source) {
  CountedLaunch launch;
  launch.kernel = kernel;
  launch.hbm = {count_bytes(kernel, HwQuantity::dram_read_bytes, source),
                count_bytes(kernel, HwQuantity::dram_write_bytes, source)};
  launch.sm = {count_bytes(kernel, HwQuantity::xbar_read_bytes, source),
               count_bytes(kernel, HwQuantity::l2_write_sectors, source)};
  launch.l2_lookup = count_bytes(kernel, HwQuantity::l2_lookup_sectors, source);
  const std::optional<NcuReading> time = read_quantity(kernel, HwQuantity::gpu_time_ns, source);
  launch.time = time ? Known<Seconds>::of(Seconds{time->value})
                     : Known<Seconds>::missing(Status::skipped, how_to_count(HwQuantity::gpu_time_ns));
  const std::optional<NcuReading> tensor = read_quantity(kernel, HwQuantity::tensor_instructions, source);
  launch.tensor_instructions =
      tensor ? Known<Count>::of(Count(tensor->count))
             : Known<Count>::missing(Status::skipped, how_to_count(HwQuantity::tensor_instructions));
  if (tensor) launch.tensor_metric = tensor->metric;
  return launch;
}

void add(CountedBytes& to, const CountedBytes& more) {
  if (to.bytes && more.bytes) {
    to.bytes = Known<Bytes>::of(*to.bytes + *more.bytes);
  } else if (to.bytes) {
    to.bytes = more.bytes;
  }
  to.step += more.step;
}

/// One traffic over the launches of these indices; at least one.
CountedTraffic sum(const std::vector<CountedLaunch>& launches, const std::vector<std::size_t>& which,
                   CountedTraffic CountedLaunch::*traffic) {
  CountedTraffic all = launches[which[0]].*traffic;
  for (std::size_t i = 1; i < which.size(); ++i) {
    add(all.read, (launches[which[i]].*traffic).read);
    add(all.write, (launches[which[i]].*traffic).write);
  }
  return all;
}

std::vector<std::size_t> all_of(const std::vector<CountedLaunch>& launches) {
  std::vector<std::size_t> indices(launches.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

std::optional<double> ratio(const Known<Bytes>& counted, Bytes predicted) {
  if (!counted || predicted.value() == 0) return std::nullopt;
  return counted->as_double() / predicted.as_double();
}

/// Refuses launches that do not stand for the algorithm's kernels one by one, and, for an algorithm of one kernel, for
/// that kernel again and again.
void check_launches(const std::vector<CountedLaunch>& launches, const AlgorithmResult& a) {
  std::vector<NcuKernel> kernels;
  for (const CountedLaunch& launch : launches) kernels.push_back(launch.kernel);
  const std::string algorithm(a.algorithm->name), there = "selected: " + listed_names(kernels);
  if (a.stages.size() == 1) {
    const bool alike = std::all_of(kernels.begin(), kernels.end(),
                                   [&](const NcuKernel& kernel) { return kernel.name == kernels[0].name; });
    if (alike) return;
    throw Error(ErrorKind::usage,
                "--algorithm: " + algorithm + " is one kernel, and the " + std::to_string(launches.size()) +
                    " launches that are selected are of different ones",
                "choose one with --kernel; " + there);
  }
  if (launches.size() == a.stages.size()) return;
  std::string names;
  for (const StageResult& stage : a.stages) names += (names.empty() ? "" : ", ") + std::string(stage.name);
  throw Error(ErrorKind::usage,
              "--algorithm: " + algorithm + " is " + std::to_string(a.stages.size()) + " kernels (" + names +
                  "), and " + counted(launches.size(), "launch is", "launches are") + " selected",
              "choose one launch of each with --kernel, in this order; " + there);
}

/// The algorithm beside the launches: which of them is which of its kernels, and how far apart the two are.
class Beside {
 public:
  Beside(ProfileImport& import, const AlgorithmResult& algorithm, const RunResult& run)
      : import_(import), a_(algorithm), run_(run) {}

  void compare() {
    const std::size_t stages = a_.stages.size();
    for (std::size_t i = 0; i < import_.launches.size(); ++i) {
      const std::size_t stage = stages == 1 ? 0 : i;
      import_.launches[i].stage = a_.stages[stage].name;
      LaunchComparison one = begin(a_.stages[stage].name, {i});
      if (stages == 1) {
        whole(one);
      } else {
        const StageResult& beside = a_.stages[stage];
        for (const TrafficEntry& entry : beside.traffic) {
          if (entry.provenance == Provenance::simulated) add_row(one, entry);
        }
        const TrafficEntry& tiles = closed_form(beside);
        add_row(one, tiles);
        one.differences = differences_of(one, *tiles.traffic, once_read(stage), l2_bytes());
      }
      import_.comparisons.push_back(std::move(one));
    }
    import_.time = time();
    if (stages == 1) return;
    LaunchComparison all = begin("all", all_of(import_.launches));
    whole(all);
    import_.comparisons.push_back(std::move(all));
  }

 private:
  [[nodiscard]] LaunchComparison begin(std::string_view stage, std::vector<std::size_t> launches) const {
    LaunchComparison one{stage, std::move(launches), {}, {}, {}, {}};
    one.hbm = sum(import_.launches, one.launches, &CountedLaunch::hbm);
    one.sm = sum(import_.launches, one.launches, &CountedLaunch::sm);
    return one;
  }

  static const TrafficEntry& closed_form(const StageResult& stage) {
    return *std::find_if(stage.traffic.begin(), stage.traffic.end(),
                         [](const TrafficEntry& entry) { return entry.provenance == Provenance::closed_form; });
  }

  /// Against everything that is known of the whole algorithm. naive's floor, each operand once a kernel, is no traffic
  /// that a tiled product has, and so stands beside no counter.
  void whole(LaunchComparison& one) const {
    for (const Boundary boundary : {Boundary::compulsory, Boundary::l2_hbm, Boundary::sm_l2}) {
      if (const TrafficEntry* entry = a_.at(boundary); entry != nullptr) add_row(one, *entry);
    }
    const Traffic& tiles = *a_.at(Boundary::sm_l2)->traffic;
    one.differences = differences_of(one, tiles, once_read_of_all(), l2_bytes());
  }

  static void add_row(LaunchComparison& to, const TrafficEntry& entry) {
    ComparisonRow row;
    row.predicted = entry.boundary;
    row.counted = entry.boundary == Boundary::compulsory ? Boundary::l2_hbm : entry.boundary;
    row.provenance = entry.provenance;
    row.bytes = entry.traffic ? Known<ReadWrite>::of(entry.traffic->sum())
                              : Known<ReadWrite>::missing(entry.traffic.status, entry.traffic.reason);
    if (row.bytes) {
      const CountedTraffic& counters = row.counted == Boundary::l2_hbm ? to.hbm : to.sm;
      row.read_ratio = ratio(counters.read.bytes, row.bytes->read);
      row.write_ratio = ratio(counters.write.bytes, row.bytes->write);
      row.total_ratio = ratio(counters.total(), row.bytes->total());
    }
    if (entry.paces.size() > 1) {
      const auto [least, most] = std::minmax_element(
          entry.paces.begin(), entry.paces.end(),
          [](const L2Estimate::PaceTotal& x, const L2Estimate::PaceTotal& y) { return x.total < y.total; });
      row.least_total = least->total;
      row.most_total = most->total;
    }
    to.rows.push_back(std::move(row));
  }

  [[nodiscard]] Known<Seconds> time() const {
    std::vector<Seconds> times;
    Seconds sum{};
    for (const CountedLaunch& launch : import_.launches) {
      if (!launch.time) return launch.time;
      times.push_back(*launch.time);
      sum = sum + *launch.time;
    }
    if (a_.stages.size() > 1) return Known<Seconds>::of(sum);
    std::sort(times.begin(), times.end());
    const Seconds lower = times[(times.size() - 1) / 2], upper = times[times.size() / 2];
    return Known<Seconds>::of(0.5 * (lower + upper));
  }

  /// What the stage's kernel reads when each of its operands passes once.
  [[nodiscard]] std::optional<Bytes> once_read(std::size_t stage) const {
    if (a_.stages.size() == 1) return a_.at(Boundary::compulsory)->traffic->sum().read;
    if (!a_.plan.gemm_tile) return std::nullopt;
    TilePlan once = a_.plan;
    once.gemm_tile.reset();
    return a_.algorithm->closed_form(run_.request.shape, once)[stage].traffic.sum().read;
  }
  [[nodiscard]] std::optional<Bytes> once_read_of_all() const {
    Bytes sum;
    for (std::size_t stage = 0; stage < a_.stages.size(); ++stage) {
      const std::optional<Bytes> one = once_read(stage);
      if (!one) return std::nullopt;
      sum += *one;
    }
    return sum;
  }
  [[nodiscard]] Bytes l2_bytes() const { return run_.request.gpu.l2_bytes; }

  ProfileImport& import_;
  const AlgorithmResult& a_;
  const RunResult& run_;
};

/// A file that was cut between two rows looks whole; that its last launch knows less than all others tells.
void warn_of_a_short_end(const std::vector<NcuKernel>& kernels, std::vector<std::string>& warnings) {
  if (kernels.size() < 2) return;
  const NcuKernel& last = kernels.back();
  std::size_t missing = 0;
  for (const auto& [metric, value] : kernels.front().metrics) {
    const bool in_all_others =
        std::all_of(kernels.begin(), kernels.end() - 1,
                    [&, &metric = metric](const NcuKernel& k) { return k.metrics.contains(metric); });
    if (in_all_others && !last.metrics.contains(metric)) ++missing;
  }
  if (missing == 0) return;
  warnings.push_back("the last launch of the file lacks " + counted(missing, "metric", "metrics") +
                     " that all others have: was the file cut short?");
}

void warn_of_the_gpu(const std::vector<CountedLaunch>& launches, const RunRequest& request,
                     std::vector<std::string>& warnings) {
  const std::string& given = launches.front().kernel.compute_capability;
  const std::string& known = request.gpu.architecture;
  if (!given.empty() && !known.ends_with("compute capability " + given)) {
    warnings.push_back("the kernels ran on compute capability " + given + ", and the prediction is for " +
                       request.gpu.name + " (" + known + "): name theirs with --gpu");
  } else if (request.gpu_assumed) {
    warnings.push_back("nobody named the GPU that was profiled, so " + request.gpu.name +
                       " is assumed: name it with --gpu, as the prediction at l2_hbm needs its L2");
  }
}

}  // namespace

Known<Bytes> CountedTraffic::total() const {
  if (!read.bytes) return read.bytes;
  return write.bytes ? Known<Bytes>::of(*read.bytes + *write.bytes) : write.bytes;
}

ProfileImport import_profile(ProfileRequest request, const Progress& progress) {
  ProfileImport result;
  result.source = request.source;
  result.layout = request.file.layout;
  result.kernel = request.kernel;
  result.launches_in_file = request.file.kernels.size();
  for (const NcuKernel& kernel : select(request.file.kernels, request.kernel))
    result.launches.push_back(count(kernel, request.source));
  result.hbm = sum(result.launches, all_of(result.launches), &CountedLaunch::hbm);
  warn_of_a_short_end(request.file.kernels, result.warnings);
  if (!request.beside) return result;
  if (request.beside->algorithms.size() != 1) {
    throw Error(ErrorKind::usage, "--algorithm: counters are put beside one algorithm at a time",
                "give one name, such as --algorithm flash_v2");
  }
  // Closed forms tell at once how many kernels there are; the simulation may take its time.
  RunRequest at_once = *request.beside;
  at_once.engine = Engine::model;
  check_launches(result.launches, run(at_once).algorithms.front());
  result.beside = run(*request.beside, progress);
  warn_of_the_gpu(result.launches, *request.beside, result.warnings);
  Beside(result, result.beside->algorithms.front(), *result.beside).compare();
  return result;
}

}  // namespace hbmscope
