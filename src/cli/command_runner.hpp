#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "lesson/command.hpp"

namespace hbmscope {

struct RunnerLimits {
  std::chrono::seconds time{60};
  std::size_t output_bytes = std::size_t{16} << 20;
  std::function<void()> waiting;  ///< called several times a second while commands run, if it is set
};

/// The file of the running program; `argv0` is how it was called, for systems without /proc.
std::string path_of_this_program(const std::string& argv0);

/// Runs a lesson's commands as processes of `program`, as many at a time as there are cores: without standard input,
/// without a terminal, and without a GPU, so that they say the same on every machine.
std::unique_ptr<lesson::CommandRunner> program_runner(const std::string& program, RunnerLimits limits = {});

}  // namespace hbmscope
