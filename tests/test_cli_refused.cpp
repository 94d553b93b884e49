// What the program refuses, in which words: one line that says what is wrong, one that says what to do, and the exit
// code of its kind.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli_checks.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

/// A command line that cannot be meant: it ends with 2, prints nothing, and says `message`, then `hint`.
struct Refusal {
  std::string line;  ///< words between blanks
  std::string message;
  std::string hint = {};
};

const std::vector<Refusal> kRefused{
    // commands
    {"", "needs a command", "hbmscope --help"},
    {"rum", "there is no command \"rum\"", "did you mean \"run\"?"},
    {"gpu lst", "gpu: there is no command \"lst\"", "did you mean \"list\"?"},
    {"gpu", "gpu: needs a command", "hbmscope gpu --help"},
    // options
    {"run --seqlne 4k", "run: there is no option \"--seqlne\"", "did you mean \"--seqlen\"?"},
    {"run --cousal=1", "run: there is no option \"--cousal\"", "did you mean \"--causal\"?"},
    {"run --zzzzzzzzzz", "run: there is no option \"--zzzzzzzzzz\"", "hbmscope run --help"},
    {"gpu show h200 --jsn -", "gpu show: there is no option \"--jsn\"", "did you mean \"--json\"?"},
    {"--nope", "there is no option \"--nope\"", "hbmscope --help"},
    {"run 4096", "run: does not know what to do with \"4096\"", "hbmscope run --help"},
    // an option without its value, or given twice
    {"run --seqlen", "--seqlen: needs a value"},
    {"run --json=", "--json: needs a value"},
    {"run --seqlen 1k --seqlen 2k", "--seqlen: is given more than once"},
    {"batch", "batch: FILE is required", "hbmscope batch --help"},
    {"softmax --scores 1,2", "--values is required"},
    // sizes
    {"run --heads 6 --kv-heads 4", "--kv-heads: must divide --heads, but 6 query heads", "a divisor of 6"},
    {"run --heads 4 --kv-heads 8", "--kv-heads: must divide --heads"},
    {"run --gemm-tile 128,0", "--gemm-tile: must be at least 1"},
    {"run --sram 0", "--sram: "},
    {"run --sram 4611686018427387904", "--sram: must be at most", "227KiB"},
    {"run --cluster -1", "--cluster: must not be negative", "a whole number from 1 on"},
    {"run --cluster 17", "--cluster: must be at most 16, got 17", "a smaller value"},
    {"run --stages 0", "--stages: must be at least 1, got 0", "give a positive whole number"},
    {"run --algorithm naive --stages 2", "--stages: has no effect on naive", "flash_v2, flash_v3"},
    {"run --stages 999 --block-q 128 --block-kv 64 --algorithm flash_v2", "SMEM", "fewer stages"},
    {"run --softmax-reads -1", "--softmax-reads: must not be negative", "a whole number from 1 on"},
    {"run --heads -1", "--heads: must not be negative", "a whole number from 1 on"},
    {"run --repeats -1", "--repeats: must not be negative", "a whole number from 0 on"},
    {"run --seqlen -1", "--seqlen: must not be negative", "8192 or 8k"},
    // options that nothing of the run reads
    {"run --kv-splits 7", "--kv-splits: has no effect on naive, flash_v1, flash_v2", "split_kv"},
    {"run --algorithm naive --block-q 64", "--block-q: has no effect on naive", "flash_v2"},
    {"run --atomics rmw", "--atomics: has no effect on naive", "flash_v2_bwd"},
    {"run --engine model --seed 2", "--seed: has no effect with this --engine", "cpu"},
    {"run --engine model --l2-state warm", "--l2-state: has no effect with this --engine", "sim, cpu, gpu or auto"},
    {"sweep --l2-state cold,warm", "--l2-state: has no effect with this --engine", "sim"},
    {"sweep --full --l2-state warm", "--l2-state: has no effect with this --engine"},
    {"sweep --l2 none,16MiB", "--l2: has no effect on rows with --engine model", "sim"},
    {"sweep --l2 16MiB", "--l2: has no effect on rows with --engine model"},
    {"trace --html - --l2-state warm", "--l2-state: has no effect on --html"},
    {"run --engine sim --portable", "--portable: has no effect with this --engine", "cpu"},
    {"run --engine cpu --repeats 9", "--repeats: has no effect with this --engine", "gpu"},
    {"run --seqlen 1k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect beside --seqlen-kv and --seqlen-q",
     "leave it out"},
    {"run --pass decode --seqlen 1k --seqlen-kv 2k", "--seqlen: has no effect beside --seqlen-kv and --pass decode"},
    {"trace --seqlen 1k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect"},
    {"sweep --seqlen 1k,2k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect"},
    {"sweep --seqlen 1k --pass decode --seqlen-kv 1k,2k", "--seqlen: has no effect"},
    {"explain scores --seqlen 1k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect"},
    {"profile --seqlen 1k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect"},
    {"profile import - --algorithm flash_v2 --seqlen 1k --seqlen-q 64 --seqlen-kv 2k", "--seqlen: has no effect"},
    {"profile import - --algorithm flash_v2 --gemm-tile 64,64", "--gemm-tile: has no effect on flash_v2"},
    {"run --seed -1", "--seed: must not be negative"},
    {"run --kv-lengths 1,2", "--kv-lengths: "},
    {"run --seqlen 8G", "--seqlen: must be from 1 to 4294967296"},
    // windows: -1 for no limit and nothing below
    {"run --window -2", "--window: -2 keys; only -1 may stand for no limit"},
    {"run --window 5,-2", "--window: -2 keys"},
    {"run --window 1,2,3", "--window: takes L or L,R"},
    {"run --window 1,", "--window: needs a length"},
    {"run --window 5,5 --causal", "contradict each other"},
    // unknown names
    {"run --dtype fp61", "--dtype: \"fp61\" is not one of its values", "did you mean \"fp16\"?"},
    {"run --algorithm flash_v9", "unknown algorithm \"flash_v9\"",
     "did you mean \"flash_v1\", \"flash_v2\" or \"flash_v3\"?"},
    {"run --algorithm naive,", "unknown algorithm \"\"", "there is naive"},
    {"run --gpu h20", "\"h20\"", "did you mean \"H200\"?"},
    {"run --gpu H10", "\"H10\"", "did you mean \"H100 PCIe\" or \"H100 SXM\"?"},
    {"gpu show H20O", "\"H20O\"", "did you mean \"H200\"?"},
    {"run --gpu voodoo2", "\"voodoo2\"", "there is A10"},
    {"run --pass forwards", "--pass: ", "did you mean \"forward\"?"},
    {"run --engine modle", "--engine: ", "did you mean \"model\"?"},
    {"run --align bottom", "--align: ", "did you mean \"bottom-right\"?"},
    {"run --l2-state hot", "--l2-state: ", "there is cold and warm"},
    {"run --require gpus", "--require: ", "did you mean \"gpu\"?"},
    {"run --pass backward --algorithm naive", "naive is a forward pass", "--pass both"},
    {"scenario show lesson-8kk", "\"lesson-8kk\"", "did you mean \"lesson-8k\"?"},
    {"softmax --scores 1 --values 1 --dtype fp99", "--dtype: ", "there is fp64"},
    // a tile that does not fit the SMEM, with its tally
    {"run --engine model --block-q 2048 --block-kv 2048",
     "Q 2048 x 128 x 2 + O 2048 x 128 x 2 + K 2048 x 128 x 2 + V 2048 x 128 x 2 = " +
         std::to_string(4 * 2048 * 128 * 2) + " B",
     "--sram"},
    {"run --engine model --head-dim 1024 --sram 1KiB", "1 x 1 tile does not fit the 1024 B"},
    // products beyond 64 bits are refused, not wrapped
    {"run --engine model --seqlen 1G --heads 1M --batch 1M", "does not fit 64 bits", "smaller"},
    {"run --seqlen 99999999999999999999", "--seqlen: \"99999999999999999999\" does not fit 64 bits"},
    {"run --seqlen 9223372036854775807k", "--seqlen: "},
    {"run --l2 9000000TiB", "--l2: \"9000000TiB\" does not fit 64 bits"},
    // numbers
    {"run --attention-share 0,3", "--attention-share: needs a number, got \"0,3\"", "the decimal point is '.'"},
    {"run --seqlen 8,192", "--seqlen: needs a length, got \"8,192\"", "digits are not grouped"},
    {"run --attention-share 1.5", "--attention-share: must be between 0 and 1"},
    {"run --attention-share 0.3 --attention-speedup 0", "--attention-speedup: must be between 1e-6 and 1e6"},
    {"run --attention-share 0.3 --attention-speedup 1e308", "--attention-speedup: must be between 1e-6 and 1e6"},
    {"run --attention-share 0.3 --attention-speedup 1e-320", "--attention-speedup: must be between 1e-6 and 1e6"},
    {"run --attention-share 0.3 --attention-speedup 1e999", "is beyond the range of a double", "1e308"},
    {"sweep --full --attention-share 0.3 --attention-speedup 2,1e7", "must be between 1e-6 and 1e6, got 10000000"},
    {"run --attention-speedup 2", "--attention-share"},
    {"softmax --scores nan --values 1", "--scores: "},
    {"softmax --scores 1,2,3 --values 1,2", "--values: needs one value for each of the 3 scores, got 2"},
    // two formats in one place
    {"run --json - --csv -", "two formats cannot both go to standard output"},
    {"run --markdown - --csv -", "two formats cannot both go to standard output"},
    {"run --json same.txt --markdown same.txt", "two formats cannot both go to same.txt"},
    {"run --json same.txt --markdown ./same.txt", "two formats cannot both go to same.txt"},
    {"run --chart --json -", "--chart: draws beside the tables"},
    {"compare a b --p 2", "--p: must lie between 0 and 1"},
    {"run --algorithm flash --pass backward", "--algorithm: flash is a forward pass"},
};

void check_refused(const std::vector<std::string>& arguments, std::string_view message, std::string_view hint = "") {
  std::string line;
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  CAPTURE(line);
  const Outcome outcome = run_program(arguments);
  check_complaint(outcome, 2, message, hint);
  CHECK(outcome.out.empty());
}

}  // namespace

TEST_CASE("a command line that cannot be meant is refused by name, with what to do instead") {
  for (const Refusal& refusal : kRefused) check_refused(words(refusal.line), refusal.message, refusal.hint);
}

TEST_CASE("an empty text is no value, a size is at least 1, and NaN, infinity and a decimal comma are no numbers") {
  for (const std::string option :
       {"--gpu", "--window", "--l2", "--algorithm", "--kv-lengths", "--json", "--seqlen", "--require"}) {
    check_refused({"run", option, ""}, option + ": needs a value, but the text is empty");
  }
  for (const std::string option :
       {"--seqlen", "--seqlen-q", "--seqlen-kv", "--heads", "--kv-heads", "--batch", "--head-dim", "--head-dim-v",
        "--block-q", "--block-kv", "--cluster", "--stages", "--kv-splits", "--softmax-reads"}) {
    check_refused({"run", "--engine", "model", option, "0"}, option + ": must be ");
    check_refused({"run", "--engine", "model", option, "-3"}, option + ": must not be negative, got \"-3\"");
  }
  for (const std::string option :
       {"--attention-share", "--attention-speedup", "--seqlen", "--sram", "--l2", "--seed"}) {
    for (const char* text : {"nan", "inf", "-inf", "abc", "0,3", "1e400", "0x10", "0.3 ", "1_000", "--"})
      check_refused({"run", "--engine", "model", option + "=" + text}, option + ": ");
  }
}

TEST_CASE("a window of -1 on both sides is no mask, and not refused") {
  CHECK(run_program(words("run --seqlen 256 --engine model --window -1,-1")).code == 0);
}

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
      {folder.file("folder.json"), "is a directory"},
      {folder.file("nowhere.json"), ": no such file"}};
  const std::string locked = folder.write("locked.json", "{}");
  ::chmod(locked.c_str(), 0);
  if (::geteuid() != 0) files.emplace_back(locked, ": permission denied");  // nothing is closed to root
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
    const Outcome checked = run_program({"scenario", "check", path});
    check_complaint(checked, 3, complaint);
    CHECK(checked.out.starts_with("BAD     "));
    CHECK(has(checked.out, path + ": "));
    CHECK(checked.out.find(path, checked.out.find(path) + 1) == std::string::npos);
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
  check_complaint(run_program({"batch", folder.file("none.jsonl")}), 3, "none.jsonl: no such file");
  check_complaint(run_program({"batch", folder.file("")}), 3, "is a directory");
}

TEST_CASE("batch gives up on a line that has no end, and keeps none of it") {
  const TemporaryFolder folder;
  const std::string endless = folder.write("endless.jsonl", "");
  std::filesystem::resize_file(endless, (std::uintmax_t{1} << 30) + 4096);  // of zero bytes, which take no room
  const Outcome outcome = run_program({"batch", endless});
  check_complaint(outcome, 3, "1 of 1 lines failed; the last has no end");
  const std::vector<std::string> lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 1);
  CHECK(json::parse(lines[0])["line"] == 1);
  CHECK(has(json::parse(lines[0])["error"], "no end"));
}

TEST_CASE("--l2 and --l2-state are taken where something reads them") {
  for (const char* line : {"run --engine sim --seqlen 64 --l2-state warm", "run --engine model --seqlen 64 --l2 1MiB",
                           "sweep --engine sim --seqlen 64 --l2 none,1MiB --l2-state cold,warm",
                           "sweep --full --seqlen 64 --l2 none,1MiB", "trace --seqlen 64 --l2-state warm"}) {
    CAPTURE(line);
    CHECK(run_program(words(line)).code == 0);
  }
  // Of the formulas alone a note tells whether S and P fit the L2.
  const auto text = [](const std::string& l2) {
    return run_program(words("run --engine model --seqlen 2k --l2 " + l2)).out;
  };
  CHECK(has(text("1GiB"), "L2-resident"));
  CHECK_FALSE(has(text("1MiB"), "L2-resident"));
}

TEST_CASE("--seqlen is taken as long as one length is left to it") {
  for (const char* line :
       {"run --engine model --seqlen 1k --seqlen-q 64", "run --engine model --seqlen 1k --seqlen-kv 64",
        "run --engine model --pass decode --seqlen 1k --seqlen-q 2",
        "sweep --pass forward,decode --seqlen 1k --seqlen-kv 2k"}) {
    CAPTURE(line);
    CHECK(run_program(words(line)).code == 0);
  }
}
