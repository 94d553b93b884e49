#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/text_chart.hpp"

namespace hbmscope {

/// Where a command's result goes: text on standard output, unless a machine format is asked for. At most one of them
/// may be "-".
struct Targets {
  std::string json, csv, markdown;
  /// Is the text for people wanted on standard output?
  [[nodiscard]] bool text() const { return json != "-" && csv != "-" && markdown != "-"; }
};

/// How --chart draws: within 80 columns, in ASCII unless a terminal shows more. Refused where neither the text for
/// people nor Markdown is written, of which it is part.
ChartStyle chart_style(const Targets& targets);

/// Adds --json, --csv and --markdown, each taking FILE or - for standard output.
void add_targets(CLI::App& command, Targets& targets);
/// Refuses two formats on standard output, one file for two formats, and a file that this command reads: `inputs` are
/// the names of the latter.
void check_targets(const Targets& targets, const std::vector<std::string>& inputs = {});

/// Refuses a result that would go to a file that this command reads.
void refuse_inputs(const std::string& path, const std::vector<std::string>& inputs);

/// Writes a result as write_result() does, as JSON.
void write_json(const std::string& path, const nlohmann::ordered_json& json);

/// Of names of GPUs or scenarios, those that may be files.
std::vector<std::string> files_among(std::vector<std::string> names);

}  // namespace hbmscope
