#include <memory>

#include "analysis/trace.hpp"
#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/options_without_effect.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/run_options.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "plot/tiles_animation.hpp"
#include "report/trace_chrome.hpp"
#include "report/trace_document.hpp"
#include "report/trace_jsonl.hpp"

namespace hbmscope {
namespace {

/// Of `run`'s options, those that say nothing to a schedule: how far to go, how to measure, and the step around it.
constexpr const char* kNotOfTrace[]{
    "--engine", "--device", "--repeats",  "--kernel-counters", "--hw-counters",       "--require",
    "--rungs",  "--seed",   "--portable", "--attention-share", "--attention-speedup", "--attention-time-saved"};

struct TraceOptions {
  RunOptions run;
  std::int64_t max_events = kDefaultMaxEvents;
  std::string jsonl, chrome, html;
};

Trace traced(const RunRequest& request, const TraceOptions& o, TraceListener& listener) {
  ProgressLine progress("tracing");
  return trace(request, o.max_events, listener, [&](double fraction) { progress.at(fraction); });
}

void execute(const CLI::App& command, TraceOptions o, const std::vector<std::string>& argv) {
  if (o.jsonl.empty() && o.chrome.empty() && o.html.empty()) o.jsonl = "-";
  check_targets({o.jsonl, o.chrome, o.html}, files_among({o.run.gpu}));
  o.run.engine = "model";
  const RunRequest request = to_request(o.run);
  RunRequest events = request;
  if (events.algorithms.empty()) events.algorithms = default_traced_algorithms(events.pass);
  RunRequest read = o.html.empty() ? events : request;
  read.engine = Engine::sim;  // events tell what went through the L2
  refuse_options_without_effect(command, read);
  if (o.jsonl.empty() && o.chrome.empty()) {
    const auto refuse = [](const std::string& what) {
      throw Error(ErrorKind::usage, what, "leave it out, or write events with --jsonl or --chrome");
    };
    if (cluster_of(request.plan) > 1) refuse("--cluster: has no effect on --html, which draws one CTA at a time");
    if (request.l2_warm) refuse("--l2-state: has no effect on --html, which begins with an empty L2");
  }
  Trace last;
  // One target after the other: so that a signal, or a full disk, leaves nothing half-written of either.
  if (!o.jsonl.empty()) {
    ResultFile file(o.jsonl);
    TraceJsonl writer([&](std::string_view text) { file.write(text); });
    last = traced(events, o, writer);
    writer.finish();
    file.finish();
  }
  if (!o.chrome.empty()) {
    ResultFile file(o.chrome);
    TraceChrome writer([&](std::string_view text) { file.write(text); });
    last = traced(events, o, writer);
    writer.finish(last, argv);
    file.finish();
  }
  if (!o.html.empty()) write_result(o.html, plot::tiles_animation_page(small_trace(request)));
  if (last.algorithms.empty()) return;  // a page says itself what it shows
  if (o.jsonl != "-" && o.chrome != "-" && o.html != "-")
    write_stdout(to_text(trace_document(last), output_width(), stdout_wants_colour()));
}

}  // namespace

void add_trace(CLI::App& app, const Invocation& invocation) {
  CLI::App* c = app.add_subcommand(
      "trace", "The tile schedule, event by event: JSON lines, a trace for ui.perfetto.dev, or tiles that move");
  wrap_help(*c);
  const auto options = std::make_shared<TraceOptions>();
  add_run_options(*c, options->run);
  for (const char* option : kNotOfTrace) c->remove_option(c->get_option(option));
  const char* output = "Output";
  c->add_option("--jsonl", options->jsonl, "Write a line of JSON an event to FILE, or - for standard output (default)")
      ->type_name("FILE|-")
      ->group(output);
  c->add_option("--chrome", options->chrome,
                "Write a trace that ui.perfetto.dev and chrome://tracing open to FILE or -")
      ->type_name("FILE|-")
      ->group(output);
  c->add_option("--html", options->html,
                "Write a page that shows the tiles move, of the shape scaled down to a few of them, to FILE or -")
      ->type_name("FILE|-")
      ->group(output);
  add_positive_count(*c, "--max-events", options->max_events,
                     "Refuse a schedule of more tile requests (default 1000000)")
      ->group(output);
  c->footer(
      "One algorithm unless --algorithm names more: the fused one of the pass. --html shows all of them.\n"
      "Examples:\n"
      "  hbmscope trace --seqlen 1k --algorithm naive | head -n 3\n"
      "  hbmscope trace --chrome flash_v2.json\n"
      "  hbmscope trace --causal --html tiles.html\n"
      "  hbmscope trace --causal --heads 8 --gpu h200 --jsonl events.jsonl\n"
      "What the fields mean: docs/trace.md");
  c->callback([c, options, &invocation] { execute(*c, *options, invocation.argv); });
}

}  // namespace hbmscope
