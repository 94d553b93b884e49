#include "cli/run_options.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/typed_options.hpp"
#include "core/suggest.hpp"
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

void at_least_one(const char* option, const std::optional<std::int64_t>& value) {
  if (value && *value < 1)
    throw Error(ErrorKind::usage, std::string(option) + ": must be at least 1, got " + std::to_string(*value),
                "give a positive whole number");
  if (value && *value > (1 << 20))
    throw Error(ErrorKind::usage, std::string(option) + ": must be at most 1048576, got " + std::to_string(*value),
                "take a smaller value");
}

TilePlan to_plan(const RunOptions& o) {
  at_least_one("--block-q", o.block_q);
  at_least_one("--block-kv", o.block_kv);
  at_least_one("--cluster", o.cluster);
  at_least_one("--kv-splits", o.kv_splits);
  TilePlan p;
  p.block_q = o.block_q.value_or(0);
  p.block_kv = o.block_kv.value_or(0);
  p.cluster = o.cluster.value_or(1);
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

/// `fastest` is what the name "flash" stands for.
std::vector<std::string> to_algorithms(const std::string& text, std::string_view pass, std::string_view fastest) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  for (std::string part : split_list(text)) {
    if (part == "flash") part = fastest;
    const Algorithm& a = algorithm(part);
    if (std::find(names.begin(), names.end(), part) != names.end()) continue;
    const bool backward = a.pass == Pass::backward;
    if ((pass == "backward" && !backward) || ((pass == "forward" || pass == "decode") && backward)) {
      throw Error(ErrorKind::usage,
                  "--algorithm: " + part + " is a " + (backward ? "backward" : "forward") + " pass, and --pass is " +
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
  if (a.speedup && *a.speedup <= 0)
    throw Error(ErrorKind::usage, "--attention-speedup: must be above 0", "2 means twice as fast");
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

void add_run_options(CLI::App& c, RunOptions& o) {
  const char* shape = "Shape";
  add_length(c, "--seqlen", o.seqlen, "Queries and keys; 1k is 1024 (default 8192)")->group(shape);
  add_length(c, "--seqlen-q", o.seqlen_q, "Queries, where they differ")->group(shape);
  add_length(c, "--seqlen-kv", o.seqlen_kv, "Keys, where they differ")->group(shape);
  add_count(c, "--head-dim", o.head_dim, "Width of Q and K (default 128)")->group(shape);
  add_count(c, "--head-dim-v", o.head_dim_v, "Width of V and O (default --head-dim)")->group(shape);
  add_count(c, "--heads", o.heads, "Query heads (default 1)")->group(shape);
  add_count(c, "--kv-heads", o.kv_heads, "Key and value heads; fewer than --heads is GQA, 1 is MQA (default --heads)")
      ->group(shape);
  add_count(c, "--batch", o.batch, "Batch entries (default 1)")->group(shape);
  c.add_option("--dtype", o.dtype, "fp16, bf16, fp32 or fp8")->capture_default_str()->group(shape);
  c.add_flag("--causal", o.causal,
             "Each query sees keys up to its own place; with --window L, at most L keys before it too")
      ->group(shape);
  c.add_option("--window", o.window,
               "L keys before the query's own and none after, or L,R on both sides; -1 is no limit; a model's window W "
               "is L = W-1")
      ->type_name("L[,R]")
      ->group(shape);
  c.add_option("--align", o.align, "Where a mask's diagonal ends: bottom-right or top-left")
      ->capture_default_str()
      ->group(shape);
  c.add_option("--kv-lengths", o.kv_lengths, "Keys of each batch entry, the rest being padding")
      ->type_name("N,N,...")
      ->group(shape);
  c.add_option("--pass", o.pass, "forward, backward, both or decode (one query, or --seqlen-q)")
      ->capture_default_str()
      ->group(shape);

  const char* plan = "Algorithms and tiles";
  c.add_option("--algorithm", o.algorithm,
               "naive, flash_v1, flash_v2, flash_v3, flash (the fastest here), split_kv, naive_bwd, flash_v1_bwd, "
               "flash_v2_bwd (default: those "
               "of the pass)")
      ->type_name("NAME,...")
      ->group(plan);
  add_count(c, "--block-q", o.block_q,
            "Query rows of a tile (default: 128, or 64, 32, 16 where there are no more; less if SMEM is short)")
      ->group(plan);
  add_count(c, "--block-kv", o.block_kv, "Key rows of a tile (default: 128, or less if SMEM is short)")->group(plan);
  c.add_option("--gemm-tile", o.gemm_tile, "naive: tile of its products (default 128,128)")
      ->type_name("ROWS,COLUMNS")
      ->group(plan);
  add_count(c, "--softmax-reads", o.softmax_reads, "naive: 1 row on chip, 2 online, 3 three passes")->group(plan);
  c.add_flag("--scale-pass", o.scale_pass, "naive: a kernel of its own scales S")->group(plan);
  c.add_flag("--mask-pass", o.mask_pass, "naive: a kernel of its own masks S")->group(plan);
  c.add_flag("--dropout", o.dropout, "naive: a kernel of its own drops P")->group(plan);
  c.add_flag("--fp32-scores", o.fp32_scores, "naive: S is stored in fp32")->group(plan);
  c.add_flag("--repeat-kv", o.repeat_kv, "naive: K and V are first copied to every query head")->group(plan);
  c.add_option("--variant", o.variant, "flash_v1: paper (Algorithm 1) or released (first CUDA kernels)")
      ->capture_default_str()
      ->group(plan);
  c.add_option("--atomics", o.atomics,
               "flash_v2_bwd: an atomic add to dQ counts as a write-only, or as rmw, a read and a write")
      ->capture_default_str()
      ->group(plan);
  auto* pack =
      c.add_flag("--pack-gqa", o.pack_gqa, "Query heads of a kv head share a tile (split_kv: by default)")->group(plan);
  c.add_flag("--no-pack-gqa", o.no_pack_gqa, "They do not (flash_v2: by default)")->group(plan)->excludes(pack);
  add_count(c, "--cluster", o.cluster, "flash_v2: query tiles that share each K and V tile by multicast")->group(plan);
  add_count(c, "--kv-splits", o.kv_splits, "split_kv: splits of the keys (default: as many as fill the GPU)")
      ->group(plan);
  c.add_option(
       "--order", o.order,
       "CTAs start ascending, longest-first or longest-first-interleaved (default: ascending; on a GPU, the last "
       "where causal)")
      ->type_name("ORDER")
      ->group(plan);

  const char* machine = "Machine";
  c.add_option("--gpu", o.gpu,
               "A GPU of `hbmscope gpu list`, or a FILE.json of your own (default: this machine's, else H100 SXM)")
      ->type_name("NAME|FILE.json")
      ->group(machine);
  add_bytes(c, "--sram", o.sram, "On-chip memory M of one CTA (default: the GPU's SMEM per block)")->group(machine);
  c.add_option("--l2", o.l2, "Effective L2 capacity, or none (default: the GPU's)")
      ->type_name("BYTES|none")
      ->group(machine);
  c.add_option("--l2-state", o.l2_state, "cold, or warm: the same kernels ran just before")
      ->capture_default_str()
      ->group(machine);
  c.add_option("--engine", o.engine,
               "model: formulas; sim: and the L2; cpu: and the numerics; gpu; auto: all this machine can do")
      ->capture_default_str()
      ->group(machine);
  c.add_option("--device", o.device, "Which of this machine's CUDA devices, from 0")->group(machine);
  add_count(c, "--repeats", o.repeats, "Timed runs on the GPU; 0: none (default: as many as 0.35 s hold, 10 to 200)", 0)
      ->group(machine);
  c.add_option("--kernel-counters", o.kernel_counters, "on|off: the kernels count the bytes they ask for")
      ->type_name("on|off")
      ->group(machine);
  c.add_option("--hw-counters", o.hw_counters, "on|off: read the GPU's own counters (CUPTI)")
      ->type_name("on|off")
      ->group(machine);
  c.add_flag("--rungs", o.rungs, "Beside flash_v3, measure the kernels that lead up to it: flash_v3a to flash_v3d")
      ->group(machine);
  c.add_option("--require", o.require, "Exit with 4 unless this machine has: gpu or counters")
      ->type_name("gpu|counters")
      ->group(machine);
  c.add_option_function<std::string>(
       "--seed", [&o](const std::string& text) { o.seed = parse_seed(text); }, "Of the random inputs (default 1)")
      ->type_name("N")
      ->group(machine);
  c.add_flag("--portable", o.portable, "CPU sums in one order on every processor: the same digits everywhere, slower")
      ->group(machine);

  const char* step = "The whole step";
  add_real(c, "--attention-share", o.amdahl.share, "Attention's share of the step's time before, 0 to 1")->group(step);
  add_real(c, "--attention-speedup", o.amdahl.speedup, "How many times faster attention gets (default: predicted)")
      ->group(step);
  add_real(c, "--attention-time-saved", o.amdahl.time_saved, "Or the part of attention's time that goes away, 0 to 1")
      ->group(step);
}

RunRequest to_request(const RunOptions& o) {
  RunRequest r;
  choice<int, 4>("--pass", o.pass, {{{"forward", 0}, {"backward", 0}, {"both", 0}, {"decode", 0}}});
  r.pass = o.pass;
  r.shape = to_shape(o);
  r.plan = to_plan(o);
  r.order_given = !o.order.empty();
  r.kv_splits = o.kv_splits;
  r.gpu_assumed = o.gpu.empty();
  r.device = o.device;
  r.gpu = o.gpu.empty() ? embedded_gpu(kDefaultGpu) : find_gpu(o.gpu);
  if (const DeviceStatus device = device_status(r.device); o.gpu.empty() && device.present) {
    if (const GpuSpec* gpu = gpu_of_device(device.name)) r.gpu = *gpu, r.gpu_assumed = false;
  }
  const std::string_view fastest = fastest_flash(r.shape, r.gpu);
  r.algorithms = to_algorithms(o.algorithm, o.pass, fastest);
  const std::vector<std::string> asked = split_list(o.algorithm);
  if (std::find(asked.begin(), asked.end(), "flash") != asked.end()) r.flash = fastest;
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
