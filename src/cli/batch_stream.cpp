#include "cli/batch_stream.hpp"

#include "core/error.hpp"
#include "report/batch_writer.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {

void BatchStream::feed(std::string_view piece, std::string& output) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) return append_rest(piece);
    const std::string_view here = piece.substr(0, end);
    if (rest_.empty() && !too_long_) {
      end_line(here, output);
    } else {
      append_rest(here);
      end_line(rest_, output);
    }
    rest_.clear();
    too_long_ = false;
    piece.remove_prefix(end + 1);
  }
}

void BatchStream::finish(std::string& output) {
  if (rest_.empty() && !too_long_) return;
  end_line(rest_, output);
  rest_.clear();
  too_long_ = false;
}

void BatchStream::append_rest(std::string_view text) {
  if (rest_.size() + text.size() > kMaxLineBytes) {
    too_long_ = true;
    rest_.clear();
  }
  if (!too_long_) rest_ += text;
}

void BatchStream::end_line(std::string_view line, std::string& output) {
  ++number_;
  if (too_long_ || line.size() > kMaxLineBytes) {
    ++lines_;
    return fail("the line is longer than 1 MiB, the most that is read", "one JSON object a line: are there line feeds?",
                output);
  }
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  ++lines_;
  try {
    const BatchLine given = parse_batch_line(line);
    append_batch_line(output, given.shape_json, given.algorithm, given.plan_json,
                      batch_figures(given.shape, given.algorithm, given.plan));
  } catch (const Error& error) {
    fail(error.what(), error.hint(), output);
  }
}

void BatchStream::fail(std::string_view message, std::string_view hint, std::string& output) {
  ++failed_;
  append_batch_error(output, message, hint, number_);
}

}  // namespace hbmscope
