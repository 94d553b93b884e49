#include "cli/batch_stream.hpp"

#include "core/error.hpp"
#include "report/batch_writer.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {

void BatchStream::feed(std::string_view piece, std::string& output) {
  while (!piece.empty() && !endless_) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) return append_rest(piece, output);
    const std::string_view here = piece.substr(0, end);
    if (rest_.empty() && skipped_ == 0) {
      end_line(here, output);
    } else {
      append_rest(here, output);
      if (!endless_) end_line(rest_, output);
    }
    rest_.clear();
    skipped_ = 0;
    piece.remove_prefix(end + 1);
  }
}

void BatchStream::finish(std::string& output) {
  if (endless_ || (rest_.empty() && skipped_ == 0)) return;
  end_line(rest_, output);
  rest_.clear();
  skipped_ = 0;
}

void BatchStream::append_rest(std::string_view text, std::string& output) {
  if (skipped_ == 0 && rest_.size() + text.size() <= kMaxLineBytes) {
    rest_ += text;
    return;
  }
  skipped_ += rest_.size() + text.size();
  rest_.clear();
  if (skipped_ < kEndlessBytes) return;
  endless_ = true;
  ++number_;
  ++lines_;
  fail("the line has no end within 1 GiB, and nothing after it is read", "is this a device, or a binary file?", output);
}

void BatchStream::end_line(std::string_view line, std::string& output) {
  ++number_;
  if (skipped_ > 0 || line.size() > kMaxLineBytes) {
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
