#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/remarks.hpp"
#include "report/format.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

/// What most of naive's bytes are: the squares that it stores, unless others are more than half.
std::string_view naive_words(const AlgorithmResult& naive) {
  switch (naive_bulk(naive)) {
    case NaiveBulk::kv:
      return "mostly K and V";
    case NaiveBulk::rows:
      return "mostly Q and O";
    case NaiveBulk::squares:
      break;
  }
  return "S and P in HBM";
}

/// What an algorithm is, in at most 25 characters.
std::string what(const AlgorithmResult& a) {
  const std::string_view name = a.algorithm->name;
  const std::string tiles = fmt::format("{} x {}", a.plan.block_q, a.plan.block_kv);
  if (name == "naive") return fmt::format("{}, {} kernels", naive_words(a), a.stages.size());
  if (name == "naive_bwd") return "P saved, operands once";
  if (name == "split_kv") return fmt::format("{} splits, {}", a.plan.num_kv_splits, tiles);
  if (name == "flash_v2" || name == "flash_v3") {
    const std::string together = cluster_of(a.plan) > 1 ? fmt::format("{} x ", cluster_of(a.plan)) : "";
    return fmt::format("Q outer, {}{}", together, tiles);
  }
  return fmt::format("KV outer, {}", tiles);
}

class TrafficTables {
 public:
  TrafficTables(Document& out, const RunResult& r, const RunView& view) : out_(out), r_(r), view_(view) {}

  void write() {
    if (has_hbm(r_)) hbm_table();
    sm_table();
  }

 private:
  /// Columns read, write, total and the ratio of naive to this one.
  [[nodiscard]] Table traffic_table(std::string title) const {
    return {std::move(title), {{"", false}, {"", false}, {"read"}, {"write"}, {"total"}, {"naive/x"}}, {}, {}};
  }
  static std::vector<std::string> row(std::string_view name, std::string_view words, const Known<Traffic>& traffic,
                                      const Known<Traffic>* naive) {
    std::vector<std::string> cells{std::string(name), std::string(words)};
    if (!traffic) {
      for (int i = 0; i < 4; ++i) cells.emplace_back(kNone);
      return cells;
    }
    const ReadWrite sum = traffic->sum();
    for (const Bytes b : {sum.read, sum.write, sum.total()}) cells.push_back(text::bytes(b));
    const bool comparable = naive != nullptr && *naive && sum.total().value() > 0;
    cells.push_back(comparable ? text::ratio((*naive)->total().as_double() / sum.total().as_double())
                               : std::string(kNone));
    return cells;
  }
  [[nodiscard]] const Known<Traffic>* naive_at(Boundary boundary, Pass pass) const {
    const AlgorithmResult* naive = r_.find(pass == Pass::backward ? "naive_bwd" : "naive");
    const TrafficEntry* entry = naive == nullptr ? nullptr : naive->at(boundary);
    return entry == nullptr ? nullptr : &entry->traffic;
  }

  void hbm_table() {
    const std::string l2 =
        r_.l2_effective.value() == 0
            ? "no L2"
            : fmt::format("{} {} L2, {} effective", r_.request.l2_warm ? "warm" : "cold",
                          text::binary_bytes(r_.request.gpu.l2_bytes), text::binary_bytes(r_.l2_effective));
    Table t = traffic_table(fmt::format("Through HBM  (simulated, {})", l2));
    for (const AlgorithmResult& a : r_.algorithms) {
      const TrafficEntry* entry = a.at(Boundary::l2_hbm);
      if (entry != nullptr)
        t.rows.push_back(
            row(a.algorithm->name, what(a), entry->traffic, naive_at(Boundary::l2_hbm, a.algorithm->pass)));
    }
    const bool both = r_.request.pass == "both";
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto of_pass = std::find_if(r_.algorithms.begin(), r_.algorithms.end(),
                                        [&](const AlgorithmResult& a) { return a.algorithm->pass == pass; });
      if (of_pass == r_.algorithms.end()) continue;
      const TrafficEntry* least = of_pass->at(Boundary::compulsory);
      t.rows.push_back(row("compulsory",
                           !both                   ? "each byte once"
                           : pass == Pass::forward ? "forward, once each"
                                                   : "backward, once each",
                           least->traffic, naive_at(Boundary::l2_hbm, pass)));
      if (view_.explain) t.notes.push_back(fmt::format("compulsory: {}.", least->formula));
    }
    if (const AlgorithmResult* naive = r_.find("naive"); naive != nullptr && naive_bulk(*naive) == NaiveBulk::kv)
      explain_naive_kv(t, *naive);
    for (const AlgorithmResult& a : r_.algorithms) {
      if (const TrafficEntry* entry = a.at(Boundary::l2_hbm); entry != nullptr) explain_hbm(t, a, *entry);
    }
    if (view_.explain) {
      t.notes.push_back(
          fmt::format("read, write: what an LRU cache of {} of tiles fetches from HBM and writes back, counted while "
                      "it serves the tile requests of the "
                      "kernels below, {}. The capacity is {}: {}",
                      text::binary_bytes(r_.l2_effective),
                      r_.request.l2_warm ? "after a run of the same kernels" : "cold at the start, flushed at the end",
                      name(r_.l2_provenance), r_.request.l2 ? "given with --l2" : r_.request.gpu.l2_effective_reason));
      const bool drifting = std::any_of(r_.algorithms.begin(), r_.algorithms.end(),
                                        [](const AlgorithmResult& a) { return a.sm_clock_spread.value.has_value(); });
      t.notes.push_back(fmt::format(
          "central value: a step that goes to HBM takes {} % longer, which holds CTAs of a head together (assumed); of "
          "two CTAs of flash_v2 on an SM the older goes first, by what was measured on an H200, which parts them (but "
          "not with --stages 1 up to head_dim 128). The interval runs over it, CTAs in lockstep, {}.",
          kMissStall * 100 / kPartsPerStep,
          drifting ? "CTAs that nothing holds together, and SMs that run at their own clocks"
                   : "and CTAs that nothing holds together"));
      t.notes.emplace_back("naive/x: how many times as many bytes naive moves.");
    }
    out_.push_back(std::move(t));
  }

  /// Where the squares are small, as in decode, K and V are naive's bytes, and it may read them again and again.
  void explain_naive_kv(Table& t, const AlgorithmResult& naive) const {
    const AttentionShape& s = r_.request.shape;
    const Traffic& traffic = *naive.at(Boundary::l2_hbm)->traffic;
    const Bytes moved = traffic[Tensor::K].total() + traffic[Tensor::V].total();
    const Bytes size = tensor_bytes(Tensor::K, s, naive.plan) + tensor_bytes(Tensor::V, s, naive.plan);
    const double times = moved.as_double() / size.as_double();
    if (times < 1.05) return;
    t.notes.push_back(fmt::format("naive: {} of its bytes are K and V, each read {} times{}.",
                                  text::percent(moved.as_double() / traffic.total().as_double()), text::ratio(times),
                                  s.num_heads > s.num_kv_heads ? ": every query head loads those of its kv head" : ""));
  }

  void explain_hbm(Table& t, const AlgorithmResult& a, const TrafficEntry& entry) const {
    if (!entry.traffic) {
      t.notes.push_back(fmt::format("{}: {}: {}", a.algorithm->name, name(entry.traffic.status), entry.traffic.reason));
      return;
    }
    const auto [least, most] = interval(entry);
    const bool wide = most.as_double() > 1.01 * least.as_double();
    const bool overflows = a.kv_in_flight && *a.kv_in_flight > r_.l2_effective;
    if (!wide && !overflows && !view_.explain && a.algorithm->name != "flash_v2") return;
    std::vector<std::string> words;
    if (entry.hit_rate) words.push_back(fmt::format("L2 serves {} of its reads", text::percent(*entry.hit_rate)));
    if (a.kv_in_flight && r_.l2_effective.value() > 0) {
      words.push_back(fmt::format("K and V in flight {}, {} the effective {}", text::binary_bytes(*a.kv_in_flight),
                                  overflows ? "more than" : "within", text::binary_bytes(r_.l2_effective)));
    }
    if (wide) words.push_back(fmt::format("{} to {}, by how CTAs keep pace", text::bytes(least), text::bytes(most)));
    if (words.empty()) return;
    t.notes.push_back(fmt::format("{}: {}{}.", a.algorithm->name, fmt::join(words, "; "), clock_words(a, entry)));
  }

  /// Where the interval owes an end to the clocks of SMs, or would if there had been time.
  static std::string clock_words(const AlgorithmResult& a, const TrafficEntry& entry) {
    if (!a.sm_clock_spread) {
      const bool for_time = a.sm_clock_spread.status == Status::skipped;
      return for_time ? "; the SMs' own clocks were " + a.sm_clock_spread.reason : "";
    }
    const auto [least, most] = interval(entry);
    const bool makes_an_end = std::any_of(entry.paces.begin(), entry.paces.end(), [&](const auto& pace) {
      return pace.pace == Pace::drifting && (pace.total == most || pace.total == least);
    });
    if (!makes_an_end || least == most) return "";
    return fmt::format(", the clocks of SMs up to {} apart", text::percent(*a.sm_clock_spread));
  }

  void sm_table() {
    const bool simulated = std::all_of(r_.algorithms.begin(), r_.algorithms.end(), [](const AlgorithmResult& a) {
      const TrafficEntry* walked = a.find(Boundary::sm_l2, Provenance::simulated);
      return walked != nullptr && walked->traffic && *walked->traffic == *a.at(Boundary::sm_l2)->traffic;
    });
    Table t =
        traffic_table(fmt::format("Between SM and L2  ({})", simulated ? "closed form = simulated" : "closed form"));
    for (const AlgorithmResult& a : r_.algorithms) {
      const TrafficEntry* entry = a.at(Boundary::sm_l2);
      const std::string words = entry->plan.gemm_tile ? fmt::format("GEMM tiles {} x {}", (*entry->plan.gemm_tile)[0],
                                                                    (*entry->plan.gemm_tile)[1])
                                                      : what(a);
      t.rows.push_back(row(a.algorithm->name, words, entry->traffic, naive_at(Boundary::sm_l2, a.algorithm->pass)));
    }
    const TrafficEntry* floor = first_naive_entry();
    if (floor != nullptr)
      t.rows.push_back(
          row("(naive)", "operands once: a floor", floor->traffic, naive_at(Boundary::sm_l2, Pass::forward)));
    for (const AlgorithmResult& a : r_.algorithms) {
      if (cluster_of(a.plan) > 1)
        t.notes.push_back(
            fmt::format("{}: clusters of {} CTAs, which load each tile of K and V once; all of their SMs receive it.",
                        a.algorithm->name, cluster_of(a.plan)));
    }
    if (has_hbm(r_)) why_two_tables(t, r_.request.pass == "backward" ? Pass::backward : Pass::forward);
    if (view_.explain) {
      t.notes.emplace_back(
          "read, write: every tile that a kernel loads or stores, whatever a cache serves of it: the traffic of the "
          "papers' M-word model.");
      for (const AlgorithmResult& a : r_.algorithms) explain_formula(t, a);
    }
    out_.push_back(std::move(t));
  }

  /// naive's entry with every operand once a kernel, where it differs from the tiled one.
  [[nodiscard]] const TrafficEntry* first_naive_entry() const {
    const AlgorithmResult* naive = r_.find("naive");
    if (naive == nullptr) return nullptr;
    for (const TrafficEntry& entry : naive->traffic) {
      if (entry.boundary == Boundary::sm_l2 && !entry.plan.gemm_tile) return &entry;
    }
    return nullptr;
  }

  /// What L2 takes away between the two tables, and what it cannot.
  void why_two_tables(Table& t, Pass pass) const {
    const std::optional<L2Fit> fit = l2_fit(r_, pass);
    if (!fit) {
      t.notes.emplace_back("Why two tables: with an L2 they would differ; here HBM answers every request itself.");
      return;
    }
    std::string words;
    if (fit->kv) {
      words = fmt::format("K and V of the heads that run at one time ({}) ", text::binary_bytes(*fit->kv));
      words += fit->kv_fits
                   ? "stay in L2"
                   : fmt::format("do not fit the L2's effective {}, which serves at most a part of their loads",
                                 text::binary_bytes(r_.l2_effective));
    }
    if (fit->squares) {
      const std::string squares =
          fmt::format("{} of all heads ({})", pass == Pass::backward ? "P, dP and dS" : "S and P",
                      text::binary_bytes(*fit->squares));
      std::string_view verdict = " cannot stay in L2";
      if (fit->squares_fit) {
        verdict = " fit the L2, so naive reads them there, and HBM sees little more than their writes";
      } else if (fit->kv) {
        verdict = fit->kv_fits ? " cannot" : " cannot stay either";
      }
      words += (words.empty() ? "" : "; ") + squares + std::string(verdict);
    }
    if (!words.empty()) t.notes.push_back(fmt::format("Why two tables: {}.", words));
  }

  void explain_formula(Table& t, const AlgorithmResult& a) const {
    const AttentionShape& s = r_.request.shape;
    for (const TrafficEntry& entry : a.traffic) {
      if (entry.provenance != Provenance::closed_form) continue;
      const std::string total = fmt::format("{} B", text::integer(entry.traffic->total().value()));
      if (entry.formula_exact) {
        const std::int64_t heads = s.batch * s.num_heads;
        const std::string times = heads == 1 ? "" : fmt::format(", times {} heads", text::integer(heads));
        t.notes.push_back(fmt::format("{}: {} = {}{} = {}", a.algorithm->name, entry.formula,
                                      filled_in(entry.formula, s, entry.plan), times, total));
      } else if (!entry.formula.empty()) {
        t.notes.push_back(fmt::format(
            "{}: {} for a plain shape; for this one, tile by tile over what the mask leaves: {} (--tensors)",
            a.algorithm->name, entry.formula, total));
      } else {
        t.notes.push_back(fmt::format("{}: with this plan's extra passes, counted stage by stage: {} (--tensors)",
                                      a.algorithm->name, total));
      }
    }
  }

  Document& out_;
  const RunResult& r_;
  RunView view_;
};

}  // namespace

void append_traffic_tables(Document& out, const RunResult& result, const RunView& view) {
  TrafficTables(out, result, view).write();
}

}  // namespace hbmscope
