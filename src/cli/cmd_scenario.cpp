#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "analysis/from_scenario.hpp"
#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "report/run_document.hpp"
#include "report/run_json.hpp"
#include "report/scenario_list.hpp"
#include "report/scenario_report.hpp"
#include "scenario/embedded.hpp"
#include "scenario/scenario_file.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

void append(Document& to, Document from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void list_scenarios(const std::string& json, const std::vector<std::string>& argv) {
  check_result_path(json);
  std::vector<Scenario> scenarios;
  for (const EmbeddedFile& file : embedded_scenarios()) scenarios.push_back(parse_scenario(file.text, file.name));
  if (!json.empty()) write_json(json, scenario_list_to_json(scenarios, argv));
  if (json == "-") return;
  const int width = output_width();
  write_stdout(to_text(scenario_list(scenarios, width), width, stdout_wants_colour()));
}

void show(const std::string& name) {
  const Scenario scenario = find_scenario(name);
  Document out = scenario_opening(scenario);
  for (std::size_t run = 0; run < scenario.runs.size(); ++run) {
    (void)request_of(scenario, run);  // names of algorithms and GPUs are right before anybody runs it
    out.push_back(scenario_run_words(scenario.runs[run]));
  }
  append(out, scenario_expectations(scenario));
  out.push_back(Paragraph{scenario.answer, true});
  write_stdout(to_text(out, output_width(), stdout_wants_colour()));
}

RunResult run_one(const Scenario& scenario, std::size_t run) {
  ProgressLine progress(scenario.name + ", " + scenario.runs[run].name);
  return run_of(scenario, run, [&](double fraction) { progress.at(fraction); });
}

struct ScenarioOptions {
  std::string name;
  bool chart = false;
  Targets targets;
};

void run_scenario(const ScenarioOptions& o, const std::vector<std::string>& argv) {
  check_targets(o.targets, files_among({o.name}));
  const Scenario scenario = find_scenario(o.name);
  std::vector<std::string> gpus;
  for (const ScenarioRun& run : scenario.runs) gpus.push_back(run.gpu);
  check_targets(o.targets, files_among(gpus));
  Document report = scenario_opening(scenario);
  std::vector<Json> runs;
  RunView view;
  if (o.chart) view.chart = chart_style(o.targets);
  for (std::size_t run = 0; run < scenario.runs.size(); ++run) {
    const RunResult result = run_one(scenario, run);
    runs.push_back(run_to_json(result, argv));
    report.push_back(Paragraph{"Run " + scenario_run_words(scenario.runs[run]).text, true});
    append(report, run_document(result, view));
  }
  const std::vector<ExpectationResult> results = check_expectations(scenario, runs);
  append(report, scenario_outcome(scenario, results));
  if (!o.targets.json.empty()) write_json(o.targets.json, scenario_to_json(scenario, runs, results));
  if (!o.targets.markdown.empty()) write_result(o.targets.markdown, to_markdown(report));
  if (o.targets.text()) write_stdout(to_text(report, output_width(), stdout_wants_colour()));
}

/// One scenario's line on standard output; the first expectation that it misses, in words.
std::string check_one(const std::string& name) {
  const Scenario scenario = find_scenario(name);
  std::vector<Json> runs;
  for (std::size_t run = 0; run < scenario.runs.size(); ++run) runs.push_back(run_to_json(run_one(scenario, run), {}));
  const std::vector<ExpectationResult> results = check_expectations(scenario, runs);
  std::string first_miss, lines;
  std::size_t missed = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].ok) continue;
    const std::string words = miss_words(scenario, scenario.expect[i], results[i]);
    if (missed++ == 0) first_miss = scenario.file + ": " + words;
    lines += "  " + words + "\n";
  }
  if (missed == 0) {
    write_stdout(fmt::format("ok      {}: {} expectations\n", scenario.file, results.size()));
  } else {
    write_stdout(fmt::format("MISSED  {}: {} of {} expectations\n{}", scenario.file, missed, results.size(), lines));
  }
  return first_miss;
}

/// "BAD     my_case.json: line 1, column 3: ...": an error of a file names the file itself.
std::string bad_line(const std::string& name, std::string_view what) {
  const bool named = what.find(name + ": ") != std::string_view::npos;
  return fmt::format("BAD     {}{}\n", named ? "" : name + ": ", what);
}

void check(std::vector<std::string> names) {
  if (names.empty()) {
    for (const EmbeddedFile& file : embedded_scenarios()) names.emplace_back(file.name);
  }
  std::string first_miss;
  std::size_t missed = 0;
  std::optional<Error>
      first_bad;  // a file that cannot be read is told at once and does not keep the others from being checked
  for (const std::string& name : names) {
    try {
      const std::string miss = check_one(name);
      if (miss.empty()) continue;
      if (missed++ == 0) first_miss = miss;
    } catch (const Error& error) {
      write_stdout(bad_line(name, error.what()));
      if (!first_bad) first_bad = error;
    }
  }
  if (first_bad) throw Error(*first_bad);
  if (missed == 0) return;
  throw Error(ErrorKind::check, first_miss,
              fmt::format("{} of {} scenarios missed; hbmscope scenario run NAME shows the derivation of each number",
                          missed, names.size()));
}

}  // namespace

void add_scenario(CLI::App& app, const Invocation& invocation) {
  CLI::App* c = app.add_subcommand("scenario", "Worked questions with their answers: list, show, run and check them");
  wrap_help(*c);
  c->require_subcommand(1);
  c->footer(
      "Examples:\n"
      "  hbmscope scenario list\n"
      "  hbmscope scenario run lesson-8k\n"
      "  hbmscope scenario check my_case.json\n"
      "How to write one: docs/scenarios.md");

  CLI::App* list = c->add_subcommand("list", "Names, questions, and how many values each checks");
  const auto list_json = std::make_shared<std::string>();
  list->add_option("--json", *list_json, "Write the list as JSON to FILE, or - for standard output")
      ->type_name("FILE|-");
  list->footer("Example: hbmscope scenario list --json -");
  list->callback([list_json, &invocation] { list_scenarios(*list_json, invocation.argv); });

  CLI::App* one = c->add_subcommand("show", "One scenario: its question, its runs, what is expected and why");
  const auto shown = std::make_shared<std::string>();
  one->add_option("scenario", *shown, "A scenario of `hbmscope scenario list`, or a file of your own")
      ->type_name("NAME|FILE.json")
      ->required();
  one->footer("Example: hbmscope scenario show lesson-8k");
  one->callback([shown] { show(*shown); });

  CLI::App* run = c->add_subcommand("run", "Its reports, each expectation with its value, and the answer");
  const auto options = std::make_shared<ScenarioOptions>();
  run->add_option("scenario", options->name, "A scenario of `hbmscope scenario list`, or a file of your own")
      ->type_name("NAME|FILE.json")
      ->required();
  run->add_flag("--chart", options->chart, "Draw the bytes as bars, and the roofline, in characters");
  run->add_option("--json", options->targets.json,
                  "Write runs and expectations as JSON to FILE, or - for standard output")
      ->type_name("FILE|-");
  run->add_option("--markdown", options->targets.markdown, "Write the report as Markdown to FILE or -")
      ->type_name("FILE|-");
  run->footer(
      "Examples:\n  hbmscope scenario run causal-8k\n  hbmscope scenario run my_case.json --json -\nA missed "
      "expectation is shown and does not change the exit code; check does that.");
  run->callback([options, &invocation] { run_scenario(*options, invocation.argv); });

  CLI::App* checked = c->add_subcommand("check", "Run scenarios and say what they miss; exit code 5 if anything");
  const auto names = std::make_shared<std::vector<std::string>>();
  checked->add_option("scenarios", *names, "Scenarios or files (default: all that are built in)")
      ->type_name("NAME|FILE.json");
  checked->footer("Examples:\n  hbmscope scenario check\n  hbmscope scenario check lesson-8k my_case.json");
  checked->callback([names] { check(*names); });
}

}  // namespace hbmscope
