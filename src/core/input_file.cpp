#include "core/input_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/file_error.hpp"

namespace hbmscope {
namespace {

constexpr int kMillisecondsForWriter = 2000;

[[noreturn]] void fail(const std::string& path, const std::string& rest, std::string hint) {
  throw Error(ErrorKind::data, path + ": " + rest, std::move(hint));
}

/// A pipe without a writer looks like one at its end as long as nobody has written: poll() waits, read() does not.
bool has_writer(int descriptor) {
  pollfd polled{descriptor, POLLIN, 0};
  if (::poll(&polled, 1, kMillisecondsForWriter) > 0) return true;  // bytes, or a writer that has come and gone
  char none = 0;
  return ::read(descriptor, &none, 1) < 0 && errno == EAGAIN;  // poll() saw no byte: this takes none
}

}  // namespace

int open_input(const std::string& path, Pipes pipes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) fail(path, "is a directory", "name a file in it");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw cannot_open(path, errno);
  const auto refuse = [&](const char* rest, const char* hint) {
    ::close(descriptor);
    fail(path, rest, hint);
  };
  if (::fstat(descriptor, &status) != 0) {
    const int code = errno;
    ::close(descriptor);
    throw cannot_open(path, code);
  }
  const bool pipe = S_ISFIFO(status.st_mode);
  if (pipe && pipes == Pipes::refused) refuse("is a pipe, not a file", "write its content to a file and name that");
  if (!pipe && !S_ISREG(status.st_mode))
    refuse("is a device, not a file", pipes == Pipes::taken ? "name a file, or - for standard input" : "name a file");
  if (pipe && !has_writer(descriptor)) refuse("is a pipe that nobody writes to", "start first what writes to it");
  // A regular file never waits, but for some under /proc, which would wait for ever: they go on to say EAGAIN.
  if (pipe) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

}  // namespace hbmscope
