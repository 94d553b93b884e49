#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "analysis/run.hpp"

namespace hbmscope {

/// The options that `run` and its kin share, as text or numbers of the command line.
struct RunOptions {
  std::optional<std::int64_t> batch, heads, kv_heads, seqlen, seqlen_q, seqlen_kv, head_dim, head_dim_v, block_q,
      block_kv, cluster, kv_splits, softmax_reads;
  std::string dtype = "fp16", align = "bottom-right", pass = "forward", gpu, engine = "auto", l2_state = "cold", order,
              variant = "paper", atomics = "write-only";
  std::string window, algorithm, gemm_tile, l2, kv_lengths, require;
  bool causal = false, pack_gqa = false, no_pack_gqa = false, scale_pass = false, mask_pass = false, dropout = false,
       fp32_scores = false, repeat_kv = false;
  std::optional<Bytes> sram;
  AmdahlInput amdahl;
  std::uint64_t seed = 1;
  bool portable = false;
  int device = 0;
  std::optional<std::int64_t> repeats;
  std::string kernel_counters = "on", hw_counters = "on";
  bool rungs = false;
};

void add_run_options(CLI::App& command, RunOptions& options);

/// Checks and translates; Errors name the option.
RunRequest to_request(const RunOptions& options);

}  // namespace hbmscope
