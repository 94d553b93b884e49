#include "report/scenario_list.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace hbmscope {
namespace {

/// The words that fit, and "..." where that is not all of them.
std::string cut(std::string_view text, std::size_t width) {
  constexpr std::string_view kMore = " ...";
  if (text.size() <= width) return std::string(text);
  // A blank just behind the last word that fits leaves that word whole.
  const std::size_t room = std::max(width, kMore.size() + 1) - kMore.size();
  std::string_view kept = text.substr(0, room + 1);
  kept = kept.substr(0, std::min(kept.rfind(' '), room));
  while (kept.ends_with(',') || kept.ends_with(':')) kept.remove_suffix(1);
  return std::string(kept).append(kMore);
}

}  // namespace

Document scenario_list(std::span<const Scenario> scenarios, int width) {
  Table t{"", {{"scenario", false}, {"question", false}, {"checks"}}, {}, {}};
  std::size_t names = t.columns[0].header.size();
  for (const Scenario& s : scenarios) names = std::max(names, s.name.size());
  const std::size_t taken = 2 + names + 2 + 2 + t.columns[2].header.size();  // with the blanks between columns
  const std::size_t room = static_cast<std::size_t>(width) > taken ? static_cast<std::size_t>(width) - taken : 0;
  for (const Scenario& s : scenarios)
    t.rows.push_back({s.name, cut(s.question, std::max<std::size_t>(room, 20)), std::to_string(s.expect.size())});
  t.notes.emplace_back("hbmscope scenario show NAME asks the whole question; run NAME answers it.");
  return {t};
}

}  // namespace hbmscope
