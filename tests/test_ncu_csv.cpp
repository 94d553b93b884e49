// ncu's CSV, in both layouts: tests/data/ncu holds what ncu wrote of other people's kernels on an H200 with CUDA 13.0.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "device/ncu_csv.hpp"
#include "helpers.hpp"
#include "process.hpp"

using namespace hbmscope;
using hbmscope::testing::has;
using hbmscope::testing::text_of_file;

namespace {

const std::string kFolder = std::string(HBMSCOPE_SOURCE_DIR) + "/tests/data/ncu/";

std::string real_file(const std::string& name) {
  return text_of_file(kFolder + name);
}

std::vector<std::string> real_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    names.push_back(entry.path().filename().string());
  return names;
}

/// "a,b" with every field in quotes, as ncu writes it.
std::string quoted(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += "\"";
  }
  return line + "\n";
}

const std::string kLongHeader = quoted({"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"});

/// One launch with one metric.
std::string long_file(const std::string& metric, const std::string& unit, const std::string& value) {
  return kLongHeader + quoted({"0", "void f(int)", metric, unit, value});
}

struct Complaint {
  std::string what, hint;
};

template <class Call>
Complaint complaint(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_FALSE(error.hint().empty());
    return {error.what(), error.hint()};
  }
  return {};
}

Complaint complaint_of_file(const std::string& text) {
  return complaint([&] { (void)parse_ncu_csv(text, "f.csv"); });
}

std::int64_t bytes(const NcuKernel& kernel, HwQuantity quantity) {
  const std::optional<NcuReading> reading = read_quantity(kernel, quantity, "f.csv");
  REQUIRE(reading);
  return reading->count;
}

/// The long table of a real file as ncu's raw page has it: a row a launch, a column a metric.
std::string as_columns(const std::string& text) {
  CsvReader reader(text, "f.csv");
  while (!reader.peek_line().starts_with("\"ID\"")) reader.skip_line();
  const std::vector<std::string> header = reader.next().fields;
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  const std::size_t identity = column("Section Name");
  std::vector<std::string> names(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(identity));
  std::vector<std::string> units(identity);
  std::vector<std::vector<std::string>> launches;
  std::map<std::string, std::size_t> metrics;
  while (!reader.at_end()) {
    const std::vector<std::string> row = reader.next().fields;
    if (launches.empty() || launches.back()[0] != row[0])
      launches.emplace_back(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(identity));
    const std::string& metric = row[column("Metric Name")];
    if (metrics.try_emplace(metric, names.size()).second) {
      names.push_back(metric);
      units.push_back(row[column("Metric Unit")]);
    }
    launches.back().resize(names.size());
    launches.back()[metrics[metric]] = row[column("Metric Value")];
  }
  std::string out = "==PROF== Connected to process 1\n" + quoted(names) + quoted(units);
  for (const std::vector<std::string>& launch : launches) out += quoted(launch);
  return out;
}

void check_same(const NcuFile& a, const NcuFile& b) {
  REQUIRE(a.kernels.size() == b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const NcuKernel &x = a.kernels[i], &y = b.kernels[i];
    CHECK(x.id == y.id);
    CHECK(x.process == y.process);
    CHECK(x.name == y.name);
    CHECK(x.grid == y.grid);
    CHECK(x.block == y.block);
    CHECK(x.compute_capability == y.compute_capability);
    REQUIRE(x.metrics.size() == y.metrics.size());
    for (const auto& [name, value] : x.metrics) {
      const auto other = y.metrics.find(name);
      REQUIRE(other != y.metrics.end());
      CHECK(value.exact == other->second.exact);
      CHECK(value.value == other->second.value);
      CHECK(value.unit == other->second.unit);
    }
  }
}

}  // namespace

TEST_CASE("a real file of FlashAttention-2 gives its launch and its counters") {
  const NcuFile file = parse_ncu_csv(real_file("fa2_1_8_8192_128_noflush.csv"), "fa2.csv");
  CHECK(file.layout == NcuLayout::rows);
  REQUIRE(file.kernels.size() == 1);
  const NcuKernel& k = file.kernels[0];
  CHECK(k.id == 0);
  CHECK(k.process == 914);
  CHECK(k.name.starts_with("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4,"));
  CHECK(k.grid == std::array<std::int64_t, 3>{64, 1, 8});
  CHECK(k.block == std::array<std::int64_t, 3>{128, 1, 1});
  CHECK(k.compute_capability == "9.0");
  CHECK(k.metrics.size() == 6);
  CHECK(bytes(k, HwQuantity::dram_read_bytes) == 51'501'824);
  CHECK(bytes(k, HwQuantity::dram_write_bytes) == 22'656'000);
  CHECK(bytes(k, HwQuantity::l2_write_sectors) == 32 * std::int64_t{15'327'232});
  CHECK(bytes(k, HwQuantity::l2_lookup_sectors) == 32 * std::int64_t{58'856'088});
  CHECK(read_quantity(k, HwQuantity::gpu_time_ns, "fa2.csv")->value == 781'600e-9);
  CHECK_FALSE(read_quantity(k, HwQuantity::xbar_read_bytes, "fa2.csv"));
  CHECK_FALSE(read_quantity(k, HwQuantity::tensor_instructions, "fa2.csv"));
}

TEST_CASE("rows of one launch are gathered, launches keep their order") {
  const NcuFile file = parse_ncu_csv(real_file("naive_1_32_4096_128_noflush.csv"), "naive.csv");
  REQUIRE(file.kernels.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(file.kernels[i].id == static_cast<std::int64_t>(i));
    CHECK(file.kernels[i].metrics.size() == 6);
    CHECK(file.kernels[i].line == static_cast<std::int64_t>(4 + 6 * i));
  }
  CHECK(file.kernels[0].name.starts_with("nvjet_sm90_tst_256x128"));
  CHECK(has(file.kernels[1].name, "cunn_SoftMaxForwardReg"));
  // S and P of 32 heads of N = 4096 in bf16.
  CHECK(bytes(file.kernels[0], HwQuantity::l2_write_sectors) == std::int64_t{32} * 4096 * 4096 * 2);
  CHECK(bytes(file.kernels[1], HwQuantity::l2_write_sectors) == std::int64_t{32} * 4096 * 4096 * 2);
  CHECK(bytes(file.kernels[2], HwQuantity::l2_write_sectors) == std::int64_t{32} * 4096 * 128 * 2);
}

TEST_CASE("the layout with a row a launch gives the same as the one with a row a metric") {
  const std::vector<std::string> names = real_files();
  CHECK(names.size() == 6);
  for (const std::string& name : names) {
    CAPTURE(name);
    const NcuFile rows = parse_ncu_csv(real_file(name), "f.csv");
    const NcuFile columns = parse_ncu_csv(as_columns(real_file(name)), "f.csv");
    CHECK(columns.layout == NcuLayout::columns);
    check_same(rows, columns);
  }
}

TEST_CASE("columns are found by their names, in any order and among unknown ones") {
  const NcuFile file =
      parse_ncu_csv(quoted({"Metric Value", "New", "Kernel Name", "Metric Unit", "ID", "Metric Name"}) +
                        quoted({"1,024", "?", "f", "byte", "3", "dram__bytes_read.sum"}) +
                        quoted({"2,048", "?", "f", "byte", "3", "dram__bytes_write.sum"}),
                    "f.csv");
  REQUIRE(file.kernels.size() == 1);
  CHECK(file.kernels[0].id == 3);
  CHECK(bytes(file.kernels[0], HwQuantity::dram_read_bytes) == 1024);
  CHECK(bytes(file.kernels[0], HwQuantity::dram_write_bytes) == 2048);
  CHECK_FALSE(file.kernels[0].grid);
}

TEST_CASE("lines of ncu itself and what the program printed before the table are passed over") {
  const std::string row = quoted({"0", "f", "dram__bytes_read.sum", "byte", "7"});
  const std::string more = quoted({"1", "f", "dram__bytes_read.sum", "byte", "8"});
  const NcuFile file = parse_ncu_csv("loss 0.3, \"quoted\nthing\n==PROF== Profiling \"f\": 0%....100% - 1 pass\n\r\n" +
                                         kLongHeader + "==WARNING== \"\n" + row + "\n== \n" + more + "==PROF== end",
                                     "f.csv");
  REQUIRE(file.kernels.size() == 2);
  CHECK(bytes(file.kernels[1], HwQuantity::dram_read_bytes) == 8);
}

TEST_CASE("tables of sections: labels may repeat, and advice of a rule is no metric") {
  const std::string header =
      quoted({"ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name"});
  const NcuFile file =
      parse_ncu_csv(header + quoted({"0", "f", "Speed Of Light", "Memory Throughput", "%", "45.70", ""}) +
                        quoted({"0", "f", "Memory", "Memory Throughput", "Gbyte/second", "1,200", ""}) +
                        quoted({"0", "f", "Speed Of Light", "", "", "", "SOLBottleneck"}) +
                        quoted({"0", "f", "Metrics", "dram__bytes_read.sum", "Kbyte", "2", ""}),
                    "f.csv");
  REQUIRE(file.kernels.size() == 1);
  CHECK(file.kernels[0].metrics.size() == 2);
  CHECK(bytes(file.kernels[0], HwQuantity::dram_read_bytes) == 2000);
}

TEST_CASE("a number comes in its SI base unit, whole numbers exactly") {
  struct Case {
    const char *number, *unit, *base;
    double value, step;
    std::optional<std::int64_t> exact;
  };
  for (const Case& c : std::vector<Case>{
           {"807,980,288", "byte", "byte", 807980288, 1, 807980288},
           {"1234567", "byte", "byte", 1234567, 1, 1234567},
           {"1,024.00", "byte", "byte", 1024, 0.01, 1024},
           {"2,164.28", "Mbyte", "byte", 2164280000, 10000, 2164280000},
           {"1.5", "Kbyte", "byte", 1500, 100, 1500},
           {"66.75", "Gbyte", "byte", 66750000000, 1e7, 66750000000},
           {"0.25", "Tbyte", "byte", 2.5e11, 1e10, 250000000000},
           {"9,223,372,036,854,775,807", "byte", "byte", 9223372036854775807.0, 1, INT64_MAX},
           {"9,223,372,036,854,775,808", "byte", "byte", 9223372036854775808.0, 1, std::nullopt},
           {"12,513,248", "ns", "second", 12513248e-9, 1e-9, std::nullopt},
           {"12,513,248", "nsecond", "second", 12513248e-9, 1e-9, std::nullopt},
           {"403.78", "us", "second", 403.78e-6, 1e-8, std::nullopt},
           {"403.78", "usecond", "second", 403.78e-6, 1e-8, std::nullopt},
           {"1.84", "ms", "second", 1.84e-3, 1e-5, std::nullopt},
           {"1.84", "msecond", "second", 1.84e-3, 1e-5, std::nullopt},
           {"2", "s", "second", 2, 1, 2},
           {"4.0e-05", "second", "second", 4e-5, 1e-6, std::nullopt},
           {"33,554,432", "sector", "sector", 33554432, 1, 33554432},
           {"1,000", "inst", "inst", 1000, 1, 1000},
           {"1,755", "cycle", "cycle", 1755, 1, 1755},
           {"98.5", "%", "%", 98.5, 0.1, std::nullopt},
           {"-1", "", "", -1, 1, -1},
           {"4.02", "Tbyte/second", "byte/second", 4.02e12, 1e10, 4020000000000},
           {"1.75", "cycle/nsecond", "cycle/second", 1.75e9, 1e7, 1750000000},
           {"2", "byte/us", "byte/second", 2e6, 1e6, 2000000},
           {"3", "furlong", "furlong", 3, 1, 3},
           {"0.00", "byte", "byte", 0, 0.01, 0},
       }) {
    CAPTURE(c.number);
    CAPTURE(c.unit);
    const NcuValue value = parse_ncu_value(c.number, c.unit);
    CHECK(value.trouble.empty());
    CHECK(value.unit == c.base);
    CHECK(value.value == c.value);
    CHECK(value.step == doctest::Approx(c.step));
    CHECK(value.exact == c.exact);
  }
}

TEST_CASE("what is no number of ncu's has no value, and a hint") {
  for (const char* text : {"n/a",
                           "N/A",
                           "(!) nan",
                           "nan",
                           "",
                           " ",
                           "12,34",
                           "1.234.567",
                           "1.234,56",
                           "1234,567",
                           "1,2345",
                           ",123",
                           "1,",
                           "1.",
                           "1 234",
                           "1'234",
                           "0x10",
                           "inf",
                           "1e",
                           "1e999",
                           "--1",
                           "+1",
                           "1,234 (3 instances)",
                           "NVIDIA H200"}) {
    CAPTURE(text);
    const NcuValue value = parse_ncu_value(text, "byte");
    CHECK_FALSE(value.value);
    CHECK_FALSE(value.exact);
    CHECK_FALSE(value.trouble.empty());
    CHECK_FALSE(value.hint.empty());
  }
  CHECK(has(parse_ncu_value("1.234.567", "byte").hint, "LC_ALL=C"));
  CHECK(has(parse_ncu_value("n/a", "byte").hint, "--query-metrics"));
}

TEST_CASE("a metric that is needed and has no usable number is a complaint with kernel, metric and line") {
  struct Case {
    const char *value, *unit, *what;
  };
  for (const Case& c :
       {Case{"n/a", "byte", "has no value: \"n/a\""}, Case{"(!) nan", "byte", "has no value: \"(!) nan\""},
        Case{"", "byte", "has no value: the cell is empty"}, Case{"50.324.736", "byte", "is no number: \"50.324.736\""},
        Case{"50.324", "byte", "is no whole number of 64 bits"}, Case{"-5", "byte", "is negative"},
        Case{"5", "sector", "is in \"sector\", not in byte"}, Case{"5", "", "is in \"\", not in byte"},
        Case{"9,300,000,000,000,000,000", "byte", "is no whole number of 64 bits"}}) {
    CAPTURE(c.value);
    const NcuFile file = parse_ncu_csv(long_file("dram__bytes_read.sum", c.unit, c.value), "f.csv");
    const Complaint said =
        complaint([&] { (void)read_quantity(file.kernels[0], HwQuantity::dram_read_bytes, "f.csv"); });
    CHECK(said.what == std::string("f.csv: line 2: kernel \"void f(int)\", metric dram__bytes_read.sum: ") + c.what);
  }
  const NcuFile sectors = parse_ncu_csv(
      long_file("lts__t_sectors_srcunit_tex_op_write.sum", "sector", "9,223,372,036,854,775,807"), "f.csv");
  CHECK(has(complaint([&] { (void)read_quantity(sectors.kernels[0], HwQuantity::l2_write_sectors, "f.csv"); }).what,
            "is more than 64 bits hold"));
}

TEST_CASE("chips differ in the names of their metrics") {
  const auto read = [](const std::string& metric, const std::string& unit, HwQuantity quantity) {
    const NcuFile file = parse_ncu_csv(long_file(metric, unit, "6"), "f.csv");
    const std::optional<NcuReading> reading = read_quantity(file.kernels[0], quantity, "f.csv");
    REQUIRE(reading);
    CHECK(reading->metric == metric);
    return reading->count;
  };
  CHECK(read("dram__bytes_op_read.sum", "byte", HwQuantity::dram_read_bytes) == 6);
  CHECK(read("dram__bytes_op_write.sum", "byte", HwQuantity::dram_write_bytes) == 6);
  CHECK(read("l1tex__m_xbar2l1tex_read_bytes.sum", "byte", HwQuantity::xbar_read_bytes) == 6);
  CHECK(read("l1tex__m_xbar2l1tex_read_bytes", "byte", HwQuantity::xbar_read_bytes) == 6);
  CHECK(read("smsp__inst_executed_pipe_tensor.sum", "inst", HwQuantity::tensor_instructions) == 6);
  CHECK(read("smsp__inst_executed_pipe_tensor_op_hmma.sum", "inst", HwQuantity::tensor_instructions) == 6);
}

TEST_CASE("tensor instructions by operation add up, finer counts among them do not") {
  const NcuFile file =
      parse_ncu_csv(kLongHeader + quoted({"0", "f", "smsp__inst_executed_pipe_tensor_op_hmma.sum", "inst", "100"}) +
                        quoted({"0", "f", "smsp__inst_executed_pipe_tensor_op_imma.sum", "inst", "20"}) +
                        quoted({"0", "f", "smsp__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", "inst", "90"}) +
                        quoted({"0", "f", "smsp__inst_executed_pipe_tensor_op_hmma.avg", "inst", "1"}),
                    "f.csv");
  CHECK(bytes(file.kernels[0], HwQuantity::tensor_instructions) == 120);
}

TEST_CASE("a file that is cut anywhere gives a complaint, or launches with fewer of the same metrics") {
  for (const std::string& whole :
       {real_file("naive_64_16_1024_64_noflush.csv"), as_columns(real_file("naive_64_16_1024_64_noflush.csv"))}) {
    const NcuFile all = parse_ncu_csv(whole, "f.csv");
    std::size_t complaints = 0, read = 0;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      try {
        const NcuFile part = parse_ncu_csv(whole.substr(0, length), "f.csv");
        ++read;
        REQUIRE(part.kernels.size() <= all.kernels.size());
        for (std::size_t i = 0; i < part.kernels.size(); ++i) {
          REQUIRE(part.kernels[i].name == all.kernels[i].name);
          for (const auto& [name, value] : part.kernels[i].metrics) {
            if (value.value) {
              REQUIRE(value.value == all.kernels[i].metrics.find(name)->second.value);
            } else {
              REQUIRE_FALSE(value.trouble.empty());  // cut between a comma and the number
            }
          }
        }
      } catch (const Error& error) {
        ++complaints;
        REQUIRE(error.kind() == ErrorKind::data);
        REQUIRE(std::string(error.what()).starts_with("f.csv: line "));
      }
    }
    CHECK(complaints > whole.size() * 9 / 10);
    CHECK(read > 0);
  }
}

TEST_CASE("what is no whole table of ncu is a complaint that says what it is") {
  CHECK(complaint_of_file("").what ==
        "f.csv: line 1: the text ends without a table of ncu: no header with \"ID\" and \"Kernel Name\"");
  CHECK(has(complaint_of_file("").hint, "ncu --csv"));
  const Complaint refused = complaint_of_file("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n");
  CHECK(has(refused.hint, "ERR_NVGPUCTRPERM"));
  CHECK(has(complaint_of_file("NVR\x01\x02\xFF").what, "is a report of ncu, not a CSV file"));
  CHECK(has(complaint_of_file(kLongHeader).what, "f.csv: line 1: the table of ncu has no kernel"));
  CHECK(has(complaint_of_file(kLongHeader + "\"0\",\"f\",\"dram\n").what, "line 2: a quote that opens"));
  CHECK(has(complaint_of_file(kLongHeader + "\"0\",\"f\",\"dram\"\n").what,
            "line 2: this row has 3 fields where the header has 5"));
  CHECK(has(complaint_of_file(kLongHeader + quoted({"x", "f", "m__a", "byte", "1"})).what,
            "line 2: the launch's ID must be a whole number, got \"x\""));
  CHECK(has(complaint_of_file(quoted({"ID", "Kernel Name", "Metric Name", "Metric Value"})).what,
            "the table has no column \"Metric Unit\""));
  CHECK(has(complaint_of_file(quoted({"ID", "Kernel Name", "Stream"})).what, "neither a column \"Metric Name\""));
  CHECK(has(complaint_of_file(quoted({"ID", "Kernel Name", "ID", "m__a"})).what, "\"ID\" stands in the header twice"));
  const std::string columns = quoted({"ID", "Kernel Name", "m__a"});
  CHECK(has(complaint_of_file(columns + quoted({"0", "f", "1"})).what, "line 2: the row of units"));
  CHECK(has(complaint_of_file(columns + quoted({"", "", "byte"})).what, "the table of ncu has no kernel"));
  CHECK(has(
      complaint_of_file(columns + quoted({"", "", "byte"}) + quoted({"0", "f", "1"}) + quoted({"0", "f", "1"})).what,
      "line 4: launch 0 stands in the table twice"));
}

TEST_CASE("two profiles in one file are told apart by their headers, and refused where they cannot be") {
  const std::string row = quoted({"0", "f", "dram__bytes_read.sum", "byte", "1"});
  const std::string other = quoted({"0", "f", "dram__bytes_read.sum", "byte", "2"});
  const NcuFile apart = parse_ncu_csv(kLongHeader + row + "==PROF== Connected\n" + kLongHeader + other, "f.csv");
  REQUIRE(apart.kernels.size() == 2);
  CHECK(bytes(apart.kernels[1], HwQuantity::dram_read_bytes) == 2);
  CHECK(parse_ncu_csv(kLongHeader + row + row, "f.csv").kernels.size() == 1);
  CHECK(has(complaint_of_file(kLongHeader + row + other).what,
            "line 3: kernel \"f\", metric \"dram__bytes_read.sum\": has another value in line 2"));
  CHECK(has(complaint_of_file(kLongHeader + row + quoted({"0", "g", "dram__bytes_write.sum", "byte", "1"})).what,
            "line 3: launch 0 is \"g\" here and \"f\" in line 2"));
}

TEST_CASE("launches of several processes do not mix") {
  const std::string header = quoted({"ID", "Process ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"});
  const NcuFile file = parse_ncu_csv(header + quoted({"0", "10", "f", "dram__bytes_read.sum", "byte", "1"}) +
                                         quoted({"0", "11", "g", "dram__bytes_read.sum", "byte", "2"}) +
                                         quoted({"0", "10", "f", "dram__bytes_write.sum", "byte", "3"}),
                                     "f.csv");
  REQUIRE(file.kernels.size() == 2);
  CHECK(file.kernels[0].metrics.size() == 2);
  CHECK(file.kernels[1].process == 11);
}
