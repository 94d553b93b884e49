#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "device/hw_counters.hpp"
#ifdef HBMSCOPE_HAVE_CUPTI
#include <cuda_runtime_api.h>
#endif

using namespace hbmscope;

namespace {

const std::string kAdminOnly = "RmMsg: \"\"\nRmProfilingAdminOnly: 1\nPreserveVideoMemoryAllocations: 0\n";
const std::string kEverybody = "RmMsg: \"\"\nRmProfilingAdminOnly: 0\nPreserveVideoMemoryAllocations: 0\n";

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Fits into "hw counters: REASON" on one line.
bool is_one_clause(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos && text.back() != '.' && !says(text, ". ");
}

}  // namespace

TEST_CASE("every quantity has a name of its own and metrics that belong to no other") {
  std::set<std::string_view> names, metrics;
  for (const HwQuantity q : kHwQuantities) {
    CAPTURE(hw_quantity_name(q));
    CHECK_FALSE(hw_quantity_name(q).empty());
    CHECK(names.insert(hw_quantity_name(q)).second);
    REQUIRE_FALSE(metric_candidates(q).empty());
    for (const std::string_view metric : metric_candidates(q)) {
      CAPTURE(metric);
      CHECK((metric.ends_with(".sum") || metric.ends_with(".max") || metric.ends_with(".min")));
      CHECK(metrics.insert(metric).second);
    }
  }
  CHECK(names.size() == kNumHwQuantities);
}

TEST_CASE("the unit in a quantity's name is the unit that its metrics count") {
  for (const HwQuantity q : kHwQuantities) {
    for (const char* unit : {"bytes", "sectors", "cycles"}) {
      const bool in_name = hw_quantity_name(q).find(unit) != std::string_view::npos;
      for (const std::string_view metric : metric_candidates(q)) {
        CAPTURE(metric);
        CHECK((metric.find(unit) != std::string_view::npos) == in_name);
      }
    }
  }
}

TEST_CASE("a refusal is one clause that names what to change") {
  struct Case {
    int code;
    const char* names;
  };
  for (const Case& c : {Case{15, "libnvperf_host.so"},
                        {23, "ncu"},
                        {26, "another process"},
                        {27, "7.5"},
                        {33, "vGPU"},
                        {35, "CAP_SYS_ADMIN"},
                        {36, "legacy"},
                        {39, "cuda-gdb"},
                        {40, "hypervisor"},
                        {41, "confidential computing"},
                        {42, "CMP"},
                        {43, "MIG"},
                        {44, "SLI"},
                        {45, "WSL"},
                        {46, "newer CUDA toolkit"}}) {
    CAPTURE(c.code);
    const std::string reason = counter_refusal(c.code, "");
    CHECK(is_one_clause(reason));
    CHECK(says(reason, c.names));
  }
  CHECK(counter_refusal(0, "").empty());
  CHECK(counter_refusal(999, "").empty());
}

TEST_CASE("a missing privilege says what the driver's own setting is, and all three ways out") {
  for (const std::string& params : {kAdminOnly, kEverybody, std::string()}) {
    const std::string reason = counter_refusal(35, params);
    CAPTURE(reason);
    CHECK(is_one_clause(reason));
    CHECK(says(reason, "run as root"));
    CHECK(says(reason, "--cap-add=SYS_ADMIN"));
    CHECK(says(reason, "NVreg_RestrictProfilingToAdminUsers=0"));
  }
  CHECK(says(counter_refusal(35, kAdminOnly), "RmProfilingAdminOnly is 1"));
  CHECK(says(counter_refusal(35, kEverybody), "RmProfilingAdminOnly is 0"));
  CHECK_FALSE(says(counter_refusal(35, ""), "RmProfilingAdminOnly"));
}

TEST_CASE("where nothing can be counted, every value is missing with the reason, and no range runs") {
  const auto counters = HwCounters::open(1 << 20);  // no machine has that device
  REQUIRE(counters != nullptr);
  CHECK_FALSE(counters->available());
  CHECK(is_one_clause(counters->reason()));
  CHECK(counters->plan().num_passes == 0);
  int runs = 0;
  const std::vector<std::function<void()>> ranges(3, [&] { ++runs; });
  const std::vector<HwReading> readings = counters->measure(ranges);
  REQUIRE(readings.size() == ranges.size());
  CHECK(runs == 0);
  for (const HwReading& reading : readings) {
    for (const HwQuantity q : kHwQuantities) {
      CHECK_FALSE(reading.value[q].has_value());
      CHECK(reading.reason[q] == counters->reason());
    }
  }
}

#ifndef HBMSCOPE_HAVE_CUPTI

TEST_CASE("a build without CUPTI says so for every chip") {
  const HwMetricPlan plan = plan_hw_metrics("GH100");
  CHECK(plan.chip == "GH100");
  CHECK(plan.num_passes == 0);
  CHECK(says(plan.refusal, "this build has no hardware counters"));
  for (const HwQuantity q : kHwQuantities) {
    CHECK(plan.metric[q].empty());
    CHECK(plan.reason[q] == plan.refusal);
  }
  MESSAGE("skipped: metric names by chip and counting on a device, which need a build with CUPTI");
}

#else

namespace {

/// The plan for a chip that CUPTI knows; nothing, with a message, where this machine has no libcupti.
std::optional<HwMetricPlan> plan_of(const std::string& chip) {
  HwMetricPlan plan = plan_hw_metrics(chip);
  if (says(plan.refusal, "libcupti was not found")) {
    MESSAGE("skipped: " << plan.refusal);
    return std::nullopt;
  }
  REQUIRE(plan.refusal == "");
  CHECK(plan.chip == chip);
  CHECK(plan.num_passes == 1);
  for (const HwQuantity q : kHwQuantities) CHECK(plan.metric[q].empty() == is_one_clause(plan.reason[q]));
  return plan;
}

}  // namespace

TEST_CASE("Hopper and A100 count all quantities in one pass") {
  for (const char* chip : {"GH100", "GA100"}) {
    CAPTURE(chip);
    const auto plan = plan_of(chip);
    if (!plan) return;
    for (const HwQuantity q : kHwQuantities) {
      CAPTURE(hw_quantity_name(q));
      CHECK(plan->metric[q] == metric_candidates(q).front());
      CHECK(plan->reason[q] == "");
    }
  }
}

TEST_CASE("consumer Blackwell counts DRAM bytes under other names") {
  const auto plan = plan_of("GB202");
  if (!plan) return;
  CHECK(plan->metric[HwQuantity::dram_read_bytes] == "dram__bytes_op_read.sum");
  CHECK(plan->metric[HwQuantity::dram_write_bytes] == "dram__bytes_op_write.sum");
}

TEST_CASE("what a chip lacks is missing with the reason, and the rest is still counted") {
  const auto plan = plan_of("GA10B");  // shares its host's memory
  if (!plan) return;
  CHECK(plan->metric[HwQuantity::dram_read_bytes] == "");
  CHECK(plan->reason[HwQuantity::dram_read_bytes] == "chip GA10B has no dram__bytes_read.sum, dram__bytes_op_read.sum");
  CHECK(plan->metric[HwQuantity::xbar_read_bytes] == "l1tex__m_xbar2l1tex_read_bytes.sum");
}

TEST_CASE("what would take a second pass is given up, the rest still counted") {
  const HwMetricPlan plan = plan_hw_metrics("GV100");
  if (plan.num_passes == 0) {  // a newer CUPTI may have dropped this old chip
    MESSAGE("skipped: " << plan.refusal);
    return;
  }
  for (const HwQuantity q : {HwQuantity::xbar_read_bytes, HwQuantity::l2_lookup_sectors}) {
    CHECK(plan.metric[q] == "");
    CHECK(plan.reason[q] == std::string(metric_candidates(q).front()) +
                                " does not fit into the one pass of the metrics before it on chip GV100");
  }
  CHECK(plan.metric[HwQuantity::dram_read_bytes] == "dram__bytes_read.sum");
  CHECK(plan.metric[HwQuantity::executed_instructions] == "smsp__inst_executed.sum");
}

TEST_CASE("a chip that CUPTI does not know has no plan") {
  const HwMetricPlan plan = plan_hw_metrics("GX999");
  CHECK(plan.num_passes == 0);
  CHECK(is_one_clause(plan.refusal));
}

// From here on with a device. Copies on the device are the only work that needs no kernel.
namespace {

constexpr std::size_t kCopied = std::size_t{1} << 30;

struct Buffers {
  void* from = nullptr;
  void* to = nullptr;
  Buffers() {
    REQUIRE(cudaMalloc(&from, kCopied) == cudaSuccess);
    REQUIRE(cudaMalloc(&to, kCopied) == cudaSuccess);
    REQUIRE(cudaMemset(from, 1, kCopied) == cudaSuccess);
    copy();  // loads whatever the first copy loads
  }
  ~Buffers() {
    cudaFree(from);
    cudaFree(to);
  }
  void copy() const { CHECK(cudaMemcpyAsync(to, from, kCopied, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess); }
};

/// The counters of device 0; nothing, with a message, where its bytes cannot be read.
std::unique_ptr<HwCounters> device_counters() {
  auto counters = HwCounters::open(0);
  const bool dram = !counters->plan().metric[HwQuantity::dram_read_bytes].empty();
  if (counters->available() && dram) return counters;
  const std::string why = counters->plan().reason[HwQuantity::dram_read_bytes];
  MESSAGE("skipped: " << why);
  CHECK(is_one_clause(why));
  return nullptr;
}

void check_copy(const HwReading& reading) {
  const double bytes = static_cast<double>(kCopied);
  REQUIRE(reading.value[HwQuantity::dram_read_bytes].has_value());
  REQUIRE(reading.value[HwQuantity::dram_write_bytes].has_value());
  CHECK(*reading.value[HwQuantity::dram_read_bytes] == doctest::Approx(bytes).epsilon(0.01));
  // Some of the range before comes out in this one, some of this one stays in L2.
  CHECK(*reading.value[HwQuantity::dram_write_bytes] == doctest::Approx(bytes).epsilon(0.08));
  REQUIRE(reading.value[HwQuantity::gpu_time_ns].has_value());
  CHECK(*reading.value[HwQuantity::gpu_time_ns] > 1e9 * 2 * bytes / 20e12);  // no GPU moves 20 TB/s
}

}  // namespace

TEST_CASE("a copy on the device reads and writes its bytes, range by range") {
  const auto counters = device_counters();
  if (!counters) return;
  const Buffers buffers;
  const auto copy = [&] { buffers.copy(); };
  const std::vector<HwReading> readings =
      counters->measure(std::vector<std::function<void()>>{copy, [] {}, copy, copy});
  REQUIRE(readings.size() == 4);
  for (const std::size_t i : {0U, 2U, 3U}) {
    CAPTURE(i);
    check_copy(readings[i]);
  }
  REQUIRE(readings[1].value[HwQuantity::dram_read_bytes].has_value());
  CHECK(*readings[1].value[HwQuantity::dram_read_bytes] < 0.01 * static_cast<double>(kCopied));
  for (const HwQuantity q : kHwQuantities) {
    CAPTURE(hw_quantity_name(q));
    CHECK(readings[0].value[q].has_value() == counters->plan().reason[q].empty());
  }
}

TEST_CASE("many ranges share one session, each with its own reading") {
  const auto counters = device_counters();
  if (!counters) return;
  const Buffers buffers;
  std::vector<std::function<void()>> ranges(300, [] {});
  ranges[77] = ranges[299] = [&] { buffers.copy(); };
  const std::vector<HwReading> readings = counters->measure(ranges);
  REQUIRE(readings.size() == ranges.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    CAPTURE(i);
    REQUIRE(readings[i].value[HwQuantity::dram_read_bytes].has_value());
    const bool copies = i == 77 || i == 299;
    CHECK((*readings[i].value[HwQuantity::dram_read_bytes] > 0.5 * static_cast<double>(kCopied)) == copies);
  }
}

TEST_CASE("an exception in a range is passed on and leaves the counters usable") {
  const auto counters = device_counters();
  if (!counters) return;
  const Buffers buffers;
  const std::function<void()> copy = [&] { buffers.copy(); };
  const std::function<void()> fails = [&] {
    buffers.copy();
    throw std::runtime_error("in a range");
  };
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_WITH_AS(counters->measure(std::vector{copy, fails, copy}), "in a range", std::runtime_error);
    check_copy(counters->measure(std::vector{copy}).at(0));
  }
}

TEST_CASE("one process reads one device's counters at a time, and may open them again") {
  for (int i = 0; i < 3; ++i) {
    const auto counters = device_counters();
    if (!counters) return;
    const auto second = HwCounters::open(0);
    CHECK_FALSE(second->available());
    CHECK(is_one_clause(second->reason()));
  }
}

#endif  // HBMSCOPE_HAVE_CUPTI
