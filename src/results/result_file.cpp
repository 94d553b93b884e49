#include "results/result_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/input_file.hpp"
#include "scenario/fields.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kResultFileMark = "\xEF\xBB\xBF";

/// ResultLines of a file or of standard input, each at most kMaxJsonBytes.
class ResultLines {
 public:
  explicit ResultLines(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path != "-") descriptor_ = open_input(path, Pipes::taken);
  }
  ~ResultLines() {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }
  ResultLines(const ResultLines&) = delete;
  ResultLines& operator=(const ResultLines&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t number() const { return number_; }

  /// The next line, without what ends it. False at the end.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    while (true) {
      if (used_ == filled_ && !fill()) return !line.empty();
      const char* const from = buffer_.data() + used_;
      const char* const end = buffer_.data() + filled_;
      const char* const newline = std::find(from, end, '\n');
      line.append(from, newline);
      used_ = static_cast<std::size_t>(newline - buffer_.data());
      if (line.size() > kMaxJsonBytes) {
        throw Error(ErrorKind::data,
                    name_ + ": line " + std::to_string(number_) + ": is longer than " +
                        std::to_string(kMaxJsonBytes >> 20) + " MiB, the most that is read",
                    "a result takes a few kB: is this a file of results?");
      }
      if (newline == end) continue;
      ++used_;
      return true;
    }
  }

 private:
  bool fill() {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      throw Error(ErrorKind::data, name_ + ": cannot be read: " + std::generic_category().message(errno),
                  "give a file, or - for standard input");
    }
    used_ = 0;
    filled_ = static_cast<std::size_t>(count);
    return count > 0;
  }

  std::string name_;
  int descriptor_ = STDIN_FILENO;
  std::array<char, 1 << 16> buffer_;
  std::size_t used_ = 0, filled_ = 0, number_ = 0;
};

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// Do all brackets that this line opens close on it, texts left aside? Then it is one of many, else the start of a
/// document.
bool is_whole(std::string_view line) {
  std::int64_t open = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      ++open;
    } else if (c == '}' || c == ']') {
      --open;
    }
  }
  return open == 0 && !in_text;
}

using TakeResult = std::function<void(Result&&)>;

/// With the place before the words of readers that know none.
[[noreturn]] void fail_at(const std::string& where, const Error& error) {
  const std::string message = error.what();
  if (message.starts_with(where)) throw error;
  throw Error(error.kind(), where + ", " + message, error.hint());
}

Result placed_result(const nlohmann::json& document, std::string where) {
  try {
    return result_from_json(document, where);
  } catch (const Error& error) {
    fail_at(where, error);
  }
}

/// A result, or all those of `scenario run --json`. Returns how many.
std::size_t take_document(const nlohmann::json& document, const std::string& where, const TakeResult& take) {
  if (!document.is_object() || !document.contains("scenario") || !document.contains("runs")) {
    take(placed_result(document, where));
    return 1;
  }
  const nlohmann::json& runs = document["runs"];
  if (!runs.is_array()) Fields(document, where).fail("runs", "must be a list, got " + describe(runs));
  std::size_t index = 0;
  for (const nlohmann::json& run : runs) {
    const std::string place = where + ": /runs/" + std::to_string(index++);
    Result result = placed_result(run, place);
    result.run = Fields(run, place).optional_string("name").value_or("");
    take(std::move(result));
  }
  return index;
}

/// One line of many. The parser counts lines from its own first, so it is told no name and gives the column alone.
std::size_t take_line(std::string_view line, const std::string& where, const TakeResult& take) {
  nlohmann::json document;
  try {
    document = parse_json(line, "");
  } catch (const Error& error) {
    fail_at(where, error);
  }
  return take_document(document, where, take);
}

/// The rest of a file that begins with `text`, as one document.
std::size_t take_rest(ResultLines& lines, std::string text, const TakeResult& take) {
  for (std::string line; lines.next(line);) {
    text += '\n';
    text += line;
    if (text.size() > kMaxJsonBytes) break;  // refused by the parser, in its words
  }
  return take_document(parse_json(text, lines.name()), lines.name(), take);
}

}  // namespace

std::size_t read_results(const std::string& path, const std::function<void(Result&&)>& take) {
  ResultLines lines(path);
  std::size_t count = 0;
  for (std::string line; lines.next(line);) {
    if (lines.number() == 1 && line.starts_with(kResultFileMark)) line.erase(0, kResultFileMark.size());
    if (is_blank_line(line)) continue;
    if (count == 0 && !is_whole(line)) {
      const std::string above(lines.number() - 1, '\n');  // so that lines are counted as the file has them
      count = take_rest(lines, above + line, take);
      break;
    }
    count += take_line(line, lines.name() + ": line " + std::to_string(lines.number()), take);
  }
  if (count == 0) {
    throw Error(ErrorKind::data, lines.name() + ": holds no result",
                "results are what `hbmscope run --json FILE` and `hbmscope sweep` write");
  }
  return count;
}

std::vector<Result> read_results(const std::string& path) {
  std::vector<Result> all;
  read_results(path, [&](Result&& one) { all.push_back(std::move(one)); });
  return all;
}

}  // namespace hbmscope
