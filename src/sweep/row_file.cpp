#include "sweep/row_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/version.hpp"
#include "sweep/row.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

/// Why a row that is whole is not the one that has to stand here.
[[noreturn]] void refuse(const std::string& place, const RowHead& head, const ExpectedRow& wanted,
                         const std::string& sweep_key, const std::string& key) {
  const auto fail = [&](const std::string& what, const std::string& hint) {
    return Error(ErrorKind::data, place + ": " + what, hint);
  };
  if (head.sweep_key != sweep_key) {
    throw fail("is a row of another sweep (its key is " + head.sweep_key + ", this one's " + sweep_key + ")",
               "give the options and the GPU files that it was begun with, or write to another file");
  }
  if (head.index != wanted.index) {
    throw fail(
        "is point " + std::to_string(head.index) + ", where point " + std::to_string(wanted.index) + " has to stand",
        "is the file of another --shard, or were its lines sorted? it goes on only as it was begun");
  }
  if (head.key != key) {
    throw fail("point " + std::to_string(head.index) + " has the key " + head.key + ", and now " + key,
               "the GPU file or this machine's GPU has changed: write to another file");
  }
  throw fail("is damaged: its values are not those of its key",
             "remove it and all lines after it, and --resume computes them");
}

/// A member of a head that this program wrote: the text behind "NAME":".
std::string member_of(const std::string& head, const std::string& name) {
  const std::string before = "\"" + name + "\":\"";
  const std::size_t begin = head.find(before) + before.size();
  return head.substr(begin, head.find('"', begin) - begin);
}

}  // namespace

LineReader::LineReader(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

std::string LineReader::place() const {
  return path_ + ": line " + std::to_string(number_);
}

bool LineReader::read_more() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPiece);
  ssize_t count = 0;
  do {
    count = ::pread(descriptor_, buffer_.data() + before, kPiece, read_);
  } while (count < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0) {
    throw Error(ErrorKind::data, path_ + ": cannot be read: " + std::generic_category().message(errno),
                "check the path and its rights");
  }
  read_ += count;
  return count > 0;
}

bool LineReader::next(std::string_view& line) {
  while (true) {
    const std::size_t feed = buffer_.find('\n', searched_);
    if (feed != std::string::npos) {
      line = std::string_view(buffer_).substr(begin_, feed - begin_);
      offset_ = end_;
      end_ += static_cast<std::int64_t>(line.size()) + 1;
      begin_ = searched_ = feed + 1;
      ++number_;
      return true;
    }
    searched_ = buffer_.size();
    if (searched_ - begin_ > kMaxLineBytes) {
      ++number_;
      throw Error(ErrorKind::data, place() + ": is longer than 64 MiB, the most that a row may have",
                  "is this a file of rows, one a line?");
    }
    if (!read_more()) return false;
  }
}

void check_bytes_of_row(std::string_view line, const std::string& place) {
  if (line.starts_with('{') && line.ends_with('}')) return;
  throw Error(ErrorKind::data,
              place + (line.ends_with('\r') ? ": ends with a carriage return" : ": does not begin with a brace") +
                  ", so another program has written it anew",
              "give the file as sweep wrote it: no byte order mark, a line feed at the end of each line");
}

RowsThere check_rows(const std::string& path, int descriptor, std::int64_t rows,
                     const std::function<ExpectedRow(std::int64_t)>& expected, const std::string& device) {
  LineReader reader(path, descriptor);
  RowsThere there;
  for (std::string_view line; reader.next(line); ++there.rows) {
    const RowHead head = read_row(line, reader.place());
    check_bytes_of_row(line, reader.place());
    if (there.rows == rows) {
      throw Error(ErrorKind::data,
                  reader.place() + ": is one row more than the " + std::to_string(rows) + " of this sweep",
                  "is the file of another sweep, or of another --shard?");
    }
    const ExpectedRow wanted = expected(there.rows);
    if (!line.starts_with(wanted.head) || !line.ends_with('}'))
      refuse(reader.place(), head, wanted, member_of(wanted.head, "sweep_key"), member_of(wanted.head, "key"));
    if (head.version != hbmscope_version() || head.git != hbmscope_git_revision()) {
      throw Error(ErrorKind::data,
                  reader.place() + ": was written by hbmscope " + head.version + " (" + head.git + "), and this is " +
                      std::string(hbmscope_version()) + " (" + std::string(hbmscope_git_revision()) + ")",
                  "finish it with the program that began it, or write to another file");
    }
    if (head.device != device) {
      throw Error(ErrorKind::data,
                  reader.place() + ": was measured on " + (head.device.empty() ? "no GPU" : head.device) +
                      ", and this machine has " + (device.empty() ? "none" : device),
                  "finish it on the GPU that it was begun on, or write to another file");
    }
    if (head.status == "failed") ++there.failed;
    there.bytes = reader.end();
  }
  there.torn_bytes = reader.torn_bytes();
  if (there.torn_bytes == 0) return there;
  // Only what a stopped sweep can have left is cut: the beginning of the row that has to stand here.
  const std::string_view torn = reader.torn();
  const std::string head = there.rows < rows ? expected(there.rows).head : std::string();
  if (there.rows == rows || !(torn.starts_with(head) || std::string_view(head).starts_with(torn))) {
    throw Error(ErrorKind::data,
                path + ": line " + std::to_string(reader.number() + 1) +
                    " has no end and is no beginning of the row that has to stand there",
                "is this a file of another kind? nothing was changed in it; write to another file");
  }
  return there;
}

}  // namespace hbmscope
