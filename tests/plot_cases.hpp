#pragma once
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "plot/pictures.hpp"
#include "process.hpp"

/// Rows and pictures for test_plot*.cpp.
namespace hbmscope::testing {
using nlohmann::json;
namespace fs = std::filesystem;

inline const std::string kForwardRuns = std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/forward.jsonl";

/// A row of a sweep: flash_v2 with these bytes at SM-L2.
inline json row_of(std::int64_t N, std::int64_t bytes, std::int64_t head_dim = 64, const std::string& gpu = "H200") {
  static std::int64_t index = 0;
  return {
      {"schema_version", "1.0"},
      {"sweep", {{"index", index++}, {"key", "0"}, {"axes", {{"seqlen", N}}}, {"status", "ok"}, {"reason", nullptr}}},
      {"shape",
       {{"batch", 1},
        {"num_heads", 1},
        {"num_kv_heads", 1},
        {"seqlen_q", N},
        {"seqlen_kv", N},
        {"head_dim", head_dim},
        {"dtype", "fp16"}}},
      {"gpu", {{"name", gpu}}},
      {"algorithms",
       {{{"name", "flash_v2"},
         {"traffic",
          {{{"boundary", "sm_l2"},
            {"provenance", "closed_form"},
            {"status", "ok"},
            {"read_bytes", bytes - 1},
            {"write_bytes", 1},
            {"total_bytes", bytes}}}}}}}};
}

inline std::string lines(const std::vector<json>& rows) {
  std::string text;
  for (const json& row : rows) text += row.dump() + "\n";
  return text;
}

inline Outcome plot(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), "plot");
  Call made;
  made.arguments = std::move(arguments);
  made.input = input;
  return run_program(made);
}

inline std::string picture_of(const std::string& input, std::vector<std::string> more, const std::string& format) {
  more.insert(more.end(), {"-", "-o", "-", "--format", format});
  const Outcome outcome = plot(more, input);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.empty());
  return outcome.out;
}

inline json spec_of(const std::string& input, const std::vector<std::string>& more) {
  return json::parse(picture_of(input, more, "vl.json"));
}

inline std::vector<json> forward_runs() {
  std::istringstream file(text_of_file(kForwardRuns));
  std::vector<json> runs;
  for (std::string line; std::getline(file, line);) runs.push_back(json::parse(line));
  return runs;
}

inline const json* entry_of(const json& algorithm, const char* boundary, const char* provenance) {
  for (const json& entry : algorithm["traffic"]) {
    if (entry["boundary"] == boundary && entry["provenance"] == provenance && entry["plan"] == algorithm["plan"] &&
        entry["status"] == "ok")
      return &entry;
  }
  return nullptr;
}

inline std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace hbmscope::testing
