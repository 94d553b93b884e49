#pragma once
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

/// Files of ncu for test_ncu_csv*.cpp.
namespace hbmscope::testing {

inline const std::string kNcuFolder = std::string(HBMSCOPE_SOURCE_DIR) + "/tests/data/ncu/";

inline std::string real_file(const std::string& name) {
  return text_of_file(kNcuFolder + name);
}

inline std::vector<std::string> real_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kNcuFolder))
    names.push_back(entry.path().filename().string());
  return names;
}

/// "a,b" with every field in quotes, as ncu writes it.
inline std::string quoted(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += "\"";
  }
  return line + "\n";
}

inline const std::string kLongHeader = quoted({"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"});

/// One launch with one metric.
inline std::string long_file(const std::string& metric, const std::string& unit, const std::string& value) {
  return kLongHeader + quoted({"0", "void f(int)", metric, unit, value});
}

struct NcuComplaint {
  std::string what, hint;
};

template <class Call>
inline NcuComplaint ncu_complaint(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_FALSE(error.hint().empty());
    return {error.what(), error.hint()};
  }
  return {};
}

inline NcuComplaint complaint_of_file(const std::string& text) {
  return ncu_complaint([&] { (void)parse_ncu_csv(text, "f.csv"); });
}

inline std::int64_t bytes(const NcuKernel& kernel, HwQuantity quantity) {
  const std::optional<NcuReading> reading = read_quantity(kernel, quantity, "f.csv");
  REQUIRE(reading);
  return reading->count;
}

/// The long table of a real file as ncu's raw page has it: a row a launch, a column a metric.
inline std::string as_columns(const std::string& text) {
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

inline void check_same(const NcuFile& a, const NcuFile& b) {
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

}  // namespace hbmscope::testing
