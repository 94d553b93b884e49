#include "plot/text_width.hpp"

#include <array>
#include <cstdint>

#include "core/utf8.hpp"

namespace hbmscope::plot {
namespace {

/// Advance widths of DejaVu Sans for ' ' to '~', in thousandths of the font size.
constexpr std::array<std::uint16_t, 95> kWidths{
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr double kOtherWidth = 1000;  ///< of a character outside ASCII; CJK takes as much

std::size_t character_length(std::string_view text) {
  const std::size_t length = utf8_length(text);
  return length == 0 ? 1 : length;
}

double thousandths(std::string_view character) {
  const char c = character[0];
  return c >= ' ' && c <= '~' ? kWidths[static_cast<std::size_t>(c - ' ')] : kOtherWidth;
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  double sum = 0;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    sum += thousandths(text.substr(0, length));
    text.remove_prefix(length);
  }
  return sum * size / 1000 * (bold ? 1.12 : 1);
}

std::vector<std::string> wrapped(std::string_view text, double size, double width) {
  std::vector<std::string> lines;
  std::string line;
  double used = 0;
  std::size_t last_blank = std::string::npos;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    used += thousandths(character) * size / 1000;
    if (used > width && !line.empty() && character != " ") {
      const bool at_blank = last_blank != std::string::npos && last_blank > 0;
      std::string rest = at_blank ? line.substr(last_blank + 1) : "";
      lines.push_back(at_blank ? line.substr(0, last_blank) : line);
      line = std::move(rest);
      used = text_width(line, size) + thousandths(character) * size / 1000;
      last_blank = std::string::npos;
    }
    if (character == " ") last_blank = line.size();
    line += character;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  std::string out;
  double used = kOtherWidth * size / 1000;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    used += thousandths(text.substr(0, length)) * size / 1000;
    if (used > width) break;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out + "\xE2\x80\xA6";
}

}  // namespace hbmscope::plot
