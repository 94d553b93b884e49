#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace hbmscope::plot {

/// A colour on a light page, and the one that takes its place on a dark page.
struct Colour {
  std::string_view light, dark;
};

/// After Okabe and Ito: told apart by all common kinds of colour blindness. Yellow and light orange, too pale for lines
/// on white, are darker here.
inline constexpr std::array<Colour, 10> kPalette{{{"#c44e00", "#ff8a3d"},    // vermilion
                                                  {"#8a6400", "#e0b040"},    // gold
                                                  {"#0063a6", "#5ab4f0"},    // blue
                                                  {"#00805d", "#35cfa0"},    // green
                                                  {"#a8437f", "#f0a0cc"},    // purple
                                                  {"#4f46a5", "#a99bf0"},    // violet
                                                  {"#1d8fbf", "#8fd0ff"},    // sky
                                                  {"#5f5f5f", "#b5b5b5"},    // grey
                                                  {"#1a1a1a", "#f0f0f0"},    // ink
                                                  {"#6b6b00", "#c9c94a"}}};  // olive
inline constexpr int kGrey = 7, kInk = 8;

constexpr const Colour& colour(int index) {
  return kPalette[static_cast<std::size_t>(index) % kPalette.size()];
}

/// An algorithm has the same colour in every picture; one that this program does not know is grey.
int colour_of_algorithm(std::string_view name);
/// So has a tensor.
int colour_of_tensor(std::string_view name);

}  // namespace hbmscope::plot
