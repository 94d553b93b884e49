#include "plot/vega_lite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "plot/svg.hpp"

namespace hbmscope::plot {
namespace {

using Json = nlohmann::ordered_json;

Json value_of(const Number& number) {
  return std::visit([](auto value) { return Json(value); }, number);
}

Json axis(const char* field, const Axis& from) {
  if (!from.categories.empty()) {
    Json names = Json::array();
    for (const std::string& name : from.categories) names.push_back(clean(name));
    return {{"field", "of"}, {"type", "nominal"}, {"title", clean(from.title)}, {"sort", names}};
  }
  Json out{{"field", field}, {"type", "quantitative"}, {"title", clean(from.title)}};
  out["scale"] = {{"type", from.logarithmic ? "log" : "linear"}, {"zero", !from.logarithmic}};
  if (from.logarithmic && (from.unit == Unit::length || from.unit == Unit::binary_bytes)) out["scale"]["base"] = 2;
  if (from.logarithmic) out["scale"].erase("zero");
  out["axis"] = {{"format", "~s"}};
  return out;
}

Json colours(const char* field, const std::vector<std::string>& names, const std::vector<int>& indices) {
  Json range = Json::array();
  for (const int index : indices) range.push_back(colour(index).light);
  return {{"field", field}, {"type", "nominal"}, {"title", nullptr}, {"scale", {{"domain", names}, {"range", range}}}};
}

Json dash_of(Line line) {
  return line == Line::dashed ? Json{7, 4} : line == Line::dotted ? Json{2, 3} : Json{1, 0};
}

std::string shape_of(Shape shape) {
  constexpr std::array<const char*, 7> kNames{"circle",  "circle",        "square", "triangle-up",
                                              "diamond", "triangle-down", "cross"};
  return kNames[static_cast<std::size_t>(shape)];
}

void add_lines(Json& spec, const Chart& chart) {
  Json values = Json::array(), dashes = Json::array(), shapes = Json::array();
  std::vector<std::string> names;
  std::vector<int> indices;
  for (const Series& series : chart.series) {
    names.push_back(clean(series.name));
    indices.push_back(series.style.colour);
    dashes.push_back(dash_of(series.style.line));
    shapes.push_back(shape_of(series.style.shape));
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double x = as_double(series.x[i]), y = as_double(series.y[i]);
      if ((chart.x.logarithmic && !(x > 0)) || (chart.y.logarithmic && !(y > 0))) continue;
      Json row{{"series", names.back()}, {"x", value_of(series.x[i])}, {"y", value_of(series.y[i])}};
      if (i < series.labels.size()) row["of"] = clean(series.labels[i]);
      row["line"] = series.style.line != Line::none;
      row["mark"] = series.style.shape == Shape::none ? "none" : series.style.filled ? "full" : "hollow";
      values.push_back(std::move(row));
    }
  }
  const auto any = [&](const auto& holds) { return std::any_of(values.begin(), values.end(), holds); };
  // A layer without values would leave its axes without an extent.
  const bool with_lines = any([](const Json& row) { return row["line"] == true; });
  const bool with_full = any([](const Json& row) { return row["mark"] == "full"; });
  const bool with_hollow = any([](const Json& row) { return row["mark"] == "hollow"; });
  spec["data"] = {{"name", "values"}, {"values", std::move(values)}};
  const Json colour = colours("series", names, indices);
  const Json dash{
      {"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"scale", {{"domain", names}, {"range", dashes}}}};
  const Json shape{
      {"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"scale", {{"domain", names}, {"range", shapes}}}};
  Json tooltip = Json::array({{{"field", "series"}}, {{"field", "of"}}, {{"field", "x"}}, {{"field", "y"}}});
  const Json x = axis("x", chart.x), y = axis("y", chart.y);
  Json layers = Json::array();
  if (with_lines)
    layers.push_back({{"transform", {{{"filter", "datum.line"}}}},
                      {"mark", {{"type", "line"}, {"strokeWidth", 2}}},
                      {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"strokeDash", dash}}}});
  for (const bool full : {true, false}) {
    if (!(full ? with_full : with_hollow)) continue;
    layers.push_back({{"transform", {{{"filter", full ? "datum.mark == 'full'" : "datum.mark == 'hollow'"}}}},
                      {"mark", {{"type", "point"}, {"filled", full}, {"size", 45}}},
                      {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"shape", shape}, {"tooltip", tooltip}}}});
  }
  if (!chart.references.empty()) {
    Json references = Json::array();
    for (const Reference& one : chart.references) references.push_back({{"x", one.at}, {"label", clean(one.label)}});
    layers.push_back({{"data", {{"name", "marked"}, {"values", references}}},
                      {"mark", {{"type", "rule"}, {"color", "#999999"}, {"strokeDash", {2, 3}}}},
                      {"encoding", {{"x", x}, {"tooltip", {{"field", "label"}}}}}});
  }
  spec["layer"] = std::move(layers);
}

void add_bars(Json& spec, const Chart& chart) {
  Json values = Json::array(), rows = Json::array();
  std::vector<std::string> names;
  std::vector<int> indices;
  for (const Bar& bar : chart.bars) {
    const std::string row = clean(bar.group + ": " + bar.label);
    rows.push_back(row);
    std::int64_t order = 0;
    for (const Segment& segment : bar.segments) {
      if (std::find(names.begin(), names.end(), segment.name) == names.end()) {
        names.push_back(segment.name);
        indices.push_back(segment.colour);
      }
      values.push_back({{"row", row},
                        {"kind", bar.kind},
                        {"tensor", clean(segment.name)},
                        {"bytes", value_of(segment.value)},
                        {"order", order++}});
    }
  }
  for (std::string& name : names) name = clean(name);
  spec["data"] = {{"name", "values"}, {"values", std::move(values)}};
  spec["mark"] = {{"type", "bar"}};
  spec["encoding"] = {
      {"y",
       {{"field", "row"}, {"type", "nominal"}, {"sort", rows}, {"title", nullptr}, {"axis", {{"labelLimit", 300}}}}},
      {"x",
       {{"field", "bytes"},
        {"type", "quantitative"},
        {"aggregate", "sum"},
        {"title", clean(chart.x.title)},
        {"axis", {{"format", "~s"}}}}},
      {"color", colours("tensor", names, indices)},
      {"order", {{"field", "order"}, {"type", "quantitative"}}},
      {"tooltip", {{{"field", "row"}}, {{"field", "tensor"}}, {{"field", "bytes"}}}}};
}

void add_histogram(Json& spec, const Chart& chart) {
  Json values = Json::array();
  std::vector<std::string> names;
  std::vector<int> indices;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    names.push_back(clean(chart.series[s].name));
    indices.push_back(chart.series[s].style.colour);
    for (const Bin& bin : chart.bins) {
      if (bin.counts[s] == 0) continue;
      Json value{{"series", names.back()}, {"from", bin.from}, {"to", bin.to}, {"count", bin.counts[s]}};
      if (chart.side_by_side) {  // its part of the bin, in equal steps of the logarithm
        const double step = std::pow(bin.to / bin.from, 1 / static_cast<double>(chart.series.size()));
        value["left"] = bin.from * std::pow(step, static_cast<double>(s));
        value["right"] = bin.from * std::pow(step, static_cast<double>(s + 1));
      }
      values.push_back(std::move(value));
    }
  }
  spec["data"] = {{"name", "values"}, {"values", std::move(values)}};
  spec["mark"] = {{"type", "bar"}};
  Json x = axis(chart.side_by_side ? "left" : "from", chart.x);
  x["axis"] = {{"format", "~g"}};
  spec["encoding"] = {
      {"x", x},
      {"x2", {{"field", chart.side_by_side ? "right" : "to"}}},
      {"y",
       {{"field", "count"},
        {"type", "quantitative"},
        {"title", clean(chart.y.title)},
        {"stack", chart.side_by_side ? Json(nullptr) : Json("zero")}}},
      {"color", colours("series", names, indices)},
      {"tooltip", {{{"field", "series"}}, {{"field", "from"}}, {{"field", "to"}}, {{"field", "count"}}}}};
}

}  // namespace

Json to_vega_lite(const Chart& chart, std::string_view title) {
  const auto all_clean = [](const std::vector<std::string>& texts) {
    Json out = Json::array();
    for (const std::string& text : texts) out.push_back(clean(text));
    return out;
  };
  Json spec{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"}};
  Json subtitle = Json::array();
  for (const std::string& line : {std::string(title), chart.variant, "Boundary: " + chart.boundary}) {
    if (!line.empty()) subtitle.push_back(clean(line));
  }
  for (const Series& series : chart.series) {
    if (!series.note.empty()) subtitle.push_back(clean(series.name + ": " + series.note));
  }
  spec["title"] = {{"text", clean(chart.question)}, {"subtitle", subtitle}, {"anchor", "start"}};
  spec["description"] = clean(described(chart));
  spec["usermeta"] = {{"picture", chart.picture},
                      {"boundary", clean(chart.boundary)},
                      {"units", units_of(chart)},
                      {"commands", all_clean(chart.commands)},
                      {"notes", all_clean(chart.notes)}};
  spec["width"] = 640;
  if (chart.kind != Kind::bars) spec["height"] = 400;
  switch (chart.kind) {
    case Kind::lines:
      add_lines(spec, chart);
      break;
    case Kind::bars:
      add_bars(spec, chart);
      break;
    case Kind::histogram:
      add_histogram(spec, chart);
  }
  return spec;
}

}  // namespace hbmscope::plot
