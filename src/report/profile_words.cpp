#include "report/profile_words.hpp"

#include <fmt/format.h>

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
