// Reads every #include under src/ and kernels/ against the layers of docs/architecture.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Room {
  std::string_view name;  ///< the first folder below src/; "main" is src/main.cpp, "kernels" is kernels/
  std::vector<std::string_view> may_use;   ///< rooms besides itself
  std::vector<std::string_view> external;  ///< prefixes of <...> besides the standard library's headers
  std::vector<std::string_view> banned;    ///< standard headers
};

constexpr std::array<std::string_view, 6> kSourceExtensions{".hpp", ".cpp", ".cu", ".cuh", ".def", ".in"};
const std::vector<std::string_view> kCudaHeaders{"cuda", "cupti", "nvtx3/", "cublas", "mma.h", "cooperative_groups"};
const std::vector<std::string_view> kSystemHeaders{"unistd.h", "sys/", "fcntl.h", "poll.h", "dlfcn.h"};

std::vector<std::string_view> join(std::vector<std::string_view> a, const std::vector<std::string_view>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<Room>& rooms() {
  static const std::vector<Room> table{
      {"core", {}, kSystemHeaders, {}},
      {"model", {"core"}, {}, {"iostream", "istream", "ostream", "fstream", "cstdio"}},
      {"simulate", {"core", "model"}, {"immintrin.h"}, {"iostream"}},
      {"scenario", {"core", "model"}, {"nlohmann/", "unistd.h"}, {}},
      {"results", {"core", "model", "scenario"}, {"nlohmann/", "unistd.h"}, {"iostream"}},
      {"device", {"core", "model", "simulate", "kernels"}, join(kCudaHeaders, kSystemHeaders), {}},
      {"measure", {"core", "model", "simulate", "device", "kernels"}, {}, {"iostream"}},
      {"analysis",
       {"core", "model", "simulate", "device", "measure", "scenario", "results"},
       {"regex.h"},
       {"iostream"}},
      {"report",
       {"core", "model", "simulate", "device", "measure", "analysis", "scenario", "results"},
       {"fmt/", "nlohmann/"},
       {}},
      {"plot",
       {"core", "model", "scenario", "results", "analysis", "report"},
       {"fmt/", "nlohmann/"},
       {"iostream", "fstream"}},
      {"sweep",
       {"core", "model", "simulate", "device", "measure", "analysis", "report", "scenario", "results"},
       {"fmt/", "nlohmann/", "unistd.h", "sys/types.h"},
       {}},
      {"lesson", {"core", "model", "scenario", "analysis", "report"}, {"fmt/", "nlohmann/"}, {}},
      {"cli",
       {"core", "model", "simulate", "device", "measure", "analysis", "report", "scenario", "results", "plot", "sweep",
        "lesson"},
       join({"CLI/", "fmt/", "nlohmann/"}, kSystemHeaders),
       {}},
      {"main", {"core", "cli"}, kSystemHeaders, {}},
      {"kernels", {"core", "model"}, join(kCudaHeaders, {"dlfcn.h"}), {"iostream"}},
  };
  return table;
}

bool contains(const std::vector<std::string_view>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string room_of(const fs::path& file) {
  auto part = file.begin();
  if (*part == "kernels") return "kernels";
  ++part;
  return *part == "main.cpp" ? "main" : part->string();
}

/// Why `include_line`, a whole line of `file` (relative to the root), breaks the layers; nothing if it does not.
std::optional<std::string> violation(const fs::path& file, const std::string& include_line) {
  std::istringstream words(include_line);
  std::string directive;
  words >> directive;
  if (directive == "#") {
    words >> directive;
    directive.insert(0, 1, '#');
  }
  const std::size_t opening = include_line.find_first_of("\"<");
  if (!directive.starts_with("#include") || opening == std::string::npos) return std::nullopt;
  const bool quoted = include_line[opening] == '"';
  const std::size_t closing = include_line.find(quoted ? '"' : '>', opening + 1);
  const std::string header = include_line.substr(opening + 1, closing - opening - 1);

  const std::string name = room_of(file);
  const auto room = std::find_if(rooms().begin(), rooms().end(), [&](const Room& r) { return r.name == name; });
  if (room == rooms().end()) return "no such room: " + name;

  if (quoted) {
    const std::string target = header.substr(0, header.find('/'));
    if (header.find('/') == std::string::npos || header.starts_with("."))
      return "\"" + header + "\" is not written relative to src/";
    if (target == name || contains(room->may_use, target)) return std::nullopt;
    return name + " may not include " + target + " (\"" + header + "\")";
  }
  if (contains(room->banned, header)) return name + " may not include <" + header + ">";
  const bool standard = header.find_first_of("./") == std::string::npos;
  const bool allowed = std::any_of(room->external.begin(), room->external.end(),
                                   [&](std::string_view prefix) { return header.starts_with(prefix); });
  if (standard || allowed) return std::nullopt;
  return name + " may not include <" + header + ">";
}

std::vector<std::string> violations(const fs::path& file, std::istream& text) {
  std::vector<std::string> found;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (const auto reason = violation(file, line))
      found.push_back(file.generic_string() + ":" + std::to_string(number) + ": " + *reason);
  }
  return found;
}

}  // namespace

TEST_CASE("every include keeps to the layers") {
  const fs::path root = HBMSCOPE_SOURCE_DIR;
  int files_read = 0;
  for (const char* top : {"src", "kernels"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (std::find(kSourceExtensions.begin(), kSourceExtensions.end(), extension) == kSourceExtensions.end()) continue;
      ++files_read;
      std::ifstream text(entry.path());
      for (const std::string& found : violations(fs::relative(entry.path(), root), text)) FAIL_CHECK(found);
    }
  }
  CHECK(files_read > 10);
}

TEST_CASE("a room includes itself, the rooms below it and the standard library") {
  std::istringstream text(
      "#pragma once\n"
      "#include <vector>\n"
      "#include \"core/units.hpp\"  // Bytes\n"
      " #  include \"model/mask.hpp\"\n"
      "// #include \"cli/options.hpp\"\n");
  CHECK(violations("src/model/algorithms/naive.cpp", text).empty());
}

TEST_CASE("a planted violation is found, with its file and line") {
  std::istringstream text("#include \"core/units.hpp\"\n#include \"report/format.hpp\"\n");
  const std::vector<std::string> found = violations("src/model/planted.cpp", text);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "src/model/planted.cpp:2: model may not include report (\"report/format.hpp\")");
}

TEST_CASE("each rule of the layers catches its own kind of violation") {
  struct Planted {
    std::string file;
    std::string line;
  };
  for (const Planted& planted : std::vector<Planted>{
           {"src/core/a.hpp", "#include \"model/mask.hpp\""},
           {"src/model/a.cpp", "#include <fmt/format.h>"},
           {"src/model/a.cpp", "#include <nlohmann/json.hpp>"},
           {"src/model/a.cpp", "#include <cuda_runtime.h>"},
           {"src/model/a.cpp", "#include <cstdio>"},
           {"src/model/a.cpp", "#include <iostream>"},
           {"src/model/a.cpp", "#include \"mask.hpp\""},
           {"src/model/a.cpp", "#include \"../core/units.hpp\""},
           {"src/simulate/numerics/a.cpp", "#include <fmt/core.h>"},
           {"src/scenario/a.cpp", "#include \"report/report.hpp\""},
           {"src/scenario/a.cpp", "#include <CLI/CLI.hpp>"},
           {"src/report/a.cpp", "#include \"cli/app.hpp\""},
           {"src/report/a.cpp", "#include <CLI/CLI.hpp>"},
           {"src/report/a.cpp", "#include \"lesson/scan.hpp\""},
           {"src/report/a.cpp", "#include \"sweep/row.hpp\""},
           {"src/sweep/a.cpp", "#include \"cli/output.hpp\""},
           {"src/lesson/a.cpp", "#include \"cli/output.hpp\""},
           {"src/lesson/a.cpp", "#include <unistd.h>"},
           {"src/main.cpp", "#include <fmt/format.h>"},
           {"kernels/a.cu", "#include <fmt/format.h>"},
           {"kernels/a.cu", "#include \"device/device.hpp\""},
           {"src/core/a.hpp", "  #  include <fmt/core.h>"},
           {"src/attic/a.cpp", "#include <vector>"},
       }) {
    CAPTURE(planted.file);
    CAPTURE(planted.line);
    CHECK(violation(planted.file, planted.line).has_value());
  }
}
