#include "plot/tiles_animation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/version.hpp"
#include "plot/embedded_page.hpp"
#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "report/format.hpp"
#include "report/json_dump.hpp"
#include "report/run_document.hpp"
#include "scenario/batch_line.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope::plot {
namespace {

using nlohmann::ordered_json;

std::string_view tiles_file(std::string_view name) {
  const auto files = embedded_page_files();
  return std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) { return file.name == name; })->text;
}

/// "6 x 6 tiles of 128 x 128"
std::string tiles_words(const AttentionShape& s, std::int64_t block_q, std::int64_t block_kv) {
  const auto tiles = [](std::int64_t rows, std::int64_t block) { return (rows - 1) / block + 1; };
  return fmt::format("{} x {} tiles of {} queries x {} keys", text::integer(tiles(s.seqlen_q, block_q)),
                     text::integer(tiles(s.seqlen_kv, block_kv)), block_q, block_kv);
}

std::string_view l2_words(L2Holds holds) {
  switch (holds) {
    case L2Holds::as_given:
      return "the GPU's own, as nothing was scaled";
    case L2Holds::nothing:
      return "there is none";
    case L2Holds::half_of_kv:
      return "half of K and V, as in the whole shape, where K and V of the heads that run at one time do not fit it";
    case L2Holds::rows:
      return "K and V fit it and S and P do not, as in the whole shape";
    case L2Holds::everything:
      return "everything fits it, as in the whole shape";
  }
  return "";
}

std::string paragraph(const std::string& text) {
  return "<p>" + escaped(text) + "</p>\n";
}

std::string what_is_shown(const SmallTrace& t) {
  const RunRequest& r = t.trace.run.request;
  std::string out;
  if (t.small == t.full) {
    out += paragraph(fmt::format("Shape: {}: {}. It is shown whole.", shape_words(t.full, r.pass),
                                 tiles_words(t.full, t.block_q, t.block_kv)));
  } else {
    out += paragraph(
        fmt::format("Asked for: {}: {}.", shape_words(t.full, r.pass), tiles_words(t.full, t.block_q, t.block_kv)));
    out += paragraph(fmt::format("Shown, scaled down: {}: {}. The bytes below are of this shape.",
                                 shape_words(t.small, r.pass), tiles_words(t.small, t.block_q, t.block_kv)));
  }
  out += paragraph(
      fmt::format("The machine is scaled too: one SM that runs one CTA at a time, and an L2 of {}: {}. GPU: {}.",
                  text::binary_bytes(t.l2), l2_words(t.l2_holds), r.gpu.name));
  return out;
}

std::string total_row(const SmallSchedule& s, const Traffic& traffic, std::string_view words) {
  const ReadWrite sum = traffic.sum();
  const auto cell = [](Bytes bytes) { return fmt::format("<td>{}</td>", text::integer(bytes.value())); };
  return fmt::format(
      "<tr data-algorithm=\"{}\" data-boundary=\"{}\" data-bytes=\"{}\"><th scope=\"row\">{}, {}</th>{}{}{}</tr>\n",
      s.result->algorithm->name, name(traffic.boundary()), sum.total().value(), s.result->algorithm->name, words,
      cell(sum.read), cell(sum.write), cell(sum.total()));
}

std::string totals(const SmallTrace& t) {
  std::string rows;
  for (const SmallSchedule& s : t.schedules) {
    rows += total_row(s, s.l2_hbm, "through HBM");
    rows += total_row(s, s.sm_l2, "between SM and L2");
  }
  return "<div class=\"tiles-wide\" tabindex=\"0\"><table>\n<caption>Bytes at the end</caption>\n<thead><tr><th "
         "scope=\"col\">algorithm</th><th scope=\"col\">read, B</th><th scope=\"col\">write, B</th><th "
         "scope=\"col\">total, B</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody></table></div>\n";
}

/// The tensors of all schedules, in the order of the model, and the grid of tiles that each has in one schedule.
struct Grid {
  std::int64_t rows = 0, columns = 0;
  bool there = false;  ///< in HBM before the first event: an input, or what an earlier pass left, which is read first
};
using Grids = std::map<Tensor, Grid>;

Grids grids_of(const SmallSchedule& s) {
  Grids grids;
  for (const TileEvent& e : s.events) {
    const auto [at, first] = grids.try_emplace(e.tile.tensor);
    Grid& grid = at->second;
    if (first) grid.there = !e.store;
    grid.rows = std::max(grid.rows, e.tile.row + 1);
    grid.columns = std::max(grid.columns, e.tile.column + 1);
  }
  return grids;
}

ordered_json schedule_json(const SmallSchedule& s, const std::map<Tensor, std::size_t>& numbers) {
  ordered_json grids = ordered_json::array(), events = ordered_json::array();
  for (const auto& [tensor, grid] : grids_of(s))
    grids.push_back({numbers.at(tensor), grid.rows, grid.columns, grid.there ? 1 : 0});
  for (const TileEvent& e : s.events) {
    events.push_back({e.request ? 1 : 0, e.stage, numbers.at(e.tile.tensor), e.tile.row, e.tile.column, e.bytes.value(),
                      e.store ? 1 : 0, e.through_hbm ? 1 : 0, e.cta, e.step, e.first_of_step ? 1 : 0});
  }
  return {{"name", s.result->algorithm->name}, {"stages", s.stages}, {"l2_hbm", s.l2_hbm.total().value()},
          {"sm_l2", s.sm_l2.total().value()},  {"grids", grids},     {"events", events}};
}

/// Numbers and names of the model only, so nothing in it can end the element that it stands in.
std::string data_json(const SmallTrace& t, const Grids& all) {
  std::map<Tensor, std::size_t> numbers;
  ordered_json tensors = ordered_json::array(), algorithms = ordered_json::array();
  for (const auto& [tensor, grid] : all) {
    numbers.emplace(tensor, numbers.size());
    tensors.push_back({{"name", info(tensor).name}});
  }
  for (const SmallSchedule& s : t.schedules) algorithms.push_back(schedule_json(s, numbers));
  return json_dump(ordered_json{{"l2_bytes", t.l2.value()},
                                {"l2_words", text::binary_bytes(t.l2)},
                                {"tensors", tensors},
                                {"algorithms", algorithms}});
}

std::string tile_colours(const Grids& all) {
  std::string light, dark, rules;
  for (const auto& [tensor, grid] : all) {
    const std::string_view name = info(tensor).name;
    const Colour& c = colour(colour_of_tensor(name));
    light += fmt::format("--tile-{}: {}; ", name, c.light);
    dark += fmt::format("--tile-{}: {}; ", name, c.dark);
    rules += fmt::format(".tiles-of-{0} {{ --tile: var(--tile-{0}); }}\n", name);
  }
  // A page around it may have a theme of its own; paper is light.
  return fmt::format(
      ".tiles {{ {0}}}\n@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) .tiles {{ {1}}} }}\n"
      ":root[data-theme=dark] .tiles {{ {1}}}\n@media print {{ :root:root:root .tiles {{ {0}}} }}\n{2}",
      light, dark, rules);
}

std::string controls() {
  constexpr std::array<std::array<std::string_view, 2>, 5> kButtons{
      {{"start", "Start"}, {"back", "Step back"}, {"play", "Play"}, {"step", "Step"}, {"end", "End"}}};
  std::string out = "<div class=\"tiles-controls\" hidden>\n";
  for (const auto& [name, label] : kButtons)
    out += fmt::format("<button type=\"button\" data-tiles=\"{}\">{}</button>\n", name, label);
  out +=
      "<label>Event <input type=\"range\" data-tiles=\"place\" min=\"0\" value=\"0\"> <span "
      "data-tiles=\"place-words\"></span></label>\n"
      "<label>Speed <input type=\"range\" data-tiles=\"speed\" min=\"1\" max=\"40\" value=\"8\"> <span "
      "data-tiles=\"speed-words\"></span></label>\n"
      "</div>\n"
      "<p class=\"tiles-controls tiles-keys\" hidden>Keys: <kbd>Space</kbd> or <kbd>P</kbd> play and pause, "
      "<kbd>&larr;</kbd> "
      "<kbd>&rarr;</kbd> step, <kbd>Home</kbd> <kbd>End</kbd>, <kbd>+</kbd> <kbd>-</kbd> speed.</p>\n"
      "<p role=\"status\" data-tiles=\"said\"></p>\n";
  return out;
}

constexpr std::string_view kLegend =
    "A full square lies in HBM, a square with a ring of its colour in L2; what moves now has a thick frame. A dashed "
    "tile in L2 "
    "has not been written to HBM yet. Tiles leave L2 in the order of their last use; at the end what is left is "
    "written back.";

}  // namespace

std::string tiles_animation(const SmallTrace& t) {
  Grids all;
  for (const SmallSchedule& s : t.schedules) all.merge(grids_of(s));
  return fmt::format(
      "<style>\n{}{}</style>\n<section class=\"tiles\" id=\"tiles\" aria-label=\"Tiles moving between HBM, L2 and "
      "SRAM\" "
      "tabindex=\"0\">\n<h2>Tiles on their way</h2>\n{}{}{}<div class=\"tiles-panels\"></div>\n<noscript><p>Without "
      "scripts there is no animation; the table has its end.</p></noscript>\n{}<script type=\"application/json\" "
      "class=\"tiles-data\">{}</script>\n</section>\n<script>\n{}</script>\n",
      tiles_file("tiles_animation.css"), tile_colours(all), what_is_shown(t), paragraph(std::string(kLegend)),
      controls(), totals(t), data_json(t, all), tiles_file("tiles_animation.js"));
}

std::string tiles_animation(const Result& result) {
  try {
    if (!result.shape) throw Error(ErrorKind::data, "the result has no shape");
    RunRequest request;
    request.shape = *result.shape;
    request.pass = result.pass;
    request.gpu = embedded_gpu(result.gpu.name);  // a name in a file opens no other file
    if (result.gpu.l2_effective_bytes) request.l2 = Bytes(*result.gpu.l2_effective_bytes);
    const ResultAlgorithm* const flash = result.find("flash_v2");
    if (flash != nullptr && !flash->plan.empty()) {
      const TilePlan plan = plan_from_json(nlohmann::json::parse(flash->plan), result.where, "/algorithms/plan");
      request.plan.block_q = plan.block_q;
      request.plan.block_kv = plan.block_kv;
    }
    return tiles_animation(small_trace(request));
  } catch (const Error& error) {
    return paragraph(fmt::format("No animation of tiles: {}.", error.what()));
  }
}

std::string tiles_animation_page(const SmallTrace& t) {
  const std::string title =
      escaped(fmt::format("hbmscope: tiles of {}", shape_words(t.full, t.trace.run.request.pass)));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n"
      "<title>{}</title>\n<style>body {{ margin: 0; }} @media screen and (prefers-color-scheme: dark) {{ body {{ "
      "background: #15181c; }} }} .tiles {{ padding: 0.5rem 1rem 2rem; }}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "<!-- hbmscope {} ({}) -->\n</body>\n</html>\n",
      title, tiles_animation(t), hbmscope_version(), hbmscope_git_revision());
}

}  // namespace hbmscope::plot
