// The command line from outside: what goes to which stream, and the exit codes.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli_checks.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

constexpr const char* kCommands[]{"",
                                  "run",
                                  "batch",
                                  "sweep",
                                  "merge",
                                  "scenario",
                                  "scenario list",
                                  "scenario show",
                                  "scenario run",
                                  "scenario check",
                                  "softmax",
                                  "trace",
                                  "compare",
                                  "gpu",
                                  "gpu list",
                                  "gpu show",
                                  "lesson",
                                  "lesson build",
                                  "lesson check",
                                  "lesson list",
                                  "lesson values",
                                  "explain"};

}  // namespace

// ---- what is printed ------------------------------------------------------------------------------------------------

TEST_CASE("run without options answers on one screen, in plain text") {
  const Outcome outcome = run_program({"run"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  const std::vector<std::string> lines = lines_of(outcome.out);
  CHECK(lines.size() <= 40);
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' '; }));
  }
  // 4 N^2 e + 4 N d e = 545,259,520 B; 941,621,248 B with 128 x 128 tiles; Q, K, V, O and LSE once through HBM.
  for (const char* figure : {"65x", "545.3 MB", "941.6 MB", "8.42 MB"}) {
    CAPTURE(figure);
    CHECK(has(outcome.out, figure));
  }
  CHECK(has(lines.at(0), "N 8,192"));
}

TEST_CASE("--json - prints one JSON document and nothing else") {
  for (const char* arguments :
       {"run --seqlen 512 --json -", "gpu list --json -", "gpu show h200 --json -",
        "softmax --scores 1,2 --values 3,4 --json -", "scenario run attention-share --json -"}) {
    CAPTURE(arguments);
    const Outcome outcome = run_program(words(arguments));
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(json::parse(outcome.out).is_object());
    CHECK(outcome.out.back() == '\n');
  }
}

TEST_CASE("the text still comes when JSON goes to a file, and the file holds what --json - prints") {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.json");
  const Outcome outcome = run_program({"run", "--seqlen", "512", "--json", path});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == run_program(words("run --seqlen 512")).out);
  json from_file = json::parse(text_of_file(path));
  json printed = json::parse(run_program(words("run --seqlen 512 --json -")).out);
  from_file["meta"].erase("argv");
  printed["meta"].erase("argv");
  CHECK(from_file == printed);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.file("")), {}) == 1);
}

TEST_CASE("the same seed gives the same bytes of output, another seed other random numbers") {
  const auto out = [](const char* arguments) { return run_program(words(arguments)).out; };
  CHECK(out("run --seqlen 700 --causal --json - --seed 7") == out("run --seqlen 700 --causal --json - --seed 7"));
  json first = json::parse(out("run --seqlen 700 --json - --seed 7")),
       second = json::parse(out("run --seqlen 700 --json - --seed 8"));
  CHECK(first["algorithms"][0]["exactness"]["rmse"] != second["algorithms"][0]["exactness"]["rmse"]);
  CHECK(first["algorithms"][0]["traffic"] == second["algorithms"][0]["traffic"]);
}

TEST_CASE("no locale changes a number, in or out") {
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "hi_IN.UTF-8", "tr_TR", "C"}) {
    CAPTURE(locale);
    for (const char* arguments : {"run --seqlen 1k --attention-share 0.25", "run --seqlen 1k --csv -", "gpu show h200",
                                  "softmax --scores 2.5,1|3,0 --values 1,2,3,4"}) {
      Call changed = call(arguments);
      changed.environment = {{"LC_ALL", locale}, {"LANG", locale}, {"LC_NUMERIC", locale}};
      const Outcome outcome = run_program(changed);
      CHECK(outcome.code == 0);
      CHECK(outcome.out == run_program(words(arguments)).out);
    }
  }
}

TEST_CASE("every command has a --help with an example, on standard output") {
  for (const char* command : kCommands) {
    CAPTURE(command);
    const Outcome outcome = run_program(words(std::string(command) + " --help"));
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(has(outcome.out, "Example"));
    CHECK(has(outcome.out, "hbmscope " + std::string(command)));
    if (command[0] == '\0') continue;  // one line of the whole program's is its purpose
    for (const std::string& line : lines_of(outcome.out)) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("an option that takes on or off, or nothing by default, says so, and its values once") {
  for (const char* command : {"run --help", "sweep --help"}) {
    std::string help;
    for (const std::string& word : words(run_program(words(command)).out)) {
      for (const std::string& line : lines_of(word)) help += line + " ";
    }
    for (const char* said : {"--kernel-counters on|off The kernels count the bytes they ask for (default: on)",
                             "--hw-counters on|off Read the GPU's own counters, through CUPTI (default: on)",
                             "--require gpu|counters Exit with 4 unless this machine has it (default: nothing"}) {
      CAPTURE(command);
      CAPTURE(said);
      CHECK(has(help, said));
    }
  }
}

TEST_CASE("the command table of docs/cli.md has every subcommand of gpu") {
  const std::string text = text_of_file(HBMSCOPE_SOURCE_DIR "/docs/cli.md");
  const std::size_t at = text.find("| `gpu ");
  REQUIRE(at != std::string::npos);
  const std::string names = text.substr(at, text.find('`', at + 3) - at);
  const std::vector<std::string> lines = lines_of(run_program(words("gpu --help")).out);
  auto line = std::find(lines.begin(), lines.end(), "Subcommands:");
  REQUIRE(line != lines.end());
  while (++line != lines.end() && !line->empty()) {
    CAPTURE(*line);
    CHECK(has(names, words(*line)[0]));
  }
}

TEST_CASE("scenario list gives every question whole, on a page of 100 columns, and as JSON") {
  const std::vector<std::string> lines = lines_of(run_program(words("scenario list")).out);
  REQUIRE(lines.size() >= 2 + 14);
  for (const std::string& line : lines) CHECK(line.size() <= 100);
  const auto row =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return has(line, "  causal-8k  "); });
  REQUIRE(row != lines.end());
  CHECK(has(*row, "A causal mask leaves half of the scores"));
  CHECK(row->ends_with(" 7"));
  std::string text;  // the words of the questions' column
  for (const std::string& line : lines) {
    CHECK_FALSE(has(line, "..."));
    for (const std::string& word : words(line)) text += word + " ";
  }
  const json list = json::parse(run_program(words("scenario list --json -")).out)["scenarios"];
  CHECK(list.size() >= 14);
  for (const json& scenario : list) {
    const auto question = scenario["question"].get<std::string>();
    CAPTURE(question);
    const std::string last = question.substr(question.rfind(' ') + 1);
    CHECK(has(text, last + " "));
    CHECK(scenario["checks"] > 0);
  }
}

TEST_CASE("scenario show stays within the page, also where a path is longer than a line") {
  const json list = json::parse(run_program(words("scenario list --json -")).out)["scenarios"];
  for (const json& scenario : list) {
    const auto name = scenario["name"].get<std::string>();
    CAPTURE(name);
    for (const std::string& line : lines_of(run_program({"scenario", "show", name}).out)) {
      CAPTURE(line);
      CHECK((line.size() <= 100 || has(line, "://")));
    }
  }
}

TEST_CASE("--help lists every command, and --version names the program and its commit") {
  const std::string help = run_program({"--help"}).out;
  for (const std::string command : kCommands) {
    if (!has(command, " ")) CHECK(has(help, command));
  }
  const Outcome version = run_program({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("hbmscope "));
  CHECK(lines_of(version.out).size() == 1);
  CHECK(version.err.empty());
}

TEST_CASE("more queries than keys are fine under a causal mask, and the rows without a key are told") {
  const Outcome outcome = run_program(words("run --seqlen-q 512 --seqlen-kv 128 --causal"));
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "the first 384 queries see no key"));
}

// ---- output that cannot be written ----------------------------------------------------------------------------------

TEST_CASE("a reader that has gone ends the program without a word") {
  for (const char* arguments :
       {"run --seqlen 512", "run --seqlen 512 --json -", "gpu list", "scenario list", "--help", "--version"}) {
    for (const bool ignored : {false, true}) {
      CAPTURE(arguments);
      CAPTURE(ignored);
      Call piped = call(arguments);
      piped.closed_pipe = true;
      piped.ignore_sigpipe = ignored;
      const Outcome outcome = run_program(piped);
      CHECK(outcome.err.empty());
      CHECK(outcome.code == (ignored ? 0 : -SIGPIPE));
    }
  }
}

TEST_CASE("a full disk is told, with exit code 1") {
  if (!std::filesystem::exists("/dev/full")) return;
  for (const char* arguments :
       {"run --seqlen 512", "run --seqlen 512 --json -", "run --seqlen 512 --csv -", "gpu list", "scenario list",
        "scenario check attention-share", "softmax --scores 1 --values 1", "--help", "run --help", "--version"}) {
    CAPTURE(arguments);
    Call full = call(arguments);
    full.out_path = "/dev/full";
    check_complaint(run_program(full), 1, "standard output: cannot write: No space left on device");
  }
  check_complaint(run_program(words("run --seqlen 512 --json /dev/full")), 1, "/dev/full: cannot write: No space left");
}

TEST_CASE("a place that takes no file is told by its path, and the text is not printed as if all were well") {
  const TemporaryFolder folder;
  std::vector<std::string> places{folder.file("no/such/folder/x.json"), folder.write("plain", "") + "/x.json",
                                  folder.file("")};
  std::filesystem::create_directory(folder.file("closed"));
  ::chmod(folder.file("closed").c_str(), 0500);
  if (::geteuid() != 0) places.push_back(folder.file("closed/x.json"));
  for (const std::string& place : places) {
    for (const char* format : {"--json", "--csv", "--markdown"}) {
      CAPTURE(place);
      const Outcome outcome = run_program({"run", "--seqlen", "256", format, place});
      check_complaint(outcome, 1, place + ": ");
      CHECK(outcome.out.empty());
    }
  }
}

// ---- exit codes -----------------------------------------------------------------------------------------------------

TEST_CASE("what needs a GPU ends with 4 where there is none, with the reason") {
  const json meta = json::parse(run_program(words("run --engine model --json -")).out)["meta"];
  if (!meta["device"].is_null()) {
    MESSAGE("this machine has a GPU; not tried");
    return;
  }
  const auto reason = meta["device_reason"].get<std::string>();
  check_complaint(run_program(words("run --require gpu")), 4, "--require gpu: " + reason);
  check_complaint(run_program(words("run --require counters")), 4, "--require counters: " + reason);
  check_complaint(run_program(words("run --engine gpu")), 4, "--engine gpu: " + reason);
  // Neither takes --engine: the hint must not name it.
  for (const char* command : {"gpu probe", "gpu tiles", "profile"}) {
    const Outcome outcome = run_program(words(command));
    check_complaint(outcome, 4, reason, "hbmscope run");
    CHECK_FALSE(has(outcome.err, "--engine"));
  }
}

TEST_CASE("profile takes and lists only options that matter to a launch") {
  const std::string help = run_program(words("profile --help")).out;
  for (const char* option : {"--seqlen", "--algorithm", "--block-q", "--gpu", "--device", "--seed"}) {
    CAPTURE(option);
    CHECK(has(help, option));
  }
  for (const char* option : {"--engine", "--repeats", "--attention-share", "--l2-state", "--require"}) {
    CAPTURE(option);
    CHECK_FALSE(has(help, option));
    check_complaint(run_program({"profile", option, "1"}), 2, "there is no option");
  }
}

TEST_CASE("flash is the fastest kernel of the GPU that is asked about, and a note says which") {
  const Outcome hopper =
      run_program(words("run --engine model --dtype bf16 --gpu H200 --algorithm naive,flash --json -"));
  REQUIRE(hopper.code == 0);
  const json on_hopper = json::parse(hopper.out);
  CHECK(on_hopper["algorithms"][1]["name"] == "flash_v3");
  CHECK(on_hopper["notes"].dump().find("flash is flash_v3") != std::string::npos);
  const Outcome ampere = run_program(words("run --engine model --gpu A100 --algorithm flash,flash_v2 --json -"));
  REQUIRE(ampere.code == 0);
  CHECK(json::parse(ampere.out)["algorithms"].size() == 1);  // both are flash_v2
}

TEST_CASE("--stages is part of the plan: with tiles loaded ahead the CTAs of an SM part, and HBM reads grow") {
  const auto flash = [](const char* stages) {
    const Outcome outcome =
        run_program({"run",   "--seqlen", "64k",         "--heads",  "4",         "--head-dim", "128",
                     "--gpu", "h200",     "--algorithm", "flash_v2", "--block-q", "128",        "--block-kv",
                     "64",    "--engine", "sim",         "--stages", stages,      "--json",     "-"});
    CHECK(outcome.code == 0);
    return nlohmann::json::parse(outcome.out)["algorithms"][0];
  };
  const auto read = [](const nlohmann::json& a) {
    std::int64_t bytes = 0;
    for (const nlohmann::json& t : a["traffic"]) {
      if (t["boundary"] == "l2_hbm") bytes = t["read_bytes"];
    }
    return bytes;
  };
  const nlohmann::json one = flash("1"), two = flash("2");
  CHECK(one["plan"]["stages"] == 1);
  CHECK(two["plan"]["stages"] == 2);
  CHECK(two["smem_bytes"].get<std::int64_t>() - one["smem_bytes"].get<std::int64_t>() == 2 * 64 * 128 * 2);
  CHECK(read(two) * 4 > read(one) * 5);
}

TEST_CASE("a missed expectation ends with 5, a kept one with 0") {
  const TemporaryFolder folder;
  const auto scenario = [&](int pairs) {
    return folder.write(
        "case.json",
        R"({"name": "case", "title": "T", "question": "Q?", "source": "S", "answer": "A.", "runs": [{"name": "one", "gpu": "H200", "engine": "model",
 "shape": {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "seqlen_q": 3, "seqlen_kv": 3, "head_dim": 16, "dtype": "fp16", "mask": {"kind": "causal"}}}],
 "expect": [{"path": "shape.live_pairs", "equals": )" +
            std::to_string(pairs) + R"(, "because": "1 + 2 + 3 keys."}]})");
  };
  CHECK(run_program({"scenario", "check", scenario(1 + 2 + 3)}).code == 0);
  const std::string wrong = scenario(7);
  check_complaint(run_program({"scenario", "check", wrong}), 5, "shape.live_pairs: expected 7, got 6");
}
