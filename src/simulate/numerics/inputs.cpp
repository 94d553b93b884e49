#include "simulate/numerics/inputs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>

#include "core/error.hpp"
#include "core/rounding.hpp"

namespace hbmscope {

namespace {

constexpr int kKnotBits = 6;  // 2^6 knots to an octave of u
constexpr int kOctaves = 24;  // k runs from 1 to 2^24 - 1
constexpr int kFractionBits = 23 - kKnotBits;
constexpr std::size_t kSegments = std::size_t{kOctaves} << kKnotBits;
constexpr float kStep = 0x1p-20F;

using numerics::NormalSegment;

/// The x >= `left_of_it` whose upper-tail probability is u. The tail is convex there, so Newton's steps approach x from
/// the left.
double upper_quantile(double u, double left_of_it) {
  double x = left_of_it;
  for (int i = 0; i < 20; ++i) {
    const double tail = 0.5 * std::erfc(x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    x += (tail - u) / density;
  }
  return x;
}

// Quantiles are rounded to multiples of 2^-20, a billion times coarser than what one libm's erfc differs by from
// another's.
const std::array<NormalSegment, kSegments>& segments() {
  static const std::array<NormalSegment, kSegments> table = [] {
    std::array<NormalSegment, kSegments> made{};
    double x = 0;
    std::int32_t right = 0;  // the quantile of u = 1/2
    for (std::size_t s = kSegments; s-- > 0;) {
      const int octave = static_cast<int>(s >> kKnotBits);
      const double mantissa = 1.0 + static_cast<double>(s % (1U << kKnotBits)) / (1U << kKnotBits);
      x = upper_quantile(std::ldexp(mantissa, octave - 25), x);
      const auto start = static_cast<std::int32_t>(std::lround(x / static_cast<double>(kStep)));
      made[s] = {start, static_cast<std::uint32_t>(start - right)};
      right = start;
    }
    return made;
  }();
  return table;
}

float normal(std::uint32_t bits, const std::array<NormalSegment, kSegments>& table) {
  const std::uint32_t k = (bits >> 8) | 1U;
  // As a float, exactly k, the exponent is the octave, and the mantissa the knot and the place between two knots.
  const std::uint32_t floating = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(k)));
  const NormalSegment& segment = table[(floating >> kFractionBits) - (127U << kKnotBits)];
  const std::uint32_t fraction = floating & ((1U << kFractionBits) - 1U);
  const auto fallen =
      static_cast<std::int32_t>((segment.drop * fraction + (1U << (kFractionBits - 1))) >> kFractionBits);
  const float magnitude = static_cast<float>(segment.start - fallen) * kStep;
  // The sign is set as a bit: a branch on it would be mispredicted every other time.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | (bits << 31));
}

}  // namespace

namespace numerics {

std::span<const NormalSegment> normal_segments() {
  return segments();
}

std::uint64_t hash(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace numerics

void RandomInputs::read_row(Tensor tensor, std::int64_t batch, std::int64_t head, std::int64_t row,
                            std::span<float> out) const {
  std::uint64_t key = seed_;
  for (const std::int64_t part : {static_cast<std::int64_t>(tensor), batch, head, row}) {
    key = numerics::hash(key, static_cast<std::uint64_t>(part));
  }
  const auto& table = segments();
  for (std::size_t column = 0; column < out.size(); column += 2) {
    const std::uint64_t both = numerics::hash(key, column / 2);
    out[column] = normal(static_cast<std::uint32_t>(both), table);
    if (column + 1 < out.size()) out[column + 1] = normal(static_cast<std::uint32_t>(both >> 32), table);
  }
  round_to(out, dtype_);
}

ArrayInputs::ArrayInputs(const AttentionShape& shape, std::span<const float> q, std::span<const float> k,
                         std::span<const float> v)
    : shape_(shape), q_(q), k_(k), v_(v) {
  const auto require = [&](std::string_view name, std::size_t size, std::int64_t heads, std::int64_t rows,
                           std::int64_t columns) {
    const std::int64_t expected = shape.batch * heads * rows * columns;
    if (static_cast<std::int64_t>(size) == expected) return;
    throw Error(
        ErrorKind::data,
        std::string(name) + " has " + std::to_string(size) + " elements, the shape needs " + std::to_string(expected),
        "give [batch, heads, rows, head_dim] row-major");
  };
  require("q", q.size(), shape.num_heads, shape.seqlen_q, shape.head_dim);
  require("k", k.size(), shape.num_kv_heads, shape.seqlen_kv, shape.head_dim);
  require("v", v.size(), shape.num_kv_heads, shape.seqlen_kv, shape.head_dim_v);
}

void ArrayInputs::read_row(Tensor tensor, std::int64_t batch, std::int64_t head, std::int64_t row,
                           std::span<float> out) const {
  const bool query = tensor == Tensor::Q;
  const std::span<const float> values = query ? q_ : tensor == Tensor::K ? k_ : v_;
  const std::int64_t heads = query ? shape_.num_heads : shape_.num_kv_heads;
  const std::int64_t rows = query ? shape_.seqlen_q : shape_.seqlen_kv;
  const auto first = static_cast<std::size_t>((batch * heads + head) * rows + row) * out.size();
  std::ranges::copy(values.subspan(first, out.size()), out.begin());
}

}  // namespace hbmscope
