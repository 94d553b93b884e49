#include "cli/softmax_text.hpp"

#include <limits>
#include <string_view>

#include "cli/typed_options.hpp"
#include "core/error.hpp"
#include "core/parse.hpp"

namespace hbmscope {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Vector parse_numbers(const std::string& text, const char* option, bool masked_allowed) {
  Vector numbers;
  for (const std::string& part : split_list(text)) {
    const std::string_view number = trimmed(part);
    const bool masked = masked_allowed && (number == "-inf" || number == "-Inf" || number == "-INF");
    numbers.push_back(masked ? -std::numeric_limits<double>::infinity() : parse_real(number, option));
  }
  return numbers;
}

}  // namespace

SoftmaxInput parse_softmax(const std::string& scores, const std::string& values) {
  SoftmaxInput input;
  for (const std::string& block : split_list(scores, '|')) {
    // The model refuses an empty block, in words of its own.
    input.blocks.push_back(trimmed(block).empty() ? Vector() : parse_numbers(block, "--scores", true));
  }
  if (values.find(';') == std::string::npos) {
    for (const double value : parse_numbers(values, "--values", false)) input.values.push_back({value});
    return input;
  }
  for (const std::string& row : split_list(values, ';')) input.values.push_back(parse_numbers(row, "--values", false));
  if (input.values[0].size() > kMaxSoftmaxWidth) {
    throw Error(ErrorKind::usage,
                "--values: a row holds at most " + std::to_string(kMaxSoftmaxWidth) + " numbers, got " +
                    std::to_string(input.values[0].size()),
                "the columns of V do not depend on each other: take a few of them");
  }
  return input;
}

}  // namespace hbmscope
