#include "report/scenario_list.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/version.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

/// The text in lines of at most `width`, broken at blanks; a longer word has a line of its own.
std::vector<std::string> lines_of_question(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return lines;
}

}  // namespace

Document scenario_list(std::span<const Scenario> scenarios, int width) {
  Table t{"", {{"scenario", false}, {"question", false}, {"checks"}}, {}, {}};
  std::size_t names = t.columns[0].header.size();
  for (const Scenario& s : scenarios) names = std::max(names, s.name.size());
  const std::size_t taken = 2 + names + 2 + 2 + t.columns[2].header.size();  // with the blanks between columns
  const std::size_t room = static_cast<std::size_t>(width) > taken ? static_cast<std::size_t>(width) - taken : 0;
  for (const Scenario& s : scenarios) {
    std::vector<std::string> row{s.name, "", std::to_string(s.expect.size())};
    for (const std::string& line : lines_of_question(s.question, std::max<std::size_t>(room, 20))) {
      row[1] = line;
      t.rows.push_back(row);
      row[0] = row[2] = "";
    }
  }
  t.notes.emplace_back("hbmscope scenario show NAME says what is run and expected; run NAME answers the question.");
  return {t};
}

nlohmann::ordered_json scenario_list_to_json(std::span<const Scenario> scenarios,
                                             const std::vector<std::string>& argv) {
  nlohmann::ordered_json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}};
  out["scenarios"] = nlohmann::ordered_json::array();
  for (const Scenario& s : scenarios) {
    out["scenarios"].push_back({{"name", s.name},
                                {"title", s.title},
                                {"question", s.question},
                                {"source", s.source},
                                {"runs", s.runs.size()},
                                {"checks", s.expect.size()}});
  }
  return out;
}

}  // namespace hbmscope
