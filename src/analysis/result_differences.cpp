#include "analysis/result_differences.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "measure/rank_test.hpp"
#include "measure/statistics.hpp"

namespace hbmscope {
namespace {

std::string key_of(const ResultEntry& e) {
  const AttentionShape& s = e.shape;
  std::string key;
  for (const std::int64_t n : {s.batch, s.num_heads, s.num_kv_heads, s.seqlen_q, s.seqlen_kv, s.head_dim, s.head_dim_v})
    key += std::to_string(n) + " ";
  for (const auto& edge : {s.mask.window_left, s.mask.window_right}) key += edge ? std::to_string(*edge) + " " : "- ";
  // Where nothing is masked, the alignment means nothing.
  if (s.mask.kind() != "none") key += std::string(name(s.mask.alignment)) + " ";
  for (const std::int64_t length : s.kv_lengths) key += std::to_string(length) + ",";
  for (const std::string_view text : {info(s.dtype).name, std::string_view(e.pass), std::string_view(e.gpu),
                                      std::string_view(e.algorithm.name), std::string_view(e.algorithm.plan)})
    key += "\n" + std::string(text);
  return key;
}

/// Entries of one key, by their places in their sets.
struct Alike {
  std::vector<std::size_t> first, second;
};

class Comparer {
 public:
  Comparer(const ResultSet& first, const ResultSet& second, const ComparisonLimits& limits)
      : first_(first), second_(second), limits_(limits) {}

  ResultDifferences compare() {
    std::map<std::string, Alike> groups;
    for (std::size_t i = 0; i < first_.entries.size(); ++i) groups[key_of(first_.entries[i])].first.push_back(i);
    for (std::size_t i = 0; i < second_.entries.size(); ++i) groups[key_of(second_.entries[i])].second.push_back(i);
    for (auto& [key, group] : groups) match(group);
    // In the order of the first set, whatever the keys' order is.
    std::sort(out_.matched.begin(), out_.matched.end());
    std::sort(out_.missing.begin(), out_.missing.end());
    std::sort(out_.added.begin(), out_.added.end());
    for (const auto& [a, b] : out_.matched) {
      a_ = a;
      b_ = b;
      const std::size_t before = out_.differences.size();
      compare_entries(first_.entries[a], second_.entries[b]);
      out_.equal += out_.differences.size() == before ? 1 : 0;
    }
    return std::move(out_);
  }

 private:
  void match(Alike& group) {
    const auto take = [&](const auto& fits) {
      std::erase_if(group.first, [&](std::size_t a) {
        const auto found = std::find_if(group.second.begin(), group.second.end(),
                                        [&](std::size_t b) { return fits(first_.entries[a], second_.entries[b]); });
        if (found == group.second.end()) return false;
        out_.matched.emplace_back(a, *found);
        group.second.erase(found);
        return true;
      });
    };
    take([](const ResultEntry& a, const ResultEntry& b) {
      return a.l2_effective_bytes == b.l2_effective_bytes && a.sweep_key == b.sweep_key;
    });
    take([](const ResultEntry& a, const ResultEntry& b) { return a.l2_effective_bytes == b.l2_effective_bytes; });
    take([](const ResultEntry&, const ResultEntry&) { return true; });
    out_.missing.insert(out_.missing.end(), group.first.begin(), group.first.end());
    out_.added.insert(out_.added.end(), group.second.begin(), group.second.end());
  }

  ResultDifference& add(Measure measure, std::string of, Verdict verdict, Quantity was, Quantity is) {
    return out_.differences.emplace_back(
        ResultDifference{a_, b_, measure, std::move(of), verdict, was, is, std::nullopt, std::nullopt});
  }

  void count(Measure measure, const std::string& of, std::optional<std::int64_t> was, std::optional<std::int64_t> is,
             double tolerance) {
    if (!was && !is) return;
    if (!is) return void(add(measure, of, Verdict::lost, *was, {}));
    if (!was) return void(add(measure, of, Verdict::gained, {}, *is));
    if (*was == *is) return;
    const auto a = static_cast<double>(*was), b = static_cast<double>(*is);
    if (std::abs(b - a) <= tolerance * std::max(std::abs(a), std::abs(b))) return;
    ResultDifference& difference = add(measure, of, Verdict::different, *was, *is);
    if (a != 0) difference.relative = b / a - 1;
  }

  /// Which of two times is the better one is plain; whether they differ has been settled.
  void time(Measure measure, const std::string& of, double was, double is) {
    ResultDifference& difference = add(measure, of, is > was ? Verdict::slower : Verdict::faster, was, is);
    if (was > 0) difference.relative = is / was - 1;
  }

  void compare_entries(const ResultEntry& a, const ResultEntry& b) {
    compare_traffic(a.algorithm.traffic, b.algorithm.traffic, "");
    for (const ResultStage& stage : a.algorithm.stages) {
      const auto other = std::find_if(b.algorithm.stages.begin(), b.algorithm.stages.end(),
                                      [&](const ResultStage& s) { return s.name == stage.name; });
      if (other == b.algorithm.stages.end()) continue;
      compare_traffic(stage.traffic, other->traffic, "stage " + stage.name + ", ");
    }
    count(Measure::flop, "matmul", a.algorithm.matmul_flop, b.algorithm.matmul_flop, limits_.bytes);
    count(Measure::flop, "executed matmul", a.algorithm.executed_matmul_flop, b.algorithm.executed_matmul_flop,
          limits_.bytes);
    const ResultMemory &x = a.algorithm.memory, &y = b.algorithm.memory;
    count(Measure::bytes, "memory, intermediates", x.intermediate_bytes, y.intermediate_bytes, limits_.bytes);
    count(Measure::bytes, "memory, saved for backward", x.saved_for_backward_bytes, y.saved_for_backward_bytes,
          limits_.bytes);
    count(Measure::bytes, "memory, peak", x.peak_bytes, y.peak_bytes, limits_.bytes);
    compare_predicted(a.algorithm.time.predicted_s.value, b.algorithm.time.predicted_s.value);
    compare_measured(a.algorithm.time, b.algorithm.time);
  }

  void compare_traffic(const std::vector<ResultTraffic>& was, const std::vector<ResultTraffic>& is,
                       const std::string& prefix) {
    const auto same = [](const ResultTraffic& a, const ResultTraffic& b) {
      return a.boundary == b.boundary && a.provenance == b.provenance && a.plan == b.plan;
    };
    const auto find = [&](const std::vector<ResultTraffic>& in, const ResultTraffic& wanted) {
      const auto found =
          std::find_if(in.begin(), in.end(), [&](const ResultTraffic& one) { return same(one, wanted); });
      return found == in.end() ? nullptr : &*found;
    };
    // naive counts itself twice: with its tiles, and with each operand once a kernel.
    const std::string& own_plan = first_.entries[a_].algorithm.plan;
    const auto words = [&](const ResultTraffic& one) {
      return prefix + one.boundary + " " + one.provenance + (one.plan == own_plan ? "" : " of another plan");
    };
    const ResultTraffic none{};
    for (const ResultTraffic& a : was) {
      const ResultTraffic* b = find(is, a);
      compare_entry(a, b == nullptr ? none : *b, words(a));
    }
    for (const ResultTraffic& b : is) {
      if (find(was, b) == nullptr) compare_entry(none, b, words(b));
    }
  }

  /// By tensor where both know the tensors, so that bytes that changed places are found.
  void compare_entry(const ResultTraffic& a, const ResultTraffic& b, const std::string& of) {
    const double tolerance = a.provenance == "hw_counter" || b.provenance == "hw_counter"
                                 ? std::max(limits_.counters, limits_.bytes)
                                 : limits_.bytes;
    if (!a.total || !b.total) return count(Measure::bytes, of + ", total", a.total, b.total, tolerance);
    if (a.tensors && b.tensors) {
      std::map<std::string, std::pair<TensorBytes, TensorBytes>> by_name;
      for (const TensorBytes& t : *a.tensors) by_name[t.name].first = t;
      for (const TensorBytes& t : *b.tensors) by_name[t.name].second = t;
      for (const auto& [tensor, both] : by_name) {
        count(Measure::bytes, of + ", " + tensor + " read", both.first.read, both.second.read, tolerance);
        count(Measure::bytes, of + ", " + tensor + " write", both.first.write, both.second.write, tolerance);
      }
    } else {
      count(Measure::bytes, of + ", read", a.read, b.read, tolerance);
      count(Measure::bytes, of + ", write", a.write, b.write, tolerance);
    }
    if (!a.least || !b.least || !a.most || !b.most) return;  // a row of `sweep` may leave the interval out
    count(Measure::bytes, of + ", least of any pace", a.least, b.least, tolerance);
    count(Measure::bytes, of + ", most of any pace", a.most, b.most, tolerance);
  }

  /// Computed, not measured: any change is one of the model, but for the last digits of another compiler.
  void compare_predicted(std::optional<double> was, std::optional<double> is) {
    if (!was && !is) return;
    if (!is) return void(add(Measure::predicted_time, "predicted time", Verdict::lost, *was, {}));
    if (!was) return void(add(Measure::predicted_time, "predicted time", Verdict::gained, {}, *is));
    if (std::abs(*is - *was) > 1e-9 * std::max(*is, *was)) time(Measure::predicted_time, "predicted time", *was, *is);
  }

  void compare_measured(const ResultTime& a, const ResultTime& b) {
    const char* const what = "measured time";
    const auto median_of = [](const ResultTime& t) {
      return t.samples_s.empty() ? t.measured_median_s : std::optional(median(t.samples_s));
    };
    const std::optional<double> was = median_of(a), is = median_of(b);
    if (!was && !is) return;
    if (!is) return void(add(Measure::measured_time, what, Verdict::lost, *was, {}));
    if (!was) return void(add(Measure::measured_time, what, Verdict::gained, {}, *is));
    const std::size_t n = a.samples_s.size(), m = b.samples_s.size();
    const bool tested = std::min(n, m) >= kLeastSamples;
    ++(tested ? out_.times_tested : out_.times_by_median);
    const double change = *was > 0 ? std::abs(*is / *was - 1) : std::abs(*is - *was);
    if (change <= limits_.time) return;
    std::optional<double> p;
    if (tested) {
      p = mann_whitney_p(a.samples_s, b.samples_s);
      if (*p >= limits_.p) return;
    }
    time(Measure::measured_time, what, *was, *is);
    ResultDifference& difference = out_.differences.back();
    difference.p = p;
    difference.samples_was = n;
    difference.samples_is = m;
  }

  const ResultSet &first_, &second_;
  ComparisonLimits limits_;
  ResultDifferences out_;
  std::size_t a_ = 0, b_ = 0;
};

}  // namespace

void ResultSet::add(Result&& result) {
  ++results;
  if (result.failed()) ++failed;
  if (!result.shape) return;
  for (ResultAlgorithm& algorithm : result.algorithms) {
    entries.push_back({result.where, *result.shape, result.pass, result.gpu.name, result.device,
                       result.gpu.l2_effective_bytes, result.sweep ? result.sweep->key : "", std::move(algorithm)});
  }
}

bool ResultDifferences::any(Verdict verdict) const {
  return std::any_of(differences.begin(), differences.end(),
                     [&](const ResultDifference& d) { return d.verdict == verdict; });
}

namespace {

/// Sums two columns as long as both fit 64 bits.
class SumOfBoth {
 public:
  void add(const ResultTraffic* was, const ResultTraffic* is) {
    if (was == nullptr || is == nullptr || !was->total || !is->total) return;
    any_ = true;
    fits_ =
        fits_ && !__builtin_add_overflow(was_, *was->total, &was_) && !__builtin_add_overflow(is_, *is->total, &is_);
  }
  [[nodiscard]] AlgorithmTotals::Sum sum() const {
    return any_ && fits_ ? AlgorithmTotals::Sum{was_, is_} : AlgorithmTotals::Sum{};
  }

 private:
  bool any_ = false, fits_ = true;
  std::int64_t was_ = 0, is_ = 0;
};

}  // namespace

std::vector<AlgorithmTotals> totals_by_algorithm(const ResultSet& first, const ResultSet& second,
                                                 const ResultDifferences& differences) {
  struct Open {
    AlgorithmTotals totals;
    SumOfBoth hbm, sm_l2;
    double log_ratios = 0;
  };
  std::vector<Open> open;
  std::set<std::size_t> unequal;
  for (const ResultDifference& d : differences.differences) unequal.insert(d.first);
  for (const auto& [a, b] : differences.matched) {
    const ResultAlgorithm &was = first.entries[a].algorithm, &is = second.entries[b].algorithm;
    auto at = std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.totals.algorithm == was.name; });
    if (at == open.end()) at = open.insert(open.end(), Open{{was.name, 0, 0, {}, {}, 0, {}}, {}, {}, 0});
    ++at->totals.matched;
    at->totals.equal += unequal.contains(a) ? 0 : 1;
    at->hbm.add(was.find("l2_hbm", "simulated"), is.find("l2_hbm", "simulated"));
    at->sm_l2.add(was.find("sm_l2", "closed_form"), is.find("sm_l2", "closed_form"));
    const std::optional<double>&x = was.time.measured_median_s, &y = is.time.measured_median_s;
    if (!x || !y || !(*x > 0) || !(*y > 0)) continue;
    ++at->totals.times;
    at->log_ratios += std::log(*y) - std::log(*x);
  }
  std::vector<AlgorithmTotals> all;
  for (Open& o : open) {
    o.totals.hbm = o.hbm.sum();
    o.totals.sm_l2 = o.sm_l2.sum();
    if (o.totals.times > 0) o.totals.time_ratio = std::exp(o.log_ratios / static_cast<double>(o.totals.times));
    all.push_back(std::move(o.totals));
  }
  return all;
}

ResultDifferences compare_results(const ResultSet& first, const ResultSet& second, const ComparisonLimits& limits) {
  return Comparer(first, second, limits).compare();
}

}  // namespace hbmscope
