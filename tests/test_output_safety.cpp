// Results go where the user pointed, and nothing that comes in from a file steers the terminal.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "process.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
namespace fs = std::filesystem;

namespace {

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / (name + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a result written to a symbolic link lands in the link's target, and the link stays one") {
  const fs::path folder = fresh_folder("hbmscope-link");
  std::ofstream(folder / "target.json") << "before";
  fs::create_symlink("target.json", folder / "link.json");
  const Outcome outcome =
      run_program({"run", "--seqlen", "64", "--engine", "model", "--json", (folder / "link.json").string()});
  CHECK(outcome.code == 0);
  CHECK(fs::is_symlink(folder / "link.json"));
  CHECK(content_of(folder / "target.json").starts_with("{"));
  fs::remove_all(folder);
}

TEST_CASE("a path that cannot take a result is refused before anything is computed, and nothing is left behind") {
  const fs::path folder = fresh_folder("hbmscope-path");
  fs::create_symlink("loop.json", folder / "loop.json");
  fs::create_symlink("/nonexistent/x.json", folder / "dangling.json");
  for (const std::string& path : {(folder / "no" / "x.json").string(), folder.string(), (folder / "loop.json").string(),
                                  (folder / "dangling.json").string()}) {
    CAPTURE(path);
    const Outcome outcome = run_program({"run", "--seqlen", "64", "--engine", "model", "--json", path});
    CHECK(outcome.code == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("hbmscope: "));
  }
  fs::remove_all(folder);
}

TEST_CASE("control characters in a file's texts are refused, and those of a command line are shown as codes") {
  CHECK_THROWS_WITH_AS(parse_gpu(R"({"name": "\u001b[31mred"})", "gpu.json"), doctest::Contains("control characters"),
                       Error);
  CHECK_THROWS_WITH_AS(parse_gpu(R"({"name": "two\nlines"})", "gpu.json"), doctest::Contains("control characters"),
                       Error);
  const Outcome outcome = run_program({"run", "--algorithm", "\x1b[31mx"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find('\x1b') == std::string::npos);
}
