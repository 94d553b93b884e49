#include "plot/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/version.hpp"
#include "plot/embedded_page.hpp"
#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "plot/pictures.hpp"
#include "plot/svg.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

std::string_view page_file(std::string_view name) {
  const auto files = embedded_page_files();
  return std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) { return file.name == name; })->text;
}

/// The colours of series: the SVG's own on a light page, the dark ones of palette.hpp on a dark one.
std::string palette_rules() {
  std::string light, dark, rules;
  for (std::size_t i = 0; i < kPalette.size(); ++i) {
    light += fmt::format("--c{}:{};", i, kPalette[i].light);
    dark += fmt::format("--c{}:{};", i, kPalette[i].dark);
    rules += fmt::format(".c{0}{{stroke:var(--c{0});fill:var(--c{0})}}.b{0}{{fill:var(--c{0})}}", i);
  }
  return fmt::format(
      ":root{{{}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{}}}}}\n"
      ":root[data-theme=dark]{{{}}}\n@media print{{:root:root:root{{{}}}}}\n{}\n",
      light, dark, dark, light, rules);
}

std::string paragraph(std::string_view kind, std::string_view label, std::string_view text) {
  return fmt::format("<p class=\"{}\"><b>{}</b> {}</p>\n", kind, label, escaped(text));
}

std::string table_of(const Chart& chart) {
  const Table& table = chart.table;
  std::string out = fmt::format(
      "<details class=\"numbers\"><summary>The numbers as a table ({} rows)</summary>\n<div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Table: {}\"><table>\n<thead><tr>",
      text::integer(static_cast<std::int64_t>(table.rows.size())), escaped(chart.question));
  for (const std::string& head : table.head) out += "<th scope=\"col\">" + escaped(head) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    // End tags that HTML lets go are left out: a sweep has ten thousand rows.
    out += "<tr>";
    bool first = true;
    for (const Cell& cell : row) {
      out += first ? "<th scope=row>" : "<td>";
      first = false;
      if (const auto* words = std::get_if<std::string>(&cell)) out += escaped(*words);
      if (const auto* number = std::get_if<Number>(&cell)) out += exact(*number);
    }
    out += '\n';
  }
  return out + "</table></div></details>\n";
}

std::string exponents_of(const Chart& chart) {
  std::string rows;
  for (const Series& series : chart.series) {
    if (series.note.find('^') != std::string::npos)
      rows += "<li>" + escaped(series.name) + ": <b>" + escaped(series.note) + "</b></li>";
  }
  return rows.empty() ? "" : "<ul class=\"fits\">" + rows + "</ul>\n";
}

std::string figure(const Chart& chart, const std::string& id, bool hidden) {
  std::string out = fmt::format("<figure id=\"{}\"{}>\n", id, hidden ? " hidden" : "");
  out += fmt::format(
      "<div class=\"toggles\" role=\"group\" aria-label=\"What is shown\"></div>\n"
      "<div class=\"chart\" tabindex=\"0\" role=\"group\" aria-label=\"Chart: {}. Arrow keys move between marks.\">\n",
      escaped(chart.question));
  out += to_inline_svg(chart, id + "-svg");
  out += "</div>\n<output class=\"readout\" aria-live=\"polite\"></output>\n<figcaption>\n";
  out += exponents_of(chart);
  out += paragraph("fact", "Boundary:", chart.boundary);
  out += paragraph("fact", "Units:", units_of(chart));
  for (const std::string& note : chart.notes) out += paragraph("note", "", note);
  for (const std::string& command : chart.commands)
    out += "<p class=\"fact\"><b>Data:</b> <code>" + escaped(command) + "</code></p>\n";
  return out + "</figcaption>\n" + table_of(chart) + "</figure>\n";
}

/// Charts of one picture, of which one is shown: the first of the largest shape.
std::string section(const Picture& picture, const Drawn& drawn) {
  const auto smaller = [](const Chart& a, const Chart& b) { return a.size < b.size; };
  const auto shown = static_cast<std::size_t>(std::max_element(drawn.charts.begin(), drawn.charts.end(), smaller) -
                                              drawn.charts.begin());
  std::string out = fmt::format("<section id=\"{}\" aria-labelledby=\"{}-h\">\n<h2 id=\"{}-h\">{}</h2>\n", picture.name,
                                picture.name, picture.name, escaped(picture.question));
  if (drawn.charts.size() > 1) {
    out += fmt::format("<p class=\"pick\"><label for=\"{}-pick\">Of</label> <select id=\"{}-pick\">", picture.name,
                       picture.name);
    for (std::size_t i = 0; i < drawn.charts.size(); ++i)
      out += fmt::format(
          "<option value=\"{}-{}\"{}>{}</option>", picture.name, i, i == shown ? " selected" : "",
          escaped(drawn.charts[i].variant.empty() ? fmt::format("result {}", i + 1) : drawn.charts[i].variant));
    out += "</select></p>\n";
  } else if (!drawn.charts[0].variant.empty()) {
    out += "<p class=\"pick\">Of " + escaped(drawn.charts[0].variant) + "</p>\n";
  }
  for (std::size_t i = 0; i < drawn.charts.size(); ++i)
    out += figure(drawn.charts[i], fmt::format("{}-{}", picture.name, i), i != shown);
  return out + "</section>\n";
}

/// What the page is of: how many results, of which GPUs.
std::string summary(const PlotData& data) {
  std::vector<std::string> gpus;
  for (const Result& r : data.results()) {
    if (std::find(gpus.begin(), gpus.end(), r.gpu.name) == gpus.end()) gpus.push_back(r.gpu.name);
  }
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(gpus.size(), 5); ++i) names += (i == 0 ? "" : ", ") + gpus[i];
  if (gpus.size() > 5) names += fmt::format(" and {} more", gpus.size() - 5);
  const std::size_t count = data.results().size();
  return fmt::format("{} result{}, GPU: {}. ", text::integer(static_cast<std::int64_t>(count)), count == 1 ? "" : "s",
                     names) +
         (count == 1 ? data.label(0, {"seqlen", "head_dim", "batch", "heads", "dtype", "mask", "pass"}) + "." : "");
}

}  // namespace

std::string to_html_page(const PlotData& data, const PageOptions& options) {
  const std::string title = escaped(options.title.empty() ? "Where the bytes of attention go" : options.title);
  std::string nav, sections, missing;
  for (const Picture& picture : pictures()) {
    const Drawn drawn = drawn_of(picture, data);
    if (drawn.charts.empty()) {
      missing += fmt::format("<li><b>{}</b>: {}</li>\n", escaped(picture.question), escaped(drawn.reason));
      continue;
    }
    nav += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", picture.name, escaped(picture.question));
    sections += section(picture, drawn);
  }
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Nothing but what is in the file: no network, and no code of anybody else.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"generator\" content=\"hbmscope {}\">\n<title>{}</title>\n<style>\n",
      escaped(hbmscope_version()), title);
  page += page_file("page.css");
  page += palette_rules();
  page += fmt::format("</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n<p>{}</p>\n", title, escaped(summary(data)));
  for (const std::string& note : data.notes()) page += paragraph("note", "", note);
  page +=
      "<button id=\"theme\" type=\"button\" hidden>Dark or light</button>\n</header>\n<nav "
      "aria-label=\"Pictures\"><ol>\n" +
      nav + "</ol></nav>\n<main>\n" + sections;
  if (!missing.empty())
    page += "<section id=\"missing\"><h2>What these data cannot show</h2>\n<ul>\n" + missing + "</ul></section>\n";
  page += options.appendix;
  page += fmt::format("</main>\n<footer>hbmscope {} ({})</footer>\n<script>\n", escaped(hbmscope_version()),
                      escaped(hbmscope_git_revision()));
  page += page_file("page.js");
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace hbmscope::plot
