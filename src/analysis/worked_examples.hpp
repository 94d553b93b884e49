#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/units.hpp"
#include "model/traffic.hpp"

/// The numbers that lessons about attention print, each computed by the model. Inputs (lengths, heads, bandwidths) and
/// third parties' claims are data; results are not.
namespace hbmscope {

enum class Quantity : std::uint8_t { number, bytes, binary_bytes, flop, seconds, byte_rate, intensity };

/// What a value counts, and how many base units its name promises: a value called "MB" is kept in bytes and given out
/// in millions of them. The names are those of the lessons, so the prefixes in them are part of the data.
struct Unit {
  Quantity quantity;
  double size;
};
namespace unit {
inline constexpr Unit number{Quantity::number, 1}, B{Quantity::bytes, 1}, MB{Quantity::bytes, 1e6},
    GB{Quantity::bytes, 1e9}, TB{Quantity::bytes, 1e12}, KiB{Quantity::binary_bytes, 1024},
    MiB{Quantity::binary_bytes, 1048576}, GiB{Quantity::binary_bytes, 1073741824}, GFLOP{Quantity::flop, 1e9},
    TFLOP{Quantity::flop, 1e12}, s{Quantity::seconds, 1}, ms{Quantity::seconds, 1e-3}, us{Quantity::seconds, 1e-6},
    TB_per_s{Quantity::byte_rate, 1e12}, FLOP_per_B{Quantity::intensity, 1};
}  // namespace unit

/// A value under its name, in base units; no content where it cannot be had, and `reason` says why.
struct WorkedValue {
  using Content = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;
  std::string_view name;
  Content content;
  Unit unit;
  std::string reason;
};

/// The values of one example, in the order in which they are shown.
class WorkedValues {
 public:
  void add(std::string_view name, const WorkedValue::Content& content, Unit unit = unit::number);
  template <class Tag>
  void add(std::string_view name, Exact<Tag> value, Unit unit = of<Tag>()) {
    add(name, WorkedValue::Content(value.value()), unit);
  }
  template <class Tag>
  void add(std::string_view name, const std::vector<Exact<Tag>>& values, Unit unit = of<Tag>()) {
    std::vector<std::int64_t> plain;
    for (const Exact<Tag> value : values) plain.push_back(value.value());
    add(name, WorkedValue::Content(plain), unit);
  }
  template <class Tag>
  void add(std::string_view name, Real<Tag> value, Unit unit) {
    add(name, WorkedValue::Content(value.value), unit);
  }
  template <class Tag>
  void add(std::string_view name, const std::vector<Real<Tag>>& values, Unit unit) {
    std::vector<double> plain;
    for (const Real<Tag> value : values) plain.push_back(value.value);
    add(name, WorkedValue::Content(plain), unit);
  }
  void add_missing(std::string_view name, const std::string& reason);

  [[nodiscard]] const std::vector<WorkedValue>& all() const { return all_; }
  [[nodiscard]] std::vector<WorkedValue>& all() { return all_; }
  [[nodiscard]] const WorkedValue& operator[](std::string_view name) const;
  /// In base units; whole numbers too.
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::vector<double> list(std::string_view name) const;

 private:
  template <class Tag>
  static constexpr Unit of() {
    return std::is_same_v<Tag, BytesTag> ? unit::B : unit::number;
  }
  std::vector<WorkedValue> all_;
};

/// One row of the table of worked examples.
struct WorkedEntry {
  std::string_view id;
  std::string_view question;  ///< or the claim
  Provenance provenance;
  void (*compute)(WorkedValues&);
  /// What must be true of the values, where the example is a claim; it becomes the value "holds".
  bool (*claim)(const WorkedValues&) = nullptr;
  std::string_view remark = {};  ///< which convention the number rests on, or what the shape really gives
  std::string_view source = {};  ///< of what is quoted: title, where and when
};

/// The rows of one theme.
struct WorkedTheme {
  std::string_view title;
  std::span<const WorkedEntry> entries;
};
std::span<const WorkedTheme> worked_themes();

/// Every row once, in the order of the lessons.
std::vector<const WorkedEntry*> worked_entries();
/// The rows of these ids, in the order of the lessons; an id that nobody knows is an Error (kind usage) that names
/// `option`.
std::vector<const WorkedEntry*> worked_entries(std::span<const std::string> ids, std::string_view option);

/// Computes the values of a row, and "holds" where it is a claim.
WorkedValues worked_values(const WorkedEntry& entry);

}  // namespace hbmscope
