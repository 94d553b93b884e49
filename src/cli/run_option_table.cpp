#include "cli/run_options.hpp"

namespace hbmscope {
namespace {

constexpr const char *kShape = "Shape", *kPlan = "Algorithms and tiles", *kMachine = "Machine",
                     *kStep = "The whole step";
using O = RunOptions;

const RunOption kRunOptions[]{
    {kShape, "--seqlen", LengthOption{&O::seqlen}, nullptr, "Queries and keys; 1k is 1024 (default 8192)"},
    {kShape, "--seqlen-q", LengthOption{&O::seqlen_q}, nullptr, "Queries, where they differ"},
    {kShape, "--seqlen-kv", LengthOption{&O::seqlen_kv}, nullptr, "Keys, where they differ"},
    {kShape, "--head-dim", CountOption{&O::head_dim}, nullptr, "Width of Q and K (default 128)"},
    {kShape, "--head-dim-v", CountOption{&O::head_dim_v}, nullptr, "Width of V and O (default --head-dim)"},
    {kShape, "--heads", CountOption{&O::heads}, nullptr, "Query heads (default 1)"},
    {kShape, "--kv-heads", CountOption{&O::kv_heads}, nullptr,
     "Key and value heads; fewer than --heads is GQA, 1 is MQA (default --heads)"},
    {kShape, "--batch", CountOption{&O::batch}, nullptr, "Batch entries (default 1)"},
    {kShape, "--dtype", TextOption{&O::dtype}, nullptr, "fp16, bf16, fp32 or fp8"},
    {kShape, "--causal", FlagOption{&O::causal}, nullptr,
     "Each query sees keys up to its own place; with --window L, at most L keys before it too"},
    {kShape, "--window", TextOption{&O::window}, "L[,R]",
     "L keys before the query's own and none after, or L,R on both sides; -1 is no limit; a model's window W is L = "
     "W-1"},
    {kShape, "--align", TextOption{&O::align}, nullptr, "Where a mask's diagonal ends: bottom-right or top-left"},
    {kShape, "--kv-lengths", TextOption{&O::kv_lengths}, "N,N,...", "Keys of each batch entry, the rest being padding"},
    {kShape, "--pass", TextOption{&O::pass}, nullptr, "forward, backward, both or decode (one query, or --seqlen-q)"},

    {kPlan, "--algorithm", TextOption{&O::algorithm}, "NAME,...",
     "naive, flash_v1, flash_v2, flash_v3, flash (the fastest here), split_kv, naive_bwd, flash_v1_bwd, flash_v2_bwd "
     "(default: those of the "
     "pass)"},
    {kPlan, "--block-q", CountOption{&O::block_q}, nullptr,
     "Query rows of a tile (default: 128, or 64, 32, 16 where there are no more; less if SMEM is short)"},
    {kPlan, "--block-kv", CountOption{&O::block_kv}, nullptr,
     "Key rows of a tile (default: 128, or less if SMEM is short)"},
    {kPlan, "--gemm-tile", TextOption{&O::gemm_tile}, "ROWS,COLUMNS", "naive: tile of its products (default 128,128)"},
    {kPlan, "--softmax-reads", CountOption{&O::softmax_reads}, nullptr,
     "naive: 1 row on chip, 2 online, 3 three passes"},
    {kPlan, "--scale-pass", FlagOption{&O::scale_pass}, nullptr, "naive: a kernel of its own scales S"},
    {kPlan, "--mask-pass", FlagOption{&O::mask_pass}, nullptr, "naive: a kernel of its own masks S"},
    {kPlan, "--dropout", FlagOption{&O::dropout}, nullptr, "naive: a kernel of its own drops P"},
    {kPlan, "--fp32-scores", FlagOption{&O::fp32_scores}, nullptr, "naive: S is stored in fp32"},
    {kPlan, "--repeat-kv", FlagOption{&O::repeat_kv}, nullptr, "naive: K and V are first copied to every query head"},
    {kPlan, "--variant", TextOption{&O::variant}, nullptr,
     "flash_v1: paper (Algorithm 1) or released (first CUDA kernels)"},
    {kPlan, "--atomics", TextOption{&O::atomics}, nullptr,
     "flash_v2_bwd: an atomic add to dQ counts as a write-only, or as rmw, a read and a write"},
    {kPlan, "--pack-gqa", FlagOption{&O::pack_gqa}, nullptr,
     "Query heads of a kv head share a tile (split_kv: by default)"},
    {kPlan, "--no-pack-gqa", FlagOption{&O::no_pack_gqa}, nullptr, "They do not (flash_v2: by default)"},
    {kPlan, "--cluster", CountOption{&O::cluster}, nullptr,
     "flash_v2, flash_v3: query tiles that share each K and V tile by multicast (default: 1; flash_v3's own "
     "tiles of 16 bits beyond head_dim 64: 2 for 8,192 queries and keys and more without a mask)"},
    {kPlan, "--stages", CountOption{&O::stages}, nullptr,
     "flash_v2, flash_v3, split_kv: tiles of K and of V on chip; from 2 on the next are loaded meanwhile (default: 1; "
     "on a GPU, the kernel's)"},
    {kPlan, "--kv-splits", CountOption{&O::kv_splits}, nullptr,
     "split_kv: splits of the keys (default: as many as fill the GPU)"},
    {kPlan, "--order", TextOption{&O::order}, "ORDER",
     "CTAs start ascending, longest-first or longest-first-interleaved (default: ascending; on a GPU, one of "
     "the last two where causal)"},

    {kMachine, "--gpu", TextOption{&O::gpu}, "NAME|FILE.json",
     "A GPU of `hbmscope gpu list`, or a FILE.json of your own (default: this machine's, else H100 SXM)"},
    {kMachine, "--sram", BytesOption{&O::sram}, nullptr,
     "On-chip memory M of one CTA (default: the GPU's SMEM per block)"},
    {kMachine, "--l2", TextOption{&O::l2}, "BYTES|none", "Effective L2 capacity, or none (default: the GPU's)"},
    {kMachine, "--l2-state", TextOption{&O::l2_state}, nullptr, "cold, or warm: the same kernels ran just before"},
    {kMachine, "--engine", TextOption{&O::engine}, nullptr,
     "model: formulas; sim: and the L2; cpu: and the numerics; gpu; auto: all this machine can do"},
    {kMachine, "--device", DeviceOption{}, nullptr, "Which of this machine's CUDA devices, from 0"},
    {kMachine, "--repeats", CountOption{&O::repeats, 0}, nullptr,
     "Timed runs on the GPU; 0: none (default: as many as 0.35 s hold, 10 to 200)"},
    {kMachine, "--kernel-counters", TextOption{&O::kernel_counters}, "on|off",
     "The kernels count the bytes they ask for (default: on)"},
    {kMachine, "--hw-counters", TextOption{&O::hw_counters}, "on|off",
     "Read the GPU's own counters, through CUPTI (default: on)"},
    {kMachine, "--rungs", FlagOption{&O::rungs}, nullptr,
     "Beside flash_v3, measure the kernels that lead up to it, flash_v3a to flash_v3e (bf16)"},
    {kMachine, "--require", TextOption{&O::require}, "gpu|counters",
     "Exit with 4 unless this machine has it (default: nothing is required)"},
    {kMachine, "--seed", SeedOption{}, "N", "Of the random inputs (default 1)"},
    {kMachine, "--portable", FlagOption{&O::portable}, nullptr,
     "CPU sums in one order on every processor: the same digits everywhere, slower"},

    {kStep, "--attention-share", RealOption{&AmdahlInput::share}, nullptr,
     "Attention's share of the step's time before, 0 to 1"},
    {kStep, "--attention-speedup", RealOption{&AmdahlInput::speedup}, nullptr,
     "How many times faster attention gets (default: predicted)"},
    {kStep, "--attention-time-saved", RealOption{&AmdahlInput::time_saved}, nullptr,
     "Or the part of attention's time that goes away, 0 to 1"},
};

}  // namespace

std::span<const RunOption> run_options() {
  return kRunOptions;
}

}  // namespace hbmscope
