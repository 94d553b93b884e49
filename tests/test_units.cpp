#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

using namespace hbmscope;

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

}  // namespace

TEST_CASE("a sum, difference or product beyond 64 bits is an error, never a wrapped number") {
  CHECK((Bytes(kMax - 1) + Bytes(1)).value() == kMax);
  CHECK_THROWS_AS(Bytes(kMax) + Bytes(1), Error);
  CHECK_THROWS_AS(Bytes(-kMax) - Bytes(2), Error);
  CHECK((Count(std::int64_t{1} << 31) * Bytes(std::int64_t{1} << 31)).value() == std::int64_t{1} << 62);
  CHECK_THROWS_AS(Count(std::int64_t{1} << 32) * Bytes(std::int64_t{1} << 31), Error);
  CHECK_THROWS_AS(Bytes(std::int64_t{1} << 31) * Count(std::int64_t{1} << 32), Error);
  CHECK_THROWS_AS(Count(kMax) * Count(2), Error);

  Flop sum(kMax);
  CHECK_THROWS_AS(sum += Flop(1), Error);
  CHECK(sum == Flop(kMax));
}

TEST_CASE("an overflow names what to do and counts as a usage error") {
  try {
    throw_beyond_64_bits();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find("64 bits") != std::string::npos);
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("quantities of different kinds do not mix") {
  CHECK(Addable<Bytes, Bytes>);
  CHECK_FALSE(Addable<Bytes, Flop>);
  CHECK_FALSE(Addable<Bytes, Count>);
  CHECK_FALSE(Addable<Seconds, BytesPerSecond>);
  CHECK(Multipliable<Count, Bytes>);
  CHECK_FALSE(Multipliable<Bytes, Bytes>);
}

TEST_CASE("quotients of exact quantities carry the unit of the quotient") {
  CHECK((Bytes(4'800) / BytesPerSecond{4.8e12}).value == doctest::Approx(1e-9));
  CHECK((Flop(600) / Bytes(200)).value == 3.0);
  CHECK((FlopPerSecond{12.0} / BytesPerSecond{4.0}).value == 3.0);
  CHECK((FlopPerByte{3.0} * BytesPerSecond{4.0}).value == 12.0);
}

TEST_CASE("the dtype table is in the order of its enumeration") {
  for (const DtypeInfo& row : kDtypes) CHECK(info(row.dtype).name == row.name);
}

TEST_CASE("a dtype's largest value follows from its mantissa and exponent") {
  for (const DtypeInfo& row : kDtypes) {
    CAPTURE(row.name);
    // fp8 E4M3 gives its last code to NaN, so its largest mantissa is 1.75; IEEE-like formats use all ones, 2 -
    // 2^-bits.
    const double mantissa = row.dtype == Dtype::fp8 ? 1.75 : 2.0 - std::exp2(-row.mantissa_bits);
    // Likewise its top exponent holds numbers, where the others keep it for infinity.
    const int max_exponent = row.dtype == Dtype::fp8 ? 2 - row.min_exponent : 1 - row.min_exponent;
    CHECK(row.max == doctest::Approx(mantissa * std::exp2(max_exponent)).epsilon(1e-15));
  }
}

TEST_CASE("a dtype's bits fill its bytes") {
  for (const DtypeInfo& row : kDtypes) {
    CAPTURE(row.name);
    // Sign, exponent and mantissa; an exponent of n bits reaches down to 2 - 2^(n-1).
    const int exponent_bits = 1 + static_cast<int>(std::lround(std::log2(2 - row.min_exponent)));
    CHECK(1 + exponent_bits + row.mantissa_bits == 8 * row.bytes);
  }
}
