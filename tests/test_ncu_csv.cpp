// ncu's CSV, in both layouts: tests/data/ncu holds what ncu wrote of other people's kernels on an H200 with CUDA 13.0.
#include "ncu_files.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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
