#include "sweep/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/split_list.hpp"
#include "core/suggest.hpp"
#include "report/format.hpp"

namespace hbmscope {
namespace {

constexpr const char* kHowToWriteRanges = "write 1k:64k:x2 for factors, 64:256:64 for steps";

/// All values of an axis are held in memory, its points are not.
constexpr std::int64_t kMostValues = 1'000'000;

/// Reads the texts of one option.
class Reader {
 public:
  Reader(const std::string& option, AxisKind kind, std::int64_t most)
      : option_(option), kind_(kind), most_(std::min(most, kMostValues)) {}

  void read(const std::string& text) {
    if (kind_ == AxisKind::switches && text.empty()) return add(value_of("on"));  // the option alone
    if (kind_ == AxisKind::lists) return add({text, AxisValue::Type::text});
    if (kind_ == AxisKind::windows && text.find(',') != std::string::npos) return add({text, AxisValue::Type::text});
    for (const std::string& part : split_list(text, ',')) {
      if (part.empty())
        fail("a list with nothing between two commas, or at an end: " + in_quotes(text), "write it without the comma");
      if (is_numeric() && part.find(':') != std::string::npos) {
        read_range(part);
      } else {
        add(value_of(part));
      }
    }
  }
  [[nodiscard]] std::vector<AxisValue> take() { return std::move(values_); }

 private:
  [[noreturn]] void fail(const std::string& rest, const std::string& hint) const {
    throw Error(ErrorKind::usage, option_ + ": " + rest, hint);
  }

  [[nodiscard]] bool is_numeric() const {
    return kind_ == AxisKind::lengths || kind_ == AxisKind::counts || kind_ == AxisKind::bytes ||
           kind_ == AxisKind::capacity || kind_ == AxisKind::windows || kind_ == AxisKind::reals;
  }

  [[nodiscard]] std::int64_t whole(std::string_view text) const {
    if (kind_ == AxisKind::bytes || kind_ == AxisKind::capacity) return parse_bytes(text, option_).value();
    if (kind_ == AxisKind::counts) return parse_count(text, option_, 1);
    return parse_length(text, option_);
  }

  [[nodiscard]] AxisValue value_of(const std::string& text) const {
    using Type = AxisValue::Type;
    switch (kind_) {
      case AxisKind::words:
      case AxisKind::lists:
        return {text, Type::text};
      case AxisKind::switches:
        if (text == "on" || text == "true") return {"on", Type::truth};
        if (text == "off" || text == "false") return {"off", Type::truth};
        fail(in_quotes(text) + " is neither on nor off", "write on, off or on,off; the option alone is on");
      case AxisKind::reals:
        return {fmt::format("{}", parse_real(text, option_)), Type::number};
      case AxisKind::capacity:
        if (text == "none") return {text, Type::text};
        break;
      case AxisKind::windows:
        if (text.starts_with('-')) return {std::to_string(parse_integer(text, option_)), Type::number};
        break;
      default:
        break;
    }
    return {std::to_string(whole(text)), Type::number};
  }

  void read_range(const std::string& text) {
    const std::vector<std::string> parts = split_list(text, ':');
    if (kind_ == AxisKind::reals) fail("takes no range, got " + in_quotes(text), "give a list, such as 0.1,0.2,0.3");
    if (parts.size() != 3) fail("a range has a first, a last and a step, got " + in_quotes(text), kHowToWriteRanges);
    const std::int64_t first = whole(parts[0]), last = whole(parts[1]);
    if (last < first) fail("the range " + in_quotes(text) + " ends before it begins", "write the smaller number first");
    const bool by_factor = parts[2].starts_with('x') || parts[2].starts_with('X');
    const std::int64_t step = by_factor ? parse_integer(parts[2].substr(1), option_ + " " + text) : whole(parts[2]);
    if (by_factor && step < 2) fail("the range " + in_quotes(text) + " does not grow", "a factor is 2 or more");
    if (by_factor && first == 0)
      fail("the range " + in_quotes(text) + " stays at 0, whatever the factor", "begin with 1, or give steps");
    if (step < 1) fail("the range " + in_quotes(text) + " has no step", kHowToWriteRanges);
    for (std::int64_t value = first; value <= last;) {
      add({std::to_string(value), AxisValue::Type::number});
      const bool beyond =
          by_factor ? __builtin_mul_overflow(value, step, &value) : __builtin_add_overflow(value, step, &value);
      if (beyond) break;
    }
  }

  void add(AxisValue value) {
    if (static_cast<std::int64_t>(values_.size()) >= most_) {
      fail("has more than " + text::integer(most_) + " values",
           "take a larger step; an axis has at most --max-points values, and at most " + text::integer(kMostValues));
    }
    if (!seen_.insert(value.text).second)
      fail(in_quotes(value.text) + " stands there twice", "give each value once: a point is computed once");
    values_.push_back(std::move(value));
  }

  const std::string& option_;
  AxisKind kind_;
  std::int64_t most_;
  std::vector<AxisValue> values_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::string Axis::name() const {
  std::string name = option.substr(option.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Axis parse_axis(const std::string& option, AxisKind kind, const std::vector<std::string>& texts, std::int64_t most) {
  Reader reader(option, kind, most);
  for (const std::string& text : texts) reader.read(text);
  return {option, reader.take()};
}

Grid::Grid(std::vector<Axis> axes, std::int64_t most) : axes_(std::move(axes)), stride_(axes_.size(), 1) {
  bool too_many = false;
  for (std::size_t axis = axes_.size(); axis-- > 0 && !too_many;) {
    stride_[axis] = points_;
    const auto values = static_cast<std::int64_t>(axes_[axis].values.size());
    if (__builtin_mul_overflow(points_, values, &points_)) points_ = std::numeric_limits<std::int64_t>::max();
    too_many = points_ == std::numeric_limits<std::int64_t>::max();
  }
  if (points_ <= most) return;
  const bool fits = points_ < std::numeric_limits<std::int64_t>::max();
  throw Error(ErrorKind::usage,
              "the sweep has " + product() + " = " + (fits ? "" : "more than ") + text::integer(points_) +
                  " points, more than the " + text::integer(most) + " of --max-points",
              "take fewer values, or raise --max-points; --shard I/N spreads them over machines");
}

const AxisValue& Grid::at(std::int64_t point, std::size_t axis) const {
  const std::vector<AxisValue>& values = axes_[axis].values;
  return values[static_cast<std::size_t>(point / stride_[axis]) % values.size()];
}

std::string Grid::product() const {
  std::string words;
  for (const Axis& axis : axes_) {
    words += (words.empty() ? "" : " x ") + axis.option + " (" +
             text::integer(static_cast<std::int64_t>(axis.values.size())) + ")";
  }
  return words;
}

}  // namespace hbmscope
