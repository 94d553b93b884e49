#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Tests from outside: the program as a user runs it, without a shell in between.
namespace hbmscope::testing {

/// A folder of its own under the system's place for temporary files, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hbmscope_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Outcome {
  int code;  ///< exit code, or minus the signal that ended the program
  std::string out;
  std::string err;
};

struct Call {
  std::vector<std::string> arguments;
  std::string input;                                             ///< on standard input
  std::string out_path;                                          ///< where standard output goes; empty: to Outcome::out
  bool closed_pipe = false;                                      ///< standard output is a pipe whose reader has gone
  bool ignore_sigpipe = false;                                   ///< as under a parent that ignores it
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside the test's own
};

namespace detail {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Scratch = std::unique_ptr<std::FILE, Closer>;

inline Scratch scratch(std::string_view text = {}) {
  Scratch file(std::tmpfile());
  REQUIRE(file != nullptr);
  // An empty view has no address that fwrite may be given.
  if (!text.empty()) REQUIRE(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size());
  std::rewind(file.get());
  return file;
}

inline std::string read_all(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;)
    text.append(buffer.data(), got);
  return text;
}

/// The descriptor that becomes standard output, to be closed by the caller, or `otherwise`.
inline int open_output(const Call& call, int otherwise) {
  if (call.closed_pipe) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    ::close(ends[0]);
    return ends[1];
  }
  if (call.out_path.empty()) return otherwise;
  const int descriptor = ::open(call.out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(descriptor >= 0);
  return descriptor;
}

}  // namespace detail

/// Runs the program to its end. Files, not pipes, take what it says, so that no amount of it can block.
inline Outcome run_program(const Call& call) {
  const detail::Scratch in = detail::scratch(call.input), out = detail::scratch(), err = detail::scratch();
  const int own_output = ::fileno(out.get());
  const int output = detail::open_output(call, own_output);
  std::vector<std::string> words{"hbmscope"};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(::fileno(in.get()), STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(::fileno(err.get()), STDERR_FILENO);
    std::signal(SIGPIPE, call.ignore_sigpipe ? SIG_IGN : SIG_DFL);
    for (const auto& [name, value] : call.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(HBMSCOPE_BINARY, argv.data());
    ::_exit(127);
  }
  if (output != own_output) ::close(output);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) REQUIRE(errno == EINTR);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return {code, detail::read_all(out.get()), detail::read_all(err.get())};
}

inline Outcome run_program(std::vector<std::string> arguments) {
  Call call;
  call.arguments = std::move(arguments);
  return run_program(call);
}

/// Words between blanks; for arguments without blanks in them.
inline std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    if (blank > 0) parts.emplace_back(text.substr(0, blank));
    if (blank == std::string_view::npos) break;
    text.remove_prefix(blank + 1);
  }
  return parts;
}

}  // namespace hbmscope::testing
