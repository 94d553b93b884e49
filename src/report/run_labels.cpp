#include "report/run_labels.hpp"

#include <fmt/format.h>

#include <cmath>

#include "report/format.hpp"

namespace hbmscope {
namespace {

class Labels {
 public:
  Labels(Document& out, const RunResult& r, const RunView& view) : out_(out), r_(r), view_(view) {}

  void write() {
    paper();
    memory();
    exactness();
    end_to_end();
    for (const std::string& w : r_.warnings) label("Note", w + ".");
    for (const std::string& n : r_.notes) label("Note", n + ".");
  }

 private:
  void label(std::string_view name, std::string words) {
    out_.push_back(Labelled{std::string(name), std::move(words)});
  }

  void paper() {
    if (!r_.paper) return label("Paper", fmt::format("{} ({})", "-", r_.paper.reason));
    const PaperClaims& p = *r_.paper;
    const AttentionShape& s = r_.request.shape;
    if (s.seqlen_q == 1) {
      return label(
          "Paper",
          "- (its orders are of N queries on N keys; with one query nothing grows as N^2, and K and V must pass "
          "once)");
    }
    const bool square = s.seqlen_q == s.seqlen_kv;
    const std::string_view dtype = info(s.dtype).name;
    label("Paper", fmt::format("{} = {} elements; {} = {} with M = {} {} elements ({}): an order{}, not a count{}",
                               standard_order(s), text::count(p.standard_elements), flash_order(s),
                               text::count(p.flash_elements), text::integer(static_cast<std::int64_t>(p.sram_elements)),
                               dtype, text::binary_bytes(p.sram_bytes), square ? "" : " (the paper has one N)",
                               view_.explain ? "" : "  (--explain)"));
    if (!view_.explain) return;
    const std::int64_t heads = s.batch * s.num_heads;
    label("", fmt::format("Four different reductions are quoted: M/d^2 = {} (the order above, constants dropped); M/(3 "
                          "d^2) = {} (Algorithm 1's own constants, N large); counted exactly "
                          "with its blocks of {} x {}: {} in bytes without initialisation, {} with it, {} in elements; "
                          "N/d = {} (compulsory bytes only).",
                          text::significant(p.reduction_m_over_d2, 3), text::significant(p.reduction_with_constants, 3),
                          p.block_q, p.block_kv,
                          text::significant(p.naive_bytes.as_double() / p.algorithm1_bytes.as_double(), 3),
                          text::significant(p.naive_bytes.as_double() / p.algorithm1_bytes_with_init.as_double(), 3),
                          text::significant(p.naive_elements.as_double() / p.algorithm1_elements.as_double(), 3),
                          text::significant(p.reduction_n_over_d, 4)));
    label("", fmt::format("No exact algorithm on {} head{} moves fewer than the order of {} elements, min({} "
                          "d/sqrt(M), {}) (Saha and Ye 2024; constants unknown).",
                          text::integer(heads), heads == 1 ? "" : "s", text::count(p.lower_bound_elements),
                          square ? "N^2" : "Nq Nk", flash_order(s)));
    const double d = static_cast<double>(s.head_dim), N = static_cast<double>(s.seqlen_q);
    if (p.sram_elements < d || p.sram_elements > N * d)
      label("", "The theorem asks for d <= M <= N d, which this shape is outside of.");
  }
  void memory() {
    std::string words;
    for (const AlgorithmResult& a : r_.algorithms) {
      if (!words.empty()) words += "; ";
      std::string names;
      for (const LedgerEntry& entry : a.memory.entries) {
        if (entry.intermediate) names += (names.empty() ? "" : ", ") + std::string(info(entry.tensor).name);
      }
      words += names.empty() ? fmt::format("{} nothing", a.algorithm->name)
                             : fmt::format("{} {} ({})", a.algorithm->name,
                                           text::binary_bytes(a.memory.intermediate_bytes), names);
    }
    label("Memory", "beside inputs and output: " + words);
    if (!view_.explain) return;
    for (const AlgorithmResult& a : r_.algorithms) {
      std::string kept;
      for (const LedgerEntry& entry : a.memory.entries) {
        if (entry.saved_for_backward) kept += (kept.empty() ? "" : ", ") + std::string(info(entry.tensor).name);
      }
      label("", fmt::format("{}: peak {} in stage {}{}", a.algorithm->name, text::binary_bytes(a.memory.peak_bytes),
                            a.memory.peak_stage,
                            kept.empty() ? ""
                                         : fmt::format("; saved for the backward pass {} ({})",
                                                       text::binary_bytes(a.memory.saved_for_backward_bytes), kept)));
    }
    if (!r_.memory_fit) return;
    label("", fmt::format("the paper's memory table (forward and backward) fits 4 N^2 + 10 N d, here {}, and {} N d "
                          "with two statistics a row, here {}: a fit, not this model.",
                          text::binary_bytes(r_.memory_fit->standard), r_.request.shape.seqlen_q <= 256 ? 11 : 13,
                          text::binary_bytes(r_.memory_fit->flash)));
  }

  void exactness() {
    std::string words, missing;
    const Exactness *any = nullptr, *fused = nullptr;  // fused: held to naive's error, as naive itself is not
    std::string beyond;
    bool any_bitwise = false;
    for (const AlgorithmResult& a : r_.algorithms) {
      if (!a.exactness) {
        missing = a.exactness.reason;
        continue;
      }
      any = &*a.exactness;
      if (!any->within_tolerance) beyond += (beyond.empty() ? "" : ", ") + std::string(a.algorithm->name);
      if (a.algorithm->name != "naive") {
        fused = any;
        any_bitwise = any_bitwise || any->bitwise_equal_to_naive;
      }
      words +=
          fmt::format("{}{} {}", words.empty() ? "" : ", ", a.algorithm->name, text::scientific(any->max_abs_error));
    }
    if (any == nullptr) return label("Exactness", fmt::format("{} ({})", "-", missing));
    label("Exactness",
          fmt::format(
              "{} rows against fp64, largest error: {}; {}; {}",
              any->complete ? "all " + text::integer(any->rows_checked) : text::integer(any->rows_checked) + " random",
              words, beyond.empty() ? "within tolerance" : beyond + " BEYOND tolerance",
              any_bitwise ? "bitwise equal to naive here, by chance" : "not bitwise equal, and not meant to be"));
    const AlgorithmResult* v1 = r_.find("flash_v1");
    if (v1 != nullptr && v1->exactness && !v1->exactness->within_tolerance &&
        v1->plan.variant == FlashV1Variant::paper) {
      label("", fmt::format(
                    "flash_v1 rounds O to {} in each of its passes over the keys; --variant released keeps it in fp32",
                    info(r_.request.shape.dtype).name));
    }
    if (fused != nullptr && fused->tolerance > fused->max_abs_reference && fused->max_abs_reference > 0) {
      label("", fmt::format("the tolerance, {}, is above the largest |O|, {}, and says little: naive in {} rounds most "
                            "probabilities of rows this long to 0",
                            text::scientific(fused->tolerance), text::significant(fused->max_abs_reference, 3),
                            info(r_.request.shape.dtype).name));
    }
    if (view_.explain) {
      label("", fmt::format("tolerance {}: twice the naive pipeline's own error in {} plus one unit in the last place "
                            "at the largest |O| = {}. Computed on this machine's CPU, "
                            "rounding wherever a kernel stores.",
                            text::scientific(any->tolerance), info(r_.request.shape.dtype).name,
                            text::significant(any->max_abs_reference, 3)));
    }
  }

  void end_to_end() {
    if (!r_.amdahl)
      return label(
          "End to end",
          fmt::format("unknown share of attention: try --attention-share 0.30   (then 1/(0.70 + 0.30/speed-up))"));
    const Amdahl& a = *r_.amdahl;
    const std::string limit = std::isfinite(a.limit) ? fmt::format("at most {}", text::factor(a.limit))
                                                     : std::string("no limit, attention is all of it");
    label("End to end", fmt::format("{} of the step, attention {} faster ({}): the step gets {} faster, {}",
                                    text::percent(a.attention_share), text::factor(a.attention_speedup),
                                    r_.amdahl_speedup_from, text::factor(a.end_to_end_speedup), limit));
  }

  Document& out_;
  const RunResult& r_;
  RunView view_;
};

}  // namespace

void append_labels(Document& out, const RunResult& result, const RunView& view) {
  Labels(out, result, view).write();
}

}  // namespace hbmscope
