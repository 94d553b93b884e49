// The reports of `profile import`, and the command from outside.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/csv.hpp"
#include "device/device.hpp"
#include "json_schema.hpp"
#include "process.hpp"
#include "profile_cases.hpp"
#include "report/profile_report.hpp"
#include "report/profile_words.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;

namespace {

std::string text_of(const ProfileImport& import) {
  return to_text(profile_document(import), 100, false);
}

/// Lines and runs of blanks as one blank, so that a wrapped sentence is found.
std::string flowing(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      out += c;
    } else if (!out.ends_with(' ')) {
      out += ' ';
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the options that the report proposes put a prediction beside the counters") {
  std::vector<std::string> files{HBMSCOPE_SOURCE_DIR "/reports/h200/ncu_naive_flash_v2.csv"};
  for (const std::string& name : real_files()) files.push_back(kNcuFolder + name);
  const TemporaryFolder folder;  // two instances of one kernel: its short name selects both
  const auto named = [](const std::string& name) {
    return quoted({std::to_string(name.size()), name, "dram__bytes_read.sum", "byte", "8"});
  };
  files.push_back(folder.write("instances.csv", kLongHeader + named("void f<64>(int)") + named("void f<128>(int)")));
  files.push_back(folder.write("inside.csv", kLongHeader + named("f") + named("ff")));
  for (const std::string& file : files) {
    CAPTURE(file);
    const Outcome bare = run_program({"profile", "import", file});
    REQUIRE(bare.code == 0);
    const std::string text = flowing(bare.out);
    const std::size_t at = text.find("the shape: ");
    REQUIRE(at != std::string::npos);
    std::vector<std::string> arguments{"profile", "import", file};
    for (const std::string& word : words(text.substr(at + 11))) arguments.push_back(word);
    const Outcome outcome = run_program(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(has(outcome.out, "beside "));
  }
  const Outcome two = run_program({"profile", "import", files[0], "--kernel", "qk|flash"});
  CHECK(has(flowing(two.out), "the shape: in place of the --kernel given here --kernel ^void.unnamed"));
}

TEST_CASE("the report says what was counted, what stands beside it and why the two differ") {
  const ProfileImport p = import_file(kFa2, beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64)));
  const std::string text = text_of(p);
  for (const char* part :
       {"flash_fwd_kernel moved 74.2 MB through HBM: 1.11x the compulsory bytes", "L2 absorbed 2.11 GB of the 2.16 GB",
        "spills: SMs stored 473.4 MB beyond the 17.0 MB of outputs", "tile re-read: HBM gave 1.17 MB",
        "SM read: not collected; ncu --metrics l1tex__m_xbar2l1tex_read_bytes.sum counts it.",
        "it stands beside no prediction", "forward, batch 1, 8 heads, N 8,192, d 128, bf16, no mask", "tiles 128 x 64",
        "grid 64 x 1 x 8"}) {
    CAPTURE(part);
    CHECK(has(flowing(text), part));
  }
  for (const ProfileImport& any :
       {p, import_file(kFa2), import_file(kNaive), import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128)))}) {
    const std::string shown = text_of(any);
    for (std::size_t at = 0; at < shown.size(); at = shown.find('\n', at) + 1) {
      const std::string line = shown.substr(at, shown.find('\n', at) - at);
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
  const std::string naive = flowing(text_of(import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128)))));
  CHECK(has(naive, "write-back lag: 19.6 MB of the 1.07 GB"));
  CHECK(has(naive, "GEMM tiles 128 x 128"));
  const std::string markdown = to_markdown(profile_document(import_file(kNaive)));
  CHECK(has(markdown, "| 1 | cunn\\_SoftMaxForwardReg | 1.07 GB | 1.08 GB |"));
}

TEST_CASE("the report says of figures that ncu rounded, and of bytes that were not counted") {
  const std::string rounded = with_metric(real_file(kFa2), "l1tex__m_xbar2l1tex_read_bytes.sum", "Mbyte", "2,164.28");
  CHECK(has(flowing(text_of(import_text(rounded))), "ncu rounded these figures, to steps of up to 10.0 kB"));
  CHECK_FALSE(has(text_of(import_file(kFa2)), "rounded"));
  const std::string header = "ID,Kernel Name,";
  const auto sentence = [&](const std::string& metrics, const std::string& units, const std::string& values) {
    return text_of(import_text(header + metrics + "\n,," + units + "\n0,f," + values + "\n"));
  };
  CHECK(
      has(sentence("dram__bytes_read.sum", "Kbyte", "5"), "f read 5.00 kB from HBM; bytes written were not counted."));
  CHECK(has(sentence("dram__bytes_write.sum", "byte", "5"), "f wrote 5 B to HBM; bytes read were not counted."));
  CHECK(has(sentence("sm__cycles_elapsed.max", "cycle", "5"), "HBM bytes of f were not counted."));
  CHECK(has(sentence("dram__bytes_read.sum,dram__bytes_write.sum", "byte,byte", "5,6"), "f moved 11 B through HBM."));
}

TEST_CASE("a kernel's short name is its own, and steers no terminal") {
  for (const auto& [name, wanted] : std::vector<std::pair<const char*, const char*>>{
           {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>, 0>(Flash_fwd_params)", "flash_fwd_kernel"},
           {"void at::<unnamed>::cunn_SoftMaxForwardReg<c10::BFloat16, float>(T3 *, const T1 *)",
            "cunn_SoftMaxForwardReg"},
           {"void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)", "softmax_warp_forward"},
           {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"},
           {"f", "f"},
           {"", ""},
           {"(x)", "(x)"},
           {"<<>", "<<>"},
           {"k\x1b[31m(int)", "k\\x1b[31m"}}) {
    CAPTURE(name);
    CHECK(short_kernel_name(name) == wanted);
  }
}

TEST_CASE("the JSON is as its schema says, and its counters stand among the traffic as run's entries do") {
  const auto schema_text = [](const char* name) {
    return json::parse(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/" + name));
  };
  const JsonSchema by(schema_text("profile.schema.json"));
  json traffic_schema = schema_text("run.schema.json");
  const JsonSchema entry(json{{"$ref", "#/$defs/traffic"}, {"$defs", traffic_schema["$defs"]}});
  const std::string with_reads =
      with_metric(real_file(kFa2), "l1tex__m_xbar2l1tex_read_bytes.sum", "byte", "2,164,280,000");
  const AttentionShape flash = shape_of(1, kHeads, kN, kD);
  std::size_t whole_entries = 0;
  for (const ProfileImport& p :
       {import_file(kFa2), import_file(kNaive), import_file(kFa2, beside("flash_v2", flash, tiles(128, 64))),
        import_text(with_reads, beside("flash_v2", flash, tiles(128, 64))),
        import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128))),
        import_file(kFa2, beside("flash_v2", flash, tiles(128, 64), Engine::model)),
        import_text("ID,Kernel Name,sm__cycles_elapsed.max\n,,cycle\n0,f,12\n",
                    beside("flash_v2", flash, tiles(128, 64), Engine::model))}) {
    const json result = json::parse(profile_to_json(p, {"hbmscope", "profile"}).dump());
    for (const std::string& error : by.errors(result)) FAIL_CHECK(error);
    for (const json& algorithm : result["algorithms"]) {
      for (const json& one : algorithm["traffic"]) {
        if (one["provenance"] != "hw_counter" || one["status"] != "ok") continue;
        ++whole_entries;
        for (const std::string& error : entry.errors(one)) FAIL_CHECK(error);
      }
    }
  }
  CHECK(whole_entries == 5);

  const json naive =
      json::parse(profile_to_json(import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128))), {}).dump());
  CHECK(naive["algorithms"][0]["stages"][1]["traffic"].back()["write_bytes"] == 32LL * 4096 * 4096 * 2);
  CHECK(naive["algorithms"][0]["stages"][0]["time"]["measured_median_s"] == 340'032e-9);
  CHECK(naive["launches"][2]["stage"] == "pv");
  json changed = naive;
  changed["launches"][0]["traffic"][0]["read_bytes"] = 1.5;
  CHECK_FALSE(by.errors(changed).empty());
  changed = naive;
  changed["counted_beside_predicted"][0]["rows"][0].erase("against");
  CHECK_FALSE(by.errors(changed).empty());
  // What L2 looks up is in no traffic and no comparison.
  const std::string lookups = std::to_string(31'749'580LL * 32);
  CHECK(naive["launches"][0]["l2_lookup"]["read_bytes"] == 31'749'580LL * 32);
  CHECK_FALSE(has(naive["algorithms"].dump(), lookups));
  CHECK_FALSE(has(naive["counted_beside_predicted"].dump(), lookups));
}

TEST_CASE("the CSV has the same columns in every row, and plain numbers") {
  const std::string csv = profile_to_csv(import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128))));
  CsvReader reader(csv, "out.csv");
  const std::vector<std::string> header = reader.next().fields;
  std::size_t rows = 0, counters = 0;
  while (!reader.at_end()) {
    const std::vector<std::string> row = reader.next().fields;
    REQUIRE(row.size() == header.size());
    ++rows;
    const auto cell = [&](std::string_view name) {
      return row[static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin())];
    };
    if (cell("provenance") == "hw_counter") ++counters;
    if (cell("provenance") == "hw_counter" && cell("stage") == "softmax" && cell("boundary") == "l2_hbm")
      CHECK(cell("read_bytes") == "1073871872");
  }
  CHECK(counters == 3 * 3);
  CHECK(rows == 3 * 3 + 3 * 2 + 3);
}

// ---- the command ----------------------------------------------------------------------------------------------------

TEST_CASE("profile import on the command line: text, JSON, standard input, any locale") {
  const std::vector<std::string> arguments =
      words("profile import " + kNcuFolder + kFa2 +
            " --kernel flash_fwd --algorithm flash_v2 --block-q 128 --block-kv 64 --seqlen 8k --heads 8 --dtype bf16 "
            "--gpu h200");
  const Outcome text = run_program(arguments);
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  CHECK(has(text.out, "1.11x the compulsory bytes"));
  std::vector<std::string> as_json = arguments;
  as_json.insert(as_json.end(), {"--json", "-"});
  const json result = json::parse(run_program(as_json).out);
  CHECK(result["algorithms"][0]["traffic"].back()["provenance"] == "hw_counter");
  CHECK(result["shape"]["num_heads"] == 8);

  Call piped;
  piped.arguments = words("profile import - --json -");
  piped.input = real_file(kNaive);
  const json from_pipe = json::parse(run_program(piped).out);
  CHECK(from_pipe["launches"].size() == 3);
  CHECK(from_pipe["source"]["file"] == "standard input");
  Call german;
  german.arguments = arguments;
  german.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LC_NUMERIC", "de_DE.UTF-8"}};
  CHECK(run_program(german).out == text.out);
}

TEST_CASE("profile import ends with 3 for a bad file and with 2 for a bad command line, one line and a hint each") {
  const TemporaryFolder folder;
  const std::string whole = real_file(kFa2);
  const std::string cut = folder.write("cut.csv", whole.substr(0, whole.size() - 30));
  const std::string comma = folder.write("comma.csv", [&] {
    std::string text = whole;
    for (std::size_t at = text.find("\n\"ID\""); (at = text.find("51,501,824", at)) != std::string::npos;)
      text.replace(at, 10, "51.501.824");
    return text;
  }());
  const std::string good = kNcuFolder + kFa2;
  struct Case {
    std::string arguments;
    int code;
    const char* part;
  };
  for (const Case& c :
       {Case{folder.file("none.csv"), 3, "none.csv: no such file"}, Case{cut, 3, "is never closed"},
        Case{"/dev/null", 3, "is a device, not a file"}, Case{folder.file(""), 3, "is a directory"},
        Case{comma, 3, "is no number: \"51.501.824\""}, Case{good + " --kernel gemm", 2, "matches no kernel"},
        Case{good + " --kernel (", 2, "is no regular expression"},
        Case{good + " --seqlen 8k", 2, "--seqlen: says nothing without --algorithm"},
        Case{good + " --algorithm flash", 2, "names the fastest of our kernels"},
        Case{good + " --algorithm naive,flash_v2", 2, "one algorithm at a time"},
        Case{good + " --algorithm naive", 2, "naive is 3 kernels (qk, softmax, pv)"},
        Case{good + " --engine cpu", 2, "there is no option \"--engine\""},
        Case{good + " --json - --csv -", 2, "two formats cannot both go to standard output"}, Case{"", 2, "FILE"}}) {
    CAPTURE(c.arguments);
    const Outcome outcome = run_program(words("profile import " + c.arguments));
    CHECK(outcome.code == c.code);
    CHECK(outcome.out.empty());
    CHECK(has(outcome.err, c.part));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 2);
    CHECK(has(outcome.err, "\n  hint: "));
  }
  if (!device_status().present) CHECK(run_program(words("profile")).code == 4);  // nothing to profile on
}
