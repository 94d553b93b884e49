#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "analysis/run.hpp"

namespace hbmscope {

/// The options that `run` and its kin share, as text or numbers of the command line.
struct RunOptions {
  std::optional<std::int64_t> batch, heads, kv_heads, seqlen, seqlen_q, seqlen_kv, head_dim, head_dim_v, block_q,
      block_kv, cluster, stages, kv_splits, softmax_reads;
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

/// Where an option's value goes, and how its text is read.
struct LengthOption {
  std::optional<std::int64_t> RunOptions::*to;
};
struct CountOption {
  std::optional<std::int64_t> RunOptions::*to;
  std::int64_t least = 1;
};
struct BytesOption {
  std::optional<Bytes> RunOptions::*to;
};
struct RealOption {
  std::optional<double> AmdahlInput::*to;
};
struct TextOption {
  std::string RunOptions::*to;
};
struct FlagOption {
  bool RunOptions::*to;
};
struct DeviceOption {};
struct SeedOption {};

/// One option of `run`.
struct RunOption {
  const char* group;
  const char* name;  ///< with its dashes
  std::variant<LengthOption, CountOption, BytesOption, RealOption, TextOption, FlagOption, DeviceOption, SeedOption>
      kind;
  const char* type;  ///< in --help; null: what CLI11 calls it
  const char* help;
};

/// All of them, in the order of --help.
std::span<const RunOption> run_options();

void add_run_option(CLI::App& command, const RunOption& option, RunOptions& options);
void add_run_options(CLI::App& command, RunOptions& options);

/// Sets one option from its text, as on the command line; "on" and "off" are those of a flag. Errors name the option.
void set_option(RunOptions& options, const RunOption& option, const std::string& text);
/// The value as set_option() takes it: plain digits however it was written. Empty where there is none.
std::string text_of_option(const RunOptions& options, const RunOption& option);

/// Checks and translates; Errors name the option.
RunRequest to_request(const RunOptions& options);
/// The same with a GPU that was found before.
RunRequest to_request(const RunOptions& options, const GpuSpec& gpu, bool gpu_assumed);

/// The GPU that the options name, or what stands for none: this machine's, else an H100 SXM, which is assumed.
struct ChosenGpu {
  GpuSpec spec;
  bool assumed;
};
ChosenGpu choose_gpu(const RunOptions& options);

}  // namespace hbmscope
