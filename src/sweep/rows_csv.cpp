#include "sweep/rows_csv.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "results/result_file.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kShapeColumns =
    "gpu,pass,batch,num_heads,num_kv_heads,seqlen_q,seqlen_kv,head_dim,head_dim_v,dtype,mask,window_left,window_right,"
    "alignment";
constexpr std::string_view kEntryColumns =
    "algorithm,plan,matmul_flop,intermediate_bytes,predicted_s,measured_median_s,boundary,provenance,entry_plan,"
    "entry_status,entry_reason,read_bytes,write_bytes,total_bytes";

std::string field_of(std::string_view text) {
  return csv_field(printable(text));
}

template <class T>
std::string number_of(const std::optional<T>& number) {
  return number ? fmt::format("{}", *number) : std::string();
}

std::string commas_for(std::string_view columns) {
  std::string commas;
  for (const char c : columns) {
    if (c == ',') commas += ',';
  }
  return commas;
}

std::string shape_fields(const Result& r) {
  const AttentionShape& s = *r.shape;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", field_of(r.gpu.name), field_of(r.pass), s.batch,
                     s.num_heads, s.num_kv_heads, s.seqlen_q, s.seqlen_kv, s.head_dim, s.head_dim_v, info(s.dtype).name,
                     s.mask.kind(), number_of(s.mask.window_left), number_of(s.mask.window_right),
                     name(s.mask.alignment));
}

class CsvOfRows {
 public:
  explicit CsvOfRows(const std::function<void(std::string_view)>& to) : to_(to) {}

  void add(const Result& r) {
    if (!r.sweep) throw Error(ErrorKind::data, r.where + ": is no row of a sweep", "give what `hbmscope sweep` wrote");
    if (!axes_) begin(r);
    std::string head = fmt::format("{},{},{},{}", r.sweep->index, field_of(r.sweep->key), field_of(r.sweep->status),
                                   field_of(r.sweep->reason));
    for (std::size_t i = 0; i < r.sweep->axes.size() || i < axes_->size(); ++i) {
      if (i >= axes_->size() || i >= r.sweep->axes.size() || r.sweep->axes[i].name != (*axes_)[i])
        throw Error(ErrorKind::data, r.where + ": has other axes than the first row", "give rows of one sweep");
      head += "," + field_of(r.sweep->axes[i].text);
    }
    if (r.failed() || !r.shape) return line(head + "," + commas_for(kShapeColumns) + "," + commas_for(kEntryColumns));
    head += "," + shape_fields(r);
    for (const ResultAlgorithm& a : r.algorithms) {
      const std::string of_algorithm =
          fmt::format("{},{},{},{},{},{},{}", head, field_of(a.name), field_of(a.plan), number_of(a.matmul_flop),
                      number_of(a.memory.intermediate_bytes), number_of(a.time.predicted_s.value),
                      number_of(a.time.measured_median_s));
      for (const ResultTraffic& entry : a.traffic) {
        line(fmt::format("{},{},{},{},{},{},{},{},{}", of_algorithm, field_of(entry.boundary),
                         field_of(entry.provenance), field_of(entry.plan), field_of(entry.status),
                         field_of(entry.reason), number_of(entry.read), number_of(entry.write),
                         number_of(entry.total)));
      }
    }
  }
  void finish() { to_(piece_); }

 private:
  void begin(const Result& r) {
    std::string head = "index,key,status,reason";
    axes_.emplace();
    for (const SweepPoint::Axis& axis : r.sweep->axes) {
      axes_->push_back(axis.name);
      head += "," + field_of("axis_" + axis.name);
    }
    line(fmt::format("{},{},{}", head, kShapeColumns, kEntryColumns));
  }
  void line(const std::string& text) {
    piece_ += text + "\n";
    constexpr std::size_t kCsvPiece = std::size_t{1} << 18;
    if (piece_.size() < kCsvPiece) return;
    to_(piece_);
    piece_.clear();
  }

  const std::function<void(std::string_view)>& to_;
  std::optional<std::vector<std::string>> axes_;
  std::string piece_;
};

}  // namespace

void rows_to_csv(const std::string& path, const std::function<void(std::string_view)>& to) {
  CsvOfRows csv(to);
  read_results(path, [&](Result&& row) { csv.add(row); });
  csv.finish();
}

}  // namespace hbmscope
