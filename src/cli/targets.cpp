#include "cli/targets.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/output.hpp"
#include "core/error.hpp"
#include "report/json_dump.hpp"

namespace hbmscope {

void add_targets(CLI::App& command, Targets& targets) {
  command.add_option("--json", targets.json, "Write the whole result as JSON to FILE, or - for standard output")
      ->type_name("FILE|-");
  command.add_option("--csv", targets.csv, "Write flat rows as CSV to FILE or -")->type_name("FILE|-");
  command.add_option("--markdown", targets.markdown, "Write the tables as Markdown to FILE or -")->type_name("FILE|-");
}

ChartStyle chart_style(const Targets& targets) {
  if (!targets.text() && targets.markdown.empty()) {
    throw Error(ErrorKind::usage, "--chart: draws beside the tables, and standard output holds another format",
                "give that format a file, or leave --chart out");
  }
  return {std::min(output_width(), 80), stdout_shows_utf8()};
}

void check_targets(const Targets& targets, const std::vector<std::string>& inputs) {
  const std::string* all[]{&targets.json, &targets.csv, &targets.markdown};
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) {
      if (all[a]->empty() || all[b]->empty()) continue;
      const bool files = *all[a] != "-" && *all[b] != "-";
      if (*all[a] != *all[b] && !(files && is_same_file(*all[a], *all[b]))) continue;
      throw Error(ErrorKind::usage,
                  "two formats cannot both go to " + (*all[a] == "-" ? std::string("standard output") : *all[a]),
                  "give each format a file of its own");
    }
  }
  for (const std::string* path : all) {
    refuse_inputs(*path, inputs);
    check_result_path(*path);
  }
}

void refuse_inputs(const std::string& path, const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-" || !std::filesystem::exists(input, ignored) || !is_same_file(path, input))
      continue;
    throw Error(ErrorKind::usage, path + ": is read by this command, and would be overwritten with its result",
                "give the result a file of its own");
  }
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  write_result(path, json_dump(json, 2) + "\n");
}

std::vector<std::string> files_among(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".json"); });
  return names;
}

}  // namespace hbmscope
