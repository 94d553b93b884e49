#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// A chart as data: what there is to see, and nothing of how it is drawn. The SVG, the Vega-Lite spec and the table
/// under a picture are written from the same chart, so they cannot differ.
namespace hbmscope::plot {

/// A number as the file has it: whole numbers keep every digit.
using Number = std::variant<std::int64_t, double>;
double as_double(const Number& number);
std::string exact(const Number& number);  ///< as JSON writes it

enum class Unit : std::uint8_t {
  bytes,         ///< kB, MB: powers of 1000
  binary_bytes,  ///< KiB, MiB: sizes of memories
  flop_rate,     ///< FLOP/s
  intensity,     ///< FLOP/B
  length,        ///< rows of a sequence; k = 1024
  plain,         ///< a number without a unit
};
struct Axis;
std::string tick_text(double value, Unit unit);
std::string tick_text(double value, const Axis& axis);  ///< its category where it has some
std::string_view unit_name(Unit unit);                  ///< "B", "FLOP/s", ...; "" for a number without one

struct Axis {
  std::string title;
  Unit unit = Unit::plain;
  bool logarithmic = true;
  std::vector<std::string> categories = {};  ///< names of the values 1, 2, ...; none: it is a number
};

enum class Line : std::uint8_t { none, solid, dashed, dotted };
enum class Shape : std::uint8_t { none, circle, square, triangle, diamond, wedge, cross };

/// How a series is told apart: by colour and, for whoever sees none, by dashes, shape and filling.
struct Style {
  int colour = 0;  ///< in palette.hpp
  Line line = Line::solid;
  Shape shape = Shape::circle;
  bool filled = true;  ///< measured marks are hollow
  bool small = false;  ///< of marks of the same algorithm at another boundary
};

/// Points in the order in which a line joins them.
struct Series {
  std::string name;
  std::string note;  ///< what stands under the name in the legend: an exponent
  Style style;
  std::vector<Number> x, y;              ///< of equal number
  std::vector<std::string> labels = {};  ///< what a mark is of; none, or one a mark
};

/// A value that is marked on the x axis, by a line from top to bottom.
struct Reference {
  double at;
  std::string label;
};

struct Segment {
  std::string name;  ///< of a tensor
  Number value;
  int colour;
  bool hatched = false;  ///< bytes that nobody can tell the tensor of
};
struct Bar {
  std::string group, label;
  std::string kind;  ///< "predicted" or "measured": what a reader may hide
  std::vector<Segment> segments;
  Number total;
  std::optional<Number> least, most;  ///< of the total
};

struct Bin {
  double from, to;
  std::vector<std::int64_t> counts;  ///< one a series, whose x and y are empty
};

using Cell = std::variant<std::monostate, std::string, Number>;
struct Table {
  std::vector<std::string> head;  ///< with the unit of each column of numbers
  std::vector<std::vector<Cell>> rows;
  bool by_series = false;  ///< a column for x and then one a series, so that a page's script finds its values there
};

enum class Kind : std::uint8_t { bars, lines, histogram };

struct Chart {
  std::string picture;                ///< its name in the table of pictures
  std::string variant;                ///< which of several charts of one picture: "d 64, causal"; may be empty
  double size = 0;                    ///< queries times keys of its largest result: a page opens on the largest
  std::string question;               ///< what it answers
  std::string boundary;               ///< between which levels of memory the bytes pass
  std::vector<std::string> commands;  ///< that made the data
  std::vector<std::string> notes;     ///< sentences: what is missing, what a dash means
  Kind kind = Kind::lines;
  Axis x, y;
  std::vector<Series> series;         ///< lines: the lines; histogram: names and colours
  std::vector<Reference> references;  ///< lines only
  std::vector<Bar> bars;              ///< bars only: `x` is their axis
  std::vector<Bin> bins;              ///< histogram only: `y` counts
  bool side_by_side = false;          ///< histogram only: series share a bin's width; else they are stacked
  Table table;
};

}  // namespace hbmscope::plot
