#include "cli/output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace hbmscope {
namespace {

/// Writes all of `text`, or returns errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// What came in from outside must not steer the terminal: control characters as \xNN.
std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

[[noreturn]] void fail(const std::string& path, const std::string& what, int code) {
  throw Error(ErrorKind::output, path + ": " + what + ": " + std::generic_category().message(code),
              "check the path, its rights and the space left");
}

}  // namespace

void write_stdout(std::string_view text) {
  const int code = write_all(STDOUT_FILENO, text);
  if (code == EPIPE) std::_Exit(0);  // the reader has what it wanted
  if (code != 0) fail("standard output", "cannot write", code);
}

namespace {

/// Where writing to `path` ends up: symbolic links are followed, also one whose target is still to be made.
std::string target_of(const std::string& path) {
  std::error_code error;
  std::filesystem::path target = path;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == 40) fail(path, "cannot write", ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) fail(path, "cannot read the link", error.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

/// Signals that would end the program wait, so that no temporary is left. All threads that computed are done by now.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals, number);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_{};
};

/// mkstemp makes files for the owner only; a new result gets the rights any new file gets. Returns errno.
int give_usual_rights(int descriptor) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return ::fchmod(descriptor, 0666 & ~mask) == 0 ? 0 : errno;
}

/// Owner, as far as that is permitted, and rights of the file that is replaced. Returns errno.
int take_rights(int descriptor, const struct stat& from) {
  mode_t mode = from.st_mode & 0777;
  if (::fchown(descriptor, from.st_uid, from.st_gid) != 0 &&
      ::fchown(descriptor, static_cast<uid_t>(-1), from.st_gid) != 0) {
    // What one group was allowed is not another's: it gets what everybody gets.
    mode = (mode & ~static_cast<mode_t>(070)) | ((mode & 07) << 3);
  }
  return ::fchmod(descriptor, mode) == 0 ? 0 : errno;
}

}  // namespace

bool is_same_file(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  const bool a_there = ::stat(one.c_str(), &a) == 0, b_there = ::stat(other.c_str(), &b) == 0;
  if (a_there && b_there) return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  std::error_code ignored;
  const auto place = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(target_of(path), ignored).lexically_normal();
  };
  return a_there == b_there && place(one) == place(other);
}

void check_result_path(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path target = target_of(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  if (::access(target.c_str(), F_OK) == 0) {
    if (::access(target.c_str(), W_OK) != 0) fail(path, "cannot write", errno);
    if (std::filesystem::is_directory(target)) fail(path, "cannot write", EISDIR);
  } else if (::access(folder.c_str(), W_OK) != 0) {
    fail(path, "cannot create", errno);
  }
}

void write_result(const std::string& given_path, std::string_view text) {
  if (given_path == "-") return write_stdout(text);
  const std::string path = target_of(given_path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {  // a device or a pipe takes no rename
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail(path, "cannot open", errno);
    int code = write_all(descriptor, text);
    if (::close(descriptor) != 0 && code == 0) code = errno;
    if (code != 0) fail(path, "cannot write", code);
    return;
  }
  const bool replaces = ::access(path.c_str(), F_OK) == 0;
  // The folder's rights would do for a rename; whoever locked a file means its content.
  if (replaces && ::access(path.c_str(), W_OK) != 0) fail(path, "cannot write", errno);
  const WithoutSignals until_the_temporary_is_gone;
  std::string temporary = path + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) fail(path, "cannot create", errno);
  int code = write_all(descriptor, text);
  if (code == 0) code = replaces ? take_rights(descriptor, status) : give_usual_rights(descriptor);
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary.c_str());
    fail(path, "cannot write", code);
  }
}

void say_error(std::string_view message, std::string_view hint) {
  std::string text = "hbmscope: " + printable(message) + "\n";
  if (!hint.empty()) text += "  hint: " + printable(hint) + "\n";
  (void)write_all(STDERR_FILENO, text);
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

bool stdout_wants_colour() {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::strcmp(term, "dumb") == 0;
  return stdout_is_terminal() && std::getenv("NO_COLOR") == nullptr && !dumb;
}

int output_width() {
  winsize size{};
  if (!stdout_is_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 100);
}

}  // namespace hbmscope
