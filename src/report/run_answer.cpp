#include <fmt/format.h>

#include <cmath>

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
  if (mine.value() == 0 || theirs.value() == 0) return "";
  // "1.1x" says little of 1.06: near 1 the difference is told.
  const double ratio = theirs.as_double() / mine.as_double(), percent = 100 * (1 - 1 / ratio);
  if (ratio >= 1.1)
    return fmt::format(": {}x less", ratio >= 10 ? fmt::format("{:.0f}", ratio) : fmt::format("{:.1f}", ratio));
  if (ratio <= 1 / 1.1) return fmt::format(": {:.1f}x as much", 1 / ratio);
  if (std::abs(percent) < 1) return ": about the same";
  return fmt::format(": {:.0f} % {}", std::abs(percent), percent > 0 ? "less" : "more");
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

/// "12 us of 12.2 us"
std::string launch_share(const AlgorithmResult& a) {
  return fmt::format("{} of {}", text::seconds(a.launches), text::seconds(*a.predicted));
}

/// What one of the two waits for, by the same bound as in the time table.
std::string binding_of(const AlgorithmResult& a, const RunResult& r) {
  switch (*a.limit) {
    case TimeLimit::hbm:
      return a.roofline ? fmt::format("waits for HBM ({} FLOP/B, ridge {})", text::intensity(a.roofline->intensity),
                                      text::intensity(a.roofline->ridge))
                        : "waits for HBM";
    case TimeLimit::compute:
      return fmt::format("is limited by {}", matmul_units(r));
    case TimeLimit::padding:
      return fmt::format("is limited by {}, counting padded and masked tiles", matmul_units(r));
    case TimeLimit::launches:
      break;
  }
  return fmt::format("is mostly launches ({})", launch_share(a));
}

/// What binds each of the two.
std::string binding(const RunResult& r) {
  const bool backward = r.request.pass == "backward";
  const AlgorithmResult *flash = fused(r, backward ? Pass::backward : Pass::forward),
                        *naive = r.find(backward ? "naive_bwd" : "naive");
  const auto both = [&](TimeLimit limit) {
    return flash != nullptr && naive != nullptr && flash->limit == limit && naive->limit == limit;
  };
  if (both(TimeLimit::compute)) return fmt::format(" Both are limited by {}.", matmul_units(r));
  if (both(TimeLimit::launches))
    return fmt::format(" Both are mostly launches: naive {}, flash {}.", launch_share(*naive), launch_share(*flash));
  std::string words;
  for (const auto& [first, later, a] : {std::tuple{"Naive", "naive", naive}, std::tuple{"Flash", "flash", flash}}) {
    if (a == nullptr || !a->limit) continue;
    words +=
        fmt::format("{} {}", words.empty() ? fmt::format(" {}", first) : fmt::format("; {}", later), binding_of(*a, r));
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
