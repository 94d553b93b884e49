#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli_checks.hpp"

/// What the tests of `sweep` and `merge` share.
namespace hbmscope::testing {

/// Takes the variables of a job of Slurm that the tests may run in out of the environment, once for all tests of a
/// file.
inline const bool kNoSlurm = [] {
  for (const char* name : {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
                           "SLURM_ARRAY_TASK_MAX", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_CPUS_PER_TASK"})
    ::unsetenv(name);
  return true;
}();

/// `hbmscope sweep` with these options: its rows as text.
inline std::string rows_of(const std::string& options, int code = 0) {
  const Outcome outcome = run_program(words("sweep " + options));
  CAPTURE(options);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == code);
  return outcome.out;
}

inline std::vector<nlohmann::json> parsed_rows(const std::string& text) {
  std::vector<nlohmann::json> rows;
  for (const std::string& line : lines_of(text)) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

}  // namespace hbmscope::testing
