#include <fmt/format.h>

#include <memory>
#include <utility>

#include "analysis/run.hpp"
#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/options_without_effect.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/run_options.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "report/run_csv.hpp"
#include "report/run_document.hpp"
#include "report/run_json.hpp"
#include "results/roof_file.hpp"

namespace hbmscope {
namespace {

struct RunCommandOptions {
  RunOptions run;
  RunView view;
  bool chart = false;
  std::string roofs;
  Targets targets;
};

/// The roofs and the clocks that a probe measured, in place of those of the GPU file.
void take_probe(const std::string& path, GpuSpec& gpu) {
  RoofFile file = read_roofs(path);
  if (!is_same_gpu(file.gpu, gpu.name)) {
    throw Error(ErrorKind::data,
                fmt::format("{}: has the roofs of {}, and this run is of {}", path, file.gpu, gpu.name),
                "name its GPU with --gpu");
  }
  if (!file.sm_clocks.empty() && std::ssize(file.sm_clocks) != gpu.num_sms) {
    throw Error(ErrorKind::data,
                fmt::format("{}: /sm_clock_hz: has {} clocks, and this GPU has {} SMs", path, file.sm_clocks.size(),
                            gpu.num_sms),
                "probe the GPU that the run is of");
  }
  const Source source{"given in " + path, ""};
  for (const GpuRoof& roof : file.roofs) {
    gpu.sources["measured_roofs." + std::string(find_roof_kind(roof.name)->key)] = source;
  }
  gpu.sources["sm_clock_hz"] = source;
  gpu.measured_roofs = std::move(file.roofs);
  gpu.sm_clocks = std::move(file.sm_clocks);
}

void execute(const CLI::App& command, RunCommandOptions o, const std::vector<std::string>& argv) {
  std::vector<std::string> inputs = files_among({o.run.gpu});
  if (!o.roofs.empty()) inputs.push_back(o.roofs);
  check_targets(o.targets, inputs);
  RunRequest request = to_request(o.run);
  if (!o.roofs.empty()) take_probe(o.roofs, request.gpu);
  refuse_options_without_effect(command, request);
  if (o.chart) o.view.chart = chart_style(o.targets);
  RunResult result;
  {
    ProgressLine progress("simulating the L2");
    result = run(request, {[&](double fraction) { progress.at(fraction); },
                           [&](const std::string& what) { progress.doing(what); }});
  }
  if (!o.targets.json.empty()) write_json(o.targets.json, run_to_json(result, argv));
  if (!o.targets.csv.empty()) write_result(o.targets.csv, run_to_csv(result));
  if (!o.targets.markdown.empty()) write_result(o.targets.markdown, to_markdown(run_document(result, o.view)));
  if (o.targets.text()) write_stdout(to_text(run_document(result, o.view), output_width(), stdout_wants_colour()));
}

}  // namespace

void add_run(CLI::App& app, const Invocation& invocation) {
  CLI::App* c = app.add_subcommand("run", "One shape: HBM and L2 traffic, FLOPs, memory, roofline, time, exactness");
  wrap_help(*c);
  const auto options = std::make_shared<RunCommandOptions>();
  add_run_options(*c, options->run);
  const char* output = "Output";
  c->add_flag("--tensors", options->view.tensors, "Show the bytes of each tensor")->group(output);
  c->add_flag("--explain", options->view.explain,
              "Say under each table what its columns mean and how its figures came about")
      ->group(output);
  c->add_flag("--chart", options->chart, "Draw the bytes as bars, and the roofline, in characters")->group(output);
  c->add_option("--roofs", options->roofs,
                "Rooflines under what gpu probe --json measured, and its SMs' clocks (default: what the GPU file has)")
      ->group(output)
      ->type_name("FILE.json");
  add_targets(*c, options->targets);
  for (const char* target : {"--json", "--csv", "--markdown"}) c->get_option(target)->group(output);
  c->footer(
      "Examples:\n"
      "  hbmscope run\n"
      "  hbmscope run --causal --chart\n"
      "  hbmscope run --seqlen 8k --head-dim 128 --heads 64 --causal --gpu h200\n"
      "  hbmscope run --heads 32 --kv-heads 8 --pass decode --json -");
  c->callback([c, options, &invocation] { execute(*c, *options, invocation.argv); });
}

}  // namespace hbmscope
