#include "cli/lesson_values.hpp"

#include <memory>
#include <string>
#include <vector>

#include "analysis/worked_examples.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "core/error.hpp"
#include "report/worked_examples_report.hpp"

namespace hbmscope {
namespace {

struct Options {
  std::string json, only;
  bool details = false;
};

void execute(const Options& o) {
  if (o.details && o.json.empty()) {
    throw Error(ErrorKind::usage, "--details: adds to what --json writes", "add --json -; the table has it all anyway");
  }
  check_result_path(o.json);
  std::vector<WorkedExample> examples;
  for (const WorkedEntry* entry : o.only.empty() ? worked_entries() : worked_entries(split_list(o.only), "--only"))
    examples.push_back({entry, worked_values(*entry)});
  if (!o.json.empty()) write_json(o.json, worked_examples_to_json(examples, o.details));
  if (o.json != "-") write_stdout(to_text(worked_examples_document(examples), output_width(), stdout_wants_colour()));
}

}  // namespace

void add_lesson_values(CLI::App& lesson) {
  CLI::App* const command = lesson.add_subcommand("values", "The numbers of the worked examples, each computed anew");
  wrap_help(*command);
  const auto options = std::make_shared<Options>();
  command->add_option("--json", options->json, "Write {id: {name: value}} to FILE, or - for standard output, unrounded")
      ->type_name("FILE|-");
  command->add_option("--only", options->only, "These examples alone")->type_name("ID,...");
  command->add_flag("--details", options->details,
                    "With --json: {id: {values, question, provenance, remark, source, reasons}} instead");
  command->footer(
      "Examples:\n"
      "  hbmscope lesson values\n"
      "  hbmscope lesson values --only S1-13,Q-06\n"
      "  hbmscope lesson values --json -");
  command->callback([options] { execute(*options); });
}

}  // namespace hbmscope
