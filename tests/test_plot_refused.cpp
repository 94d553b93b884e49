// What `plot` cannot read or write, and what is at the end of its range.
#include "plot_cases.hpp"

using namespace hbmscope::testing;

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
