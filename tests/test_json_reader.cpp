#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "scenario/fields.hpp"
#include "scenario/json_reader.hpp"

using namespace hbmscope;

namespace {

/// The message of the Error that `action` ends in; empty if there is none. An error in data has kind data.
template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "";
}
std::string parse_complaint(std::string_view text, std::string_view source = "my.json") {
  return complaint([&] { (void)parse_json(text, source); });
}
std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

}  // namespace

TEST_CASE("good JSON is read exactly") {
  const auto value =
      parse_json(R"({"a": [1, -2, 0.5, true, null, "x\"y"], "b": {"c": 9223372036854775807}})", "my.json");
  CHECK(value["a"][1] == -2);
  CHECK(value["a"][5] == "x\"y");
  CHECK(value["b"]["c"].get<std::int64_t>() == INT64_MAX);
  CHECK(parse_json(R"("\u00e9\u20ac\ud83d\ude00\n\/")", "my.json") == "\u00e9\u20ac\U0001F600\n/");
  CHECK(parse_json("[-0, 1e3, 18446744073709551615, 1E-2]", "my.json") ==
        nlohmann::json({0, 1000.0, UINT64_MAX, 0.01}));
  CHECK(parse_json("\xEF\xBB\xBF{}", "my.json").is_object());
  CHECK(parse_json(nested(static_cast<int>(kMaxJsonDepth)), "my.json").is_array());
}

TEST_CASE("a syntax error names file, line and column") {
  CHECK(parse_complaint("{\n  \"a\": 1,\n  \"b\": x\n}").starts_with("my.json: line 3, column 8: "));
  CHECK(parse_complaint("{\"gr\u00fcn\": 1 2}").starts_with("my.json: line 1, column 12: "));
  CHECK(parse_complaint("{\"a\": 1}, ").starts_with("my.json: line 1, column 9: "));
  CHECK(parse_complaint("\xEF\xBB\xBF[1,]").starts_with("my.json: line 1, column 4: "));
  CHECK(parse_complaint("[1,]", "").starts_with("column 4: "));
  CHECK(parse_complaint("[1, 2 345]", "").starts_with("column 7: "));
}

TEST_CASE("what lenient readers let pass is refused") {
  CHECK(parse_complaint("") == "my.json: line 1, column 1: the text ends before its JSON does");
  CHECK(parse_complaint("{\"a\": [1, 2") == "my.json: line 1, column 12: the text ends before its JSON does");
  CHECK(parse_complaint("{\"a") == "my.json: line 1, column 4: the text ends before its JSON does");
  CHECK(parse_complaint("[NaN]") == "my.json: line 1, column 2: NaN is not JSON");
  CHECK(parse_complaint("[-Infinity]") == "my.json: line 1, column 3: Infinity is not JSON");
  CHECK(parse_complaint("[1e999]") ==
        "my.json: line 1, column 2: the number \"1e999\" is beyond the range of a double");
  CHECK(parse_complaint("{\"a\": \"\xff\"}").find("UTF-8") != std::string::npos);
  CHECK(parse_complaint(std::string_view("{}\0{}", 5)) ==
        "my.json: line 1, column 3: expected the end of the text, got \"\\x00\"");
  CHECK(parse_complaint(R"(["\ud800"])") == "my.json: line 1, column 3: half of a surrogate pair stands alone");
  for (const std::string_view text : {"// no\n{}", "{'a': 1}", "[1,]", "{\"a\": 01}", "{\"a\": .5}", "{a: 1}", "{} {}",
                                      "\"\t\"", "[1 2]", "}", "\xFF\xFE"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_complaint(text).empty());
  }
}

TEST_CASE("a key that stands twice is named with its place") {
  CHECK(parse_complaint("{\"a\": 1,\n \"b\": {\"a\": 2},\n \"a\": 3}") ==
        "my.json: line 3, column 2: the key \"a\" stands in this object twice");
  CHECK(parse_complaint(R"({"x\"": 1, "x\"": 2})") ==
        "my.json: line 1, column 12: the key \"x\"\" stands in this object twice");
}

TEST_CASE("objects and lists stand at most 64 deep") {
  CHECK(parse_complaint(nested(65)).ends_with("more than 64 deep in one another"));
  CHECK(parse_complaint(std::string(100'000, '[')).starts_with("my.json: line 1, column 65: "));
}

TEST_CASE("a file beyond 64 MiB is refused without being read") {
  const auto path = std::filesystem::temp_directory_path() / "hbmscope_test_large.json";
  std::ofstream(path).put('[');
  std::filesystem::resize_file(path, kMaxJsonBytes + 1);  // sparse: reading it would take the memory, not the disk
  CHECK(complaint([&] { (void)read_json_file(path.string()); }) ==
        path.string() + ": the file is larger than 64 MiB, the most that is read");
  std::filesystem::remove(path);
}

TEST_CASE("a file that cannot be read is an error, and a good one is read") {
  CHECK(complaint([] { (void)read_json_file("/nowhere/x.json"); }) == "cannot open /nowhere/x.json: no such file");
  const auto folder = std::filesystem::temp_directory_path();
  CHECK(complaint([&] { (void)read_json_file(folder.string()); }) == folder.string() + ": is a directory");
  const auto path = folder / "hbmscope_test_small.json";
  std::ofstream(path) << "{\"a\": 1}";
  CHECK(read_json_file(path.string())["a"] == 1);
  std::filesystem::remove(path);
}

TEST_CASE("a member of the wrong kind or size is named by its pointer") {
  const auto value = parse_json(
      R"({"n": -3, "t": "abc", "h": 1.5, "w": 8192.0, "u": 18446744073709551615, "f": 1e30, "g": 1e17, "z": null, "l": [1, "x"], "a/b~": true, "o": {"n": 0}})",
      "");
  const Fields fields(value, "my.json", "/shape");
  const auto integer_complaint = [&](const char* key) {
    return complaint([&] { (void)fields.require_integer(key, 1); });
  };
  CHECK(fields.require_integer("n") == -3);
  CHECK(fields.require_integer("w") == 8192);
  CHECK(integer_complaint("n") == "my.json: /shape/n: must be at least 1, got -3");
  CHECK(integer_complaint("t") == "my.json: /shape/t: must be a whole number, got the text \"abc\"");
  CHECK(integer_complaint("h") == "my.json: /shape/h: must be a whole number, got 1.5");
  CHECK(integer_complaint("u") == "my.json: /shape/u: does not fit 64 bits: 18446744073709551615");
  CHECK(integer_complaint("f") == "my.json: /shape/f: does not fit 64 bits: 1e+30");
  CHECK(integer_complaint("g") == "my.json: /shape/g: is too large to be exact as 1e+17");
  CHECK(integer_complaint("l") == "my.json: /shape/l: must be a whole number, got a list");
  CHECK(integer_complaint("z") == "my.json: /shape/z: must not be null");
  CHECK(integer_complaint("y") == "my.json: /shape/y: is missing");
  CHECK(integer_complaint("a/b~") == "my.json: /shape/a~1b~0: must be a whole number, got true");
  CHECK(complaint([&] { (void)fields.require_integer("w", 1, 4096); }) ==
        "my.json: /shape/w: must be at most 4096, got 8192");
  CHECK(complaint([&] { (void)fields.require_object("n"); }) ==
        "my.json: /shape/n: must be an object, got the number -3");
  CHECK(complaint([&] { (void)fields.require_object("o").require_integer("n", 1); }) ==
        "my.json: /shape/o/n: must be at least 1, got 0");
  CHECK(complaint([&] { (void)fields.require_real("t"); }) ==
        "my.json: /shape/t: must be a number, got the text \"abc\"");
  CHECK(complaint([&] { (void)fields.require_string("n"); }) == "my.json: /shape/n: must be a text, got the number -3");
  CHECK(complaint([&] { (void)fields.optional_bool("n", true); }) ==
        "my.json: /shape/n: must be true or false, got the number -3");
  CHECK(complaint([&] { (void)fields.optional_integers("l"); }) ==
        "my.json: /shape/l/1: must be a whole number, got the text \"x\"");
  CHECK(complaint([&] { (void)fields.optional_strings("l"); }) ==
        "my.json: /shape/l: must be a list of texts, but one element is the number 1");
  CHECK_FALSE(fields.optional_integer("z"));
  CHECK_FALSE(fields.optional_string("y"));
  CHECK(fields.optional_real("h") == 1.5);
}

TEST_CASE("the top level must be an object") {
  const auto value = parse_json("[1]", "my.json");
  CHECK(complaint([&] { const Fields fields(value, "my.json"); }) ==
        "my.json: the top level must be an object, got a list");
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  const auto value = parse_json(R"({"num_sm": 1})", "my.json");
  constexpr std::array<std::string_view, 2> kKnown{"num_sms", "name"};
  try {
    Fields(value, "my.json").allow_only(kKnown);
    FAIL("num_sm was let pass");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "my.json: /num_sm: is not a known key");
    CHECK(error.hint() == "did you mean \"num_sms\"?");
  }
}
