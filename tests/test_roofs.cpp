// Roofs of a GPU: which one an algorithm meets first, and that runs and pictures hold every one that is known.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "model/gpu_roofs.hpp"
#include "process.hpp"
#include "report/format.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;

namespace {

const std::string kSource = HBMSCOPE_SOURCE_DIR;
const std::string kProbe = kSource + "/reports/h200/probe.json";

/// Rates by name, as gpu probe wrote them.
std::map<std::string, double> probed() {
  std::map<std::string, double> rates;
  const json probe = json::parse(text_of_file(kProbe));
  for (const json& roof : probe["roofs"]) rates[roof["name"]] = roof["rate"];
  return rates;
}

GpuRoof measured(std::string_view name, double rate) {
  return measured_roof(*find_roof_kind(name), rate);
}

json run_json(const std::string& options) {
  const Outcome outcome = run_program(words(("run --json - " + options).c_str()));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

double total(const json& algorithm, const char* boundary, const char* provenance) {
  for (const json& entry : algorithm["traffic"]) {
    if (entry["boundary"] == boundary && entry["provenance"] == provenance && entry["plan"] == algorithm["plan"])
      return entry["total_bytes"];
  }
  FAIL("no such entry");
  return 0;
}

}  // namespace

TEST_CASE("the lowest roof is the one that allows least, a resource by its best measured roof") {
  // 1000 FLOP over 10 B of HBM, 50 B of L2 and 4 exponentials.
  const RoofDemand demand{1000, 10, 50, 4};
  const std::vector<GpuRoof> datasheet = roofs_for({5.0, 800.0, 800.0}, {});
  REQUIRE(lowest_roof(datasheet, demand));
  CHECK(lowest_roof(datasheet, demand)->roof->name == "hbm");  // 100 FLOP/B at 5 B/s
  CHECK(lowest_roof(datasheet, demand)->flop_per_s == 500);
  const auto with = [&](const std::vector<GpuRoof>& more) {
    const std::vector<GpuRoof> all = roofs_for({5.0, 800.0, 800.0}, more);
    const LowestRoof lowest = *lowest_roof(all, demand);
    return lowest.roof->name + " " + std::to_string(std::lround(lowest.flop_per_s));
  };
  CHECK(with({measured("l2_read", 20)}) == "l2_read 400");
  CHECK(with({measured("l2_read", 30)}) == "hbm 500");
  CHECK(with({measured("exp2", 1)}) == "exp2 250");
  CHECK(with({measured("wgmma", 450), measured("mma_sync", 300)}) == "wgmma 450");
  CHECK(with({measured("copy", 4), measured("read", 4.5)}) == "read 450");
  // Matmul rates were measured in bf16: they hold for a dtype of the same rate, and for no other.
  CHECK(roofs_for({5.0, 1600.0, 800.0}, std::vector{measured("wgmma", 450)}).size() == 2);
  CHECK(roofs_for({5.0, 800.0, std::nullopt}, std::vector{measured("wgmma", 450)}).size() == 2);
  CHECK_FALSE(lowest_roof(datasheet, {1000, std::nullopt, 50, 4}));
  CHECK_FALSE(lowest_roof(datasheet, {0, 10, 50, 4}));
  CHECK_FALSE(lowest_roof({}, demand));
}

TEST_CASE("the H200's GPU file has what gpu probe measured on one") {
  const json run = run_json("--seqlen 1k --gpu h200 --engine sim");
  std::map<std::string, double> rates;
  for (const json& roof : run["gpu"]["roofs"]) {
    if (roof["from"] == "measured") rates[roof["name"]] = roof["rate"];
  }
  CHECK(rates.size() == 7);
  CHECK(rates == probed());
  CHECK(json(embedded_gpu("H200").sm_clocks) == json::parse(text_of_file(kProbe))["sm_clock_hz"]);
  for (const json& a : run["algorithms"]) {
    const double flop = a["flops"]["matmul"], hbm = flop / total(a, "l2_hbm", "simulated") * rates["read"],
                 l2 = flop / total(a, "sm_l2", "closed_form") * rates["l2_read"],
                 exp = flop / a["flops"]["exp"].get<double>() * rates["exp2"];
    CAPTURE(a["name"]);
    CHECK(a["lowest_roof"]["allowed_flop_per_s"].get<double>() ==
          doctest::Approx(std::min({hbm, l2, exp, rates["wgmma"]})).epsilon(1e-12));
    CHECK(a["roofline_by_boundary"][2]["ridge_flop_per_byte"].get<double>() ==
          doctest::Approx(989.5e12 / rates["l2_read"]).epsilon(1e-12));
  }
  const json unknown = run_json("--seqlen 1k --gpu a100 --engine sim");
  REQUIRE(unknown["gpu"]["roofs"].size() == 3);
  CHECK(unknown["gpu"]["roofs"][2]["rate"].is_null());
  CHECK(has(unknown["gpu"]["roofs"][2]["reason"].get<std::string>(), "gpu probe measures it"));
}

TEST_CASE("--roofs takes a probe of the same GPU, and refuses what is none") {
  const TemporaryFolder folder;
  json probe = json::parse(text_of_file(kProbe));
  probe["roofs"] = json::array({{{"name", "l2_read"}, {"unit", "byte_per_s"}, {"rate", 1e12}, {"status", "ok"}},
                                {{"name", "exp2"}, {"unit", "exp_per_s"}, {"rate", nullptr}, {"status", "failed"}},
                                {{"name", "of_tomorrow"}, {"unit", "byte_per_s"}, {"rate", 1.0}}});
  const std::string path = folder.write("probe.json", probe.dump(1));
  const json run = run_json("--seqlen 1k --gpu h200 --engine sim --roofs " + path);
  // Its clocks too, where they matter: K and V of 128k keys are more than L2 holds.
  probe["sm_clock_hz"] = json::array();
  for (int sm = 0; sm < 132; ++sm) probe["sm_clock_hz"].push_back(sm % 2 == 0 ? 1700000000 : 1600000000);
  const std::string clocks = folder.write("clocks.json", probe.dump(1));
  const auto spread = [](const json& of) { return of["algorithms"].back()["sm_clock_spread"].get<double>(); };
  CHECK(spread(run_json("--seqlen 128k --algorithm flash_v2 --gpu h200 --engine sim --roofs " + clocks)) ==
        doctest::Approx(0.0625));
  const json fits = run_json("--seqlen 1k --gpu h200 --engine sim --roofs " + clocks);
  CHECK(fits["algorithms"].back()["sm_clock_spread"].is_null());
  CHECK(has(fits["algorithms"].back()["sm_clock_spread_reason"].get<std::string>(), "K and V in flight fit the L2"));
  // A probe without them takes the place of the GPU file's, which are another GPU's.
  probe["sm_clock_hz"] = nullptr;
  const std::string bare = folder.write("bare.json", probe.dump(1));
  const json none = run_json("--seqlen 128k --algorithm flash_v2 --gpu h200 --engine sim --roofs " + bare);
  CHECK(has(none["algorithms"][0]["sm_clock_spread_reason"].get<std::string>(), "not known: gpu probe measures them"));
  const json many = run_json("--seqlen 128k --heads 128 --algorithm flash_v2 --gpu h200 --engine sim");
  CHECK(has(many["algorithms"][0]["sm_clock_spread_reason"].get<std::string>(), "left out to save time"));
  REQUIRE(run["gpu"]["roofs"].size() == 3);
  CHECK(run["gpu"]["roofs"][2]["rate"] == 1e12);
  CHECK(run["algorithms"][0]["lowest_roof"]["name"] == "l2_read");
  const auto refused = [&](json changed) {
    (void)folder.write("bad.json", changed.dump());
    return run_program({"run", "--gpu", "h200", "--engine", "model", "--roofs", folder.file("bad.json")});
  };
  check_complaint(run_program({"run", "--gpu", "a100", "--roofs", path}), 3, "has the roofs of NVIDIA H200",
                  "name its GPU with --gpu");
  check_complaint(run_program({"run", "--gpu", "h200", "--roofs", "/nowhere.json"}), 3, "cannot open /nowhere.json");
  check_complaint(refused(run), 3, "this is no probe of a GPU", "gpu probe --json");
  probe["roofs"][0]["rate"] = -1;
  check_complaint(refused(probe), 3, "/roofs/0/rate: must be larger than 0");
  probe["roofs"][0]["rate"] = 9.15;
  check_complaint(refused(probe), 3, "/roofs/0/rate: is implausible: 9.15");
  check_complaint(run_program({"run", "--gpu", "h200", "--roofs", "-"}), 2, "does not read standard input");
  probe["roofs"][0] = {{"name", "l2_read"}, {"unit", "flop_per_s"}, {"rate", 1e12}};
  check_complaint(refused(probe), 3, "/roofs/0/unit: must be \"byte_per_s\"");
  probe["roofs"][0] = {{"name", "l2_read"}, {"unit", "byte_per_s"}, {"rate", 1e12}};
  probe["sm_clock_hz"] = {1700000000};
  check_complaint(refused(probe), 3, "/sm_clock_hz: has 1 clocks, and this GPU has 132 SMs", "probe the GPU");
  probe["sm_clock_hz"] = {17};
  check_complaint(refused(probe), 3, "/sm_clock_hz/0: must be at least 100000000, got 17");
  probe["sm_clock_hz"] = nullptr;
  probe["roofs"] = json::array();
  check_complaint(refused(probe), 3, "holds no rate");
  probe["schema_version"] = "2.0";
  check_complaint(refused(probe), 3, "/schema_version: is 2.0");
  check_complaint(run_program({"plot", path, "-o", folder.file("x.html")}), 3, "a probe of a GPU", "--roofs");
  check_complaint(run_program({"plot", kProbe, "--roofs", path, "-o", path, "--format", "svg"}), 2,
                  "is read by this command");
}

TEST_CASE("the picture draws every roof of a probe, and marks at SM-L2 under the L2's") {
  std::istringstream file(text_of_file(kSource + "/reports/h200/forward.jsonl"));
  std::string line;
  for (int i = 0; i < 4; ++i) std::getline(file, line);
  json run = json::parse(line);
  run["gpu"].erase("roofs");  // as it was saved before results held them
  for (json& a : run["algorithms"]) a.erase("lowest_roof");
  line = run.dump();
  const auto spec_of = [&](std::vector<std::string> more) {
    Call made;
    made.arguments = {"plot", "-", "-o", "-", "--format", "vl.json", "--picture", "roofline"};
    made.arguments.insert(made.arguments.end(), more.begin(), more.end());
    made.input = line;
    const Outcome outcome = run_program(made);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  };
  const auto series_of = [](const json& spec) {
    std::map<std::string, std::vector<std::pair<double, double>>> series;
    for (const json& value : spec["data"]["values"]) series[value["series"]].emplace_back(value["x"], value["y"]);
    return series;
  };
  const json without = spec_of({});
  CHECK(has(without["usermeta"]["notes"].dump(), "gpu probe measures them, and --roofs takes them"));
  CHECK(series_of(without).count("L2 read roof") == 0);

  const json with = spec_of({"--roofs", kProbe});
  auto series = series_of(with);
  const std::map<std::string, double> rates = probed();
  for (const auto& [name, label] :
       {std::pair("copy", "HBM copy"), {"read", "HBM read"}, {"write", "HBM write"}, {"l2_read", "L2 read"}}) {
    const std::string shown = label;
    CAPTURE(shown);
    const auto& points = series[shown + " roof"];
    REQUIRE(points.size() >= 2);
    CHECK(points[0].second == doctest::Approx(points[0].first * rates.at(name)).epsilon(1e-12));
  }
  CHECK(series["bf16 mma.sync roof"].back().second == rates.at("mma_sync"));
  CHECK(series["bf16 wgmma roof"].back().second == rates.at("wgmma"));
  const double d = run["shape"]["head_dim"];  // 2 (d + d) FLOP to an exponential
  CHECK(series["exp2 roof, d " + std::to_string(static_cast<int>(d))].back().second ==
        doctest::Approx(4 * d * rates.at("exp2")).epsilon(1e-12));
  for (const json& a : run["algorithms"]) {
    const std::string name = a["name"];
    CAPTURE(name);
    const double flop = a["flops"]["matmul"];
    const auto& marks = series[name + " at SM-L2, predicted"];
    REQUIRE(marks.size() == 1);
    CHECK(marks[0].first == doctest::Approx(flop / total(a, "sm_l2", "closed_form")).epsilon(1e-9));
    CHECK(marks[0].second == series[name + ", predicted"][0].second);
    CHECK(has(with["usermeta"]["notes"].dump(), name + " meets "));
  }
  check_complaint(run_program({"plot", kSource + "/reports/h200/forward.jsonl", "--where", "seqlen=512", "--roofs",
                               kSource + "/reports/h200/forward.jsonl", "-o", "-", "--format", "svg"}),
                  3, "");
}

TEST_CASE("the chart in characters draws the roofs, says which is lowest, and fits 80 columns") {
  for (const char* options : {"--gpu h200", "--gpu h200 --head-dim 64 --dtype bf16 --heads 8",
                              "--gpu h200 --dtype fp32", "--gpu h200 --pass decode --heads 32 --kv-heads 8"}) {
    CAPTURE(options);
    const Outcome outcome =
        run_program(words((std::string("run --seqlen 2k --engine sim --chart ") + options).c_str()));
    REQUIRE(outcome.code == 0);
    CHECK(has(outcome.out, "at SM-L2 "));
    CHECK(has(outcome.out, "lowest roof: "));
    const std::map<std::string, double> rates = probed();
    CHECK(has(outcome.out, "L2 read " + text::byte_rate({rates.at("l2_read")})));
    CHECK(has(outcome.out, "bf16 wgmma " + text::flop_rate({rates.at("wgmma")})) == !has(options, "fp32"));
    std::size_t in_chart = 0;
    for (const std::string& one : lines_of(outcome.out)) {
      if (one.empty() && in_chart > 0) break;
      if (in_chart > 0 || one.starts_with("Roofline at HBM")) ++in_chart;
      if (in_chart > 0) CHECK(one.size() <= 80);
    }
    CHECK(in_chart > 20);
  }
  const Outcome unknown = run_program(words("run --seqlen 1k --gpu a100 --engine sim --chart"));
  CHECK(has(unknown.out, "No L2 roof: gpu probe measures it, --roofs takes it"));
  CHECK_FALSE(has(unknown.out, "lowest roof"));
}
