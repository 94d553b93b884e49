#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "report/run_document.hpp"

/// The sections of a run's report. Each appends itself to the document.
namespace hbmscope {

/// The answer in a sentence or two: bytes of both pipelines, their ratio, and what binds each.
void append_answer(Document& out, const RunResult& result);

/// Traffic by boundary: through HBM, where it was simulated, and between SM and L2.
void append_traffic_tables(Document& out, const RunResult& result, const RunView& view);

/// A table an algorithm: how often each tensor passes.
void append_tensor_tables(Document& out, const RunResult& result, const RunView& view);

/// FLOPs, intensities, what binds, and times.
void append_time_table(Document& out, const RunResult& result, const RunView& view);

/// What the kernels and the hardware counted beside what was predicted; nothing where no kernel ran.
void append_measured_tables(Document& out, const RunResult& result, const RunView& view);

/// Bars of bytes and the roofline, in characters.
void append_charts(Document& out, const RunResult& result, const ChartStyle& style);

// What more than one section needs.

/// A number that is not there.
inline constexpr std::string_view kNone = "-";

/// The last fused algorithm of the pass: the one a reader wants beside the naive one.
const AlgorithmResult* fused(const RunResult& result, Pass pass);

bool has_hbm(const RunResult& result);

/// The least and the most total of any pace that was simulated.
std::pair<Bytes, Bytes> interval(const TrafficEntry& entry);

/// What multiplies: "the tensor cores" or, for fp32, "the FP32 units".
std::string_view matmul_units(const RunResult& result);

}  // namespace hbmscope
