// `plot` from outside: what the pictures hold is what the results say, and bad input ends in a sentence.
#include "plot_cases.hpp"

using namespace hbmscope::testing;

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
      spec_of(text_of_file(kForwardRuns), {"--picture", "sweep", "--where", "head_dim=128", "--where", "mask=causal"});
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
