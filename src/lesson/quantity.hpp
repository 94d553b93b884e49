#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Numbers with units, as lessons compute with them.
namespace hbmscope::lesson {

/// Exponents of the units that lessons know: bytes, floating-point operations and seconds.
struct Dimension {
  int bytes = 0;
  int flop = 0;
  int seconds = 0;
  friend bool operator==(const Dimension&, const Dimension&) = default;
  [[nodiscard]] bool plain() const { return *this == Dimension{}; }
};

/// From here on a double no longer holds every whole number.
inline constexpr double kTwo53 = 9007199254740992.0;

/// "B/s", "FLOP/B", "B^2 s", or "a plain number".
std::string name(Dimension dimension);

/// A number in SI base units. Whole numbers stay exact while they fit 64 bits.
class Quantity {
 public:
  Quantity() = default;
  explicit Quantity(double value, Dimension dimension = {}) : real_(value), dimension_(dimension) {}
  static Quantity whole(std::int64_t value, Dimension dimension = {});
  /// Whole where `value` is a whole number below 2^53, which a double holds exactly.
  static Quantity nearest(double value, Dimension dimension = {});

  [[nodiscard]] double real() const { return real_; }
  [[nodiscard]] const std::optional<std::int64_t>& exact() const { return exact_; }
  [[nodiscard]] Dimension dimension() const { return dimension_; }
  /// The same number in another unit.
  [[nodiscard]] Quantity as(Dimension dimension) const;

 private:
  double real_ = 0;
  std::optional<std::int64_t> exact_;
  Dimension dimension_;
};

// Sums of different units, roots of odd powers and the like are Errors (kind data) that name both units.
Quantity operator+(const Quantity& a, const Quantity& b);
Quantity operator-(const Quantity& a, const Quantity& b);
Quantity operator*(const Quantity& a, const Quantity& b);
Quantity operator/(const Quantity& a, const Quantity& b);
Quantity power(const Quantity& base, const Quantity& exponent);

struct Unit {
  Dimension dimension;
  /// How many SI base units one of it is; whole where it is a whole number.
  Quantity size;
};

/// B, FLOP, s with the prefixes k M G T P, for bytes also Ki Mi Gi Ti Pi, for seconds m, u (or the micro sign) and n;
/// and quotients of two such: "TB/s", "FLOP/B". Nothing if it is no unit.
std::optional<Unit> find_unit(std::string_view text);

/// The unit in which a result's JSON gives the number at the end of these keys: that of the innermost key that names
/// one, as in "total_bytes", "peak_flop_per_s", "predicted_s", "matmul". A plain number if none does.
Unit unit_of_keys(const std::vector<std::string>& keys);

}  // namespace hbmscope::lesson
