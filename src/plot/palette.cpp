#include "plot/palette.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace hbmscope::plot {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 8> kAlgorithms{{{"naive", 0},
                                                                       {"flash_v1", 1},
                                                                       {"flash_v2", 2},
                                                                       {"flash_v3", 3},
                                                                       {"split_kv", 4},
                                                                       {"naive_bwd", 0},
                                                                       {"flash_v1_bwd", 1},
                                                                       {"flash_v2_bwd", 2}}};
/// Neighbours in a bar differ; a gradient has its tensor's colour.
constexpr std::array<std::pair<std::string_view, int>, 27> kTensors{
    {{"Q", 2},    {"K", 6},      {"V", 3},     {"O", 1},  {"Kx", 5},    {"Vx", 4},   {"S", 0},
     {"P", 4},    {"Pd", 5},     {"dmask", 7}, {"l", 7},  {"m", 8},     {"LSE", 9},  {"Otmp", 5},
     {"Oacc", 5}, {"LSEacc", 8}, {"dO", 1},    {"dQ", 2}, {"dK", 6},    {"dV", 3},   {"dKx", 5},
     {"dVx", 4},  {"dP", 4},     {"dS", 0},    {"D", 7},  {"dQtmp", 5}, {"dQacc", 5}}};

int look_up(std::span<const std::pair<std::string_view, int>> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
  return found == table.end() ? kGrey : found->second;
}

}  // namespace

int colour_of_algorithm(std::string_view name) {
  return look_up(kAlgorithms, name);
}
int colour_of_tensor(std::string_view name) {
  return look_up(kTensors, name);
}

}  // namespace hbmscope::plot
