#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plot/chart.hpp"
#include "plot/plot_data.hpp"

namespace hbmscope::plot {

/// The charts of one picture, or the reason why the data cannot give it.
struct Drawn {
  std::vector<Chart> charts;  ///< several where results differ in more than one picture shows: one each
  std::string reason;
};

struct Picture {
  std::string_view name;
  std::string_view question;
  std::string_view needs;  ///< what results must have
  Drawn (*draw)(const PlotData& data);
};

/// All pictures, in the order of a page: what `plot --list`, its help, docs/plots.md and the tests read.
std::span<const Picture> pictures();
/// The charts of a picture; an Error of the model, such as a count beyond 64 bits, is the reason why there are none.
Drawn drawn_of(const Picture& picture, const PlotData& data);
/// The picture of that name, or an Error (kind usage) with the nearest names.
const Picture& picture(std::string_view name);

/// More charts than these of one picture are not drawn; a note says so.
inline constexpr std::size_t kMostCharts = 60;

// One function a picture, each in a file of its own.
Drawn draw_traffic(const PlotData& data);
Drawn draw_agreement(const PlotData& data);
Drawn draw_roofline(const PlotData& data);
Drawn draw_sweep(const PlotData& data);
Drawn draw_sram(const PlotData& data);
Drawn draw_memory(const PlotData& data);
Drawn draw_amdahl(const PlotData& data);
Drawn draw_error(const PlotData& data);

}  // namespace hbmscope::plot
