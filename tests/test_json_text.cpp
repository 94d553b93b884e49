// JSON that is appended as text reads back as what was written.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/fingerprint.hpp"
#include "core/json_text.hpp"

using namespace hbmscope;
using nlohmann::json;

namespace {

template <class T>
std::string written(const T& value) {
  std::string text;
  JsonText to(text);
  to.value(value);
  return text;
}

}  // namespace

TEST_CASE("commas set themselves, in objects, in lists and in one another") {
  std::string text = "before\n";
  JsonText to(text);
  to.begin_object();
  to.member("a", std::int64_t{1});
  to.key("b");
  to.begin_list();
  to.value(true);
  to.begin_list();
  to.end_list();
  to.begin_object();
  to.end_object();
  to.value("x");
  to.end_list();
  to.key("c");
  to.begin_object();
  to.member("d", nullptr);
  to.member("e", std::optional<std::int64_t>());
  to.end_object();
  to.member("f", std::optional<std::int64_t>(-7));
  to.end_object();
  CHECK(text ==
        "before\n"
        R"({"a":1,"b":[true,[],{},"x"],"c":{"d":null,"e":null},"f":-7})");
}

TEST_CASE("whole numbers keep every digit, reals read back as themselves and stay reals") {
  CHECK(written(std::numeric_limits<std::int64_t>::max()) == "9223372036854775807");
  CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e-7, 1e22, 4.8e12, 1e300, 5e-324, 1.0 / 3.0, 123456789012345680.0}) {
    CAPTURE(value);
    const json back = json::parse(written(value));
    CHECK(back.is_number_float());
    CHECK(back.get<double>() == value);
  }
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::nan("")) == "null");
}

TEST_CASE("any text reads back, whatever bytes it holds") {
  std::string all;
  for (int byte = 0; byte < 128; ++byte) all += static_cast<char>(byte);
  for (const std::string& text : {all, std::string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), std::string()}) {
    CAPTURE(text);
    CHECK(json::parse(written(text)).get<std::string>() == text);
  }
  CHECK(json::parse(written(std::string("a\xff\xc3"))).get<std::string>() == "a\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(written("a\"\\\n\x1f") == R"("a\"\\\n\u001f")");
}

TEST_CASE("a fingerprint tells texts and their borders apart") {
  const auto of = [](std::initializer_list<const char*> texts) {
    Fingerprint print;
    for (const char* text : texts) print.add(text);
    return print.hex();
  };
  CHECK(of({"ab", "c"}) == of({"ab", "c"}));
  CHECK(of({"ab", "c"}) != of({"a", "bc"}));
  CHECK(of({"ab", ""}) != of({"ab"}));
  CHECK(of({"seqlen", "8192"}) != of({"seqlen", "8193"}));
  CHECK(of({}).size() == 16);
  CHECK(of({"x"}).find_first_not_of("0123456789abcdef") == std::string::npos);
}
