// A sweep that is stopped at any moment and resumed gives the bytes of one that was not.
#include <sys/file.h>
#include <sys/resource.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sweep_checks.hpp"

using namespace hbmscope::testing;

namespace {

/// Fails at every third point, so that failed rows are among those that are resumed.
constexpr const char* kOptions = "sweep --seqlen 64:640:64 --heads 6 --kv-heads 2,3,4";

std::vector<std::string> to_file(const std::string& options, const std::string& path) {
  std::vector<std::string> arguments = words(options);
  arguments.insert(arguments.end(), {"-o", path, "--resume"});
  return arguments;
}

const std::string& all_rows() {
  static const std::string rows = run_program(words(kOptions)).out;
  return rows;
}

/// Resumes a file that holds `text`.
Outcome resumed(const TemporaryFolder& folder, const std::string& text, const std::string& options = kOptions) {
  return run_program(to_file(options, folder.write("rows.jsonl", text)));
}

std::string with_line(std::size_t number, const std::string& line) {
  std::vector<std::string> lines = lines_of(all_rows());
  lines.at(number - 1) = line;
  std::string text;
  for (const std::string& one : lines) text += one + "\n";
  return text;
}

/// Starts the program, ends it with SIGKILL after so many microseconds, and says whether that came in time.
bool killed(const std::vector<std::string>& arguments, int microseconds) {
  std::vector<std::string> all{"hbmscope"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::execv(HBMSCOPE_BINARY, argv.data());
    ::_exit(127);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

TEST_CASE("wherever a file of rows was cut off, --resume gives the whole") {
  const TemporaryFolder folder;
  const std::string& all = all_rows();
  REQUIRE(lines_of(all).size() == 30);
  std::vector<std::size_t> cuts{0, 1, all.size(), all.size() - 1, all.find('\n'), all.find('\n') + 1};
  for (std::size_t cut = 777; cut < all.size(); cut += all.size() / 13) cuts.push_back(cut);
  for (const std::size_t cut : cuts) {
    CAPTURE(cut);
    check_complaint(resumed(folder, all.substr(0, cut)), 5, "10 of 30 points failed");
    CHECK(text_of_file(folder.file("rows.jsonl")) == all);
  }
}

TEST_CASE("a file that is not there is begun") {
  const TemporaryFolder folder;
  CHECK(run_program(to_file(kOptions, folder.file("new.jsonl"))).code == 5);
  CHECK(text_of_file(folder.file("new.jsonl")) == all_rows());
}

TEST_CASE("any damage but a torn last line is an error that names the line, and the file stays as it is") {
  const TemporaryFolder folder;
  const std::vector<std::string> lines = lines_of(all_rows());
  const auto without = [&](std::string_view part, const std::string& instead) {
    std::string line = lines[6];
    const std::size_t at = line.find(part);
    REQUIRE(at != std::string::npos);
    return line.replace(at, part.size(), instead);
  };
  for (const std::string& line : {std::string(),
                                  std::string("{}"),
                                  std::string("[]"),
                                  std::string("null"),
                                  lines[6].substr(0, 200),
                                  lines[6] + "}",
                                  lines[6] + " ",
                                  " " + lines[6],
                                  lines[6] + "\r",
                                  lines[5],
                                  lines[7],
                                  std::string(500, '\0'),
                                  without("\"index\":6", "\"index\":60"),
                                  without("\"index\":6", "\"index\":-6"),
                                  without("\"seqlen\":192", "\"seqlen\":193"),
                                  without("\"status\":\"ok\"", "\"status\":\"fine\""),
                                  without("\"schema_version\":\"1.0\"", "\"schema_version\":\"2.0\""),
                                  without("\"version\":", "\"version_\":"),
                                  without("\"key\":\"", "\"key\":\"x"),
                                  without("\"sweep\":{", "\"sweeps\":{"),
                                  without("\"total_bytes\":", "\"total_bytes\":NaN,\"x\":"),
                                  std::string("\xff\xfe")}) {
    CAPTURE(line);
    const std::string damaged = with_line(7, line);
    const Outcome outcome = resumed(folder, damaged);
    check_complaint(outcome, 3, "rows.jsonl: line 7: ");
    CHECK(text_of_file(folder.file("rows.jsonl")) == damaged);
  }
  std::string two_more = all_rows() + lines[0] + "\n";
  check_complaint(resumed(folder, two_more), 3, "line 31: is one row more");
  check_complaint(resumed(folder, lines[1] + "\n"), 3, "line 1: is point 1, where point 0", "--shard");
}

TEST_CASE("only the beginning of the next row is cut: a text without an end that is something else stays as it is") {
  const TemporaryFolder folder;
  const std::string whole = all_rows(), first = whole.substr(0, whole.find('\n') + 1);
  for (const std::string& text : {std::string("secret notes"), std::string(3000, '\0'), std::string("   "),
                                  first + "notes after a row", whole + "notes after the last row"}) {
    CAPTURE(text.substr(0, 40));
    check_complaint(resumed(folder, text), 3, "is no beginning of the row");
    CHECK(text_of_file(folder.file("rows.jsonl")) == text);
  }
}

TEST_CASE("rows that another program wrote anew, behind a byte order mark or with carriage returns, are refused") {
  const TemporaryFolder folder;
  const std::string whole = all_rows();
  check_complaint(resumed(folder, "\xEF\xBB\xBF" + whole), 3, "does not begin with a brace");
  std::string returns;
  for (const char c : whole) returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  check_complaint(resumed(folder, returns), 3, "ends with a carriage return");
  check_complaint(run_program({"merge", folder.write("bom.jsonl", "\xEF\xBB\xBF" + whole), "-o", folder.file("all")}),
                  3, "does not begin with a brace");
  CHECK_FALSE(std::filesystem::exists(folder.file("all")));
}

TEST_CASE("rows of another sweep, another shard, another version or another GPU are not gone on with") {
  const TemporaryFolder folder;
  for (const char* options :
       {"sweep --seqlen 64:640:64 --heads 6 --kv-heads 2,3", "sweep --kv-heads 2,3,4 --seqlen 64:640:64 --heads 6",
        "sweep --seqlen 64:640:64 --heads 12 --kv-heads 2,3,4",
        "sweep --seqlen 64:640:64 --heads 6 --kv-heads 2,3,4 --full",
        "sweep --seqlen 64:640:64 --heads 6 --kv-heads 2,3,4 --gpu a100"}) {
    CAPTURE(options);
    check_complaint(resumed(folder, all_rows(), options), 3, "line 1: is a row of another sweep");
    CHECK(text_of_file(folder.file("rows.jsonl")) == all_rows());
  }
  check_complaint(resumed(folder, all_rows(), std::string(kOptions) + " --shard 2/3"), 3, "line 1: is point 0",
                  "--shard");
  std::string older = lines_of(all_rows())[0] + "\n";
  older.replace(older.find("\"version\":\""), 11, "\"version\":\"9");
  check_complaint(resumed(folder, older), 3, "line 1: was written by hbmscope 9");
  // The same name, and another bandwidth.
  const std::string gpu = folder.file("gpu.json"), options = "sweep --seqlen 64,128 --gpu " + gpu;
  REQUIRE(run_program({"gpu", "show", "h200", "--json", gpu}).code == 0);
  REQUIRE(run_program(to_file(options, folder.file("h200.jsonl"))).code == 0);
  REQUIRE(run_program({"gpu", "show", "h100", "--json", gpu}).code == 0);
  check_complaint(run_program(to_file(options, folder.file("h200.jsonl"))), 3, "line 1: is a row of another sweep",
                  "GPU");
  // How a number is written, and how many threads compute, does not make another sweep.
  CHECK(resumed(folder, all_rows().substr(0, 5000), "sweep --seqlen 64,128:640:64 --heads 6 --kv-heads 2:4:1 --jobs 3")
            .code == 5);
  CHECK(text_of_file(folder.file("rows.jsonl")) == all_rows());
}

TEST_CASE("two sweeps do not write to one file at a time") {
  const TemporaryFolder folder;
  const std::string path = folder.write("rows.jsonl", "");
  const int descriptor = ::open(path.c_str(), O_RDWR);
  REQUIRE(descriptor >= 0);
  REQUIRE(::flock(descriptor, LOCK_EX) == 0);
  check_complaint(run_program(to_file(kOptions, path)), 2, "another sweep is writing", "{shard}");
  ::close(descriptor);
  CHECK(run_program(to_file(kOptions, path)).code == 5);
}

TEST_CASE("a disk that is full ends the sweep with what was written, and --resume goes on") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.jsonl");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 20'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Outcome outcome = run_program(to_file(kOptions, path));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  check_complaint(outcome, 1, "rows.jsonl: cannot write", "--resume");
  CHECK(text_of_file(path) == all_rows().substr(0, 20'000));
  CHECK(run_program(to_file(kOptions, path)).code == 5);
  CHECK(text_of_file(path) == all_rows());
}

TEST_CASE("killed at a random moment, again and again, and resumed: the bytes are those of an undisturbed sweep") {
  const TemporaryFolder folder;
  const std::string options = "sweep --seqlen 64:25600:64 --heads 6 --kv-heads 2,4 --algorithm flash_v2";
  const auto begin = std::chrono::steady_clock::now();
  const std::string all = run_program(words(options)).out;
  const auto whole =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  REQUIRE(lines_of(all).size() == 800);
  std::mt19937 random(7);  // the same moments each time, as far as a clock goes
  int in_time = 0;
  for (int round = 0; round < 10; ++round) {
    const std::string path = folder.file("rows" + std::to_string(round) + ".jsonl");
    const int moment = static_cast<int>(random() % static_cast<unsigned long>(whole));
    if (killed(to_file(options, path), moment)) ++in_time;
    check_complaint(run_program(to_file(options, path)), 5, "400 of 800 points failed");
    CHECK(text_of_file(path) == all);
  }
  CHECK(in_time > 0);
}

TEST_CASE("the sweeps of the help, of README and of docs/sweeps.md run one after the other in one folder") {
  for (const char* source : {"", "/README.md", "/docs/sweeps.md"}) {
    CAPTURE(source);
    const TemporaryFolder folder;
    const std::string text = *source == '\0' ? run_program(words("sweep --help")).out
                                             : text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + source);
    bool in_code = *source == '\0';
    std::string command;  // of several lines where they end in a backslash
    int ran = 0;
    for (const std::string& line : lines_of(text)) {
      if (line.starts_with("```")) in_code = !in_code;
      command += line.substr(0, line.find(" #"));
      if (command.ends_with('\\')) {
        command.back() = ' ';
        continue;
      }
      const std::string whole = std::exchange(command, {});
      const std::size_t at = whole.find("hbmscope sweep -");
      std::vector<std::string> arguments = words(at == std::string::npos ? "" : whole.substr(at + 9));
      CAPTURE(whole);
      if (!in_code || arguments.empty()) continue;
      for (std::size_t i = 1; i < arguments.size(); ++i) {
        std::erase(arguments[i], '\'');
        if (arguments[i - 1] == "-o" || arguments[i - 1] == "--csv") arguments[i] = folder.file(arguments[i]);
      }
      const Outcome outcome = run_program(arguments);
      CAPTURE(outcome.err);
      CHECK(outcome.code == 0);
      ++ran;
    }
    CHECK(ran >= 1);
  }
}
