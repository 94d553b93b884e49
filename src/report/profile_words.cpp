#include "report/profile_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/name_pattern.hpp"
#include "core/printable.hpp"
#include "report/format.hpp"

namespace hbmscope {

std::string short_kernel_name(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string outside;  // what stands in no brackets
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (depth == 0 && name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (depth == 0 && name[i] == '(') break;
    if (depth == 0) outside += name[i];
    if (name[i] == '>' && depth > 0) --depth;
  }
  while (outside.ends_with(' ')) outside.pop_back();
  outside.erase(0, outside.find_last_of(" :") + 1);
  return printable(outside.empty() ? name : outside);
}

namespace {

/// An expression for --kernel that selects the launches of this name alone, in characters that no shell changes; empty
/// where there is none. Short ones may select launches that an earlier --kernel had left out.
std::string pattern_of(const std::string& name, const ProfileImport& import) {
  const std::vector<CountedLaunch>& launches = import.launches;
  std::string whole = name;
  for (char& c : whole) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) c = '.';  // any character
  }
  std::vector<std::string> expressions{"^" + whole + "$"};
  if (import.kernel.empty()) expressions.insert(expressions.begin(), {short_kernel_name(name), whole});
  for (const std::string& expression : expressions) {
    const bool plain = expression.find_first_of(" <>()[]{}|*+?\\'\"&;#~`!") == std::string::npos;
    if (!plain || expression.size() > NamePattern::kMaxLength || name.size() > NamePattern::kMostMatched) continue;
    const NamePattern pattern(expression);
    const bool selects_it_alone = std::all_of(launches.begin(), launches.end(), [&](const CountedLaunch& launch) {
      return pattern.is_in(launch.kernel.name) == (launch.kernel.name == name);
    });
    if (selects_it_alone) return expression;
  }
  return {};
}

}  // namespace

std::string options_of_prediction(const ProfileImport& import) {
  constexpr std::string_view kShape = " --seqlen 8k --heads 8 --dtype bf16 --gpu h200";
  constexpr std::size_t kKernelsOfNaive = 3;
  const std::vector<CountedLaunch>& launches = import.launches;
  const auto fused = std::find_if(launches.begin(), launches.end(), [](const CountedLaunch& launch) {
    return launch.kernel.name.find("flash") != std::string::npos;
  });
  const std::string& name = (fused == launches.end() ? launches.front() : *fused).kernel.name;
  const bool alike = std::all_of(launches.begin(), launches.end(),
                                 [&](const CountedLaunch& launch) { return launch.kernel.name == name; });
  if (!alike && fused == launches.end() && launches.size() == kKernelsOfNaive)
    return fmt::format("--algorithm naive{}", kShape);
  const std::string pattern = alike ? "" : pattern_of(name, import);
  const std::string kernel = alike             ? ""
                             : pattern.empty() ? "a --kernel that selects one, and "
                                               : "--kernel " + pattern + " ";
  const bool replaces = !alike && !import.kernel.empty();
  return fmt::format("{}{}--algorithm flash_v2 --block-q 128 --block-kv 64{}",
                     replaces ? "in place of the --kernel given here " : "", kernel, kShape);
}

std::string difference_words(const Difference& d) {
  const std::string bytes = text::bytes(d.bytes), of = text::bytes(d.of);
  const std::string share = d.of.value() > 0 ? text::percent(d.bytes.as_double() / d.of.as_double()) : "all";
  switch (d.kind) {
    case DifferenceKind::l2_absorbed:
      if (d.write) {
        return fmt::format(
            "L2 absorbed {} of the {} that SMs stored ({}): lines overwritten there before they went out", bytes, of,
            share);
      }
      return fmt::format("L2 absorbed {} of the {} that SMs {} ({})", bytes, of,
                         d.of_provenance == Provenance::hw_counter ? "received" : "load by closed form", share);
    case DifferenceKind::tile_reread:
      return fmt::format("tile re-read: HBM gave {} beyond each byte once ({}), tiles that had left L2", bytes, share);
    case DifferenceKind::inputs_in_l2:
      return fmt::format("inputs in L2: {} of {} ({}) were there already and not read from HBM", bytes, of, share);
    case DifferenceKind::write_back_lag:
      return fmt::format("write-back lag: {} of the {} to be stored ({}) were still in L2 when it ended", bytes, of,
                         share);
    case DifferenceKind::earlier_dirty_lines:
      return fmt::format(
          "earlier dirty lines: {} more were written back than the {} stored ({}): left in L2 by what "
          "ran before{}",
          bytes, of, share, d.of_provenance == Provenance::hw_counter ? "" : ", or spilled");
    case DifferenceKind::spilled_lines:
      return fmt::format(
          "spilled lines, or dirty ones of what ran before: {} more were written back than the {} of "
          "outputs ({})",
          bytes, of, share);
    case DifferenceKind::spills:
      return fmt::format(
          "spills: SMs stored {} beyond the {} of outputs: registers in local memory, a workspace, or "
          "another shape than this",
          bytes, of);
    case DifferenceKind::statistics_not_stored:
      return fmt::format("statistics: this kernel does not store the {} of LSE that the closed form has", bytes);
    case DifferenceKind::more_tile_loads:
      return fmt::format(
          "more tile loads: SMs received {} beyond {} ({}): smaller tiles than the plan's, or spills "
          "read back",
          bytes, of, share);
    case DifferenceKind::fewer_tile_loads:
      return fmt::format("fewer tile loads: SMs received {} less than {} ({}): larger tiles, or tiles that are skipped",
                         bytes, of, share);
    case DifferenceKind::fewer_stores:
      return fmt::format("fewer stores: SMs stored {} less than {} ({}): is this the shape that ran?", bytes, of,
                         share);
    case DifferenceKind::more_write_backs:
      return fmt::format("more write-backs: {} beyond the {} stored ({}), more than L2 holds: spills, or a workspace",
                         bytes, of, share);
  }
  return {};
}

}  // namespace hbmscope
