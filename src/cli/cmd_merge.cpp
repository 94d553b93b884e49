#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/rows_csv_file.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "report/format.hpp"
#include "sweep/merge.hpp"

namespace hbmscope {
namespace {

struct MergeCommandOptions {
  std::vector<std::string> paths;
  std::string output = "-", csv;
  MergeOptions merge;
};

void execute(const MergeCommandOptions& o) {
  if (std::count(o.paths.begin(), o.paths.end(), "-") > 1)
    throw Error(ErrorKind::usage, "standard input is named twice, and can be read once", "name - once");
  const auto terminal = [](const std::string& path) { return path == "-" && ::isatty(STDIN_FILENO) == 1; };
  if (std::any_of(o.paths.begin(), o.paths.end(), terminal))
    say_error("waiting for rows on this terminal", "Ctrl-D ends them");
  refuse_inputs(o.output, o.paths);
  check_result_path(o.output);
  check_rows_csv(o.csv, o.output, o.paths);
  const Merge merge(o.paths, o.merge);
  ResultFile file(o.output);
  merge.write([&](std::string_view rows) { file.write(rows); });
  file.finish();
  if (!o.csv.empty()) write_rows_as_csv(o.output, o.csv);
  if (merge.failed() > 0) {
    say_error(text::integer(merge.failed()) + " of " + text::integer(merge.points()) +
                  " points had failed where they were computed; their rows say why",
              "");
  }
}

}  // namespace

void add_merge(CLI::App& app, const Invocation&) {
  CLI::App* c = app.add_subcommand("merge", "The shards of a sweep, checked and put together");
  wrap_help(*c);
  const auto options = std::make_shared<MergeCommandOptions>();
  c->add_option("files", options->paths, "What `hbmscope sweep --shard` wrote, in any order; - is standard input")
      ->type_name("FILE|-...")
      ->required();
  c->add_option("-o,--output", options->output, "Write the rows to FILE, or - for standard output")
      ->type_name("FILE|-")
      ->capture_default_str();
  c->add_option("--csv", options->csv, "Write the rows as CSV to FILE or - as well")->type_name("FILE|-");
  c->add_flag("--mixed", options->merge.mixed, "Take rows of several versions of hbmscope and of several GPUs");
  c->footer(
      "Every point has to be there once; lines that stand there twice and are the same count once.\n"
      "Example: hbmscope merge part.*.jsonl -o whole.jsonl");
  c->callback([options] { execute(*options); });
}

}  // namespace hbmscope
