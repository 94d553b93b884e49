#include "report/trace_chrome.hpp"

#include <fmt/format.h>

#include "core/version.hpp"
#include "report/json_dump.hpp"
#include "report/run_json.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kChromePiece = std::size_t{1} << 16;
constexpr std::int64_t kNanosecondsOfStep = 1'000'000;
/// Thread 0 is a processor's idle task to some viewers.
constexpr std::int64_t kL2Thread = 1, kFirstSmThread = 2;

/// Times of the format are microseconds; three decimals keep whole nanoseconds exact.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

/// Part `index` of `count` equal ones of the time from `begin` on.
struct Slice {
  std::int64_t begin, length;
  [[nodiscard]] Slice part(std::int64_t index, std::int64_t count) const {
    const auto at = [&](std::int64_t i) { return static_cast<std::int64_t>(static_cast<WideInt>(length) * i / count); };
    return {begin + at(index), at(index + 1) - at(index)};
  }
};

nlohmann::ordered_json tensors_json(const Traffic& traffic) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const TensorInfo& tensor : kTensors) {
    const ReadWrite& bytes = traffic[tensor.tensor];
    if (bytes.total().value() > 0)
      out[std::string(tensor.name)] = {{"read_bytes", bytes.read.value()}, {"write_bytes", bytes.write.value()}};
  }
  return out;
}

nlohmann::ordered_json algorithm_sums(const TracedAlgorithm& traced) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const TracedStage& stage : traced.stages) {
    nlohmann::ordered_json one = {
        {"name", stage.name}, {"requests", stage.requests}, {"hits", stage.hits}, {"write_backs", stage.write_backs}};
    for (const Traffic* traffic : {&stage.sm_l2, &stage.l2_hbm}) {
      const ReadWrite sum = traffic->sum();
      one[std::string(name(traffic->boundary()))] = {
          {"read_bytes", sum.read.value()}, {"write_bytes", sum.write.value()}, {"tensors", tensors_json(*traffic)}};
    }
    stages.push_back(std::move(one));
  }
  const Algorithm& a = *traced.result->algorithm;
  return {{"name", a.name}, {"plan", plan_to_json(traced.result->plan, a.plan_keys)}, {"stages", stages}};
}

}  // namespace

TraceChrome::TraceChrome(TextSink sink) : sink_(std::move(sink)), out_("{\"traceEvents\":[\n") {}

void TraceChrome::event(std::string_view text) {
  if (!first_) out_ += ",\n";
  first_ = false;
  out_ += text;
  if (out_.size() < kChromePiece) return;
  sink_(out_);
  out_.clear();
}

void TraceChrome::begin(const AlgorithmResult& algorithm) {
  end_stage();
  algorithm_ = algorithm.algorithm->name;
  now_ = 0;
}

void TraceChrome::stage(std::string_view name) {
  end_stage();
  ++process_;
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{} {}"}}}})", process_, algorithm_,
                    name));
  event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", process_));
}

void TraceChrome::name_thread(std::int64_t thread, std::string_view name) {
  if (!named_.insert(thread).second) return;
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", process_, thread,
                    name));
  event(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process_,
                    thread, thread));
}

void TraceChrome::time(std::int64_t now) {
  end_step();
  now_ = now;
}

void TraceChrome::request(const PlayedRequest& r) {
  const std::int64_t thread = kFirstSmThread + r.sm;
  name_thread(thread, fmt::format("SM {}", r.sm));
  const Slice step = Slice{now_ * kNanosecondsOfStep, kNanosecondsOfStep}.part(r.place, r.places);
  if (r.index == 0) {
    event(fmt::format(
        R"({{"ph":"X","cat":"step","name":"CTA {} step {}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"cta":{},"step":{}}}}})",
        r.cta, r.step, process_, thread, microseconds(step.begin), microseconds(step.length), r.cta, r.step));
  }
  const Slice mine = step.part(r.index, r.count);
  const std::string_view op = r.store ? "write" : "read", l2 = r.through_hbm ? "miss" : "hit";
  event(fmt::format(
      R"({{"ph":"X","cat":"tile","name":"{} {} {}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"tensor":"{}","op":"{}","l2":"{}","bytes":{},"hbm_bytes":{},"batch_head":{},"row":{},"column":{},"cta":{},"step":{}}}}})",
      info(r.tile.tensor).name, op, l2, process_, thread, microseconds(mine.begin), microseconds(mine.length),
      info(r.tile.tensor).name, op, l2, r.bytes.value(), r.through_hbm ? r.bytes.value() : 0, r.tile.batch_head,
      r.tile.row, r.tile.column, r.cta, r.step));
  sm_l2_[r.store ? 1 : 0] += r.bytes.value();
  if (r.through_hbm) l2_hbm_[r.store ? 1 : 0] += r.bytes.value();
  moved_ = true;
}

void TraceChrome::left_l2(const TileId& tile, Bytes bytes, bool written_back) {
  if (written_back) write_backs_.push_back({tile, bytes.value()});
}

void TraceChrome::end_step() {
  const Slice step{now_ * kNanosecondsOfStep, kNanosecondsOfStep};
  if (!write_backs_.empty()) name_thread(kL2Thread, "L2 to HBM");
  for (std::size_t i = 0; i < write_backs_.size(); ++i) {
    const auto& [tile, bytes] = write_backs_[i];
    const Slice mine = step.part(static_cast<std::int64_t>(i), std::ssize(write_backs_));
    event(fmt::format(
        R"({{"ph":"X","cat":"write_back","name":"{} write back","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"tensor":"{}","op":"write","l2":"write_back","bytes":0,"hbm_bytes":{},"batch_head":{},"row":{},"column":{}}}}})",
        info(tile.tensor).name, process_, kL2Thread, microseconds(mine.begin), microseconds(mine.length),
        info(tile.tensor).name, bytes, tile.batch_head, tile.row, tile.column));
    l2_hbm_[1] += bytes;
    moved_ = true;
  }
  write_backs_.clear();
  if (!std::exchange(moved_, false)) return;
  counter("SM-L2 bytes", sm_l2_);
  counter("HBM bytes", l2_hbm_);
}

/// As they stand when the step is over.
void TraceChrome::counter(std::string_view name, const std::array<std::int64_t, 2>& sums) {
  event(fmt::format(R"({{"ph":"C","name":"{}","pid":{},"ts":{},"args":{{"read":{},"write":{}}}}})", name, process_,
                    microseconds((now_ + 1) * kNanosecondsOfStep), sums[0], sums[1]));
}

void TraceChrome::end_stage() {
  end_step();
  named_.clear();
  sm_l2_ = l2_hbm_ = {};
}

void TraceChrome::finish(const Trace& trace, const std::vector<std::string>& argv) {
  end_stage();
  const RunRequest& request = trace.run.request;
  nlohmann::ordered_json algorithms = nlohmann::ordered_json::array();
  for (const TracedAlgorithm& traced : trace.algorithms) algorithms.push_back(algorithm_sums(traced));
  nlohmann::ordered_json shape = shape_to_json(request.shape);
  shape["pass"] = request.pass;
  const nlohmann::ordered_json other = {
      {"schema_version", kSchemaVersion},
      {"tool", "hbmscope"},
      {"version", hbmscope_version()},
      {"git", hbmscope_git_revision()},
      {"argv", argv},
      {"shape", shape},
      {"gpu", request.gpu.name},
      {"l2_effective_bytes", trace.run.l2_effective.value()},
      {"l2_state", request.l2_warm ? "warm" : "cold"},
      {"time", "a step of the simulation is shown as 1000 us; it is no prediction of seconds"},
      {"algorithms", algorithms}};
  out_ += "\n],\"displayTimeUnit\":\"ms\",\"otherData\":" + json_dump(other) + "}\n";
  sink_(out_);
  out_.clear();
}

}  // namespace hbmscope
