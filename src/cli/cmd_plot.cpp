#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "plot/html_page.hpp"
#include "plot/pictures.hpp"
#include "plot/svg.hpp"
#include "plot/tiles_animation.hpp"
#include "plot/vega_lite.hpp"
#include "report/json_dump.hpp"
#include "results/result_file.hpp"
#include "results/roof_file.hpp"

namespace hbmscope {
namespace {

struct PlotOptions {
  std::vector<std::string> inputs;
  std::string output, format, picture, title, roofs;
  std::vector<std::string> conditions;
  bool list = false;
};

constexpr std::array<std::string_view, 3> kFormats{"html", "svg", "vl.json"};

/// By --format, else by how the file's name ends.
std::string_view format_of(const PlotOptions& o) {
  if (o.output.empty())
    throw Error(ErrorKind::usage, "-o is missing: a picture needs a file",
                "-o page.html, picture.svg or picture.vl.json");
  for (const std::string_view format : kFormats) {
    if (o.format.empty() ? o.output.ends_with("." + std::string(format)) : o.format == format) return format;
  }
  if (!o.format.empty())
    throw Error(ErrorKind::usage, "--format: does not know " + in_quotes(o.format), did_you_mean(o.format, kFormats));
  if (o.output == "-")
    throw Error(ErrorKind::usage, "-o -: standard output has no name that tells a format",
                "add --format html, svg or vl.json");
  throw Error(ErrorKind::usage, "-o: " + in_quotes(o.output) + " tells no format by its end",
              "end it in .html, .svg or .vl.json, or add --format");
}

void check_output(const PlotOptions& o) {
  if (o.output == "-") return;
  std::vector<std::string> inputs = o.inputs;
  if (!o.roofs.empty()) inputs.push_back(o.roofs);
  for (const std::string& input : inputs) {
    if (input == "-" || ::access(input.c_str(), F_OK) != 0 || !is_same_file(o.output, input)) continue;
    throw Error(ErrorKind::usage, o.output + ": is read by this command, and would be overwritten with its result",
                "give the picture a file of its own");
  }
  check_result_path(o.output);
}

plot::PlotData read_all(const PlotOptions& o) {
  std::vector<plot::Condition> conditions;
  for (const std::string& text : o.conditions) conditions.push_back(plot::parse_condition(text));
  plot::PlotData data(std::move(conditions));
  const std::optional<RoofFile> roofs = o.roofs.empty() ? std::nullopt : std::optional(read_roofs(o.roofs));
  bool fits = !roofs;
  for (const std::string& input : o.inputs) {
    if (input == "-" && ::isatty(STDIN_FILENO) == 1)
      say_error("waiting for results on this terminal", "Ctrl-D ends them; hbmscope run --json - makes one");
    read_results(input, [&](Result&& result) {
      if (roofs && is_same_gpu(roofs->gpu, result.gpu.name)) {
        result.gpu.measured_roofs = roofs->roofs;
        fits = true;
      }
      data.take(std::move(result), input);
    });
  }
  data.finish();
  if (!fits)
    throw Error(ErrorKind::data, fmt::format("{}: has the roofs of {}, and no result is of it", o.roofs, roofs->gpu),
                "results name their GPU under /gpu/name");
  return data;
}

/// The first chart of the picture that was asked for, or of the first one that the data can give.
plot::Chart single_chart(const plot::PlotData& data, const std::string& name) {
  for (const plot::Picture& picture : plot::pictures()) {
    if (!name.empty() && picture.name != name) continue;
    plot::Drawn drawn = plot::drawn_of(picture, data);
    if (!drawn.charts.empty()) {
      plot::Chart chart = std::move(drawn.charts.front());
      if (drawn.charts.size() > 1)
        chart.notes.push_back(
            fmt::format("The first of {} such pictures; --where picks another.", drawn.charts.size()));
      return chart;
    }
    if (!name.empty())
      throw Error(ErrorKind::data, fmt::format("these results give no picture \"{}\": {}", name, drawn.reason),
                  fmt::format("it needs {}; --list shows all pictures", picture.needs));
  }
  throw Error(ErrorKind::data, "these results give no picture", "--list shows what each picture needs");
}

std::string list_of_pictures() {
  std::string text;
  for (const plot::Picture& one : plot::pictures())
    text += fmt::format("{:<10} {}\n{:<10}   needs {}\n", one.name, one.question, "", one.needs);
  return text;
}

void execute(const PlotOptions& o) {
  if (o.list) return write_stdout(list_of_pictures());
  if (o.inputs.empty())
    throw Error(ErrorKind::usage, "plot needs a file of results",
                "hbmscope run --json - | hbmscope plot - -o page.html");
  if (std::count(o.inputs.begin(), o.inputs.end(), "-") > 1)
    throw Error(ErrorKind::usage, "standard input is named twice, and can be read once",
                "name - once; -o - writes to standard output");
  const std::string_view format = format_of(o);
  if (!o.picture.empty()) (void)plot::picture(o.picture);
  if (!o.picture.empty() && format == "html")
    throw Error(ErrorKind::usage, "--picture has no effect on a page, which holds all pictures",
                "leave it out, or write a .svg or .vl.json");
  check_output(o);
  const plot::PlotData data = read_all(o);
  if (format == "html") {
    const std::string tiles = data.results().empty() ? "" : plot::tiles_animation(data.results().front());
    return write_result(o.output, to_html_page(data, {o.title, tiles}));
  }
  const plot::Chart chart = single_chart(data, o.picture);
  write_result(o.output, format == "svg" ? to_svg(chart, o.title) : json_dump(to_vega_lite(chart, o.title), 1) + "\n");
}

}  // namespace

void add_plot(CLI::App& app, const Invocation& /*invocation*/) {
  CLI::App* const command = app.add_subcommand("plot", "Pictures of results: an HTML page, an SVG or a Vega-Lite spec");
  wrap_help(*command);
  const auto o = std::make_shared<PlotOptions>();
  command
      ->add_option("RESULT", o->inputs, "Results of run --json or sweep, one or many a file, or - for standard input")
      ->type_name("RESULT.json|.jsonl|-");
  command->add_option("-o,--output", o->output, "The file to write; its end tells the format; - is standard output")
      ->type_name("FILE.html|.svg|.vl.json");
  command->add_option("--format", o->format, "html, svg or vl.json, whatever the file's name")->type_name("FORMAT");
  std::string names;
  for (const plot::Picture& one : plot::pictures()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  command
      ->add_option("--picture", o->picture,
                   "Which one, for .svg and .vl.json: " + names + " (default: the first that the results give)")
      ->type_name("NAME");
  command
      ->add_option("--where", o->conditions,
                   "Only results with this value, such as head_dim=64 or mask=causal; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--roofs", o->roofs,
                   "Draw rooflines under what gpu probe --json measured, whatever the results have of it")
      ->type_name("FILE.json");
  command->add_option("--title", o->title, "A heading of your own")->type_name("TEXT");
  command->add_flag("--list", o->list, "List the pictures and what each needs");
  command->footer(
      "Examples:\n"
      "  hbmscope run --seqlen 8k --json - | hbmscope plot - -o page.html\n"
      "  hbmscope plot reports/h200/forward.jsonl --roofs reports/h200/probe.json -o page.html\n"
      "  hbmscope plot sweep.jsonl --picture sweep --where head_dim=128 -o sweep.svg");
  command->callback([o] { execute(*o); });
}

}  // namespace hbmscope
