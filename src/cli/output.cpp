#include "cli/output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"

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

}  // namespace

/// Signals that would end the program wait, so that no temporary is left. All threads that computed are done by now, or
/// there are none.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : kEnding) ::sigaddset(&signals, number);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  /// Is one of them waiting that nobody but this blocks?
  [[nodiscard]] bool one_waits() const {
    sigset_t waiting;
    ::sigpending(&waiting);
    return std::any_of(std::begin(kEnding), std::end(kEnding), [&](int number) {
      return ::sigismember(&waiting, number) == 1 && ::sigismember(&before_, number) == 0;
    });
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  static constexpr int kEnding[]{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigset_t before_{};
};

namespace {

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
    const std::filesystem::path whole = std::filesystem::absolute(target_of(path), ignored);
    return std::filesystem::weakly_canonical(whole, ignored).lexically_normal();
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

int open_for_writing(const std::string& path) {
  // Opened without waiting: a pipe without a reader would hold the program for ever.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

/// What an unfinished result has open.
struct ResultFile::Open {
  std::string path;       ///< where links led
  std::string temporary;  ///< empty: written in place
  int descriptor = -1;
  bool replaces = false;
  struct stat status {};
  std::optional<WithoutSignals> until_the_temporary_is_gone;
};

ResultFile::ResultFile(const std::string& path) : given_path_(path) {
  if (path == "-") return;
  open_ = std::make_unique<Open>();
  Open& o = *open_;
  o.path = target_of(path);
  if (::stat(o.path.c_str(), &o.status) == 0 && !S_ISREG(o.status.st_mode)) {  // a device or a pipe takes no rename
    o.descriptor = open_for_writing(o.path);
    if (o.descriptor < 0) fail(path, errno == ENXIO ? "is a pipe that nobody reads" : "cannot open", errno);
    return;
  }
  o.replaces = ::access(o.path.c_str(), F_OK) == 0;
  // The folder's rights would do for a rename; whoever locked a file means its content.
  if (o.replaces && ::access(o.path.c_str(), W_OK) != 0) fail(path, "cannot write", errno);
  o.until_the_temporary_is_gone.emplace();
  o.temporary = o.path + ".XXXXXX";
  o.descriptor = ::mkstemp(o.temporary.data());
  if (o.descriptor < 0) {
    const int code = errno;
    o.temporary.clear();
    fail(path, "cannot create", code);
  }
}

ResultFile::~ResultFile() {
  if (open_) drop();
}

void ResultFile::drop() {
  if (open_->descriptor >= 0) ::close(open_->descriptor);
  if (!open_->temporary.empty()) ::unlink(open_->temporary.c_str());
  open_.reset();
}

void ResultFile::write(std::string_view text) {
  if (given_path_ == "-") return write_stdout(text);
  if (open_->until_the_temporary_is_gone && open_->until_the_temporary_is_gone->one_waits())
    drop();  // ends the program
  if (!open_) fail(given_path_, "cannot write", EINTR);
  if (const int code = write_all(open_->descriptor, text); code != 0) {
    drop();
    fail(given_path_, "cannot write", code);
  }
}

void ResultFile::finish() {
  if (given_path_ == "-") return;
  Open& o = *open_;
  int code = 0;
  if (!o.temporary.empty()) code = o.replaces ? take_rights(o.descriptor, o.status) : give_usual_rights(o.descriptor);
  if (::close(o.descriptor) != 0 && code == 0) code = errno;
  o.descriptor = -1;
  if (!o.temporary.empty() && code == 0 && ::rename(o.temporary.c_str(), o.path.c_str()) != 0) code = errno;
  if (code == 0) o.temporary.clear();
  drop();
  if (code != 0) fail(given_path_, "cannot write", code);
}

void write_result(const std::string& path, std::string_view text) {
  ResultFile file(path);
  file.write(text);
  file.finish();
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

bool stdout_shows_utf8() {
  if (!stdout_is_terminal()) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {  // the first that is set decides
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    std::transform(locale.begin(), locale.end(), locale.begin(), [](unsigned char c) { return std::tolower(c); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

int output_width() {
  winsize size{};
  if (!stdout_is_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 100);
}

}  // namespace hbmscope
