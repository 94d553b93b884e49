// Shards put together: complete, of one sweep, one version and one GPU, and the bytes of the whole.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/csv.hpp"
#include "sweep_checks.hpp"

using namespace hbmscope::testing;
namespace fs = std::filesystem;

namespace {

constexpr const char* kOptions = "--seqlen 64:704:64 --head-dim 32,64";

/// A sweep of 22 points, whole and in three shards.
struct Shards {
  TemporaryFolder folder;
  std::string all = rows_of(kOptions);
  std::vector<std::string> parts, paths;
  Shards() {
    for (int number = 1; number <= 3; ++number) {
      parts.push_back(rows_of(std::string(kOptions) + " --shard " + std::to_string(number) + "/3"));
      paths.push_back(folder.write("part" + std::to_string(number) + ".jsonl", parts.back()));
    }
  }
  [[nodiscard]] Outcome merged(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "merge");
    return run_program(arguments);
  }
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("shards in any order, and a row twice, give the bytes of the sweep that was not divided") {
  const Shards s;
  CHECK(s.merged(s.paths).out == s.all);
  CHECK(s.merged({s.paths[2], s.paths[0], s.paths[1]}).out == s.all);
  CHECK(s.merged({s.paths[2], s.paths[0], s.paths[0], s.paths[1]}).out == s.all);
  const std::string mixed_up = s.folder.write("mixed.jsonl", s.parts[2] + s.parts[0] + lines_of(s.parts[1])[0] + "\n");
  CHECK(s.merged({mixed_up, s.paths[1]}).out == s.all);
  CHECK(s.merged({s.folder.write("all.jsonl", s.all)}).out == s.all);
  const std::string to = s.folder.file("merged.jsonl");
  std::vector<std::string> arguments = s.paths;
  arguments.insert(arguments.end(), {"-o", to});
  const Outcome outcome = s.merged(arguments);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.empty());
  CHECK(text_of_file(to) == s.all);
}

TEST_CASE("standard input is a file of rows like others, once") {
  const Shards s;
  Call made;
  made.arguments = {"merge", s.paths[0], "-", s.paths[2]};
  made.input = s.parts[1];
  CHECK(run_program(made).out == s.all);
  made.arguments = {"merge", "-"};
  made.input = s.all;
  CHECK(run_program(made).out == s.all);
  made.input = "no row\n";
  check_complaint(run_program(made), 3, "standard input: line 1");
  made.input = s.all.substr(0, s.all.size() - 5);
  check_complaint(run_program(made), 3, "standard input: its last line, 22, is torn");
  made.input.clear();
  check_complaint(run_program(made), 3, "standard input: holds no row");
  made.arguments = {"merge", "-", "-"};
  made.input = s.all;
  check_complaint(run_program(made), 2, "standard input is named twice");
}

TEST_CASE("--csv has a line an algorithm, boundary and witness of every point") {
  const TemporaryFolder folder;
  const std::string rows = folder.file("rows.jsonl"), csv = folder.file("rows.csv"), again = folder.file("again.csv");
  const std::string options = "sweep --seqlen 256,512 --block-q 64,100000 --algorithm naive,flash_v2 --engine sim -o ";
  const Outcome swept = run_program(words((options + rows + " --csv " + csv).c_str()));
  CHECK(swept.code == 5);  // no tile has as many rows
  const std::vector<nlohmann::json> points = parsed_rows(text_of_file(rows));
  REQUIRE(points.size() == 4);
  const std::string text = text_of_file(csv);
  hbmscope::CsvReader reader(text, "rows.csv");
  const std::vector<std::string> head = reader.next().fields;
  const auto column = [&](const char* name) {
    const auto found = std::find(head.begin(), head.end(), name);
    REQUIRE(found != head.end());
    return static_cast<std::size_t>(found - head.begin());
  };
  std::size_t failed = 0;
  for (const nlohmann::json& point : points) {
    const auto check_point = [&](const std::vector<std::string>& fields) {
      REQUIRE(fields.size() == head.size());
      CHECK(fields[column("index")] == point["sweep"]["index"].dump());
      CHECK(fields[column("key")] == point["sweep"]["key"]);
      CHECK(fields[column("status")] == point["sweep"]["status"]);
      CHECK(fields[column("axis_seqlen")] == point["sweep"]["axes"]["seqlen"].dump());
      CHECK(fields[column("axis_block_q")] == point["sweep"]["axes"]["block_q"].dump());
    };
    if (point["sweep"]["status"] == "failed") {
      const std::vector<std::string> fields = reader.next().fields;
      check_point(fields);
      CHECK(fields[column("reason")] == point["sweep"]["reason"]);
      CHECK(fields[column("total_bytes")].empty());
      ++failed;
      continue;
    }
    for (const nlohmann::json& a : point["algorithms"]) {
      for (const nlohmann::json& entry : a["traffic"]) {
        const std::vector<std::string> fields = reader.next().fields;
        check_point(fields);
        CHECK(fields[column("seqlen_kv")] == point["shape"]["seqlen_kv"].dump());
        CHECK(fields[column("algorithm")] == a["name"]);
        CHECK(fields[column("boundary")] == entry["boundary"]);
        CHECK(fields[column("provenance")] == entry["provenance"]);
        CHECK(nlohmann::json::parse(fields[column("entry_plan")]) == entry["plan"]);
        CHECK(fields[column("read_bytes")] == entry["read_bytes"].dump());
        CHECK(fields[column("write_bytes")] == entry["write_bytes"].dump());
        CHECK(fields[column("total_bytes")] == entry["total_bytes"].dump());
        CHECK(std::stod(fields[column("predicted_s")]) == a["time"]["predicted_s"].get<double>());
      }
    }
  }
  CHECK(reader.at_end());
  CHECK(failed == 2);
  // What merge makes of the rows is the same, and a resumed sweep's are whole.
  CHECK(run_program({"merge", rows, "-o", folder.file("all.jsonl"), "--csv", again}).code == 0);
  CHECK(text_of_file(again) == text);
  fs::resize_file(rows, fs::file_size(rows) - 100);
  CHECK(run_program(words((options + rows + " --resume --csv -").c_str())).out == text);
  check_complaint(run_program(words("sweep --seqlen 1,2 --csv -")), 2, "--csv: is made of the rows in a file", "-o");
  check_complaint(run_program({"sweep", "--seqlen", "1,2", "-o", csv + "x", "--csv", csv + "x"}), 2,
                  "is the file of the rows");
  check_complaint(run_program({"merge", rows, "-o", "/dev/null", "--csv", csv}), 2, "--csv: is made of the rows");
  check_complaint(run_program({"merge", rows, "--csv", csv}), 2, "--csv: is made of the rows in a file");
  check_complaint(run_program({"merge", rows, "-o", folder.file("b.jsonl"), "--csv", rows}), 2,
                  "is read by this command");
}

TEST_CASE("points that are missing are told, and nothing is written") {
  const Shards s;
  const std::string to = s.folder.write("merged.jsonl", "before");
  check_complaint(s.merged({s.paths[0], s.paths[2], "-o", to}), 5, "7 of 22 points are missing: 1, 4, 7, 10, 13, ...",
                  "--resume");
  CHECK(text_of_file(to) == "before");
  std::vector<std::string> lines = lines_of(s.all);
  std::string text;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) text += lines[i] + "\n";
  check_complaint(s.merged({s.folder.write("short.jsonl", text)}), 5, "1 of 22 points are missing: 21");
  check_complaint(s.merged({s.folder.write("empty.jsonl", "")}), 3, "holds no row");
}

TEST_CASE("rows that do not belong together are refused with both places") {
  const Shards s;
  const std::string other = s.folder.write("other.jsonl", rows_of("--seqlen 64:704:64 --head-dim 32,128 --shard 2/3"));
  check_complaint(s.merged({s.paths[0], other, s.paths[2]}), 3, "other.jsonl: line 1: is a row of another sweep");
  // Two different rows of one point.
  const std::string changed = s.folder.write(
      "changed.jsonl", replaced(lines_of(s.parts[1])[2], "\"total_bytes\":", "\"total_bytes\":1") + "\n");
  const Outcome twice = s.merged({s.paths[0], s.paths[1], s.paths[2], changed});
  check_complaint(twice, 3, "changed.jsonl: line 1: point 7 is another row than at");
  CHECK(has(twice.err, "part2.jsonl: line 3"));
  // What only --mixed takes: another version, another build, another GPU.
  for (const auto& [what, by, said] :
       {std::tuple("\"version\":\"", "\"version\":\"9.", "has hbmscope 9."),
        std::tuple("\"git\":\"", "\"git\":\"0", "has hbmscope "),
        std::tuple("\"gpu\":{\"name\":\"", "\"gpu\":{\"name\":\"x ", "has the GPU x "),
        std::tuple("\"git\":", "\"device\":\"NVIDIA H200\",\"git\":", "has the measuring GPU NVIDIA H200")}) {
    const std::string changed_text = what;
    CAPTURE(changed_text);
    std::string part;
    for (const std::string& line : lines_of(s.parts[1])) part += replaced(line, what, by) + "\n";
    const std::string path = s.folder.write("odd.jsonl", part);
    check_complaint(s.merged({s.paths[0], path, s.paths[2]}), 3, said, "--mixed");
    const Outcome mixed = s.merged({s.paths[0], path, s.paths[2], "--mixed"});
    CHECK(mixed.code == 0);
    CHECK(lines_of(mixed.out).size() == 22);
    CHECK(lines_of(mixed.out)[1] == lines_of(part)[0]);
  }
}

TEST_CASE("where the GPU is an axis, rows of several GPUs belong together") {
  const TemporaryFolder folder;
  const std::string options = "--gpu h100,h200 --seqlen 64,128", all = rows_of(options);
  const std::string one = folder.write("1.jsonl", rows_of(options + " --shard 1/2")),
                    two = folder.write("2.jsonl", rows_of(options + " --shard 2/2"));
  CHECK(run_program({"merge", one, two}).out == all);
}

TEST_CASE("failed points are rows like others, and are told") {
  const TemporaryFolder folder;
  const std::string options = "--heads 4 --kv-heads 1:4:1", all = rows_of(options, 5);
  const std::string one = folder.write("1.jsonl", rows_of(options + " --shard 1/2", 5)),
                    two = folder.write("2.jsonl", rows_of(options + " --shard 2/2"));
  const Outcome outcome = run_program({"merge", one, two});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == all);
  CHECK(has(outcome.err, "1 of 4 points had failed"));
}

TEST_CASE("what is no row, a torn line, a file that is not there or is the result: an error, and nothing is written") {
  const Shards s;
  for (const std::string& text :
       {std::string("{}\n"), std::string("nonsense\n"), std::string("\n"), std::string("[1]\n"),
        std::string(3000, '\0') + "\n", std::string(100000, '[') + "\n"}) {
    CAPTURE(text.substr(0, 20));
    check_complaint(s.merged({s.paths[0], s.folder.write("bad.jsonl", s.parts[1] + text), s.paths[2]}), 3,
                    "bad.jsonl: line 8: ");
  }
  const std::string huge = replaced(lines_of(s.parts[1])[0], "\"points\":22", "\"points\":4611686018427387904");
  check_complaint(s.merged({s.folder.write("huge.jsonl", huge + "\n")}), 5, "points are missing: 0, 2, 3");
  check_complaint(s.merged({s.folder.write("huge.jsonl", huge + "\n"), s.paths[0]}), 3, "another sweep");
  check_complaint(
      s.merged({s.paths[0], s.folder.write("torn.jsonl", s.parts[1].substr(0, s.parts[1].size() - 9)), s.paths[2]}), 3,
      "torn.jsonl: its last line, 7, is torn", "--resume");
  check_complaint(s.merged({s.paths[0], s.folder.write("newer.jsonl", replaced(s.parts[1], "\"1.0\"", "\"2.0\""))}), 3,
                  "newer.jsonl: line 1: has schema_version \"2.0\"");
  check_complaint(s.merged({s.folder.file("none.jsonl")}), 3, "no such file");
  check_complaint(s.merged({s.paths[0], s.paths[1], s.paths[2], "-o", s.paths[1]}), 2, "is read by this command");
  CHECK(text_of_file(s.paths[1]) == s.parts[1]);
  check_complaint(s.merged({s.paths[0], s.paths[1], s.paths[2], "-o", s.folder.file("no/merged.jsonl")}), 1, "cannot");
  check_complaint(s.merged({}), 2, "");
  CHECK(std::distance(fs::directory_iterator(fs::path(s.paths[0]).parent_path()), {}) == 7);
}
