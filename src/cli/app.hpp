#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hbmscope {

/// Parses the command line and runs its command. Returns the exit code: docs/cli.md.
int cli_main(int argc, char** argv);

/// What every command may want to know of the call it is part of.
struct Invocation {
  std::vector<std::string> argv;
};

// One function a subcommand, each in its cmd_*.cpp: declares the command's options and what it does.
void add_run(CLI::App& app, const Invocation& invocation);
void add_batch(CLI::App& app, const Invocation& invocation);
void add_softmax(CLI::App& app, const Invocation& invocation);
void add_gpu(CLI::App& app, const Invocation& invocation);
void add_scenario(CLI::App& app, const Invocation& invocation);
void add_profile(CLI::App& app, const Invocation& invocation);
void add_lesson(CLI::App& app, const Invocation& invocation);
void add_compare(CLI::App& app, const Invocation& invocation);
void add_trace(CLI::App& app, const Invocation& invocation);
void add_sweep(CLI::App& app, const Invocation& invocation);
void add_merge(CLI::App& app, const Invocation& invocation);
void add_explain(CLI::App& app, const Invocation& invocation);
void add_plot(CLI::App& app, const Invocation& invocation);

}  // namespace hbmscope
