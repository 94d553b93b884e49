// Which commands a lesson may run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "lesson/command.hpp"

using namespace hbmscope;
using namespace hbmscope::lesson;
using Words = std::vector<std::string>;

namespace {

Words words(std::string_view text) {
  return parse_command(text, "docs").words;
}

bool refused(std::string_view text, std::string_view part) {
  try {
    (void)parse_command(text, "docs");
  } catch (const Error& error) {
    CAPTURE(error.what());
    CHECK(error.kind() == ErrorKind::data);
    CHECK(!error.hint().empty());
    CHECK(std::string_view(error.what()).find(part) != std::string_view::npos);
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("words are quoted as in a shell") {
  CHECK(words("hbmscope run --seqlen  8k ") == Words{"run", "--seqlen", "8k"});
  CHECK(words("hbmscope softmax --scores \"2,1|3,0\" --values '1,2;3,4'") ==
        Words{"softmax", "--scores", "2,1|3,0", "--values", "1,2;3,4"});
  CHECK(words("hbmscope gpu show 'rtx '\"4090\"") == Words{"gpu", "show", "rtx 4090"});
  CHECK(words("hbmscope run --gpu ''") == Words{"run", "--gpu", ""});
  CHECK(words("./dev run --heads 2") == Words{"run", "--heads", "2"});
  CHECK(words("./dev hbmscope gpu list") == Words{"gpu", "list"});
  CHECK(parse_command("hbmscope run", "docs").folder == "docs");
}

TEST_CASE("nothing of a shell is there") {
  for (const char* text : {"hbmscope run | head", "hbmscope run > out", "hbmscope run < in", "hbmscope run; ls",
                           "hbmscope run & ", "hbmscope run && ls", "hbmscope run $HOME", "hbmscope run `ls`",
                           "hbmscope run \"$HOME\"", "hbmscope run \"`ls`\"", "hbmscope run *", "hbmscope run $(ls)",
                           "hbmscope run ~/a", "hbmscope run # remark", "hbmscope run a\\ b"}) {
    CAPTURE(text);
    CHECK(refused(text, "hold"));
  }
  CHECK(refused("hbmscope run 'a", "never closed"));
  CHECK(refused("hbmscope run \"a", "never closed"));
}

TEST_CASE("only this program runs, and of it only what reads and ends by itself") {
  for (const char* text : {"ls", "", "  ", "sudo hbmscope run", "./hbmscope run", "./dev test", "./dev",
                           "/bin/hbmscope run", "HBMSCOPE run"}) {
    CAPTURE(text);
    CHECK(refused(text, "hbmscope alone"));
  }
  for (const char* text :
       {"hbmscope gpu probe", "hbmscope gpu", "hbmscope profile", "hbmscope profile --seqlen 8k",
        "hbmscope profile --seqlen 8k import a.csv", "hbmscope lesson build .", "hbmscope lesson check .",
        "hbmscope lesson", "hbmscope explain scores", "hbmscope scenario", "hbmscope rnu"}) {
    CAPTURE(text);
    CHECK(refused(text, "may not run"));
  }
  CHECK(refused("hbmscope", "needs a command"));
  for (const char* text :
       {"hbmscope run", "hbmscope batch lines.jsonl", "hbmscope scenario list", "hbmscope scenario check lesson-8k",
        "hbmscope gpu show h200", "hbmscope gpu list", "hbmscope profile import a.csv", "hbmscope lesson values",
        "hbmscope --version", "hbmscope run --help", "hbmscope gpu --help",
        "hbmscope softmax --scores -inf,2 --values 1,2"}) {
    CAPTURE(text);
    CHECK_NOTHROW(words(text));
  }
}

TEST_CASE("no command writes a file, needs a device or reads without end") {
  for (const char* option : {"--json out.json", "--json=out.json", "--csv out.csv", "--csv=-x", "--markdown a.md",
                             "--markdown=a.md", "-o x", "--jsonl e.jsonl", "--chrome=t.json", "--html t.html"}) {
    CAPTURE(option);
    CHECK(refused("hbmscope run " + std::string(option), "would write a file"));
  }
  CHECK(refused("hbmscope run --engine gpu", "needs a device"));
  CHECK(refused("hbmscope run --engine=gpu", "needs a device"));
  CHECK(refused("hbmscope run --require counters", "needs a device"));
  for (const char* text :
       {"hbmscope sweep --seqlen 1k,2k -o rows.jsonl", "hbmscope sweep --seqlen 1k,2k -orows.jsonl",
        "hbmscope merge a.jsonl --output=rows.jsonl", "hbmscope merge a.jsonl --output rows.jsonl"}) {
    CAPTURE(text);
    CHECK(refused(text, "would write a file"));
  }
  CHECK(refused("hbmscope batch -", "no file of a lesson"));
  CHECK(refused("hbmscope batch /dev/zero", "no file of a lesson"));
  CHECK(refused("hbmscope profile import - --json -", "no file of a lesson"));
  CHECK(refused("hbmscope profile import /proc/self/fd/0", "no file of a lesson"));
  CHECK_NOTHROW(words("hbmscope run --json - --engine cpu"));
  CHECK_NOTHROW(words("hbmscope run --csv=-"));
}

TEST_CASE("a result is asked for as JSON, unless it is") {
  const auto json = [](std::string_view text) { return with_json(parse_command(text, "")).words; };
  CHECK(json("hbmscope run") == Words{"run", "--json", "-"});
  CHECK(json("hbmscope run --json - --heads 2") == Words{"run", "--json", "-", "--heads", "2"});
  CHECK(json("hbmscope run --json=-") == Words{"run", "--json=-"});
  CHECK(json("hbmscope batch a.jsonl") == Words{"batch", "a.jsonl"});
  CHECK(json("hbmscope sweep --seqlen 1k,2k") == Words{"sweep", "--seqlen", "1k,2k"});
  CHECK(json("hbmscope merge a.jsonl -o -") == Words{"merge", "a.jsonl", "-o", "-"});
}
