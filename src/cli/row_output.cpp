#include "cli/row_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cli/output.hpp"
#include "core/error.hpp"

namespace hbmscope {

RowOutput::RowOutput(const std::string& path, bool resume) : path_(path), descriptor_(STDOUT_FILENO) {
  if (path == "-") return;
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  regular_ = !there || S_ISREG(status.st_mode);
  if (there && S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
  if (!regular_ && resume) {
    throw Error(ErrorKind::usage, path_ + ": is no file, and --resume goes on with a file of rows",
                "name a file with -o, or leave --resume out");
  }
  descriptor_ = regular_ ? ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666) : open_for_writing(path);
  if (descriptor_ < 0)
    fail(errno == ENXIO ? "is a pipe that nobody reads" : there ? "cannot open" : "cannot create", errno);
  if (!regular_) return;
  try {
    // A file system that has no locks lets the sweep go on without one.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw Error(ErrorKind::usage, path_ + ": another sweep is writing to it",
                  "give each process a file of its own, such as -o 'rows.{shard}.jsonl'");
    }
    if (::fstat(descriptor_, &status) != 0) fail("cannot read", errno);
    if (status.st_size > 0 && !resume) {
      throw Error(ErrorKind::usage, path_ + ": is there already, and holds something",
                  "--resume goes on with the rows it holds; remove it to begin anew");
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RowOutput::~RowOutput() {
  if (descriptor_ != STDOUT_FILENO) ::close(descriptor_);
}

void RowOutput::fail(const char* what, int code) const {
  throw Error(ErrorKind::output, path_ + ": " + what + ": " + std::generic_category().message(code),
              regular_ ? "check the path, its rights and the space left; --resume goes on where the rows end"
                       : "check the path and its rights");
}

RowsThere RowOutput::resume(std::int64_t rows, const std::function<ExpectedRow(std::int64_t)>& expected,
                            const std::string& device) {
  const RowsThere there = check_rows(path_, descriptor_, rows, expected, device);
  if (there.torn_bytes > 0 && ::ftruncate(descriptor_, there.bytes) != 0) fail("cannot cut its torn last line", errno);
  if (::lseek(descriptor_, there.bytes, SEEK_SET) < 0) fail("cannot write", errno);
  return there;
}

void RowOutput::append(std::string_view rows) {
  if (descriptor_ == STDOUT_FILENO) return write_stdout(rows);
  while (!rows.empty()) {
    const ssize_t written = ::write(descriptor_, rows.data(), rows.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write", errno);
    rows.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace hbmscope
