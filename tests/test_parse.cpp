#include <doctest/doctest.h>

#include <array>
#include <clocale>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/suggest.hpp"

using namespace hbmscope;

namespace {

/// The error that `parse` ends in, as "message | hint"; empty if there is none. Every parse error is one of usage and
/// names its option.
template <class Parse>
std::string complaint(Parse parse, std::string_view text) {
  try {
    parse(text, "--option");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string_view(error.what()).starts_with("--option: "));
    CHECK_FALSE(error.hint().empty());
    return error.what() + (" | " + error.hint());
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a length takes k, M and G as powers of 1024, in either case") {
  CHECK(parse_length("8192", "--seqlen") == 8192);
  CHECK(parse_length("0", "--seqlen") == 0);
  CHECK(parse_length("1k", "--seqlen") == 1024);
  CHECK(parse_length("1K", "--seqlen") == 1024);
  CHECK(parse_length("16M", "--seqlen") == 16 * 1024 * 1024);
  CHECK(parse_length("4G", "--seqlen") == std::int64_t{4} * 1024 * 1024 * 1024);
  CHECK(parse_length("1.5k", "--seqlen") == 1024 + 512);
  CHECK(parse_length("0.0009765625k", "--seqlen") == 1);
}

TEST_CASE("what is no length is refused, each with its reason") {
  CHECK(contains(complaint(parse_length, ""), "the text is empty"));
  CHECK(contains(complaint(parse_length, "-1"), "must not be negative"));
  CHECK(contains(complaint(parse_length, "1.3k"), "must be a whole number"));
  CHECK(contains(complaint(parse_length, "8.5"), "must be a whole number"));
  CHECK(contains(complaint(parse_length, "8,192"), "digits are not grouped"));
  CHECK(contains(complaint(parse_length, "8kB"), "does not know the unit \"kB\""));
  CHECK(contains(complaint(parse_length, "99999999999999999999"), "does not fit 64 bits"));
  CHECK(contains(complaint(parse_length, "9007199254740992k"), "does not fit 64 bits"));
  for (const std::string_view text :
       {"abc", "nan", "inf", "1e3", "0x10", " 8", "8 ", "8k ", "+8", ".5k", "8.", "8..5", "8k8", "--8", "k"}) {
    CAPTURE(text);
    CHECK_FALSE(complaint(parse_length, text).empty());
  }
}

TEST_CASE("bytes take decimal and binary units and keep them apart") {
  CHECK(parse_bytes("232448", "--sram") == Bytes(232448));
  CHECK(parse_bytes("232448B", "--sram") == Bytes(232448));
  CHECK(parse_bytes("227KiB", "--sram") == Bytes(227 * 1024));
  CHECK(parse_bytes("50 MiB", "--l2") == Bytes(50 * 1024 * 1024));
  CHECK(parse_bytes("30MB", "--l2") == Bytes(30 * 1000 * 1000));
  CHECK(parse_bytes("1.5kB", "--l2") == Bytes(1500));
  CHECK(parse_bytes("0.5KiB", "--l2") == Bytes(512));
  CHECK(parse_bytes("80GB", "--l2") == Bytes(std::int64_t{80} * 1000 * 1000 * 1000));
  CHECK(parse_bytes("2TiB", "--l2") == Bytes(std::int64_t{2} << 40));
  CHECK(parse_bytes("2TB", "--l2") == Bytes(2'000'000'000'000));
  CHECK(parse_bytes("9223372036854775807", "--l2") == Bytes(INT64_MAX));
}

TEST_CASE("bytes that are not whole, not a unit or too many are refused") {
  CHECK(contains(complaint(parse_bytes, "1.0001kB"), "must be a whole number"));
  CHECK(contains(complaint(parse_bytes, "0.3KiB"), "must be a whole number"));
  CHECK(contains(complaint(parse_bytes, "50mib"), "did you mean \"MiB\"?"));
  CHECK(contains(complaint(parse_bytes, "227 bananas"), "there is B, kB, MB, GB, TB, KiB, MiB, GiB and TiB"));
  CHECK(contains(complaint(parse_bytes, "9223372036854775808"), "does not fit 64 bits"));
  CHECK(contains(complaint(parse_bytes, "9000000TiB"), "does not fit 64 bits"));
  CHECK(contains(complaint(parse_bytes, "0.0000000000000000000000001TiB"), "too many decimals"));
  CHECK(contains(complaint(parse_bytes, "30,5MB"), "the decimal point is '.'"));
}

TEST_CASE("a real number is finite and has a point whatever the locale says") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"C", "de_DE.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;
    CHECK(parse_real("0.25", "--share") == 0.25);
    CHECK(parse_real("1e-6", "--share") == 1e-6);
    CHECK(parse_real("-2", "--share") == -2.0);
    CHECK(contains(complaint(parse_real, "0,3"), "the decimal point is '.'"));
  }
  std::setlocale(LC_ALL, before.c_str());
  CHECK(contains(complaint(parse_real, "nan"), "finite"));
  CHECK(contains(complaint(parse_real, "inf"), "finite"));
  CHECK(contains(complaint(parse_real, "-infinity"), "finite"));
  CHECK(contains(complaint(parse_real, "1e999"), "beyond the range of a double"));
  for (const std::string_view text : {"", "x", "0.3x", " 0.3", "+0.3", "0x1p3", "30%"}) {
    CAPTURE(text);
    CHECK(contains(complaint(parse_real, text), "needs a number"));
  }
}

TEST_CASE("a whole number takes a sign and nothing else") {
  CHECK(parse_integer("128", "--seed") == 128);
  CHECK(parse_integer("-1", "--window") == -1);
  CHECK(parse_integer("-9223372036854775808", "--window") == INT64_MIN);
  CHECK(contains(complaint(parse_integer, "9223372036854775808"), "does not fit 64 bits"));
  for (const std::string_view text : {"", "1.0", "1k", "1 ", "-", "1e3", "one"}) {
    CAPTURE(text);
    CHECK(contains(complaint(parse_integer, text), "needs a whole number"));
  }
}

TEST_CASE("a mistyped name gets the nearest ones, a strange one the list") {
  constexpr std::array<std::string_view, 4> kNames{"naive", "flash_v1", "flash_v2", "split_kv"};
  CHECK(did_you_mean("flash-v2", kNames) == "did you mean \"flash_v2\"?");
  CHECK(did_you_mean("FlashV2", kNames) == "did you mean \"flash_v2\"?");
  CHECK(did_you_mean("falsh_v1", kNames) == "did you mean \"flash_v1\"?");
  CHECK(did_you_mean("flash_v3", kNames) == "did you mean \"flash_v1\" or \"flash_v2\"?");
  CHECK(did_you_mean("ring", kNames) == "there is naive, flash_v1, flash_v2 and split_kv");
  CHECK(did_you_mean(std::string(1 << 20, 'x'), kNames) == "there is naive, flash_v1, flash_v2 and split_kv");
}

TEST_CASE("a quoted text is short and printable") {
  CHECK(in_quotes("abc") == "\"abc\"");
  CHECK(in_quotes("gr\u00fcn") == "\"gr\u00fcn\"");
  CHECK(in_quotes("a\nb\x1b\x7f") == "\"a\\x0ab\\x1b\\x7f\"");
  CHECK(in_quotes("\xff\xc3") == "\"\\xff\\xc3\"");
  CHECK(in_quotes("\xed\xa0\x80") == "\"\\xed\\xa0\\x80\"");
  CHECK(in_quotes(std::string(1000, 'a')) == "\"" + std::string(60, 'a') + "...\"");
}
