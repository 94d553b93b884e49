// Arguments and file names that are no UTF-8: a result that holds them is valid JSON, with U+FFFD in their place.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "core/utf8.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::vector<std::string> with(std::string_view arguments, const std::vector<std::string>& more) {
  std::vector<std::string> all = words(arguments);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("every command's JSON is valid whatever bytes its arguments and files are named with") {
  const TemporaryFolder folder;
  const std::string gpu = folder.file("gpu\xfd.json"), scenario = folder.file("case\xc3.json"),
                    lesson = folder.write("lesson\xff.md", "# A lesson\n"), csv = folder.file("\xfe.csv"),
                    plain = folder.file("plain.json"), bad = folder.file("run\xe2\x82.json");
  REQUIRE(run_program({"gpu", "show", "h200", "--json", gpu}).code == 0);
  fs::copy_file(HBMSCOPE_SOURCE_DIR "/scenarios/attention-share.json", scenario);
  const std::string counters =
      folder.write("ncu\x80.csv", text_of_file(HBMSCOPE_SOURCE_DIR "/tests/data/ncu/fa2_1_8_8192_128_noflush.csv"));
  REQUIRE(run_program({"run", "--seqlen", "64", "--engine", "model", "--json", plain}).code == 0);
  fs::copy_file(plain, bad);

  const std::string run = "run --seqlen 64 --engine model";
  enum class Gives { document, lines, picture };
  struct Writer {
    Gives gives;
    std::vector<std::string> arguments;
  };
  for (const auto& [gives, arguments] : std::vector<Writer>{
           {Gives::document, with(run, {"--csv", csv, "--json", "-"})},
           {Gives::document, with(run, {"--gpu", gpu, "--json", "-"})},
           {Gives::lines, with("sweep --seqlen 64 --full", {"--gpu", gpu})},
           {Gives::lines, with("sweep --seqlen 64", {"--gpu", gpu + ",a100"})},
           {Gives::document, with("softmax --scores 1,2 --values 3,4 --json -", {"--csv", csv})},
           {Gives::document, with("scenario run", {scenario, "--json", "-"})},
           {Gives::document, with("scenario run attention-share --json -", {"--markdown", csv})},
           {Gives::document, with("compare", {plain, bad, "--json", "-"})},
           {Gives::document, with("compare --json -", {plain, plain, "--csv", csv})},
           {Gives::document, with("lesson check", {lesson, "--json", "-"})},
           {Gives::document, with("profile import", {counters, "--json", "-"})},
           {Gives::document, with("profile import --json -", {counters, "--csv", csv})},
           {Gives::document, with("gpu show", {gpu, "--json", "-"})},
           {Gives::document, with("trace --seqlen 64 --algorithm flash_v2 --chrome -", {"--gpu", gpu})},
           {Gives::lines, with("trace --seqlen 64 --algorithm flash_v2", {"--gpu", gpu})},
           {Gives::document, with("plot --format vl.json --picture traffic -o -", {bad, "--title", "\xfe"})},
           {Gives::picture, with("plot --format svg --picture traffic -o -", {bad, "--title", "\xfe"})},
           {Gives::picture, with("plot --format html -o -", {bad, "--title", "\xfe"})}}) {
    CAPTURE(arguments[0]);
    CAPTURE(arguments[1]);
    const Outcome outcome = run_program(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(is_utf8(outcome.out));
    if (gives == Gives::picture) continue;
    for (const std::string& text : gives == Gives::lines ? lines_of(outcome.out) : std::vector{outcome.out})
      CHECK(json::accept(text));
  }
  const json document = json::parse(run_program(with(run, {"--csv", csv, "--json", "-"})).out);
  CHECK(has(document["meta"]["argv"].dump(), "\xEF\xBF\xBD.csv"));
}

TEST_CASE("JSON becomes text in one place of the rooms that write") {
  const fs::path root = fs::path(HBMSCOPE_SOURCE_DIR) / "src";
  for (const char* room : {"report", "plot", "sweep", "lesson", "cli"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
      if (!entry.is_regular_file() || entry.path().filename() == "json_dump.hpp") continue;
      CAPTURE(entry.path().string());
      const std::string text = text_of_file(entry.path().string());
      CHECK_FALSE(has(text, ".dump("));
      CHECK_FALSE(has(text, "->dump("));
    }
  }
}
