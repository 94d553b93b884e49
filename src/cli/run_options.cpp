#include "cli/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/typed_options.hpp"
#include "core/suggest.hpp"
#include "model/amdahl.hpp"
#include "model/plan_choice.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kDefaultGpu = "H100 SXM";

/// The value that goes with a word, or an Error that lists the words.
template <class T, std::size_t N>
T choice(std::string_view option, std::string_view word, const std::array<std::pair<std::string_view, T>, N>& known) {
  std::array<std::string_view, N> words;
  for (std::size_t i = 0; i < N; ++i) {
    words[i] = known[i].first;
    if (known[i].first == word) return known[i].second;
  }
  throw Error(ErrorKind::usage, std::string(option) + ": " + in_quotes(word) + " is not one of its values",
              did_you_mean(word, words));
}

std::optional<std::int64_t> window_edge(std::string_view text) {
  const std::int64_t keys = text.starts_with('-') ? parse_integer(text, "--window") : parse_length(text, "--window");
  if (keys < -1) {
    throw Error(ErrorKind::usage, "--window: " + std::to_string(keys) + " keys; only -1 may stand for no limit",
                "a window counts keys beside the query's own");
  }
  return keys == -1 ? std::nullopt : std::optional(keys);
}

Mask to_mask(const RunOptions& o) {
  Mask mask;
  mask.alignment = choice<Alignment, 2>(
      "--align", o.align, {{{"bottom-right", Alignment::bottom_right}, {"top-left", Alignment::top_left}}});
  if (!o.window.empty()) {
    const std::vector<std::string> edges = split_list(o.window);
    if (edges.size() > 2)
      throw Error(ErrorKind::usage, "--window: takes L or L,R, got " + in_quotes(o.window),
                  "--window 4095 is a model's sliding window of 4096");
    mask.window_left = window_edge(edges[0]);
    mask.window_right = edges.size() == 2 ? window_edge(edges[1]) : std::optional<std::int64_t>(0);
    if (o.causal && (!mask.window_right || *mask.window_right > 0)) {
      throw Error(ErrorKind::usage, "--causal and a --window that looks to the right contradict each other",
                  "leave --causal out, or give --window L alone");
    }
  } else if (o.causal) {
    mask.window_right = 0;
  }
  return mask;
}

std::vector<std::int64_t> to_lengths(const std::string& text) {
  std::vector<std::int64_t> lengths;
  if (text.empty()) return lengths;
  for (const std::string& part : split_list(text)) lengths.push_back(parse_length(part, "--kv-lengths"));
  return lengths;
}

std::uint64_t parse_seed(const std::string& text) {
  const std::int64_t seed = parse_integer(text, "--seed");
  if (seed < 0)
    throw Error(ErrorKind::usage, "--seed: must not be negative, got " + text, "any whole number from 0 on");
  return static_cast<std::uint64_t>(seed);
}

AttentionShape to_shape(const RunOptions& o) {
  AttentionShape s;
  const std::int64_t seqlen = o.seqlen.value_or(8192);
  if (seqlen < 1 || seqlen > kMaxSeqlen) {
    throw Error(ErrorKind::usage,
                "--seqlen: must be from 1 to " + std::to_string(kMaxSeqlen) + ", got " + std::to_string(seqlen),
                "write 8192 or 8k (k = 1024, M = 1024 k)");
  }
  s.batch = o.batch.value_or(1);
  s.num_heads = o.heads.value_or(1);
  s.num_kv_heads = o.kv_heads.value_or(s.num_heads);
  s.seqlen_q = o.seqlen_q.value_or(o.pass == "decode" ? 1 : seqlen);
  s.seqlen_kv = o.seqlen_kv.value_or(seqlen);
  s.head_dim = o.head_dim.value_or(128);
  s.head_dim_v = o.head_dim_v.value_or(s.head_dim);
  s.dtype = choice<Dtype, 4>(
      "--dtype", o.dtype, {{{"fp16", Dtype::fp16}, {"bf16", Dtype::bf16}, {"fp32", Dtype::fp32}, {"fp8", Dtype::fp8}}});
  s.mask = to_mask(o);
  s.kv_lengths = to_lengths(o.kv_lengths);
  validate(s, Speaker::option);
  return s;
}

void at_least_one(const char* option, const std::optional<std::int64_t>& value, std::int64_t most = 1 << 20) {
  if (value && *value < 1)
    throw Error(ErrorKind::usage, std::string(option) + ": must be at least 1, got " + std::to_string(*value),
                "give a positive whole number");
  if (value && *value > most)
    throw Error(ErrorKind::usage,
                std::string(option) + ": must be at most " + std::to_string(most) + ", got " + std::to_string(*value),
                "take a smaller value");
}

TilePlan to_plan(const RunOptions& o) {
  at_least_one("--block-q", o.block_q);
  at_least_one("--block-kv", o.block_kv);
  at_least_one("--cluster", o.cluster, kMaxCluster);
  at_least_one("--stages", o.stages);
  at_least_one("--kv-splits", o.kv_splits);
  TilePlan p;
  p.block_q = o.block_q.value_or(0);
  p.block_kv = o.block_kv.value_or(0);
  p.cluster = o.cluster.value_or(0);
  p.stages = o.stages.value_or(1);
  p.softmax_reads = o.softmax_reads.value_or(1);
  if (p.softmax_reads < 1 || p.softmax_reads > 3) {
    throw Error(ErrorKind::usage, "--softmax-reads: must be 1, 2 or 3, got " + std::to_string(p.softmax_reads),
                "1 keeps a row on chip, 2 is online, 3 is maximum, sum and scaling apart");
  }
  p.variant = choice<FlashV1Variant, 2>("--variant", o.variant,
                                        {{{"paper", FlashV1Variant::paper}, {"released", FlashV1Variant::released}}});
  p.atomics =
      choice<Atomics, 2>("--atomics", o.atomics, {{{"write-only", Atomics::write_only}, {"rmw", Atomics::rmw}}});
  if (!o.order.empty()) {
    p.order = choice<CtaOrder, 3>("--order", o.order,
                                  {{{"ascending", CtaOrder::ascending},
                                    {"longest-first", CtaOrder::longest_first},
                                    {"longest-first-interleaved", CtaOrder::longest_first_interleaved}}});
  }
  if (o.pack_gqa) p.pack_gqa = true;
  if (o.no_pack_gqa) p.pack_gqa = false;
  p.scale_pass = o.scale_pass;
  p.mask_pass = o.mask_pass;
  p.dropout = o.dropout;
  p.fp32_scores = o.fp32_scores;
  p.repeat_kv = o.repeat_kv;
  if (!o.gemm_tile.empty()) {
    const std::vector<std::string> sides = split_list(o.gemm_tile);
    if (sides.size() != 2)
      throw Error(ErrorKind::usage, "--gemm-tile: takes ROWS,COLUMNS, got " + in_quotes(o.gemm_tile),
                  "for example --gemm-tile 128,256");
    p.gemm_tile = {parse_integer(sides[0], "--gemm-tile"), parse_integer(sides[1], "--gemm-tile")};
    for (const std::int64_t side : *p.gemm_tile) at_least_one("--gemm-tile", side);
  }
  return p;
}

/// `flash` is what the name "flash" stands for; it is cleared where nobody says it.
std::vector<std::string> to_algorithms(const std::string& text, std::string_view pass, std::string& flash) {
  const std::string fastest = std::exchange(flash, {});
  std::vector<std::string> names;
  if (text.empty()) return names;
  for (std::string part : split_list(text)) {
    const std::string said = part;
    if (part == "flash") part = flash = fastest;
    const Algorithm& a = algorithm(part);
    if (std::find(names.begin(), names.end(), part) != names.end()) continue;
    const bool backward = a.pass == Pass::backward;
    if ((pass == "backward" && !backward) || ((pass == "forward" || pass == "decode") && backward)) {
      throw Error(ErrorKind::usage,
                  "--algorithm: " + said + " is a " + (backward ? "backward" : "forward") + " pass, and --pass is " +
                      std::string(pass),
                  "--pass both takes either");
    }
    names.push_back(part);
  }
  return names;
}

AmdahlInput checked(const AmdahlInput& a) {
  if (a.share && (*a.share < 0 || *a.share > 1)) {
    throw Error(ErrorKind::usage, "--attention-share: must be between 0 and 1", "0.30 is 30 % of the step's time");
  }
  if (a.speedup && !is_taken(*a.speedup)) {
    throw Error(ErrorKind::usage, fmt::format("--attention-speedup: {}, got {}", kSpeedupsTaken, *a.speedup),
                "2 means twice as fast");
  }
  if (a.time_saved && (*a.time_saved < 0 || *a.time_saved >= 1)) {
    throw Error(ErrorKind::usage, "--attention-time-saved: must be at least 0 and below 1",
                "0.30 means that attention takes 30 % less time");
  }
  if (a.speedup && a.time_saved) {
    throw Error(ErrorKind::usage, "--attention-speedup and --attention-time-saved say the same thing twice",
                "give one: 30 % less time is 1.43x, not 1.3x");
  }
  if (!a.share && (a.speedup || a.time_saved)) {
    throw Error(ErrorKind::usage, "a speed-up of attention says nothing of the step without --attention-share",
                "give attention's share of the step's time, such as --attention-share 0.30");
  }
  return a;
}

}  // namespace

void add_run_option(CLI::App& c, const RunOption& option, RunOptions& o) {
  struct Adder {
    CLI::App& c;
    const RunOption& option;
    RunOptions& o;
    CLI::Option* operator()(LengthOption l) const { return add_length(c, option.name, o.*l.to, option.help); }
    CLI::Option* operator()(CountOption n) const { return add_count(c, option.name, o.*n.to, option.help, n.least); }
    CLI::Option* operator()(BytesOption b) const { return add_bytes(c, option.name, o.*b.to, option.help); }
    CLI::Option* operator()(RealOption r) const { return add_real(c, option.name, o.amdahl.*r.to, option.help); }
    CLI::Option* operator()(TextOption t) const {
      CLI::Option* const added = c.add_option(option.name, o.*t.to, option.help);
      return option.type != nullptr || (o.*t.to).empty() ? added : added->capture_default_str();
    }
    CLI::Option* operator()(FlagOption f) const { return c.add_flag(option.name, o.*f.to, option.help); }
    CLI::Option* operator()(DeviceOption) const { return add_device(c, o.device, option.help); }
    CLI::Option* operator()(SeedOption) const {
      return c.add_option_function<std::string>(
          option.name, [&o = o](const std::string& text) { o.seed = parse_seed(text); }, option.help);
    }
  };
  CLI::Option* const added = std::visit(Adder{c, option, o}, option.kind)->group(option.group);
  if (option.type != nullptr) added->type_name(option.type);
}

void add_run_options(CLI::App& c, RunOptions& o) {
  for (const RunOption& option : run_options()) add_run_option(c, option, o);
  c.get_option("--no-pack-gqa")->excludes(c.get_option("--pack-gqa"));
}

void set_option(RunOptions& o, const RunOption& option, const std::string& text) {
  struct Setter {
    RunOptions& o;
    const RunOption& option;
    const std::string& text;
    void operator()(LengthOption l) const { o.*l.to = parse_length(text, option.name); }
    void operator()(CountOption n) const { o.*n.to = parse_count(text, option.name, n.least); }
    void operator()(BytesOption b) const { o.*b.to = parse_bytes(text, option.name); }
    void operator()(RealOption r) const { o.amdahl.*r.to = parse_real(text, option.name); }
    void operator()(TextOption t) const { o.*t.to = text; }
    void operator()(FlagOption f) const {
      o.*f.to = choice<bool, 2>(option.name, text, {{{"on", true}, {"off", false}}});
    }
    void operator()(DeviceOption) const { o.device = static_cast<int>(parse_integer(text, option.name)); }
    void operator()(SeedOption) const { o.seed = parse_seed(text); }
  };
  std::visit(Setter{o, option, text}, option.kind);
}

std::string text_of_option(const RunOptions& o, const RunOption& option) {
  struct Getter {
    const RunOptions& o;
    static std::string text(const std::optional<std::int64_t>& n) { return n ? std::to_string(*n) : ""; }
    std::string operator()(LengthOption l) const { return text(o.*l.to); }
    std::string operator()(CountOption n) const { return text(o.*n.to); }
    std::string operator()(BytesOption b) const { return (o.*b.to) ? std::to_string((o.*b.to)->value()) : ""; }
    std::string operator()(RealOption r) const { return (o.amdahl.*r.to) ? fmt::format("{}", *(o.amdahl.*r.to)) : ""; }
    std::string operator()(TextOption t) const { return o.*t.to; }
    std::string operator()(FlagOption f) const { return o.*f.to ? "on" : "off"; }
    std::string operator()(DeviceOption) const { return std::to_string(o.device); }
    std::string operator()(SeedOption) const { return std::to_string(o.seed); }
  };
  return std::visit(Getter{o}, option.kind);
}

ChosenGpu choose_gpu(const RunOptions& o) {
  if (!o.gpu.empty()) return {find_gpu(o.gpu), false};
  if (const DeviceStatus device = device_status(o.device); device.present) {
    if (const GpuSpec* gpu = gpu_of_device(device.name)) return {*gpu, false};
  }
  return {embedded_gpu(kDefaultGpu), true};
}

RunRequest to_request(const RunOptions& o) {
  const ChosenGpu gpu = choose_gpu(o);
  return to_request(o, gpu.spec, gpu.assumed);
}

RunRequest to_request(const RunOptions& o, const GpuSpec& gpu, bool gpu_assumed) {
  RunRequest r;
  choice<int, 4>("--pass", o.pass, {{{"forward", 0}, {"backward", 0}, {"both", 0}, {"decode", 0}}});
  r.pass = o.pass;
  r.shape = to_shape(o);
  r.plan = to_plan(o);
  r.order_given = !o.order.empty();
  r.stages_given = o.stages.has_value();
  r.kv_splits = o.kv_splits;
  r.device = o.device;
  r.gpu = gpu;
  r.gpu_assumed = gpu_assumed;
  r.flash = fastest_flash(r.shape, r.gpu);
  r.algorithms = to_algorithms(o.algorithm, o.pass, r.flash);
  constexpr Bytes kMostSram(std::int64_t{1} << 40);
  if (o.sram && *o.sram > kMostSram) {
    throw Error(
        ErrorKind::usage,
        "--sram: must be at most " + std::to_string(kMostSram.value()) + " B, got " + std::to_string(o.sram->value()),
        "one CTA has some hundred KiB, such as 227KiB");
  }
  r.sram = o.sram;
  if (!o.l2.empty()) r.l2 = o.l2 == "none" ? Bytes(0) : parse_bytes(o.l2, "--l2");
  r.l2_warm = choice<bool, 2>("--l2-state", o.l2_state, {{{"cold", false}, {"warm", true}}});
  r.engine = choice<Engine, 5>("--engine", o.engine,
                               {{{"model", Engine::model},
                                 {"sim", Engine::sim},
                                 {"cpu", Engine::cpu},
                                 {"gpu", Engine::gpu},
                                 {"auto", Engine::automatic}}});
  r.amdahl = checked(o.amdahl);
  r.seed = o.seed;
  r.portable = o.portable;
  constexpr std::int64_t kMostRepeats = 100'000;
  if (o.repeats && *o.repeats > kMostRepeats) {
    throw Error(ErrorKind::usage,
                "--repeats " + std::to_string(*o.repeats) + ": more than " + std::to_string(kMostRepeats),
                "a median needs some ten to a hundred");
  }
  if (o.repeats) r.repeats = static_cast<int>(*o.repeats);
  constexpr std::array<std::pair<std::string_view, bool>, 2> kSwitch{{{"on", true}, {"off", false}}};
  r.kernel_counters = choice<bool, 2>("--kernel-counters", o.kernel_counters, kSwitch);
  r.hw_counters = choice<bool, 2>("--hw-counters", o.hw_counters, kSwitch);
  r.rungs = o.rungs;
  r.require_counters = o.require == "counters";
  if (!o.require.empty()) {
    choice<int, 2>("--require", o.require, {{{"gpu", 0}, {"counters", 0}}});
    const DeviceStatus device = device_status(o.device);
    if (!device.present)
      throw Error(ErrorKind::device, "--require " + o.require + ": " + device.reason,
                  "leave --require out for what needs no GPU");
  }
  return r;
}

}  // namespace hbmscope
