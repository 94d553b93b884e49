// Says what the model as it is now predicts for each algorithm of each run of a saved file, one JSON line each:
//   hbmscope_predict reports/h200/forward.jsonl > reports/h200/forward_model.jsonl
// Nothing is measured, so any machine will do.
#include <cstdio>

#include "reports/saved_runs.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: hbmscope_predict RUNS.jsonl > PREDICTED.jsonl\n", stderr);
    return 2;
  }
  try {
    const std::vector<hbmscope::reports::json> rows = hbmscope::reports::rows_of(arguments[1]);
    const hbmscope::reports::ClockSpreads spreads = hbmscope::reports::clock_spreads(rows);
    for (const hbmscope::reports::json& row : rows) {
      const hbmscope::reports::json& run = row.contains("run") ? row["run"] : row;  // drift.jsonl has more beside it
      for (const hbmscope::reports::json& algorithm : run["algorithms"]) {
        const hbmscope::reports::json line = hbmscope::reports::predicted(run, algorithm, spreads);
        if (!line.is_null()) std::puts(line.dump().c_str());
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", arguments[1], error.what());
    return 1;
  }
  return 0;
}
