#include "report/run_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/version.hpp"
#include "report/format.hpp"
#include "report/run_labels.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kNone = "-";

/// What an algorithm is, in at most 24 characters.
std::string what(const AlgorithmResult& a) {
  const std::string_view name = a.algorithm->name;
  const std::string tiles = fmt::format("{} x {}", a.plan.block_q, a.plan.block_kv);
  if (name == "naive") return fmt::format("S and P in HBM, {} kernels", a.stages.size());
  if (name == "naive_bwd") return "P saved, operands once";
  if (name == "split_kv") return fmt::format("{} splits, {}", a.plan.num_kv_splits, tiles);
  if (name == "flash_v2") return fmt::format("Q outer, {}", tiles);
  return fmt::format("KV outer, {}", tiles);
}

class RunReport {
 public:
  RunReport(const RunResult& r, const RunView& view) : r_(r), view_(view) {}

  Document write() {
    header();
    answer();
    if (has_hbm()) hbm_table();
    sm_table();
    if (view_.tensors) tensor_tables();
    time_table();
    append_labels(out_, r_, view_);
    return std::move(out_);
  }

 private:
  void header() {
    std::string gpu = r_.request.gpu.name;
    if (r_.request.gpu_assumed) gpu += " (assumed)";
    out_.push_back(Paragraph{fmt::format("hbmscope {}   {}   GPU: {}", hbmscope_version(),
                                         shape_words(r_.request.shape, r_.request.pass), gpu)});
  }

  [[nodiscard]] bool has_hbm() const {
    return std::any_of(r_.algorithms.begin(), r_.algorithms.end(),
                       [](const AlgorithmResult& a) { return a.at(Boundary::l2_hbm) != nullptr; });
  }
  /// The last fused algorithm of the pass: the one a reader wants beside the naive one.
  [[nodiscard]] const AlgorithmResult* fused(Pass pass) const {
    const auto found = std::find_if(r_.algorithms.rbegin(), r_.algorithms.rend(), [&](const AlgorithmResult& a) {
      return a.algorithm->pass == pass && !a.algorithm->name.starts_with("naive");
    });
    return found == r_.algorithms.rend() ? nullptr : &*found;
  }

  void answer() {
    std::string sentence;
    for (const auto& [pass, base] : {std::pair{Pass::forward, "naive"}, std::pair{Pass::backward, "naive_bwd"}}) {
      const AlgorithmResult *flash = fused(pass), *naive = r_.find(base);
      if (flash == nullptr || naive == nullptr) continue;
      const std::string part = versus(*flash, *naive);
      if (!part.empty()) sentence += (sentence.empty() ? "" : " ") + part;
    }
    if (sentence.empty()) {
      for (const AlgorithmResult& a : r_.algorithms) {
        const TrafficEntry *hbm = a.at(Boundary::l2_hbm), *sm = a.at(Boundary::sm_l2);
        if (!sentence.empty()) sentence += " ";
        sentence += fmt::format("{} moves {} between SM and L2", a.algorithm->name, text::bytes(sm->traffic->total()));
        if (hbm != nullptr && hbm->traffic)
          sentence += fmt::format(" and {} through HBM", text::bytes(hbm->traffic->total()));
        sentence += fmt::format(", for {}.", text::flop(a.flops.matmul));
      }
    }
    out_.push_back(Paragraph{sentence + binding(), true});
  }

  [[nodiscard]] static std::string versus(const AlgorithmResult& flash, const AlgorithmResult& naive) {
    Boundary boundary = Boundary::l2_hbm;
    const auto have = [&](const AlgorithmResult& a) { return a.at(boundary) != nullptr && a.at(boundary)->traffic; };
    if (!have(flash) || !have(naive)) boundary = Boundary::sm_l2;
    const Bytes mine = flash.at(boundary)->traffic->total(), theirs = naive.at(boundary)->traffic->total();
    const bool backward = flash.algorithm->pass == Pass::backward;
    const std::string_view where = boundary == Boundary::l2_hbm ? "through HBM" : "between SM and L2";
    std::string who = backward ? "FlashAttention's backward pass" : "FlashAttention";
    if (flash.algorithm->name == "split_kv") who += " (split_kv)";
    std::string words =
        fmt::format("{} moves {} {}{} where the naive {} moves {}", who, text::bytes(mine), where,
                    interval_words(*flash.at(boundary)), backward ? "one" : "pipeline", text::bytes(theirs));
    const double ratio = mine.value() > 0 ? theirs.as_double() / mine.as_double() : 0;
    if (ratio >= 1.05) {
      words += fmt::format(": {}x less", ratio >= 10 ? fmt::format("{:.0f}", ratio) : fmt::format("{:.1f}", ratio));
    } else if (ratio > 0.95) {
      words += ": no less";
    } else if (ratio > 0) {
      words += fmt::format(": {:.1f}x as much", 1 / ratio);
    }
    if (flash.flops.matmul != naive.flops.matmul) {
      return words +
             fmt::format(", for {} instead of {}.", text::flop(flash.flops.matmul), text::flop(naive.flops.matmul));
    }
    // A mask halves what flash executes and not what naive does.
    if (naive.flops.executed_matmul.as_double() > 1.05 * flash.flops.executed_matmul.as_double()) {
      return words + fmt::format(", for the same {} of useful work (naive executes {}).",
                                 text::flop(flash.flops.matmul), text::flop(naive.flops.executed_matmul));
    }
    return words + fmt::format(", for the same {}.", text::flop(flash.flops.matmul));
  }
  /// How far the paces take the central value, where that is far.
  static std::string interval_words(const TrafficEntry& entry) {
    const auto [least, most] = interval(entry);
    if (most.as_double() <= 1.2 * least.as_double()) return "";
    return fmt::format(" ({} to {}, by how CTAs keep pace)", text::bytes(least), text::bytes(most));
  }
  static std::pair<Bytes, Bytes> interval(const TrafficEntry& entry) {
    Bytes least = entry.traffic->total(), most = least;
    for (const L2Estimate::PaceTotal& pace : entry.paces) {
      least = std::min(least, pace.total);
      most = std::max(most, pace.total);
    }
    return {least, most};
  }

  /// Which roof each of the two meets.
  [[nodiscard]] std::string binding() const {
    const bool backward = r_.request.pass == "backward";
    const AlgorithmResult *flash = fused(backward ? Pass::backward : Pass::forward),
                          *naive = r_.find(backward ? "naive_bwd" : "naive");
    std::string words;
    for (const auto& [who, a] : {std::pair{"Naive", naive}, std::pair{"flash", flash}}) {
      if (a == nullptr || !a->roofline) continue;
      const std::string_view units = r_.request.shape.dtype == Dtype::fp32 ? "the FP32 units" : "the tensor cores";
      const std::string name = words.empty() ? (std::string_view(who) == "flash" ? "Flash" : who) : std::string(who);
      words += words.empty() ? " " : "; ";
      if (a->roofline->bound == Bound::memory) {
        words += fmt::format("{} waits for HBM ({} FLOP/B, ridge {})", name, text::intensity(a->roofline->intensity),
                             text::intensity(a->roofline->ridge));
      } else {
        words += fmt::format("{} is limited by {}", name, units);
      }
    }
    if (flash != nullptr && naive != nullptr && flash->roofline && naive->roofline &&
        flash->roofline->bound == Bound::compute && naive->roofline->bound == Bound::compute) {
      return fmt::format(" Both are limited by {}.",
                         r_.request.shape.dtype == Dtype::fp32 ? "the FP32 units" : "the tensor cores");
    }
    return words.empty() ? "" : words + ".";
  }

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
      t.notes.push_back(
          fmt::format("central value: a step that goes to HBM takes {:.0f} % longer (assumed), which holds CTAs of a "
                      "head together; the interval runs from CTAs in "
                      "lockstep to CTAs that nothing holds together.",
                      kMissStall * 100));
      t.notes.emplace_back("naive/x: how many times as many bytes naive moves.");
    }
    out_.push_back(std::move(t));
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
    std::string words = fmt::format("{}: ", a.algorithm->name);
    if (entry.hit_rate) words += fmt::format("L2 serves {} of its reads", text::percent(*entry.hit_rate));
    if (a.kv_in_flight && r_.l2_effective.value() > 0) {
      words += fmt::format("; K and V in flight {}, {} the effective {}", text::binary_bytes(*a.kv_in_flight),
                           overflows ? "more than" : "within", text::binary_bytes(r_.l2_effective));
    }
    if (wide) words += fmt::format("; {} to {}, by how CTAs keep pace", text::bytes(least), text::bytes(most));
    t.notes.push_back(words + ".");
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
    if (const AlgorithmResult* naive = r_.find("naive");
        naive != nullptr && has_hbm() && naive->kv_in_flight == std::nullopt)
      why_two_tables(t, *naive);
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

  void why_two_tables(Table& t, const AlgorithmResult& naive) const {
    const AttentionShape& s = r_.request.shape;
    const Bytes kv = Count(s.seqlen_kv) * (Count(s.head_dim + s.head_dim_v) * Bytes(s.element_bytes()));
    const Bytes square =
        Count(s.seqlen_q) * (Count(s.seqlen_kv) * Bytes(naive.plan.fp32_scores ? 4 : s.element_bytes()));
    const Bytes all_square = Count(s.batch) * (Count(s.num_heads) * square);
    if (r_.l2_effective.value() == 0) return;
    const AlgorithmResult* flash = fused(Pass::forward);
    const Bytes in_flight = flash != nullptr && flash->kv_in_flight ? *flash->kv_in_flight : kv;
    if (in_flight <= r_.l2_effective && all_square > r_.l2_effective) {
      t.notes.push_back(fmt::format("Why two tables: K and V of a head ({}) stay in L2; S and P ({} each) cannot.",
                                    text::binary_bytes(kv), text::binary_bytes(all_square)));
    } else if (in_flight > r_.l2_effective && naive.at(Boundary::l2_hbm)->traffic) {
      t.notes.push_back(
          fmt::format("Why two tables: L2 serves part of the tile loads; K and V in flight ({}) no longer fit "
                      "its effective {}.",
                      text::binary_bytes(in_flight), text::binary_bytes(r_.l2_effective)));
    }
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

  void tensor_tables() {
    for (const AlgorithmResult& a : r_.algorithms) {
      const TrafficEntry *sm = a.at(Boundary::sm_l2), *hbm = a.at(Boundary::l2_hbm);
      Table t{fmt::format("{}, bytes by tensor", a.algorithm->name),
              {{"", false}, {"size"}, {"SM-L2 read"}, {"times"}, {"SM-L2 write"}, {"times"}},
              {},
              {}};
      const bool with_hbm = hbm != nullptr && hbm->traffic;
      if (with_hbm) t.columns.insert(t.columns.end(), {{"HBM read"}, {"HBM write"}});
      for (const TensorInfo& tensor : kTensors) {
        const ReadWrite bytes = (*sm->traffic)[tensor.tensor];
        if (bytes.total().value() == 0) continue;
        const Bytes size = tensor_bytes(tensor.tensor, r_.request.shape, a.plan);
        const auto times = [&](Bytes b) {
          return b.value() == 0 ? std::string(kNone) : text::significant(b.as_double() / size.as_double(), 5);
        };
        const auto exact = [&](Bytes b) { return b.value() == 0 ? std::string(kNone) : text::integer(b.value()); };
        std::vector<std::string> cells{std::string(tensor.name), text::integer(size.value()), exact(bytes.read),
                                       times(bytes.read),        exact(bytes.write),          times(bytes.write)};
        if (with_hbm) {
          const ReadWrite through = (*hbm->traffic)[tensor.tensor];
          cells.push_back(exact(through.read));
          cells.push_back(exact(through.write));
        }
        t.rows.push_back(std::move(cells));
      }
      if (view_.explain)
        t.notes.emplace_back("times: bytes over the tensor's size: how often it passes, on average over its rows.");
      out_.push_back(std::move(t));
    }
  }

  /// HBM or the units by intensity; where padding makes the units slower than an HBM-bound shape would be, that is
  /// said.
  static std::string bound_word(const AlgorithmResult& a, std::string_view roof) {
    if (!a.roofline) return std::string(kNone);
    if (a.roofline->bound == Bound::compute) return std::string(roof);
    return a.executed_flop_decides ? std::string(roof) + ", padding" : "HBM";
  }

  void time_table() {
    Table t{"Time",
            {{"", false}, {"FLOP"}, {"FLOP/B HBM"}, {"FLOP/B L2"}, {"bound", false}, {"predicted"}, {"measured"}},
            {},
            {}};
    std::string reason;
    for (const AlgorithmResult& a : r_.algorithms) {
      const Bytes sm = a.at(Boundary::sm_l2)->traffic->total();
      const std::string_view roof = r_.request.shape.dtype == Dtype::fp32 ? "FP32" : "tensor";
      t.rows.push_back({std::string(a.algorithm->name), text::flop(a.flops.matmul),
                        a.roofline ? text::intensity(a.roofline->intensity) : std::string(kNone),
                        text::intensity(a.flops.matmul / sm), bound_word(a, roof),
                        a.predicted ? text::seconds(*a.predicted) : std::string(kNone), std::string(kNone)});
      if (!a.predicted) reason = a.predicted.reason;
    }
    t.notes.push_back(fmt::format("measured: {}.{}",
                                  r_.device.present ? "this version runs no kernels" : r_.device.reason,
                                  reason.empty() ? "" : " predicted: " + reason + "."));
    if (view_.explain) {
      const GpuSpec& gpu = r_.request.gpu;
      const auto& peak = gpu.peak[static_cast<std::size_t>(r_.request.shape.dtype)];
      t.notes.push_back(
          fmt::format("FLOP: 2 (d + d_v) a live pair forward, {} live pairs; whole padded tiles take more.",
                      text::integer(r_.live_pairs.value())));
      if (peak) {
        t.notes.push_back(fmt::format(
            "predicted: summed over kernels, the larger of HBM bytes / {} and executed FLOP / {}, plus {} a launch "
            "(assumed). Peaks are datasheet "
            "values that no kernel reaches; exponentials, L2 bandwidth and idle SMs are left out, so real kernels are "
            "slower.",
            text::byte_rate(gpu.hbm_bandwidth), text::flop_rate(*peak), text::seconds(gpu.launch_overhead)));
        t.notes.push_back(fmt::format("bound: HBM left of the ridge, {} / {} = {} FLOP/B; the other roof right of it.",
                                      text::flop_rate(*peak), text::byte_rate(gpu.hbm_bandwidth),
                                      text::intensity(*peak / gpu.hbm_bandwidth)));
      }
    }
    out_.push_back(std::move(t));
  }

  const RunResult& r_;
  RunView view_;
  Document out_;
};

}  // namespace

Document run_document(const RunResult& result, const RunView& view) {
  return RunReport(result, view).write();
}

}  // namespace hbmscope
