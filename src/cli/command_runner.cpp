#include "cli/command_runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace hbmscope {
namespace {

using lesson::Command;
using lesson::CommandOutcome;
using Clock = std::chrono::steady_clock;

/// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool open() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

[[noreturn]] void fail_to_start(int code) {
  throw Error(ErrorKind::output, "cannot start a command: " + std::generic_category().message(code),
              "close other programs, or raise the limit of processes");
}

struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail_to_start(errno);
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// The environment of this process, without its GPUs, and without a job of Slurm that it may be part of.
std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!variable.starts_with("CUDA_VISIBLE_DEVICES=") && !variable.starts_with("SLURM_")) all.emplace_back(*entry);
  }
  all.emplace_back("CUDA_VISIBLE_DEVICES=");
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// A running command. One that is dropped before its end is ended.
class Process {
 public:
  Process(const Command& command, std::size_t index, const std::string& program, std::vector<std::string>& environment)
      : index_(index), started_(Clock::now()) {
    Pipe out = make_pipe(), err = make_pipe();
    std::vector<std::string> words{"hbmscope"};
    words.insert(words.end(), command.words.begin(), command.words.end());
    const std::vector<char*> argv = pointers(words), envp = pointers(environment);
    const std::string folder = command.folder.empty() ? "." : command.folder;
    pid_ = ::fork();
    if (pid_ < 0) fail_to_start(errno);
    if (pid_ == 0) {
      const int null = ::open("/dev/null", O_RDONLY);
      const bool ready = ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out.write.number(), STDOUT_FILENO) >= 0 &&
                         ::dup2(err.write.number(), STDERR_FILENO) >= 0 && ::chdir(folder.c_str()) == 0;
      if (ready) {
        environ = const_cast<char**>(envp.data());
        ::execvp(program.c_str(), argv.data());
      }
      ::_exit(127);
    }
    streams_[0] = {std::move(out.read), &outcome_.out};
    streams_[1] = {std::move(err.read), &outcome_.err};
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] bool done() const { return !streams_[0].from.open() && !streams_[1].from.open(); }

  void add_to(std::vector<pollfd>& polled) const {
    for (const Stream& s : streams_) {
      if (s.from.open()) polled.push_back({s.from.number(), POLLIN, 0});
    }
  }
  /// Takes what there is to read of the stream with this descriptor.
  void read(int descriptor, const RunnerLimits& limits) {
    for (Stream& s : streams_) {
      if (s.from.number() != descriptor) continue;
      std::array<char, 1 << 16> buffer{};
      const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
      if (count <= 0) return s.from.close();
      s.to->append(buffer.data(), static_cast<std::size_t>(count));
      if (s.to->size() > limits.output_bytes)
        stop("printed more than " + std::to_string(limits.output_bytes >> 20) + " MiB");
      return;
    }
  }
  void check_time(const RunnerLimits& limits) {
    if (Clock::now() - started_ > limits.time) stop("took longer than " + std::to_string(limits.time.count()) + " s");
  }

  CommandOutcome finish() {
    const int status = wait();
    if (outcome_.failure.empty() && WIFSIGNALED(status))
      outcome_.failure = "was ended by signal " + std::to_string(WTERMSIG(status));
    if (outcome_.failure.empty()) outcome_.exit_code = WEXITSTATUS(status);
    return std::move(outcome_);
  }

 private:
  void stop(std::string why) {
    if (!outcome_.failure.empty()) return;
    outcome_.failure = std::move(why);
    ::kill(pid_, SIGKILL);
    for (Stream& s : streams_) s.from.close();
  }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  struct Stream {
    Descriptor from;
    std::string* to = nullptr;
  };
  std::size_t index_;
  Clock::time_point started_;
  pid_t pid_ = -1;
  CommandOutcome outcome_;
  std::array<Stream, 2> streams_;
};

class ProgramRunner : public lesson::CommandRunner {
 public:
  ProgramRunner(std::string program, RunnerLimits limits)
      : program_(std::move(program)), limits_(limits), environment_(environment()) {}

  std::vector<CommandOutcome> run(std::span<const Command> commands) override {
    const std::size_t at_a_time = std::max(1U, std::thread::hardware_concurrency());
    std::vector<CommandOutcome> outcomes(commands.size());
    std::vector<std::unique_ptr<Process>> running;
    std::size_t next = 0;
    while (next < commands.size() || !running.empty()) {
      for (; next < commands.size() && running.size() < at_a_time; ++next)
        running.push_back(std::make_unique<Process>(commands[next], next, program_, environment_));
      wait_for_output(running);
      if (limits_.waiting) limits_.waiting();
      for (auto& process : running) {
        process->check_time(limits_);
        if (process->done()) outcomes[process->index()] = process->finish();
      }
      std::erase_if(running, [](const auto& process) { return process->done(); });
    }
    return outcomes;
  }

 private:
  void wait_for_output(const std::vector<std::unique_ptr<Process>>& running) const {
    std::vector<pollfd> polled;
    for (const auto& process : running) process->add_to(polled);
    constexpr int kMilliseconds = 200;  // how late a time limit may be noticed
    if (::poll(polled.data(), polled.size(), kMilliseconds) <= 0) return;
    for (const pollfd& one : polled) {
      if (one.revents == 0) continue;
      for (const auto& process : running) process->read(one.fd, limits_);
    }
  }

  std::string program_;
  RunnerLimits limits_;
  std::vector<std::string> environment_;
};

}  // namespace

std::string path_of_this_program(const std::string& argv0) {
  std::error_code error;
  const std::filesystem::path link = "/proc/self/exe";
  if (std::filesystem::exists(link, error)) return link.string();  // also finds a program that was replaced meanwhile
  // A call by name alone is looked up as it was the first time; another path must survive a change of folder.
  return argv0.find('/') == std::string::npos ? argv0 : std::filesystem::absolute(argv0, error).string();
}

std::unique_ptr<lesson::CommandRunner> program_runner(const std::string& program, RunnerLimits limits) {
  return std::make_unique<ProgramRunner>(program, std::move(limits));
}

}  // namespace hbmscope
