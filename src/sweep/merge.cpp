#include "sweep/merge.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>

#include "core/error.hpp"
#include "core/input_file.hpp"
#include "core/suggest.hpp"
#include "report/format.hpp"
#include "sweep/row.hpp"
#include "sweep/row_file.hpp"

namespace hbmscope {
namespace {

[[noreturn]] void fail(const std::string& place, const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::data, place + ": " + what, hint);
}

/// A file without a name that holds what standard input has: rows are looked at twice.
int copy_of_standard_input() {
  std::FILE* const copy = std::tmpfile();
  const int descriptor = copy == nullptr ? -1 : ::dup(::fileno(copy));
  const auto stop = [&](const char* what) {
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (copy != nullptr) std::fclose(copy);
    throw Error(ErrorKind::data, "standard input: " + std::string(what) + ": " + std::generic_category().message(code),
                "write the rows to a file and name that");
  };
  if (descriptor < 0) stop("cannot be kept in a temporary file");
  std::string piece(std::size_t{1} << 18, '\0');
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) stop("cannot be read");
    if (count == 0) break;
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = ::write(descriptor, piece.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno != EINTR) stop("cannot be kept in a temporary file");
      if (written > 0) done += written;
    }
  }
  std::fclose(copy);
  return descriptor;
}

std::string or_none(const std::string& name) {
  return name.empty() ? "none" : name;
}

/// "3, 7, 11, ... (12 in all)"
std::string first_few(const std::vector<std::int64_t>& some, std::int64_t all) {
  std::string words;
  for (const std::int64_t index : some) words += (words.empty() ? "" : ", ") + std::to_string(index);
  return all > static_cast<std::int64_t>(some.size()) ? words + ", ..." : words;
}

}  // namespace

/// What all rows have to have in common: that of the first one.
struct Merge::Common {
  std::optional<RowHead> first;
  std::string place, gpu_place;
  std::string gpu;  ///< of the first row that has one: a point may fail before its GPU is known
};

Merge::Merge(const std::vector<std::string>& paths, MergeOptions options) {
  try {
    Common common;
    for (const std::string& path : paths) {
      const bool standard_input = path == "-";
      files_.push_back({standard_input ? "standard input" : path,
                        standard_input ? copy_of_standard_input() : open_input(path, Pipes::refused)});
      read(static_cast<std::uint32_t>(files_.size() - 1), common, options);
    }
    if (!common.first)
      fail(files_.front().path, paths.size() == 1 ? "holds no row" : "no file holds a row",
           "give what `hbmscope sweep` wrote");
    put_in_order(common.first->points);
  } catch (...) {
    for (const File& file : files_) ::close(file.descriptor);
    throw;
  }
}

Merge::~Merge() {
  for (const File& file : files_) ::close(file.descriptor);
}

void Merge::read(std::uint32_t file, Common& common, const MergeOptions& options) {
  LineReader reader(files_[file].path, files_[file].descriptor);
  for (std::string_view line; reader.next(line);) {
    const RowHead head = read_row(line, reader.place());
    check_bytes_of_row(line, reader.place());
    if (!common.first) {
      common.first = head;
      common.place = reader.place();
    }
    const RowHead& first = *common.first;
    if (head.sweep_key != first.sweep_key || head.points != first.points) {
      fail(reader.place(), "is a row of another sweep than " + common.place,
           "give the shards of one sweep: the same options in the same order, and the same GPU files");
    }
    const auto refuse_mixed = [&](const std::string& what, const std::string& mine, const std::string& other,
                                  const std::string& place) {
      if (options.mixed || mine == other) return;
      fail(reader.place(), "has " + what + " " + or_none(mine) + ", and " + place + " has " + or_none(other),
           "compute the shards alike, or give --mixed if that is meant");
    };
    refuse_mixed("hbmscope", head.version + " (" + head.git + ")", first.version + " (" + first.git + ")",
                 common.place);
    refuse_mixed("the measuring GPU", head.device, first.device, common.place);
    if (!head.gpu_is_axis && !head.gpu.empty()) {
      if (common.gpu.empty()) {
        common.gpu = head.gpu;
        common.gpu_place = reader.place();
      }
      refuse_mixed("the GPU", head.gpu, common.gpu, common.gpu_place);
    }
    rows_.push_back({head.index, reader.offset(), reader.number(), file, static_cast<std::uint32_t>(line.size() + 1),
                     head.status == "failed"});
  }
  if (reader.torn_bytes() > 0) {
    throw Error(ErrorKind::data,
                files_[file].path + ": its last line, " + std::to_string(reader.number() + 1) + ", is torn",
                "its sweep was stopped: let it finish with --resume");
  }
}

void Merge::put_in_order(std::int64_t points) {
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.index < b.index; });
  std::vector<Row> kept;
  kept.reserve(rows_.size());
  for (const Row& row : rows_) {
    if (kept.empty() || kept.back().index != row.index) {
      kept.push_back(row);
    } else if (text_of(kept.back()) == text_of(row)) {
      ++duplicates_;
    } else {
      fail(place_of(row), "point " + std::to_string(row.index) + " is another row than at " + place_of(kept.back()),
           "the point was computed twice with different results; leave one of the files out");
    }
  }
  rows_ = std::move(kept);
  for (const Row& row : rows_) failed_ += row.failed ? 1 : 0;
  const std::int64_t missing = points - static_cast<std::int64_t>(rows_.size());
  if (missing == 0) return;
  constexpr std::size_t kShown = 5;
  std::vector<std::int64_t> some;
  auto next = rows_.begin();
  for (std::int64_t index = 0; index < points && some.size() < kShown; ++index) {
    if (next != rows_.end() && next->index == index) {
      ++next;
    } else {
      some.push_back(index);
    }
  }
  throw Error(
      ErrorKind::check,
      text::integer(missing) + " of " + text::integer(points) + " points are missing: " + first_few(some, missing),
      "give the files of all shards; one that was stopped goes on with --resume");
}

void Merge::write(const std::function<void(std::string_view)>& to) const {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string piece;
  for (const Row& row : rows_) {
    piece += text_of(row);
    if (piece.size() < kPiece) continue;
    to(piece);
    piece.clear();
  }
  to(piece);
}

std::string Merge::text_of(const Row& row) const {
  std::string text(row.bytes, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::pread(files_[row.file].descriptor, text.data() + got, text.size() - got,
                                  row.offset + static_cast<std::int64_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int code = count < 0 ? errno : 0;
      fail(place_of(row),
           code == 0 ? "has gone: the file was changed meanwhile"
                     : "cannot be read: " + std::generic_category().message(code),
           "merge again once nothing writes to the files");
    }
    got += static_cast<std::size_t>(count);
  }
  return text;
}

std::string Merge::place_of(const Row& row) const {
  return files_[row.file].path + ": line " + std::to_string(row.line);
}

}  // namespace hbmscope
