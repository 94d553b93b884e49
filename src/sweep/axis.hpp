#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hbmscope {

/// How the values of an option are written, and what one of them is.
enum class AxisKind : std::uint8_t {
  words,     ///< fp16,bf16
  switches,  ///< on,off
  lengths,   ///< 1k,2k or a range
  counts,    ///< 64,128 or a range
  bytes,     ///< 64KiB,128KiB or a range
  capacity,  ///< as bytes, and none
  reals,     ///< 0.1,0.2
  windows,   ///< L or L,R: its own comma, so one value each time the option is given; a range of L
  lists,     ///< a value with commas of its own: one each time the option is given
};

/// One value of one option.
struct AxisValue {
  enum class Type : std::uint8_t { text, number, truth };
  std::string text;  ///< as the option takes it; numbers in plain digits, so that 8k and 8192 are one
  Type type = Type::text;
};

/// An option and the values that a sweep gives it.
struct Axis {
  std::string option;  ///< "--head-dim"
  std::vector<AxisValue> values;
  [[nodiscard]] std::string name() const;  ///< "head_dim", as in a row
};

/// Reads the values of an option, `texts` as they were given, one each time: lists `a,b,c`, and for whole numbers the
/// ranges `FIRST:LAST:STEP` and `FIRST:LAST:xFACTOR`, which end with LAST or before it. Throws an Error (kind usage)
/// that names the option for a value that cannot be read, one that stands there twice, and more than `most` of them,
/// or a million.
Axis parse_axis(const std::string& option, AxisKind kind, const std::vector<std::string>& texts, std::int64_t most);

/// All combinations of the axes' values, numbered from 0: the last axis changes fastest.
class Grid {
 public:
  Grid() = default;
  /// Throws an Error (kind usage) for more than `most` points.
  Grid(std::vector<Axis> axes, std::int64_t most);
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::int64_t points() const { return points_; }
  /// The value of axis number `axis` at a point.
  [[nodiscard]] const AxisValue& at(std::int64_t point, std::size_t axis) const;
  /// "--seqlen (7) x --head-dim (2)"; empty without an axis.
  [[nodiscard]] std::string product() const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::int64_t> stride_;
  std::int64_t points_ = 1;
};

}  // namespace hbmscope
