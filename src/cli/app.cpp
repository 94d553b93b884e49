#include "cli/app.hpp"

#include <csignal>
#include <exception>
#include <new>
#include <sstream>

#include "cli/output.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/version.hpp"

namespace hbmscope {
namespace {

/// One row a command, in the order of --help.
constexpr void (*kCommands[])(CLI::App&, const Invocation&){
    add_run, add_batch,   add_sweep, add_merge,   add_plot,   add_scenario, add_softmax,
    add_gpu, add_profile, add_trace, add_compare, add_lesson, add_explain};

int complain(const Error& error) {
  say_error(error.what(), error.hint());
  return static_cast<int>(error.kind());
}

}  // namespace

int cli_main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a limit of the file's size then fails, and is told as any other
  Invocation invocation;
  invocation.argv.assign(argv, argv + argc);
  try {
    CLI::App app{
        "hbmscope shows, exactly, how FlashAttention cuts HBM traffic: bytes by formula, by simulation and by "
        "counters, side by side.",
        "hbmscope"};
    app.set_version_flag(
        "--version", "hbmscope " + std::string(hbmscope_version()) + " (" + std::string(hbmscope_git_revision()) + ")");
    app.require_subcommand(1);
    app.footer(
        "Example: hbmscope run --seqlen 8k --head-dim 128 --heads 32 --causal\nEach command has a --help of its own, "
        "with examples.");
    for (const auto add : kCommands) add(app, invocation);
    refuse_empty_values(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) return complain(usage_error(app, error));
      std::ostringstream text;  // --help and --version
      app.exit(error, text, text);
      write_stdout(text.str());
    }
    return 0;
  } catch (const Error& error) {
    return complain(error);
  } catch (const std::bad_alloc&) {
    return complain(Error(ErrorKind::output, "out of memory", "take a smaller shape, or --engine model"));
  } catch (const std::exception& error) {
    return complain(Error(ErrorKind::output, std::string("internal error: ") + error.what(),
                          "please report this with the command line"));
  }
}

}  // namespace hbmscope
