// `plot` from outside: what the pictures hold is what the results say, and bad input ends in a sentence.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "plot/pictures.hpp"
#include "process.hpp"

using namespace hbmscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::string kForward = std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/forward.jsonl";

/// A row of a sweep: flash_v2 with these bytes at SM-L2.
json row_of(std::int64_t N, std::int64_t bytes, std::int64_t head_dim = 64, const std::string& gpu = "H200") {
  static std::int64_t index = 0;
  return {
      {"schema_version", "1.0"},
      {"sweep", {{"index", index++}, {"key", "0"}, {"axes", {{"seqlen", N}}}, {"status", "ok"}, {"reason", nullptr}}},
      {"shape",
       {{"batch", 1},
        {"num_heads", 1},
        {"num_kv_heads", 1},
        {"seqlen_q", N},
        {"seqlen_kv", N},
        {"head_dim", head_dim},
        {"dtype", "fp16"}}},
      {"gpu", {{"name", gpu}}},
      {"algorithms",
       {{{"name", "flash_v2"},
         {"traffic",
          {{{"boundary", "sm_l2"},
            {"provenance", "closed_form"},
            {"status", "ok"},
            {"read_bytes", bytes - 1},
            {"write_bytes", 1},
            {"total_bytes", bytes}}}}}}}};
}

std::string lines(const std::vector<json>& rows) {
  std::string text;
  for (const json& row : rows) text += row.dump() + "\n";
  return text;
}

Outcome plot(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), "plot");
  Call made;
  made.arguments = std::move(arguments);
  made.input = input;
  return run_program(made);
}

std::string picture_of(const std::string& input, std::vector<std::string> more, const std::string& format) {
  more.insert(more.end(), {"-", "-o", "-", "--format", format});
  const Outcome outcome = plot(more, input);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.empty());
  return outcome.out;
}

json spec_of(const std::string& input, const std::vector<std::string>& more) {
  return json::parse(picture_of(input, more, "vl.json"));
}

std::vector<json> forward_runs() {
  std::istringstream file(text_of_file(kForward));
  std::vector<json> runs;
  for (std::string line; std::getline(file, line);) runs.push_back(json::parse(line));
  return runs;
}

const json* entry_of(const json& algorithm, const char* boundary, const char* provenance) {
  for (const json& entry : algorithm["traffic"]) {
    if (entry["boundary"] == boundary && entry["provenance"] == provenance && entry["plan"] == algorithm["plan"] &&
        entry["status"] == "ok")
      return &entry;
  }
  return nullptr;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace

TEST_CASE("the table of pictures is what --list, --help and the documentation show") {
  const std::string list = plot({"--list"}).out, help = plot({"--help"}).out;
  const std::string page = text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/plots.md");
  REQUIRE(hbmscope::plot::pictures().size() == 8);
  for (const hbmscope::plot::Picture& picture : hbmscope::plot::pictures()) {
    const std::string name(picture.name), question(picture.question);
    CAPTURE(name);
    CHECK(has(list, name + " "));
    CHECK(has(list, question));
    CHECK(has(help, name));
    CHECK(has(page, "| `" + name + "` | " + question));
  }
}

TEST_CASE("bars are the bytes of each tensor, predicted beside measured") {
  const json run = forward_runs()[26];
  const json spec = spec_of(run.dump(), {"--picture", "traffic"});
  std::map<std::string, std::map<std::string, std::int64_t>> drawn;
  for (const json& value : spec["data"]["values"])
    drawn[value["row"]][value["tensor"]] += value["bytes"].get<std::int64_t>();
  std::size_t compared = 0;
  const auto compare = [&](const std::string& row, const json* entry) {
    if (entry == nullptr) return;
    CAPTURE(row);
    REQUIRE(drawn.count(row) == 1);
    std::int64_t sum = 0;
    for (const auto& [tensor, bytes] : drawn[row]) sum += bytes;
    CHECK(sum == (*entry)["total_bytes"].get<std::int64_t>());
    if (!(*entry)["tensors"].is_object()) return;
    for (const auto& [tensor, bytes] : (*entry)["tensors"].items()) {
      CHECK(drawn[row][tensor] == bytes["read_bytes"].get<std::int64_t>() + bytes["write_bytes"].get<std::int64_t>());
      ++compared;
    }
  };
  for (const json& algorithm : run["algorithms"]) {
    const std::string name = algorithm["name"].get<std::string>() + ": ";
    compare(name + "compulsory", entry_of(algorithm, "compulsory", "formula"));
    compare(name + "HBM, predicted", entry_of(algorithm, "l2_hbm", "simulated"));
    compare(name + "HBM, measured", entry_of(algorithm, "l2_hbm", "hw_counter"));
    compare(name + "SM-L2, predicted", entry_of(algorithm, "sm_l2", "closed_form"));
    compare(name + "SM-L2, measured", entry_of(algorithm, "sm_l2", "hw_counter"));
  }
  CHECK(drawn.size() == 5 * run["algorithms"].size());
  CHECK(compared > 30);
  const std::string svg = picture_of(run.dump(), {"--picture", "traffic"}, "svg");
  std::size_t segments = 0;
  for (const auto& [row, tensors] : drawn) segments += tensors.size();
  CHECK(count_of(svg, "class=\"mark ") == segments);
}

TEST_CASE("lines of a sweep are the file's bytes, for one head where heads change along them") {
  const json spec =
      spec_of(text_of_file(kForward), {"--picture", "sweep", "--where", "head_dim=128", "--where", "mask=causal"});
  std::map<std::pair<std::string, std::int64_t>, double> drawn;
  for (const json& value : spec["data"]["values"])
    drawn[{value["series"].get<std::string>(), value["x"].get<std::int64_t>()}] = value["y"].get<double>();
  std::size_t compared = 0;
  for (const json& run : forward_runs()) {
    if (run["shape"]["head_dim"] != 128 || run["shape"]["mask"]["kind"] != "causal") continue;
    const double heads = run["shape"]["batch"].get<double>() * run["shape"]["num_heads"].get<double>();
    for (const json& algorithm : run["algorithms"]) {
      const std::string name = algorithm["name"];
      for (const auto& [boundary, shown] : {std::pair("l2_hbm", " at HBM"), std::pair("sm_l2", " at SM-L2")}) {
        for (const bool counted : {false, true}) {
          const char* provenance = counted                             ? "hw_counter"
                                   : boundary == std::string("l2_hbm") ? "simulated"
                                                                       : "closed_form";
          const json* entry = entry_of(algorithm, boundary, provenance);
          if (entry == nullptr) continue;
          const auto found =
              drawn.find({name + shown + (counted ? ", measured" : ""), run["shape"]["seqlen_q"].get<std::int64_t>()});
          REQUIRE(found != drawn.end());
          CHECK(found->second == doctest::Approx((*entry)["total_bytes"].get<double>() / heads).epsilon(1e-12));
          ++compared;
        }
      }
    }
  }
  CHECK(compared == drawn.size());
  CHECK(compared > 100);
}

TEST_CASE("exponents and their intervals are those of the data") {
  std::vector<json> rows;
  for (std::int64_t N = 256; N <= 16384; N *= 2) rows.push_back(row_of(N, 3 * N * N));
  const std::string svg = picture_of(lines(rows), {"--picture", "sweep"}, "svg");
  CHECK(has(svg, "N^2.00 (95 %: 2.00 to 2.00)"));
  CHECK(has(svg, "flash_v2 at SM-L2"));
  CHECK(has(svg, "Data: rows of hbmscope sweep over seqlen<"));
  // Three points with logarithms 0, 1 + log10 2, 2 over 0, 1, 2: the interval of test_plot_parts, 1 +- 2.208.
  const std::string bent =
      picture_of(lines({row_of(10, 1000), row_of(100, 20000), row_of(1000, 100000)}), {"--picture", "sweep"}, "svg");
  CHECK(has(bent, "N^1.00 (95 %: -1.21 to 3.21)"));
  const std::string two = picture_of(lines({row_of(10, 1000), row_of(100, 20000)}), {"--picture", "sweep"}, "svg");
  CHECK(has(two, "N^1.30 through two points"));
}

TEST_CASE("whole numbers keep their digits") {
  const std::int64_t bytes = (std::int64_t{1} << 60) + 1;  // no double
  const std::string html = picture_of(lines({row_of(1024, bytes), row_of(2048, bytes + 2)}), {}, "html");
  CHECK(has(html, "<td>1152921504606846977\n"));
  CHECK(has(html, "<td>1152921504606846979\n"));
}

TEST_CASE("results of different shapes are lines of their own, and --where picks one") {
  std::vector<json> rows;
  for (const std::int64_t d : {64, 128}) {
    for (std::int64_t N = 256; N <= 1024; N *= 2) rows.push_back(row_of(N, N * d, d));
  }
  const std::string svg = picture_of(lines(rows), {"--picture", "sweep"}, "svg");
  CHECK(has(svg, "(head_dim 64)"));
  CHECK(has(svg, "The first of 2 such pictures"));
  CHECK(has(picture_of(lines(rows), {"--picture", "sweep", "--where", "head_dim=128"}, "svg"),
            "Only results with head_dim = 128."));
  const std::string html = picture_of(lines(rows), {}, "html");
  CHECK(has(html, "<option value=\"sweep-1\">head_dim 128</option>"));
  CHECK(spec_of(lines(rows), {"--picture", "sweep", "--where", "seqlen=1k"})["usermeta"]["picture"] == "sweep");
  check_complaint(plot({"-", "-o", "-", "--format", "svg", "--where", "head_dim=65"}, lines(rows)), 2,
                  "none of the results");
  check_complaint(plot({"-", "-o", "-", "--format", "svg", "--where", "colour=red"}, lines(rows)), 2,
                  "no result has a field \"colour\"", "head_dim");
  check_complaint(plot({"-", "-o", "-", "--format", "svg", "--where", "head_dim"}, lines(rows)), 2, "needs NAME=VALUE");
}

TEST_CASE("without measured parts the picture says so, and why") {
  const Outcome run = run_program(words("run --seqlen 1k --engine sim --json -"));
  const std::string svg = picture_of(run.out, {"--picture", "traffic"}, "svg");
  CHECK(has(svg, "No measured bars: "));
  CHECK_FALSE(has(svg, "HBM, measured"));
  CHECK(has(svg, "Data: hbmscope run --seqlen 1k --engine sim --json -"));
  const std::string html = picture_of(run.out, {}, "html");
  CHECK(has(html, "<b>How far are predicted bytes from measured ones?</b>: nothing was measured: "));
  check_complaint(plot({"-", "-o", "-", "--format", "svg", "--picture", "agreement"}, run.out), 3,
                  "these results give no picture \"agreement\"", "counters of a GPU");
}

TEST_CASE("markup in a title, a command or a name stays text") {
  const std::string evil = "</title></script><script>alert(1)</script><b a=\"'>&]]>";
  json row = row_of(1024, 4096);
  row["gpu"]["name"] = "</svg><img src=x onerror=alert(2)>";
  row["meta"] = {{"argv", {"hbmscope", "run", "--json", "<script>alert(3)</script>\x01"}}};
  row["algorithms"][0]["name"] = "flash\"><script>alert(4)</script>";
  row["sweep"]["axes"] = {{"<i>", "<b>"}};
  json other = row;
  other["shape"]["seqlen_q"] = other["shape"]["seqlen_kv"] = 2048;
  other["sweep"]["axes"]["<i>"] = "</option><script>alert(5)</script>";
  const std::string input = lines({row, other});
  for (const char* format : {"html", "svg"}) {
    CAPTURE(format);
    const std::string text = picture_of(input, {"--title", evil}, format);
    CHECK_FALSE(has(text, "<script>alert"));
    CHECK_FALSE(has(text, "<img"));
    CHECK_FALSE(has(text, "\x01"));
    CHECK(has(text, "&lt;/title&gt;&lt;/script&gt;&lt;script&gt;alert(1)"));
    CHECK(count_of(text, "<script>") == (format == std::string("html") ? 1U : 0U));
  }
  CHECK(spec_of(input, {"--title", evil})["title"]["subtitle"][0] == evil);
  CHECK(has(picture_of(input, {"--title", "\xff"}, "vl.json"), "\xEF\xBF\xBD"));
}

TEST_CASE("failed points are counted, and nothing but failed points is an error") {
  json failed = row_of(1, 1);
  failed["sweep"]["status"] = "failed";
  failed["sweep"]["reason"] = "no such tile";
  failed["shape"] = nullptr;
  failed["algorithms"] = json::array();
  const std::string svg = picture_of(lines({row_of(512, 1000), failed, row_of(1024, 2000)}), {}, "svg");
  CHECK(has(svg, "1 of 3 points of the sweep failed and are not drawn."));
  check_complaint(plot({"-", "-o", "-", "--format", "html"}, lines({failed, failed})), 3, "all 2 results failed");
}

TEST_CASE("a sweep beyond what a picture can show is thinned out, and says how far") {
  const std::string pattern = row_of(12345678, 87654321).dump();
  const auto replace = [](std::string text, const std::string& from, std::int64_t number) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, from.size(), std::to_string(number));
    return text;
  };
  std::string input;
  for (std::int64_t N = 1; N <= 10050; ++N) {
    const std::string row = replace(replace(pattern, "12345678", N), "87654321", N * N + 1);
    input += replace(row, "87654320", N * N) + "\n";
  }
  const json spec = spec_of(input, {"--picture", "sweep"});
  const std::size_t drawn = spec["data"]["values"].size();
  CHECK(drawn > 4500);
  CHECK(drawn < 5550);
  const std::string note = spec["usermeta"]["notes"][0];
  CHECK(note.find("A sample: of 10,050 results ") == 0);
  CHECK(has(note, "one in 2 by lot"));
  std::int64_t last = 0;
  for (const json& value : spec["data"]["values"]) {
    const std::int64_t N = value["x"];
    CHECK(value["y"] == N * N + 1);
    CHECK(N > last);
    last = N;
  }
}

TEST_CASE("what cannot be read or written is told before anything is written") {
  const TemporaryFolder folder;
  const std::string rows = folder.write("rows.jsonl", lines({row_of(512, 1000), row_of(1024, 2000)}));
  const std::string before = text_of_file(rows), out = folder.file("page.html");
  const auto nothing_is_written = [&] {
    CHECK_FALSE(fs::exists(out));
    CHECK(std::distance(fs::directory_iterator(fs::path(rows).parent_path()), fs::directory_iterator{}) == 1);
  };
  check_complaint(plot({rows}), 2, "-o is missing");
  check_complaint(plot({"-o", out}), 2, "needs a file of results", "run --json");
  check_complaint(plot({"-", "-", "-o", out}), 2, "standard input is named twice", "name - once");
  check_complaint(plot({rows, "-o", folder.file("page.pdf")}), 2, "tells no format by its end",
                  ".html, .svg or .vl.json");
  check_complaint(plot({rows, "-o", "-"}), 2, "standard output", "--format");
  check_complaint(plot({rows, "-o", out, "--format", "png"}), 2, "does not know \"png\"");
  check_complaint(plot({rows, "-o", out, "--picture", "sweep"}), 2, "--picture has no effect");
  check_complaint(plot({rows, "-o", folder.file("x.svg"), "--picture", "swep"}), 2, "does not know \"swep\"", "sweep");
  check_complaint(plot({"/nowhere/rows.jsonl", "-o", out}), 3, "cannot open /nowhere/rows.jsonl");
  check_complaint(plot({rows, "-o", "/nowhere/page.html"}), 1, "/nowhere/page.html: cannot create");
  check_complaint(plot({rows, "-o", rows, "--format", "html"}), 2, "is read by this command");
  fs::create_hard_link(rows, folder.file("also.jsonl"));
  check_complaint(plot({rows, "-o", folder.file("also.jsonl"), "--format", "svg"}), 2, "is read by this command");
  fs::remove(folder.file("also.jsonl"));
  check_complaint(plot({"-", "-o", out}, before + "{\"schema_version\": \"2.0\"}\n"), 3,
                  "standard input: line 3: /schema_version: is 2.0");
  check_complaint(plot({"-", "-o", out}, before + before.substr(0, 40)), 3, "standard input: line 3, column 41");
  check_complaint(plot({"-", "-o", out}, ""), 3, "standard input: holds no result");
  std::string infinite = before;
  infinite.replace(infinite.find("1000"), 4, "1e999");
  check_complaint(plot({"-", "-o", out}, infinite), 3, "beyond the range of a double");
  nothing_is_written();
  CHECK(text_of_file(rows) == before);

  Call closed;
  closed.arguments = {"plot", rows, "-o", "-", "--format", "html"};
  closed.closed_pipe = true;
  closed.ignore_sigpipe = true;
  const Outcome silent = run_program(closed);
  CHECK(silent.code == 0);
  CHECK(silent.err.empty());
}

TEST_CASE("numbers at the end of their range leave no infinity and no page half made") {
  json row = row_of(1024, INT64_MAX);
  row["gpu"]["hbm_bandwidth_bytes_per_s"] = 1e-300;
  row["gpu"]["peak_flop_per_s"] = {{"fp16", 1e308}, {"fp8", 1e-308}};
  json& algorithm = row["algorithms"][0];
  algorithm["flops"] = {{"matmul", INT64_MAX}, {"executed_matmul", 1}};
  algorithm["roofline"] = {{"achieved_flop_per_s", 1e300}};
  algorithm["roofline_by_boundary"] = {{{"level", "l2_hbm"}, {"intensity_flop_per_byte", 1e300}}};
  algorithm["time"] = {{"predicted_s", 1e-300}};
  algorithm["exactness"] = {{"max_abs_error", 1e300}, {"tolerance", 1e-300}, {"rmse", 5e-324}};
  row["comparison"] = {{{"of", "a"}, {"to", "b"}, {"boundary", "sm_l2"}, {"speedup_predicted", 1e308}}};
  row["amdahl"] = {{"attention_share", 1.0}, {"attention_speedup", 1e308}, {"end_to_end_speedup", 1e308}};
  json heads = row;
  heads["shape"]["batch"] = heads["shape"]["num_heads"] = heads["shape"]["num_kv_heads"] = 1000000000;
  for (const std::vector<json>& rows : {std::vector<json>{row}, {heads}, {row, heads}}) {
    const std::string html = picture_of(lines(rows), {}, "html");
    for (const char* word : {"\"inf", " inf", "nan\"", "nan ", "-inf"}) {
      CAPTURE(word);
      CHECK_FALSE(has(html, word));
    }
    CHECK(has(html, "9223372036854775807"));
  }
  CHECK(has(picture_of(heads.dump(), {}, "html"), "</b>: a count of this shape does not fit 64 bits</li>"));
}

TEST_CASE("a page opens on the largest shape, and every result's step can be picked") {
  std::vector<json> runs = forward_runs();
  runs.resize(7);
  const std::string html = picture_of(lines(runs), {}, "html");
  std::size_t largest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]["shape"]["seqlen_q"] > runs[largest]["shape"]["seqlen_q"]) largest = i;
  }
  REQUIRE(largest > 0);
  for (const std::string picture : {"traffic", "amdahl"}) {
    CAPTURE(picture);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::string id = picture + "-" + std::to_string(i);
      CHECK(has(html, "<option value=\"" + id + "\"" + (i == largest ? " selected" : "") + ">seqlen "));
      CHECK(has(html, "<figure id=\"" + id + "\"" + (i == largest ? "" : " hidden") + ">"));
    }
    CHECK_FALSE(has(html, "id=\"" + picture + "-" + std::to_string(runs.size()) + "\""));
  }
  // Rows of a sweep know no speed-up: the curves alone, once.
  CHECK_FALSE(has(picture_of(lines({row_of(512, 1000), row_of(1024, 2000)}), {}, "html"), "amdahl-1"));
}

TEST_CASE("what tells results apart has a name: the run of a scenario, or else a number") {
  const std::string scenario = run_program(words("scenario run lesson-8k --json -")).out;
  const std::string html = picture_of(scenario, {}, "html");
  CHECK(has(html, "<option value=\"traffic-0\" selected>run q-outer</option>"));
  CHECK(has(html, "<option value=\"traffic-1\">run kv-outer, as first released</option>"));
  CHECK(has(picture_of(scenario, {"--picture", "traffic", "--where", "run=q-outer"}, "svg"), "Only results with run"));
  const json row = row_of(512, 1000);
  CHECK(has(picture_of(lines({row, row}), {}, "html"), "<option value=\"traffic-1\">result 2</option>"));
}

TEST_CASE("the errors of elements are a histogram, the algorithms side by side") {
  const json run = json::parse(run_program(words("run --seqlen 300 --engine cpu --json -")).out);
  const json spec = spec_of(run.dump(), {"--picture", "error"});
  std::map<std::string, std::map<double, std::int64_t>> drawn;
  for (const json& value : spec["data"]["values"]) drawn[value["series"]][value["from"]] = value["count"];
  REQUIRE(drawn.size() == run["algorithms"].size());
  const std::string notes = spec["usermeta"]["notes"].dump();
  for (const json& a : run["algorithms"]) {
    const json &e = a["exactness"], &errors = e["errors"];
    std::map<double, std::int64_t> bins;
    std::int64_t elements = errors["exact_elements"];
    for (const json& bin : errors["bins"]) {
      bins[bin["from"]] = bin["elements"];
      elements += bin["elements"].get<std::int64_t>();
      CHECK(bin["to"].get<double>() == 2 * bin["from"].get<double>());
    }
    CHECK(drawn[a["name"]] == bins);
    CHECK(elements == e["rows_checked"].get<std::int64_t>() * 128);
    CHECK(has(notes, a["name"].get<std::string>() + " " + errors["exact_elements"].dump()));
  }
  const std::string svg = picture_of(run.dump(), {"--picture", "error"}, "svg");
  std::size_t bars = 0;
  for (const auto& [name, bins] : drawn) bars += bins.size();
  CHECK(count_of(svg, "class=\"mark ") == bars);
  // Several results: their largest errors first, then the elements of each.
  json other = run;
  other["shape"]["seqlen_q"] = other["shape"]["seqlen_kv"] = 301;
  const std::string html = picture_of(lines({run, other}), {}, "html");
  CHECK(has(html, "<option value=\"error-0\" selected>all results, their largest errors</option>"));
  CHECK(has(html, "<option value=\"error-2\">seqlen 301</option>"));
  // A result that was saved without them.
  for (json& a : other["algorithms"]) a["exactness"].erase("errors");
  const json old = spec_of(other.dump(), {"--picture", "error"});
  CHECK(has(old["usermeta"]["notes"].dump(), "not the errors of elements, which were not kept"));
  json before = run;
  for (json& a : before["algorithms"]) a["exactness"].erase("errors");
  CHECK(has(spec_of(lines({before, other}), {"--picture", "error"})["usermeta"]["notes"].dump(),
            "do not hold the errors of elements"));
  other["algorithms"][0]["exactness"]["errors"] = {
      {"exact_elements", 1},
      {"bins", {{{"from", 1}, {"to", 2}, {"elements", 1}}, {{"from", 1.5}, {"to", 4}, {"elements", 1}}}}};
  check_complaint(plot({"-", "-o", "-", "--format", "svg"}, other.dump()), 3,
                  "/algorithms/0/exactness/errors/bins/1/from: must not lie within the bin before");
}

TEST_CASE("a page asks the network for nothing and holds every picture or its reason") {
  std::vector<json> some = forward_runs();
  some.resize(4);
  for (const std::string& input : {lines(some), lines({row_of(512, 1000), row_of(1024, 2000)})}) {
    const std::string html = picture_of(input, {}, "html");
    for (const char* part : {"http://", "https://"}) {
      std::string rest = html;
      for (const std::string& known : {std::string("http://www.w3.org/2000/svg")}) {
        for (std::size_t at = rest.find(known); at != std::string::npos; at = rest.find(known))
          rest.erase(at, known.size());
      }
      CHECK(count_of(rest, part) == 0);
    }
    CHECK(has(html, "default-src 'none'"));
    for (const hbmscope::plot::Picture& picture : hbmscope::plot::pictures()) {
      const std::string section = "<section id=\"" + std::string(picture.name) + "\"";
      const std::string reason = "<li><b>" + std::string(picture.question) + "</b>: ";
      CAPTURE(picture.name);
      CHECK((has(html, section) ? 1 : 0) + (has(html, reason) ? 1 : 0) == 1);
    }
  }
}
