#pragma once
#include <string>
#include <string_view>

namespace hbmscope::lesson {

/// Markdown for a terminal: paragraphs, lists and quotes wrapped at `width`, tables aligned, code as it stands,
/// headings and strong words bold where `bold`.
std::string to_terminal(std::string_view markdown, int width, bool bold);

}  // namespace hbmscope::lesson
