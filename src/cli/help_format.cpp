#include "cli/help_format.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace hbmscope {
namespace {

/// Breaks at blanks; CLI11 itself indents what follows a line feed.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), kHelpWidth - get_column_width());
  }
  /// Which options exclude each other is part of their descriptions.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string all = CLI::Formatter::make_option_opts(option);
    return all.substr(0, all.find(" " + get_label("Excludes") + ":"));
  }
};

}  // namespace

void wrap_help(CLI::App& command) {
  command.formatter(std::make_shared<HelpFormatter>());
}

}  // namespace hbmscope
