// The README shows real output: each line of its console block stands in what the program prints, in order; "..."
// leaves lines out.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/run.hpp"
#include "report/run_document.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> console_block() {
  std::ifstream readme(std::string(HBMSCOPE_SOURCE_DIR) + "/README.md");
  std::vector<std::string> block;
  bool inside = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("```")) {
      if (inside) return block;
      inside = line == "```console";
    } else if (inside && !line.starts_with("$ ")) {
      block.push_back(line);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("what the README shows of the main job is what the main job prints") {
  RunRequest request;
  request.gpu = embedded_gpu("H100 SXM");
  request.gpu_assumed = true;
  request.engine = Engine::sim;  // the README leaves the numerics out
  const std::vector<std::string> printed = lines_of(to_text(run_document(run(request), {}), 100, false));
  const std::vector<std::string> shown = console_block();
  REQUIRE(shown.size() > 20);
  std::size_t at = 0;
  for (const std::string& line : shown) {
    if (line == "...") break;
    CAPTURE(line);
    REQUIRE(at < printed.size());
    CHECK(printed[at++] == line);
  }
}
