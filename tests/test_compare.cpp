// Two sets of results against each other: what changed is found, and nothing else.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli_checks.hpp"
#include "json_schema.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

const std::string kSource = HBMSCOPE_SOURCE_DIR;

json saved_line(std::size_t number) {
  const std::string text = text_of_file(kSource + "/reports/h200/forward.jsonl");
  return json::parse(lines_of(text).at(number));
}

/// A result of the model, without measured parts.
const json& plain_result() {
  static const json result = json::parse(run_program(words("run --seqlen 1k --engine sim --json -")).out);
  return result;
}

struct Sides {
  TemporaryFolder folder;
  Outcome compare(const json& a, const json& b, const std::string& options = "") {
    std::vector<std::string> arguments{"compare", folder.write("a.json", a.dump()), folder.write("b.json", b.dump())};
    for (const std::string& word : words(options)) arguments.push_back(word);
    return run_program(arguments);
  }
  json report(const json& a, const json& b, const std::string& options = "") {
    return json::parse(compare(a, b, "--json - " + options).out);
  }
};

json& algorithm_of(json& result, const char* name) {
  for (json& a : result["algorithms"]) {
    if (a["name"] == name) return a;
  }
  FAIL("no such algorithm");
  return result;
}

/// The samples, each as many times as long.
json with_times(json result, const char* algorithm, double factor, std::size_t samples = 1000) {
  json& time = algorithm_of(result, algorithm)["time"];
  json changed = json::array();
  for (const json& s : time["samples_s"]) {
    if (changed.size() < samples) changed.push_back(s.get<double>() * factor);
  }
  time["samples_s"] = changed;
  if (!time["measured_median_s"].is_null())
    time["measured_median_s"] = time["measured_median_s"].get<double>() * factor;
  return result;
}

}  // namespace

TEST_CASE("the saved runs of an H200 are equal to themselves, alone and as a folder") {
  for (const std::string name : {"/forward.jsonl", "/orders.jsonl", ""}) {
    const std::string path = kSource + "/reports/h200" + name;
    const Outcome outcome = run_program({"compare", path, path, "--json", "-"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    const json report = json::parse(outcome.out);
    CHECK(report["matched"].get<int>() > 3);
    CHECK(report["equal"] == report["matched"]);
    CHECK(report["differences"].empty());
    CHECK(report["missing"].empty());
    CHECK(report["added"].empty());
    CHECK(report["failed"] == false);
    // What else the folder holds is named and passed over.
    CHECK(report["passed_over"].size() == (name.empty() ? 14 : 0));
  }
}

TEST_CASE("a comparison in which nothing meets nothing fails: it would pass for ever") {
  const TemporaryFolder folder;
  const std::string rows = folder.file("rows.jsonl");
  CHECK(run_program({"sweep", "--heads", "5,6", "--kv-heads", "4", "-o", rows}).code == 5);  // both points fail
  const Outcome outcome = run_program({"compare", rows, rows});
  CHECK(outcome.code == 5);
  CHECK(has(outcome.err, "no entry is in both, so nothing was compared"));
}

TEST_CASE("a byte that changed is found with its boundary, tensor and direction, and fails") {
  Sides sides;
  json changed = plain_result();
  for (json& entry : algorithm_of(changed, "flash_v2")["traffic"]) {
    if (entry["boundary"] != "sm_l2" || entry["provenance"] != "closed_form") continue;
    entry["tensors"]["K"]["read_bytes"] = entry["tensors"]["K"]["read_bytes"].get<std::int64_t>() + 1;
    entry["read_bytes"] = entry["read_bytes"].get<std::int64_t>() + 1;
    entry["total_bytes"] = entry["total_bytes"].get<std::int64_t>() + 1;
  }
  const Outcome outcome = sides.compare(plain_result(), changed);
  check_complaint(outcome, 5, "1 of other size");
  CHECK(has(outcome.out, "sm_l2 closed_form, K read"));
  CHECK(has(outcome.out, "+1"));
  const json report = sides.report(plain_result(), changed);
  REQUIRE(report["differences"].size() == 1);
  const json& one = report["differences"][0];
  CHECK(one["verdict"] == "different");
  CHECK(one["algorithm"] == "flash_v2");
  CHECK(one["is"].get<std::int64_t>() - one["was"].get<std::int64_t>() == 1);
  CHECK(report["equal"].get<int>() == report["matched"].get<int>() - 1);
  // One in a million is let pass where one in a thousand is.
  CHECK(sides.compare(plain_result(), changed, "--bytes-tolerance 0.1%").code == 0);
  CHECK(sides.compare(plain_result(), changed, "--bytes-tolerance 1e-12").code == 5);
}

TEST_CASE(
    "bytes that moved from one tensor to another, or from one stage to another, are found though the sum is the same") {
  Sides sides;
  json by_tensor = plain_result();
  for (json& entry : algorithm_of(by_tensor, "naive")["traffic"]) {
    if (entry["boundary"] != "l2_hbm") continue;
    for (const auto& [tensor, by] : {std::pair{"S", 64}, std::pair{"P", -64}}) {
      json& bytes = entry["tensors"][tensor]["write_bytes"];
      bytes = bytes.get<std::int64_t>() + by;
    }
  }
  CHECK(sides.report(plain_result(), by_tensor)["differences"].size() == 2);
  json by_stage = plain_result();
  json& stages = algorithm_of(by_stage, "naive")["stages"];
  for (const auto& [stage, tensor, by] : {std::tuple{0, "K", 64}, std::tuple{2, "V", -64}}) {
    for (json& entry : stages[static_cast<std::size_t>(stage)]["traffic"]) {
      if (entry["boundary"] != "l2_hbm") continue;
      for (json* bytes : {&entry["read_bytes"], &entry["total_bytes"], &entry["tensors"][tensor]["read_bytes"]})
        *bytes = bytes->get<std::int64_t>() + by;
    }
  }
  const json report = sides.report(plain_result(), by_stage);
  CHECK(report["differences"].size() == 2);
  CHECK(has(report["differences"][0]["of"].get<std::string>(), "stage qk"));
  CHECK(report["failed"] == true);
}

TEST_CASE("a slower time fails, a faster one is told, and neither noise nor a small change is either") {
  Sides sides;
  const json run = saved_line(3);
  check_complaint(sides.compare(run, with_times(run, "flash_v2", 1.08)), 5, "1 slower");
  const json slower = sides.report(run, with_times(run, "flash_v2", 1.08));
  REQUIRE(slower["differences"].size() == 1);
  CHECK(slower["differences"][0]["verdict"] == "slower");
  CHECK(slower["differences"][0]["relative"].get<double>() == doctest::Approx(0.08));
  CHECK(slower["differences"][0]["p"].get<double>() < 1e-6);
  const json faster = sides.report(run, with_times(run, "flash_v2", 0.9));
  CHECK(faster["differences"][0]["verdict"] == "faster");
  CHECK(faster["failed"] == false);
  CHECK(sides.compare(run, with_times(run, "flash_v2", 0.9), "--strict").code == 5);
  // 2 % is below the least change that counts, unless less is asked for.
  CHECK(sides.compare(run, with_times(run, "flash_v2", 1.02)).code == 0);
  CHECK(sides.compare(run, with_times(run, "flash_v2", 1.02), "--time-tolerance 0.01").code == 5);
  CHECK(sides.compare(run, with_times(run, "flash_v2", 1.08), "--time-tolerance 10%").code == 0);
}

TEST_CASE("a large change of the median is noise where the samples overlap as they would anyway") {
  Sides sides;
  json a = saved_line(3), b = a;
  algorithm_of(a, "flash_v2")["time"]["samples_s"] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0};
  algorithm_of(b, "flash_v2")["time"]["samples_s"] = {1.5, 2.5, 2.6, 4.9, 5.9, 6.1, 7.5, 9.0};
  CHECK(sides.compare(a, b).code == 0);  // medians 4.5 and 5.4
  // Where there are too few samples for a test, the median decides, and the report says so.
  const json few = with_times(a, "flash_v2", 1, 4);
  const Outcome outcome = sides.compare(few, with_times(few, "flash_v2", 1.2));
  CHECK(outcome.code == 5);
  CHECK(has(outcome.out, "by medians"));
}

TEST_CASE("what the hardware counts may differ by a few percent, and not by more") {
  Sides sides;
  const json run = saved_line(3);
  const auto counted = [&](double factor) {
    json changed = run;
    for (json& entry : algorithm_of(changed, "flash_v2")["traffic"]) {
      if (entry["provenance"] != "hw_counter" || entry["status"] != "ok") continue;
      entry["read_bytes"] = std::llround(entry["read_bytes"].get<double>() * factor);
      entry["total_bytes"] = entry["read_bytes"].get<std::int64_t>() + entry["write_bytes"].get<std::int64_t>();
    }
    return changed;
  };
  CHECK(sides.compare(run, counted(1.04)).code == 0);
  CHECK(sides.compare(run, counted(1.07)).code == 5);
  CHECK(sides.compare(run, counted(1.07), "--counter-tolerance 10%").code == 0);
  CHECK(sides.compare(run, counted(1.04), "--counter-tolerance 0").code == 5);
}

TEST_CASE("what one side lacks is listed; what the second lacks fails unless it may") {
  Sides sides;
  json less = plain_result();
  less["algorithms"].erase(0);
  const Outcome outcome = sides.compare(plain_result(), less);
  check_complaint(outcome, 5, "1 entry missing");
  CHECK(has(outcome.out, "Missing in"));
  CHECK(sides.compare(plain_result(), less, "--allow-missing").code == 0);
  CHECK(sides.compare(less, plain_result()).code == 0);
  CHECK(sides.report(less, plain_result())["added"][0]["algorithm"] == "naive");
  CHECK(sides.compare(less, plain_result(), "--strict").code == 5);
  // A measured time that is no longer there is lost; one of another plan, GPU or mask is another entry.
  const json run = saved_line(3);
  json unmeasured = with_times(run, "flash_v2", 1, 0);
  algorithm_of(unmeasured, "flash_v2")["time"]["measured_median_s"] = nullptr;
  CHECK(sides.report(run, unmeasured)["differences"][0]["verdict"] == "lost");
  CHECK(sides.compare(run, unmeasured).code == 5);
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, json>>{
           {"/gpu/name", "H20"},
           {"/shape/batch", 17},
           {"/shape/dtype", "bf16"},
           {"/shape/mask",
            {{"kind", "causal"}, {"alignment", "bottom_right"}, {"window_left", nullptr}, {"window_right", 0}}},
           {"/algorithms/0/plan/block_q", 64}}) {
    json other = plain_result();
    other.at(json::json_pointer(pointer.substr(0, pointer.rfind('/'))))[pointer.substr(pointer.rfind('/') + 1)] = value;
    const std::string& member = pointer;
    CAPTURE(member);
    const json report = sides.report(plain_result(), other);
    CHECK(report["missing"].size() == report["added"].size());
    CHECK(!report["missing"].empty());
  }
}

TEST_CASE("the order of lines does not matter, and equal entries match one to one") {
  const TemporaryFolder folder;
  const std::string forward = text_of_file(kSource + "/reports/h200/forward.jsonl");
  std::vector<std::string> lines = lines_of(forward);
  lines.push_back(lines[2]);  // twice
  std::string there, back;
  for (const std::string& line : lines) there += line + "\n";
  std::reverse(lines.begin(), lines.end());
  for (const std::string& line : lines) back += line + "\n";
  const std::string a = folder.write("a.jsonl", there), b = folder.write("b.jsonl", back);
  CHECK(run_program({"compare", a, b}).code == 0);
  // Without the second copy one set of entries is left over.
  const std::string once = folder.write("once.jsonl", forward);
  const json report = json::parse(run_program({"compare", a, once, "--json", "-"}).out);
  CHECK(report["missing"].size() == json::parse(lines_of(forward)[2])["algorithms"].size());
  CHECK(report["differences"].empty());
}

TEST_CASE("text, Markdown, CSV and JSON tell the same, and JSON keeps to its schema") {
  Sides sides;
  const json run = saved_line(3);
  json changed = with_times(run, "flash_v2", 1.5);
  changed["algorithms"].erase(0);
  const Outcome csv = sides.compare(run, changed, "--csv -"), markdown = sides.compare(run, changed, "--markdown -");
  const std::vector<std::string> rows = lines_of(csv.out);
  CHECK(rows.size() == 3);  // a head, a slower time, a missing entry
  CHECK(has(csv.out, ",slower,"));
  CHECK(has(csv.out, ",missing,"));
  CHECK(has(markdown.out, "| slower"));
  const JsonSchema by(json::parse(text_of_file(kSource + "/docs/schema/compare.schema.json")));
  for (const json& report : {sides.report(run, changed), sides.report(run, run)}) {
    for (const std::string& error : by.errors(report)) FAIL_CHECK(error);
  }
  json odd = sides.report(run, changed);
  odd["differences"][0]["verdict"] = "worse";
  CHECK_FALSE(by.errors(odd).empty());
}

TEST_CASE("names in foreign files, and of them, neither steer a terminal nor break a table") {
  const TemporaryFolder folder;
  json foreign = plain_result();
  foreign["gpu"]["name"] =
      "\xc2\x9b"
      "1m<b>|`H100";
  json other = foreign;
  other["algorithms"][0]["flops"]["matmul"] = 1;
  const std::string a = folder.write("a\x1b[2J.json", foreign.dump()), b = folder.write("b\x1b[2J.json", other.dump());
  for (const std::string target : {"", "--markdown", "--csv"}) {
    std::vector<std::string> arguments{"compare", a, b};
    if (!target.empty()) arguments.insert(arguments.end(), {target, "-"});
    const Outcome outcome = run_program(arguments);
    CAPTURE(outcome.out);
    CHECK(outcome.code == 5);
    CHECK(outcome.out.find('\x1b') == std::string::npos);
    CHECK(outcome.out.find("\xc2\x9b") == std::string::npos);
    if (target == "--markdown") CHECK_FALSE(has(outcome.out, "<b>|"));
  }
  foreign["gpu"]["name"] = "\x1b[2JH100";
  check_complaint(run_program({"compare", a, folder.write("c.json", foreign.dump())}), 3, "/gpu/name");
}

TEST_CASE("totals by algorithm are the sums of what both sides know") {
  const TemporaryFolder folder;
  std::string was, is;
  std::map<std::string, std::array<std::int64_t, 4>> sums;
  std::map<std::string, double> log_ratio;
  for (std::size_t number = 0; number < 6; ++number) {
    const json run = saved_line(number);
    json changed = with_times(run, "flash_v2", 1 + 0.1 * static_cast<double>(number));
    for (json& a : changed["algorithms"]) {
      for (json& entry : a["traffic"]) {
        if (entry["boundary"] == "l2_hbm" && entry["provenance"] == "simulated" && number == 2) {
          entry["read_bytes"] = entry["read_bytes"].get<std::int64_t>() + 1000;
          entry["total_bytes"] = entry["total_bytes"].get<std::int64_t>() + 1000;
          entry.erase("tensors");
        }
      }
    }
    for (const auto& [side, first] : {std::pair(&run, 0), std::pair(&std::as_const(changed), 1)}) {
      for (const json& a : (*side)["algorithms"]) {
        for (const json& entry : a["traffic"]) {
          if (entry["plan"] != a["plan"]) continue;
          const std::string what = entry["boundary"].get<std::string>() + " " + entry["provenance"].get<std::string>();
          const std::size_t at = static_cast<std::size_t>(first);
          if (what == "l2_hbm simulated") sums[a["name"]][at] += entry["total_bytes"].get<std::int64_t>();
          if (what == "sm_l2 closed_form") sums[a["name"]][2 + at] += entry["total_bytes"].get<std::int64_t>();
        }
      }
    }
    log_ratio["flash_v2"] += std::log(1 + 0.1 * static_cast<double>(number)) / 6;
    was += run.dump() + "\n";
    is += changed.dump() + "\n";
  }
  const std::string a = folder.write("a.jsonl", was), b = folder.write("b.jsonl", is);
  const json report = json::parse(run_program({"compare", a, b, "--json", "-"}).out);
  REQUIRE(report["totals"].size() == sums.size());
  for (const json& one : report["totals"]) {
    const std::string name = one["algorithm"];
    CAPTURE(name);
    CHECK(one["matched"] == 6);
    CHECK(one["equal"] == (name == "flash_v2" ? 1 : 5));
    CHECK(one["hbm_bytes"]["was"] == sums[name][0]);
    CHECK(one["hbm_bytes"]["is"] == sums[name][1]);
    CHECK(sums[name][1] == sums[name][0] + 1000);
    CHECK(one["sm_l2_bytes"]["was"] == sums[name][2]);
    CHECK(one["sm_l2_bytes"]["is"] == sums[name][3]);
    CHECK(one["times"] == 6);
    CHECK(one["time_ratio"].get<double>() == doctest::Approx(std::exp(log_ratio[name])).epsilon(1e-9));
  }
  const std::string text = run_program({"compare", a, b}).out;
  CHECK(has(text, "Totals by algorithm"));
  CHECK(has(text, "+1,000 B"));
}

TEST_CASE("a link in a folder to what is no file, or waits for ever, ends nothing") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("in"));
  (void)folder.write("in/good.json", plain_result().dump());
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink(folder.file("pipe"), folder.file("in/pipe.json"));
  CHECK(run_program({"compare", folder.file("in"), folder.file("in")}).code == 0);
  if (::access("/proc/kmsg", R_OK) == 0) {
    std::filesystem::create_symlink("/proc/kmsg", folder.file("in/log.json"));
    const Outcome outcome = run_program({"compare", folder.file("in"), folder.file("in")});
    CHECK((outcome.code == 0 || outcome.code == 3));
  }
}

TEST_CASE("bad input of a comparison is a clear sentence") {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.json", plain_result().dump());
  const auto compare = [&](const std::string& other) { return run_program({"compare", good, other}); };
  check_complaint(compare(folder.file("none.json")), 3, "no such file");
  check_complaint(compare(folder.write("empty.jsonl", "")), 3, "holds no result");
  check_complaint(compare(folder.write("torn.json", plain_result().dump().substr(0, 5000))), 3, "torn.json");
  json major = plain_result();
  major["schema_version"] = "2.0";
  check_complaint(compare(folder.write("major.json", major.dump())), 3, "/schema_version");
  check_complaint(compare(kSource + "/reports/h200/peers.jsonl"), 3, "schema_version");
  check_complaint(run_program({"compare", "-", "-"}), 2, "standard input");
  check_complaint(run_program({"compare", good, good, "--json", good}), 2, "is read by this command");
  check_complaint(run_program({"compare", good, good, "--time-tolerance", "-1"}), 2, "--time-tolerance");
  check_complaint(run_program({"compare", good, good, "--time-tolerance", "much"}), 2, "--time-tolerance");
  check_complaint(run_program({"compare", good}), 2, "B");
  const TemporaryFolder bare;
  check_complaint(run_program({"compare", good, std::filesystem::path(bare.file("x")).parent_path().string()}), 3,
                  "holds no .json");
  Call piped;
  piped.arguments = {"compare", "-", good};
  piped.input = plain_result().dump();
  CHECK(run_program(piped).code == 0);
}
