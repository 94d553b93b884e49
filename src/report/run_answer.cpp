#include <fmt/format.h>

#include "report/format.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

/// How far the paces take the central value, where that is far.
std::string interval_words(const TrafficEntry& entry) {
  const auto [least, most] = interval(entry);
  if (most.as_double() <= 1.2 * least.as_double()) return "";
  return fmt::format(" ({} to {}, by how CTAs keep pace)", text::bytes(least), text::bytes(most));
}

std::string ratio_words(Bytes mine, Bytes theirs) {
  const double ratio = mine.value() > 0 ? theirs.as_double() / mine.as_double() : 0;
  if (ratio >= 1.05)
    return fmt::format(": {}x less", ratio >= 10 ? fmt::format("{:.0f}", ratio) : fmt::format("{:.1f}", ratio));
  if (ratio > 0.95) return ": no less";
  return ratio > 0 ? fmt::format(": {:.1f}x as much", 1 / ratio) : "";
}

std::string work_words(const FlopCount& flash, const FlopCount& naive) {
  if (flash.matmul != naive.matmul)
    return fmt::format(", for {} instead of {}.", text::flop(flash.matmul), text::flop(naive.matmul));
  // A mask halves what flash executes and not what naive does.
  if (naive.executed_matmul.as_double() > 1.05 * flash.executed_matmul.as_double()) {
    return fmt::format(", for the same {} of useful work (naive executes {}).", text::flop(flash.matmul),
                       text::flop(naive.executed_matmul));
  }
  return fmt::format(", for the same {}.", text::flop(flash.matmul));
}

std::string versus(const AlgorithmResult& flash, const AlgorithmResult& naive) {
  Boundary boundary = Boundary::l2_hbm;
  const auto have = [&](const AlgorithmResult& a) { return a.at(boundary) != nullptr && a.at(boundary)->traffic; };
  if (!have(flash) || !have(naive)) boundary = Boundary::sm_l2;
  const Bytes mine = flash.at(boundary)->traffic->total(), theirs = naive.at(boundary)->traffic->total();
  const bool backward = flash.algorithm->pass == Pass::backward;
  const std::string_view where = boundary == Boundary::l2_hbm ? "through HBM" : "between SM and L2";
  std::string who = backward ? "FlashAttention's backward pass" : "FlashAttention";
  if (flash.algorithm->name == "split_kv") who += " (split_kv)";
  return fmt::format("{} moves {} {}{} where the naive {} moves {}", who, text::bytes(mine), where,
                     interval_words(*flash.at(boundary)), backward ? "one" : "pipeline", text::bytes(theirs)) +
         ratio_words(mine, theirs) + work_words(flash.flops, naive.flops);
}

/// Without a pair to compare: what each moves.
std::string each_alone(const RunResult& r) {
  std::string sentence;
  for (const AlgorithmResult& a : r.algorithms) {
    const TrafficEntry *hbm = a.at(Boundary::l2_hbm), *sm = a.at(Boundary::sm_l2);
    if (!sentence.empty()) sentence += " ";
    sentence += fmt::format("{} moves {} between SM and L2", a.algorithm->name, text::bytes(sm->traffic->total()));
    if (hbm != nullptr && hbm->traffic)
      sentence += fmt::format(" and {} through HBM", text::bytes(hbm->traffic->total()));
    sentence += fmt::format(", for {}.", text::flop(a.flops.matmul));
  }
  return sentence;
}

/// Which roof each of the two meets.
std::string binding(const RunResult& r) {
  const bool backward = r.request.pass == "backward";
  const AlgorithmResult *flash = fused(r, backward ? Pass::backward : Pass::forward),
                        *naive = r.find(backward ? "naive_bwd" : "naive");
  const auto limited = [](const AlgorithmResult* a) {
    return a != nullptr && a->roofline && a->roofline->bound == Bound::compute;
  };
  if (limited(flash) && limited(naive)) return fmt::format(" Both are limited by {}.", matmul_units(r));
  std::string words;
  for (const auto& [first, later, a] : {std::tuple{"Naive", "naive", naive}, std::tuple{"Flash", "flash", flash}}) {
    if (a == nullptr || !a->roofline) continue;
    words += words.empty() ? fmt::format(" {}", first) : fmt::format("; {}", later);
    if (a->roofline->bound == Bound::memory) {
      words += fmt::format(" waits for HBM ({} FLOP/B, ridge {})", text::intensity(a->roofline->intensity),
                           text::intensity(a->roofline->ridge));
    } else {
      words += fmt::format(" is limited by {}", matmul_units(r));
    }
  }
  return words.empty() ? "" : words + ".";
}

}  // namespace

void append_answer(Document& out, const RunResult& r) {
  std::string sentence;
  for (const auto& [pass, base] : {std::pair{Pass::forward, "naive"}, std::pair{Pass::backward, "naive_bwd"}}) {
    const AlgorithmResult *flash = fused(r, pass), *naive = r.find(base);
    if (flash == nullptr || naive == nullptr) continue;
    sentence += (sentence.empty() ? "" : " ") + versus(*flash, *naive);
  }
  if (sentence.empty()) sentence = each_alone(r);
  out.push_back(Paragraph{sentence + binding(r), true});
}

}  // namespace hbmscope
