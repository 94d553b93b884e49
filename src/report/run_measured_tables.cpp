#include <fmt/format.h>

#include <cmath>

#include "model/plan_choice.hpp"
#include "report/format.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

/// Hardware beside prediction, as cells "predicted, hardware, their ratio".
void push_pair(std::vector<std::string>& cells, Bytes predicted, const Known<Bytes>& counted) {
  cells.push_back(text::bytes(predicted));
  cells.push_back(counted ? text::bytes(*counted) : std::string(kNone));
  const bool comparable = counted && predicted.value() > 0;
  cells.push_back(comparable ? fmt::format("{:.3f}", counted->as_double() / predicted.as_double())
                             : std::string(kNone));
}

/// What the kernel counted beside its closed form.
std::string kernel_word(const AlgorithmResult& a) {
  const Known<Traffic>& counted = a.measured->kernel_counted;
  if (!counted) return std::string(kNone);
  return *counted == *a.at(Boundary::sm_l2)->traffic ? "equal" : text::bytes(counted->total());
}

Table witness_table(const RunResult& r) {
  Table t{fmt::format("Predicted and measured bytes  ({}, {} L2)", r.measured->device.name,
                      r.request.l2_warm ? "warm" : "cold"),
          {{"", false},
           {"", false},
           {"kernel", false},
           {"read"},
           {"hardware"},
           {"ratio"},
           {"write"},
           {"hardware"},
           {"ratio"}},
          {},
          {}};
  for (const AlgorithmResult& a : r.algorithms) {
    if (!a.measured) continue;
    for (const Boundary boundary : {Boundary::sm_l2, Boundary::l2_hbm}) {
      const TrafficEntry* predicted = a.at(boundary);
      if (predicted == nullptr || !predicted->traffic) continue;
      const bool sm = boundary == Boundary::sm_l2;
      const HwTraffic& hw = sm ? a.measured->hw.sm_l2 : a.measured->hw.l2_hbm;
      std::vector<std::string> cells{std::string(a.algorithm->name), sm ? "SM-L2" : "HBM", sm ? kernel_word(a) : ""};
      push_pair(cells, predicted->traffic->sum().read, hw.read);
      push_pair(cells, predicted->traffic->sum().write, hw.write);
      t.rows.push_back(std::move(cells));
    }
  }
  return t;
}

/// The counters' own check, or why there is nothing to check.
std::string counters_words(const Known<CounterCheck>& known) {
  if (!known) return fmt::format("hardware: {}.", known.reason);
  if (known.status == Status::failed) return fmt::format("hardware counters FAILED their check: {}.", known.reason);
  std::string words;
  for (const CounterCheck::Row& row : known->rows) {
    if (row.expected_read.value() == 0 || !row.counted.read) continue;
    words += fmt::format("{}{:.4f}", words.empty() ? "" : ", ",
                         row.counted.read->as_double() / row.expected_read.as_double());
  }
  return fmt::format("hardware: CUPTI; reads of known copies were counted {} times (printed, never applied).", words);
}

/// What a cluster loads once arrives in each of its SMs, which is where the hardware counts.
void say_clusters(Table& t, const RunResult& r) {
  for (const AlgorithmResult& a : r.algorithms) {
    if (!a.measured || !a.measured->hw.sm_l2.read || cluster_of(a.plan) == 1) continue;
    const Traffic& loaded = *a.at(Boundary::sm_l2)->traffic;
    const Bytes keys = loaded[Tensor::K].read + loaded[Tensor::V].read;
    const Bytes expected = loaded.sum().read + Count(cluster_of(a.plan) - 1) * keys;
    t.notes.push_back(fmt::format(
        "{}: {} CTAs share each tile of K and V that one loads, and the hardware counts what SMs receive: {} by the "
        "closed form ({:.3f}); L2 looked up {}.",
        a.algorithm->name, a.plan.cluster, text::bytes(expected),
        a.measured->hw.sm_l2.read->as_double() / expected.as_double(),
        a.measured->hw.l2_lookup ? text::bytes(*a.measured->hw.l2_lookup) : "a number of bytes nobody counted"));
  }
}

/// Nor are zeros loaded that the copy engine fills tiles with, but they arrive.
void say_padding(Table& t, const RunResult& r) {
  const AttentionShape& s = r.request.shape;
  for (const AlgorithmResult& a : r.algorithms) {
    const std::int64_t width = flash_v3_width(s), least = std::min(s.head_dim, s.head_dim_v);
    if (a.algorithm->name != "flash_v3" || !a.measured || !a.measured->hw.sm_l2.read || least == width) continue;
    t.notes.push_back(fmt::format(
        "flash_v3: its tiles are {} columns wide and the heads {}; the copy engine fills the rest with "
        "zeros, which the hardware counts among what SMs receive.",
        width,
        s.head_dim == s.head_dim_v ? fmt::format("{}", least) : fmt::format("{} and {}", s.head_dim, s.head_dim_v)));
  }
}

/// A run that a check voids, or a kernel whose sums differ from run to run, must show.
void warn(Table& t, const PipelineMeasurement& p) {
  if (p.exactness.status == Status::failed)
    t.notes.push_back(fmt::format("{}: {}.", p.pipeline->name, p.exactness.reason));
  if (p.bit_identical && !*p.bit_identical) {
    t.notes.push_back(fmt::format("{}: two runs gave different bits.", p.pipeline->name));
  }
}

/// Rates above a roof are shown as they are, and said: they mean that bytes stayed in L2, or that something is wrong.
void flag_rates(Table& t, const RunResult& r, const PipelineMeasurement& p) {
  if (!p.time) return;
  const Seconds median{p.time->median};
  const Algorithm& a = algorithm(p.pipeline->algorithm);
  const auto above = [&](double rate, double roof, const std::string& what, std::string_view why) {
    if (rate <= roof) return;
    t.notes.push_back(fmt::format("{}: {} is {} of the datasheet's roof: {}.", p.pipeline->name, what,
                                  text::percent(rate / roof), why));
  };
  const BytesPerSecond roof = r.request.gpu.hbm_bandwidth;
  if (p.hw.l2_hbm.read && p.hw.l2_hbm.write) {
    above(((*p.hw.l2_hbm.read + *p.hw.l2_hbm.write) / median).value, roof.value, "its HBM rate",
          "bytes were counted in another run than the time, or written back after it");
  }
  above((compulsory_bytes(r.request.shape, a.pass) / median).value, roof.value, "its compulsory rate",
        "part of these bytes never passed HBM while it ran");
  if (const auto& peak = r.request.gpu.peak[static_cast<std::size_t>(r.request.shape.dtype)]) {
    above((a.flops(r.request.shape, p.plan).matmul / median).value, peak->value, "its FLOP rate",
          "compare the clocks in the JSON with the datasheet's");
  }
}

/// At what clocks each kernel ran; empty where nobody counted them.
std::string clock_words(const RunResult& r) {
  std::string words;
  for (const PipelineMeasurement& p : r.measured->pipelines) {
    for (const StageMeasurement& s : p.stages) {
      if (!s.hw.sm_clock_least || !s.hw.sm_clock_most) continue;
      words += fmt::format("{}{}{} {:.2f} to {:.2f} GHz", words.empty() ? "" : ", ", p.pipeline->name,
                           p.stages.size() > 1 ? " " + std::string(s.name) : "", *s.hw.sm_clock_least / 1e9,
                           *s.hw.sm_clock_most / 1e9);
    }
  }
  return words.empty() ? words : fmt::format("SM clocks while counted, slowest to fastest: {}.", words);
}

Table speed_table(const RunResult& r) {
  Table t{"Measured time",
          {{"", false},
           {"median"},
           {"spread"},
           {"TFLOP/s"},
           {"HBM GB/s"},
           {"compulsory GB/s"},
           {"error"},
           {"stages", false}},
          {},
          {}};
  for (const PipelineMeasurement& p : r.measured->pipelines) {
    const Algorithm& a = algorithm(p.pipeline->algorithm);
    std::vector<std::string> cells{std::string(p.pipeline->name)};
    if (!p.time) {
      cells.resize(7, std::string(kNone));
      cells.push_back(p.time.reason);
      t.rows.push_back(std::move(cells));
      continue;
    }
    const Seconds median{p.time->median};
    const Known<Bytes>&read = p.hw.l2_hbm.read, &write = p.hw.l2_hbm.write;
    const auto rate = [&](Bytes b) { return fmt::format("{:.0f}", (b / median).value / 1e9); };
    cells.push_back(text::seconds(median));
    cells.push_back(text::percent(p.time->spread));
    cells.push_back(fmt::format("{:.0f}", (a.flops(r.request.shape, p.plan).matmul / median).value / 1e12));
    cells.push_back(read && write ? rate(*read + *write) : std::string(kNone));
    cells.push_back(rate(compulsory_bytes(r.request.shape, a.pass)));
    cells.push_back(p.exactness ? text::significant(p.exactness->exactness.max_abs_error, 2) : std::string(kNone));
    std::string stages;
    for (const StageMeasurement& s : p.stages) {
      if (p.stages.size() > 1 && s.median) {
        stages += fmt::format("{}{} {}", stages.empty() ? "" : ", ", s.name, text::seconds(*s.median));
      }
    }
    cells.push_back(stages);
    t.rows.push_back(std::move(cells));
  }
  return t;
}

}  // namespace

void append_measured_tables(Document& out, const RunResult& r, const RunView& view) {
  if (!r.measured) return;
  Table bytes = witness_table(r), speed = speed_table(r);
  bytes.notes.push_back(counters_words(r.measured->counters));
  say_clusters(bytes, r);
  say_padding(bytes, r);
  for (const PipelineMeasurement& p : r.measured->pipelines) {
    warn(speed, p);
    flag_rates(speed, r, p);
  }
  if (std::string clocks = clock_words(r); !clocks.empty()) speed.notes.push_back(std::move(clocks));
  if (r.request.l2_warm && compulsory_bytes(r.request.shape, Pass::forward) < r.measured->device.l2) {
    speed.notes.emplace_back("warm: inputs and output fit the L2, so HBM may see none of them.");
  }
  if (view.explain) {
    bytes.notes.emplace_back(
        "kernel: what the kernels counted themselves at each access, held against the closed form by tensor and "
        "direction. read, write: the closed form at SM-L2, the simulated L2's central value at HBM. hardware: bytes "
        "that "
        "the SMs received and sent, and bytes that HBM read and wrote, an idle GPU's noise subtracted.");
    speed.notes.emplace_back(
        "median of runs that each begin with an L2 swept clean (--l2-state warm: right after one another); spread: the "
        "middle half of them over the median; TFLOP/s: exact live pairs; HBM: bytes that the hardware counted over the "
        "median; compulsory: the least bytes over it; error: largest, of sampled rows against fp64.");
  }
  out.push_back(std::move(bytes));
  out.push_back(std::move(speed));
}

}  // namespace hbmscope
