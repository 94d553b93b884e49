// Results go where the user pointed, and nothing that comes in from a file steers the terminal.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli_checks.hpp"
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

std::vector<std::string> run_to(const std::string& path) {
  return {"run", "--seqlen", "64", "--engine", "model", "--json", path};
}

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(fs::path(folder.file("x")).parent_path()), {}));
}

/// Ends this test should it ever block.
class Timeout {
 public:
  explicit Timeout(unsigned seconds) { ::alarm(seconds); }
  ~Timeout() { ::alarm(0); }
  Timeout(const Timeout&) = delete;
  Timeout& operator=(const Timeout&) = delete;
};

constexpr std::string_view kLine =
    R"({"shape": {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "seqlen_q": 64, "seqlen_kv": 64, "head_dim": 16, )"
    R"("dtype": "fp16"}, "algorithm": "flash_v2", "plan": {"block_q": 64, "block_kv": 64}})"
    "\n";

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

TEST_CASE("a file that is overwritten keeps its rights and owner, and its other names keep what they hold") {
  const TemporaryFolder folder;
  const std::string path = folder.write("result.json", "before"), other = folder.file("other.json");
  fs::create_hard_link(path, other);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root) REQUIRE(::chown(path.c_str(), 12345, 12346) == 0);
  CHECK(run_program(run_to(path)).code == 0);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
  if (is_root) {
    CHECK(status.st_uid == 12345);
    CHECK(status.st_gid == 12346);
  }
  CHECK(content_of(path).starts_with("{"));
  CHECK(content_of(other) == "before");
  CHECK(files_in(folder) == 2);
}

TEST_CASE("a file that may not be written is not replaced through its folder") {
  const TemporaryFolder folder;
  const std::string path = folder.write("result.json", "before");
  REQUIRE(::chmod(fs::path(path).parent_path().c_str(), 0777) == 0);
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;  // root may write whatever there is
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(77);
    if (::access(HBMSCOPE_BINARY, X_OK) != 0) ::_exit(77);
    std::FILE* const ignored = std::freopen("/dev/null", "w", stderr);
    ::_exit(ignored == nullptr ? 77
                               : (::execl(HBMSCOPE_BINARY, "hbmscope", "run", "--seqlen", "64", "--engine", "model",
                                          "--json", path.c_str(), nullptr),
                                  77));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) return;  // nobody cannot be asked here
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(content_of(path) == "before");
}

TEST_CASE("a file that a command reads is not overwritten with its result, by whichever name") {
  const TemporaryFolder folder;
  const std::string gpu = folder.file("gpu.json");
  REQUIRE(run_program({"gpu", "show", "h200", "--json", gpu}).code == 0);
  const std::string before = content_of(gpu);
  fs::create_symlink("gpu.json", folder.file("link.json"));
  fs::create_hard_link(gpu, folder.file("hard.json"));
  for (const char* name : {"gpu.json", "link.json", "hard.json", "./gpu.json"}) {
    CAPTURE(name);
    for (const char* format : {"--json", "--csv", "--markdown"}) {
      check_complaint(
          run_program({"run", "--seqlen", "64", "--engine", "model", "--gpu", gpu, format, folder.file(name)}), 2,
          "is read by this command");
    }
    check_complaint(run_program({"profile", "import", gpu, "--json", folder.file(name)}), 2, "is read by this command");
    check_complaint(run_program({"scenario", "run", gpu, "--json", folder.file(name)}), 2, "is read by this command");
  }
  CHECK(content_of(gpu) == before);
  check_complaint(run_program({"run", "--seqlen", "64", "--engine", "model", "--json", folder.file("new.json"),
                               "--markdown", folder.file("./new.json")}),
                  2, "two formats cannot both go to");
  // The name of a GPU that is built in is no file, even where there is one of that name.
  const std::string same = folder.write("H200", "");
  CHECK(run_program({"run", "--seqlen", "64", "--engine", "model", "--gpu", "H200", "--json", same}).code == 0);
}

TEST_CASE("batch does not read what it writes") {
  const TemporaryFolder folder;
  const Timeout timeout(60);
  Call appending;
  appending.arguments = {"batch", folder.write("lines.jsonl", kLine)};
  appending.out_path = appending.arguments[1];  // opened, and so emptied, as a shell does with >
  check_complaint(run_program(appending), 2, "standard output goes to the same file");
}

TEST_CASE("a result beyond the limit of a file's size is an error like any other, and leaves no temporary") {
  const TemporaryFolder folder;
  const std::string path = folder.write("result.json", "before");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 2048;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Outcome outcome = run_program(run_to(path));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  check_complaint(outcome, 1, "cannot write");
  CHECK(content_of(path) == "before");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a pipe that nobody reads takes no result, and holds nobody up") {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const char* option : {"--json", "--csv", "--markdown"}) {
    check_complaint(run_program({"run", "--seqlen", "64", "--engine", "model", option, pipe}), 1,
                    "is a pipe that nobody reads");
  }
  check_complaint(run_program({"sweep", "--seqlen", "64,128", "-o", pipe}), 1, "is a pipe that nobody reads");
}

TEST_CASE("a pipe or a device is refused at once where a file is named; batch and profile import read a pipe") {
  const TemporaryFolder folder;
  const Timeout timeout(120);
  const std::string pipe = folder.file("pipe.json");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const char* command :
       {"run --engine model --gpu", "gpu show", "scenario run", "scenario show", "scenario check"}) {
    CAPTURE(command);
    std::vector<std::string> arguments = words(command);
    arguments.push_back(pipe);
    check_complaint(run_program(arguments), 3, "is a pipe, not a file");
  }
  for (const char* command : {"batch", "profile import"}) {
    CAPTURE(command);
    std::vector<std::string> arguments = words(command);
    arguments.push_back(pipe);
    check_complaint(run_program(arguments), 3, "is a pipe that nobody writes to");
    arguments.back() = "/dev/zero";
    check_complaint(run_program(arguments), 3, "is a device, not a file");
  }
  std::thread writer([&] { std::ofstream(pipe) << kLine; });  // waits for its reader
  const Outcome read = run_program({"batch", pipe});
  writer.join();
  CHECK(read.code == 0);
  CHECK(lines_of(read.out).size() == 1);
  std::thread other([&] { std::ofstream(pipe) << "no table\n"; });
  check_complaint(run_program({"profile", "import", pipe}), 3, "without a table of ncu");
  other.join();
}
