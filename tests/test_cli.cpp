// The command line from outside: what goes to which stream, what is refused and in which words, and the exit codes.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The program says what is wrong in one line, what to do about it in one more, and ends with `code`.
void check_complaint(const Outcome& outcome, int code, std::string_view message_part, std::string_view hint_part = "") {
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  const std::vector<std::string> lines = lines_of(outcome.err);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("hbmscope: "));
  CHECK(has(lines[0], message_part));
  REQUIRE(lines[1].starts_with("  hint: "));
  CHECK(lines[1].size() > std::string_view("  hint: ").size());
  CHECK(has(lines[1], hint_part));
}

void check_refused(const std::vector<std::string>& arguments, std::string_view message_part,
                   std::string_view hint_part = "") {
  CAPTURE(arguments.back());
  const Outcome outcome = run_program(arguments);
  check_complaint(outcome, 2, message_part, hint_part);
  CHECK(outcome.out.empty());
}

void check_refused(std::string_view arguments, std::string_view message_part, std::string_view hint_part = "") {
  CAPTURE(arguments);
  check_refused(words(arguments), message_part, hint_part);
}

Call call(std::string_view arguments) {
  Call made;
  made.arguments = words(arguments);
  return made;
}

constexpr const char* kCommands[]{
    "",        "run", "batch",    "scenario", "scenario list", "scenario show", "scenario run", "scenario check",
    "softmax", "gpu", "gpu list", "gpu show"};

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

// ---- refused: the command line --------------------------------------------------------------------------------------

TEST_CASE("a command line without a command, or with an unknown one, is told what there is") {
  check_complaint(run_program(std::vector<std::string>{}), 2, "needs a command", "hbmscope --help");
  check_refused("rum", "there is no command \"rum\"", "did you mean \"run\"?");
  check_refused("gpu lst", "gpu: there is no command \"lst\"", "did you mean \"list\"?");
  check_refused("gpu", "gpu: needs a command", "hbmscope gpu --help");
}

TEST_CASE("an unknown option names its command and the nearest option") {
  check_refused("run --seqlne 4k", "run: there is no option \"--seqlne\"", "did you mean \"--seqlen\"?");
  check_refused("run --cousal=1", "run: there is no option \"--cousal\"", "did you mean \"--causal\"?");
  check_refused("run --zzzzzzzzzz", "run: there is no option \"--zzzzzzzzzz\"", "hbmscope run --help");
  check_refused("gpu show h200 --jsn -", "gpu show: there is no option \"--jsn\"", "did you mean \"--json\"?");
  check_refused("--nope", "there is no option \"--nope\"", "hbmscope --help");
  check_refused("run 4096", "run: does not know what to do with \"4096\"", "hbmscope run --help");
}

TEST_CASE("an option without its value, or given twice, is named") {
  check_refused("run --seqlen", "--seqlen: needs a value");
  check_refused("run --json=", "--json: needs a value");
  check_refused("run --seqlen 1k --seqlen 2k", "--seqlen: is given more than once");
  check_refused("batch", "batch: FILE is required", "hbmscope batch --help");
  check_refused("softmax --scores 1,2", "--values is required");
  for (const char* option :
       {"--gpu", "--window", "--l2", "--algorithm", "--kv-lengths", "--json", "--seqlen", "--require"}) {
    CAPTURE(option);
    check_refused({"run", option, ""}, std::string(option) + ": needs a value, but the text is empty");
  }
}

TEST_CASE("kv heads must divide heads") {
  check_refused("run --heads 6 --kv-heads 4", "--kv-heads: must divide --heads, but 6 query heads", "a divisor of 6");
  check_refused("run --heads 4 --kv-heads 8", "--kv-heads: must divide --heads");
}

TEST_CASE("a size of zero or below is refused by its option's name") {
  for (const char* option :
       {"--seqlen", "--seqlen-q", "--seqlen-kv", "--heads", "--kv-heads", "--batch", "--head-dim", "--head-dim-v",
        "--block-q", "--block-kv", "--cluster", "--kv-splits", "--softmax-reads"}) {
    check_refused({"run", "--engine", "model", option, "0"}, std::string(option) + ": must be ");
    check_refused({"run", "--engine", "model", option, "-3"},
                  std::string(option) + ": must not be negative, got \"-3\"");
  }
  check_refused("run --gemm-tile 128,0", "--gemm-tile: must be at least 1");
  check_refused("run --sram 0", "--sram: ");
  check_refused("run --seed -1", "--seed: must not be negative");
}

TEST_CASE("more queries than keys are fine under a causal mask, and the rows without a key are told") {
  const Outcome outcome = run_program(words("run --seqlen-q 512 --seqlen-kv 128 --causal"));
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "the first 384 queries see no key"));
}

TEST_CASE("a window takes -1 for no limit and nothing below") {
  check_refused("run --window -2", "--window: -2 keys; only -1 may stand for no limit");
  check_refused("run --window 5,-2", "--window: -2 keys");
  check_refused("run --window 1,2,3", "--window: takes L or L,R");
  check_refused("run --window 1,", "--window: needs a length");
  check_refused("run --window 5,5 --causal", "contradict each other");
  CHECK(run_program(words("run --seqlen 256 --engine model --window -1,-1")).code == 0);
}

TEST_CASE("an unknown name is answered with the nearest known one") {
  check_refused("run --dtype fp61", "--dtype: \"fp61\" is not one of its values", "did you mean \"fp16\"?");
  check_refused("run --algorithm flash_v3", "unknown algorithm \"flash_v3\"",
                "did you mean \"flash_v1\" or \"flash_v2\"?");
  check_refused("run --algorithm naive,", "unknown algorithm \"\"", "there is naive");
  check_refused("run --gpu h20", "\"h20\"", "did you mean \"H200\"?");
  check_refused("run --gpu voodoo2", "\"voodoo2\"", "there is A10");
  check_refused("run --pass forwards", "--pass: ", "did you mean \"forward\"?");
  check_refused("run --engine modle", "--engine: ", "did you mean \"model\"?");
  check_refused("run --align bottom", "--align: ", "there is bottom-right and top-left");
  check_refused("run --l2-state hot", "--l2-state: ", "there is cold and warm");
  check_refused("run --require gpus", "--require: ", "did you mean \"gpu\"?");
  check_refused("run --pass backward --algorithm naive", "naive is a forward pass", "--pass both");
  check_refused("scenario show lesson-8kk", "\"lesson-8kk\"", "did you mean \"lesson-8k\"?");
  check_refused("softmax --scores 1 --values 1 --dtype fp99", "--dtype: ", "there is fp64");
}

TEST_CASE("a tile that does not fit the SMEM is refused with its tally") {
  check_refused("run --engine model --block-q 2048 --block-kv 2048",
                "Q 2048 x 128 x 2 + O 2048 x 128 x 2 + K 2048 x 128 x 2 + V 2048 x 128 x 2 = " +
                    std::to_string(4 * 2048 * 128 * 2) + " B",
                "--sram");
  check_refused("run --engine model --head-dim 1024 --sram 1KiB", "1 x 1 tile does not fit the 1024 B");
}

TEST_CASE("products beyond 64 bits are refused, not wrapped") {
  check_refused("run --engine model --seqlen 1G --heads 1M --batch 1M", "does not fit 64 bits", "smaller");
  check_refused("run --seqlen 99999999999999999999", "--seqlen: \"99999999999999999999\" does not fit 64 bits");
  check_refused("run --seqlen 9223372036854775807k", "--seqlen: ");
  check_refused("run --seqlen 8G", "--seqlen: must be from 1 to 4294967296");
  check_refused("run --l2 9000000TiB", "--l2: \"9000000TiB\" does not fit 64 bits");
}

TEST_CASE("text, NaN, infinity and a decimal comma are no numbers") {
  for (const std::string option :
       {"--attention-share", "--attention-speedup", "--seqlen", "--sram", "--l2", "--seed"}) {
    for (const char* text : {"nan", "inf", "-inf", "abc", "0,3", "1e400", "0x10", "0.3 ", "1_000", "--"}) {
      check_refused({"run", "--engine", "model", option + "=" + text}, option + ": ");
    }
  }
  check_refused("run --attention-share 0,3", "--attention-share: needs a number, got \"0,3\"",
                "the decimal point is '.'");
  check_refused("run --seqlen 8,192", "--seqlen: needs a length, got \"8,192\"", "digits are not grouped");
  check_refused("run --attention-share 1.5", "--attention-share: must be between 0 and 1");
  check_refused("run --attention-share 0.3 --attention-speedup 0", "--attention-speedup: must be above 0");
  check_refused("run --attention-speedup 2", "--attention-share");
  check_refused("run --kv-lengths 1,2", "--kv-lengths: ");
  check_refused("softmax --scores nan --values 1", "--scores: ");
  check_refused("softmax --scores 1,2,3 --values 1,2", "--values: needs one value for each of the 3 scores, got 2");
}

TEST_CASE("two formats cannot share standard output or a file") {
  check_refused("run --json - --csv -", "two formats cannot both go to standard output");
  check_refused("run --markdown - --csv -", "two formats cannot both go to standard output");
  check_refused("run --json same.txt --markdown same.txt", "two formats cannot both go to same.txt");
}

// ---- refused: files -------------------------------------------------------------------------------------------------

TEST_CASE("a bad JSON file is refused by name, wherever it is given") {
  const TemporaryFolder folder;
  const std::string nested(100'000, '['), members = [] {
    std::string text;
    for (int depth = 0; depth < 100'000; ++depth) text += "{\"a\":";
    return text;
  }();
  const std::string large = folder.write("large.json", "{");
  std::filesystem::resize_file(large, 100 * 1000 * 1000);  // the rest is zero bytes
  std::filesystem::create_directory(folder.file("folder.json"));
  std::vector<std::pair<std::string, std::string_view>> files{
      {folder.write("empty.json", ""), "the text ends before its JSON does"},
      {folder.write("truncated.json", R"({"name": "x", "l2_bytes": )"), "the text ends before its JSON does"},
      {folder.write("comma.json", R"({"name": "x",})"), "line 1, column 14"},
      {folder.write("nan.json", R"({"name": NaN})"), "line 1, column 10"},
      {folder.write("twice.json", R"({"name": "x", "name": "y"})"), "the key \"name\" stands in this object twice"},
      {folder.write("lists.json", nested), "deep in one another"},
      {folder.write("objects.json", members), "deep in one another"},
      {folder.write("binary.json", "\xff\xfe\x01"), "line 1, column 1"},
      {folder.write("list.json", "[]"), "must be an object"},
      {large, "larger than 64 MiB"},
      {folder.file("folder.json"), "is a directory"}};
  const std::string locked = folder.write("locked.json", "{}");
  ::chmod(locked.c_str(), 0);
  if (::geteuid() != 0) files.emplace_back(locked, "cannot be opened");  // nothing is closed to root
  for (const auto& [path, complaint] : files) {
    CAPTURE(path);
    for (const char* command : {"run --engine model --gpu", "gpu show", "scenario run", "scenario show"}) {
      CAPTURE(command);
      std::vector<std::string> arguments = words(command);
      arguments.push_back(path);
      const Outcome outcome = run_program(arguments);
      check_complaint(outcome, 3, complaint);
      CHECK(has(outcome.err, path));
      CHECK(outcome.out.empty());
    }
    check_complaint(run_program({"scenario", "check", path}), 3, complaint);
  }
}

TEST_CASE("batch answers every bad line in its place and goes on") {
  const TemporaryFolder folder;
  const std::string good =
      R"({"shape": {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "seqlen_q": 64, "seqlen_kv": 64, "head_dim": 16, "dtype": "fp16"}, "algorithm": "flash_v2", "plan": {"block_q": 64, "block_kv": 64}})";
  Call asked = call("batch -");
  asked.input = good + "\n{\"shape\": \n{\"a\": 1, \"a\": 2}\n" + std::string(100'000, '[') + "\n" +
                std::string(3'000'000, 'x') + "\n\xff\n" + good + "\n";
  const Outcome outcome = run_program(asked);
  check_complaint(outcome, 3, "5 of 7 lines failed", "line number");
  const std::vector<std::string> lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 7);
  CHECK(lines[0] == lines[6]);
  CHECK(json::parse(lines[0])["traffic"]["O"]["write"] == 64 * 16 * 2);
  for (std::size_t i = 1; i < 6; ++i) {
    const json line = json::parse(lines[i]);
    CHECK(line["line"] == i + 1);
    CHECK_FALSE(line["error"].get<std::string>().empty());
  }
  const std::string large = folder.write("large.jsonl", good + "\n");
  std::filesystem::resize_file(large, 100 * 1000 * 1000);
  check_complaint(run_program({"batch", large}), 3, "1 of 2 lines failed");
  check_complaint(run_program({"batch", folder.file("none.jsonl")}), 3, "none.jsonl: cannot be opened");
  check_complaint(run_program({"batch", folder.file("")}), 3, "cannot be read");
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
