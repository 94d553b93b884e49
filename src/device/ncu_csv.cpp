#include "device/ncu_csv.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kMessage = "==";
constexpr const char* kHowToWrite = "ncu --csv --log-file FILE.csv --metrics ... PROGRAM writes one";
constexpr const char* kWriteAgain = "let ncu write it again: ncu --import REPORT --csv --page raw > FILE.csv";

std::optional<std::int64_t> whole_number(std::string_view text) {
  const NcuValue value = parse_ncu_value(text, "");
  return value.exact && *value.exact >= 0 ? value.exact : std::nullopt;
}

/// "(64, 1, 8)"
std::optional<std::array<std::int64_t, 3>> dimensions(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::array<std::int64_t, 3> sides{};
  for (std::size_t i = 0; i < 3; ++i) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sides[i]);
    if (error != std::errc{} || sides[i] < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (i < 2 && !text.starts_with(',')) return std::nullopt;
    if (i < 2) text.remove_prefix(1);
  }
  return text.empty() ? std::optional(sides) : std::nullopt;
}

bool is_header(const CsvRecord& record) {
  const auto has = [&](std::string_view name) {
    return std::find(record.fields.begin(), record.fields.end(), name) != record.fields.end();
  };
  return has("ID") && has("Kernel Name");
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view source_name) : csv_(text, source_name) {}

  NcuFile read() {
    find_header();
    while (!csv_.at_end()) {
      if (csv_.peek_line().empty() || csv_.peek_line().starts_with(kMessage)) {
        csv_.skip_line();
        continue;
      }
      const CsvRecord record = csv_.next();
      if (is_header(record)) {
        take_header(record);
      } else {
        take_row(record);
      }
    }
    if (file_.kernels.empty())
      csv_.fail(header_.line, "the table of ncu has no kernel", "was any kernel profiled? " + message_or(kHowToWrite));
    return std::move(file_);
  }

 private:
  /// The profiled program may have printed anything before the table, quotes and all.
  void find_header() {
    while (!csv_.at_end()) {
      const std::string_view line = csv_.peek_line();
      if (line.find("Kernel Name") != std::string_view::npos && line.find("ID") != std::string_view::npos &&
          !line.starts_with(kMessage)) {
        const CsvRecord record = csv_.next();
        if (is_header(record)) return take_header(record);
        continue;
      }
      if (message_.empty() && (line.starts_with("==ERROR==") || line.starts_with("==WARNING==")))
        message_ = "ncu said " + in_quotes(line.substr(line.find(' ') + 1));
      csv_.skip_line();
    }
    csv_.fail(csv_.line(), "the text ends without a table of ncu: no header with \"ID\" and \"Kernel Name\"",
              message_or(kHowToWrite));
  }
  [[nodiscard]] std::string message_or(const char* otherwise) const { return message_.empty() ? otherwise : message_; }

  void take_header(const CsvRecord& record) {
    header_ = record;
    columns_.clear();
    units_.clear();
    launches_.clear();
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      if (!columns_.try_emplace(record.fields[i], i).second)
        csv_.fail(record.line, "the column " + in_quotes(record.fields[i]) + " stands in the header twice",
                  kWriteAgain);
    }
    file_.layout = columns_.contains("Metric Name") ? NcuLayout::rows : NcuLayout::columns;
    if (file_.layout == NcuLayout::rows) {
      for (const char* name : {"Metric Unit", "Metric Value"}) {
        if (!columns_.contains(name)) csv_.fail(record.line, "the table has no column " + in_quotes(name), kWriteAgain);
      }
    } else if (std::none_of(record.fields.begin(), record.fields.end(), is_metric)) {
      csv_.fail(record.line, "the table has neither a column \"Metric Name\" nor one with a metric's name",
                kHowToWrite);
    }
  }

  /// What ncu's tables of sections call "Duration" or "Memory Throughput" is a label, and several sections share it.
  static bool is_metric(const std::string& name) { return name.find("__") != std::string::npos; }

  void take_row(const CsvRecord& record) {
    if (record.fields.size() != header_.fields.size()) {
      csv_.fail(record.line,
                "this row has " + std::to_string(record.fields.size()) + " fields where the header has " +
                    std::to_string(header_.fields.size()),
                "was the file cut short, or did the program print into it? ncu --log-file FILE keeps the two apart");
    }
    if (file_.layout == NcuLayout::rows) return take_metric_row(record);
    if (units_.empty()) {
      if (!field(record, "ID").empty())
        csv_.fail(record.line, "the row of units under the header is missing", kWriteAgain);
      units_ = record.fields;
      return;
    }
    const std::size_t launches_before = file_.kernels.size();
    NcuKernel& kernel = kernel_of(record);
    if (file_.kernels.size() == launches_before)
      csv_.fail(record.line, "launch " + std::to_string(kernel.id) + " stands in the table twice", kWriteAgain);
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      if (is_metric(header_.fields[i])) add(kernel, header_.fields[i], record.fields[i], units_[i], record.line);
    }
  }

  void take_metric_row(const CsvRecord& record) {
    const std::string& name = field(record, "Metric Name");
    if (name.empty()) return;  // advice of a rule
    add(kernel_of(record), name, field(record, "Metric Value"), field(record, "Metric Unit"), record.line);
  }

  [[nodiscard]] const std::string& field(const CsvRecord& record, std::string_view name) const {
    static const std::string none;
    const auto column = columns_.find(name);
    return column == columns_.end() ? none : record.fields[column->second];
  }

  /// The launch that a row is about; a new one where it is the first.
  NcuKernel& kernel_of(const CsvRecord& record) {
    const std::optional<std::int64_t> id = whole_number(field(record, "ID"));
    if (!id)
      csv_.fail(record.line, "the launch's ID must be a whole number, got " + in_quotes(field(record, "ID")),
                kWriteAgain);
    const std::int64_t process = whole_number(field(record, "Process ID")).value_or(0);
    const std::string& name = field(record, "Kernel Name");
    const auto [at, is_new] = launches_.try_emplace({process, *id}, file_.kernels.size());
    if (!is_new) {
      NcuKernel& kernel = file_.kernels[at->second];
      if (kernel.name == name) return kernel;
      csv_.fail(record.line,
                "launch " + std::to_string(*id) + " is " + in_quotes(name) + " here and " + in_quotes(kernel.name) +
                    " in line " + std::to_string(kernel.line),
                "are these two profiles in one file? give them one at a time");
    }
    NcuKernel& kernel = file_.kernels.emplace_back();
    kernel.id = *id;
    kernel.process = process;
    kernel.name = name;
    kernel.grid = dimensions(field(record, "Grid Size"));
    kernel.block = dimensions(field(record, "Block Size"));
    kernel.device = field(record, "Device");
    kernel.compute_capability = field(record, "CC");
    kernel.line = record.line;
    return kernel;
  }

  void add(NcuKernel& kernel, const std::string& metric, std::string_view number, std::string_view unit,
           std::int64_t line) {
    NcuValue value = parse_ncu_value(number, unit);
    value.line = line;
    const auto [at, is_new] = kernel.metrics.try_emplace(metric, value);
    if (is_new || at->second.value == value.value || !is_metric(metric)) return;
    csv_.fail(line,
              "kernel " + in_quotes(kernel.name) + ", metric " + in_quotes(metric) + ": has another value in line " +
                  std::to_string(at->second.line),
              "are these two profiles in one file? give them one at a time");
  }

  CsvReader csv_;
  NcuFile file_;
  std::string message_;  ///< what ncu itself complained of
  CsvRecord header_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string> units_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> launches_;  ///< by process and ID, of this table
};

/// What ncu says the metrics of a quantity count, and what one of it is worth here.
struct Counted {
  std::string_view unit;
  std::int64_t factor = 1;
};
Counted counted_in(HwQuantity quantity) {
  switch (quantity) {
    case HwQuantity::dram_read_bytes:
    case HwQuantity::dram_write_bytes:
    case HwQuantity::xbar_read_bytes:
      return {"byte"};
    case HwQuantity::l2_write_sectors:
    case HwQuantity::l2_lookup_sectors:
      return {"sector", static_cast<std::int64_t>(kL2SectorBytes)};
    case HwQuantity::tensor_instructions:
    case HwQuantity::executed_instructions:
      return {"inst"};
    case HwQuantity::sm_cycles:
    case HwQuantity::sm_cycles_least:
      return {"cycle"};
    case HwQuantity::gpu_time_ns:
      return {"second"};
  }
  return {};
}

/// smsp__inst_executed_pipe_tensor_op_hmma.sum and its like, for chips that count by operation; what is finer than that
/// (_op_hmma_type_...) is part of it.
bool is_tensor_operation(std::string_view name) {
  constexpr std::string_view kPrefix = "smsp__inst_executed_pipe_tensor_op_", kSuffix = ".sum";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size())
    return false;
  const std::string_view operation = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  return operation.find_first_of("_.") == std::string_view::npos;
}

class Readings {
 public:
  Readings(const NcuKernel& kernel, std::string_view source_name) : kernel_(kernel), source_name_(source_name) {}

  [[nodiscard]] NcuReading read(HwQuantity quantity, std::string_view name, const NcuValue& value) const {
    const Counted counted = counted_in(quantity);
    if (!value.value) fail(name, value, value.trouble, value.hint);
    if (value.unit != counted.unit)
      fail(name, value, "is in " + in_quotes(value.unit) + ", not in " + std::string(counted.unit), kWriteAgain);
    if (*value.value < 0) fail(name, value, "is negative", kWriteAgain);
    NcuReading reading{std::string(name), *value.value, 0, value.step * static_cast<double>(counted.factor)};
    if (quantity == HwQuantity::gpu_time_ns) return reading;
    if (!value.exact) {
      fail(name, value, "is no whole number of 64 bits",
           "does a '.' stand between groups of digits? run ncu with LC_ALL=C");
    }
    if (__builtin_mul_overflow(*value.exact, counted.factor, &reading.count))
      fail(name, value, "is more than 64 bits hold", kWriteAgain);
    reading.value = static_cast<double>(reading.count);
    return reading;
  }

  /// Some versions of ncu show a counter without the ".sum" that was asked for.
  [[nodiscard]] std::optional<NcuReading> find(HwQuantity quantity) const {
    for (std::string_view name : metric_candidates(quantity)) {
      auto found = kernel_.metrics.find(name);
      if (found == kernel_.metrics.end() && name.ends_with(".sum"))
        found = kernel_.metrics.find(name.substr(0, name.size() - 4));
      if (found != kernel_.metrics.end()) return read(quantity, found->first, found->second);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<NcuReading> tensor_operations() const {
    std::optional<NcuReading> sum;
    for (const auto& [name, value] : kernel_.metrics) {
      if (!is_tensor_operation(name)) continue;
      const NcuReading one = read(HwQuantity::tensor_instructions, name, value);
      if (!sum) {
        sum = one;
        continue;
      }
      sum->metric += " + " + one.metric;
      if (__builtin_add_overflow(sum->count, one.count, &sum->count))
        fail(name, value, "is more than 64 bits hold", kWriteAgain);
      sum->value = static_cast<double>(sum->count);
      sum->step = std::max(sum->step, one.step);
    }
    return sum;
  }

 private:
  [[noreturn]] void fail(std::string_view metric, const NcuValue& value, const std::string& sentence,
                         std::string hint) const {
    throw Error(ErrorKind::data,
                std::string(source_name_) + ": line " + std::to_string(value.line) + ": kernel " +
                    in_quotes(kernel_.name) + ", metric " + std::string(metric) + ": " + sentence,
                std::move(hint));
  }

  const NcuKernel& kernel_;
  std::string_view source_name_;
};

}  // namespace

NcuFile parse_ncu_csv(std::string_view text, std::string_view source_name) {
  if (text.starts_with("NVR")) {
    throw Error(ErrorKind::data, std::string(source_name) + ": is a report of ncu, not a CSV file", kWriteAgain);
  }
  return Reader(text, source_name).read();
}

std::optional<NcuReading> read_quantity(const NcuKernel& kernel, HwQuantity quantity, std::string_view source_name) {
  const Readings readings(kernel, source_name);
  std::optional<NcuReading> found = readings.find(quantity);
  if (!found && quantity == HwQuantity::tensor_instructions) found = readings.tensor_operations();
  return found;
}

}  // namespace hbmscope
