// What is no table of ncu's: numbers, metrics and files that are refused, each with its line.
#include "ncu_files.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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
    const NcuComplaint said =
        ncu_complaint([&] { (void)read_quantity(file.kernels[0], HwQuantity::dram_read_bytes, "f.csv"); });
    CHECK(said.what == std::string("f.csv: line 2: kernel \"void f(int)\", metric dram__bytes_read.sum: ") + c.what);
  }
  const NcuFile sectors = parse_ncu_csv(
      long_file("lts__t_sectors_srcunit_tex_op_write.sum", "sector", "9,223,372,036,854,775,807"), "f.csv");
  CHECK(has(ncu_complaint([&] { (void)read_quantity(sectors.kernels[0], HwQuantity::l2_write_sectors, "f.csv"); }).what,
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
  const NcuComplaint refused = complaint_of_file("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n");
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
