#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/worked_examples/parts.hpp"
#include "model/paper.hpp"
#include "scenario/gpu_file.hpp"

// What others say: data, each with its source. Only what follows from it is computed.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
using Words = std::vector<std::string>;

constexpr WorkedEntry kEntries[] = {
    {"S1-25", "Which papers are the four versions, and when did they appear?", Provenance::quoted,
     [](V& v) {
       v.add("arxiv", Words{"2205.14135", "2307.08691", "2407.08608", "2603.05451"});
       v.add("date", Words{"2022-05", "2023-07", "2024-07", "2026-03-05"});
       v.add("fa4_over_cudnn_9_13_max", 1.3);
       v.add("fa4_over_triton_max", 2.7);
       v.add("fa4_TFLOPs_max", std::int64_t{1613});
       v.add("fa4_utilisation_max", 0.71);
     },
     nullptr, "\"Up to\" figures of a B200 in BF16, by the authors; their blog prints 1605 TFLOPs/s.",
     "arXiv abstracts of FlashAttention, FlashAttention-2, FlashAttention-3 and FlashAttention-4"},
    {"S1-26", "Flash-Decoding: up to 8 times faster decoding", Provenance::quoted,
     [](V& v) {
       v.add("speedup_max", std::int64_t{8});
       v.add("attention_speedup_max", std::int64_t{50});
       // Solved for the share of a step: 1 / (1 - p + p / 50) = 8.
       v.add("attention_share_implied", (1 - 1.0 / 8) / (1 - 1.0 / 50));
     },
     nullptr,
     "CodeLlama 34B on very long sequences; not recomputable without that model and machine. If both figures were of "
     "one run, attention would have been 89 % of a step (Amdahl).",
     "Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference, PyTorch blog, October 2023"},
    {"S1-27", "Which GPUs, dtypes and head dims do the released versions take?", Provenance::quoted,
     [](V& v) {
       v.add("fa2_architectures", Words{"Ampere", "Ada", "Hopper"});
       v.add("fa2_dtypes", Words{"fp16", "bf16"});
       v.add("fa2_head_dim_max", std::int64_t{256});
       v.add("fa3_architectures", Words{"Hopper"});
       v.add("fa3_status", std::string("beta"));
       v.add("fa3_forward_dtypes", Words{"fp16", "bf16", "fp8"});
       v.add("fa3_backward_dtypes", Words{"fp16", "bf16"});
       v.add("fa4_architectures", Words{"Hopper", "Blackwell"});
     },
     nullptr, "Releases change: look at the project's own page before relying on it.",
     "README of github.com/Dao-AILab/flash-attention, and of flash-attn-4 4.0.0b9 on PyPI; both as of 2026"},
    {"S1-31", "vLLM serves 2 to 4 times as much; MLA cuts the KV cache by 93.3 %", Provenance::quoted,
     [](V& v) {
       constexpr double kCut = 0.933;
       v.add("mla_cut", kCut);
       v.add("remaining", 1 - kCut);
       v.add("times_smaller", 1 / (1 - kCut));
       v.add("vllm_throughput_min", std::int64_t{2});
       v.add("vllm_throughput_max", std::int64_t{4});
     },
     nullptr, "Not recomputable; only the part that remains follows from the claim.",
     "Kwon et al., Efficient Memory Management for Large Language Model Serving with PagedAttention, arXiv 2309.06180, "
     "abstract, September 2023; DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434, abstract, May 2024"},
    {"S1-32", "FlashAttention is 2 to 4 times faster, and long contexts fit", Provenance::quoted,
     [](V& v) {
       const AttentionShape layer = heads(1, 64, 32768, 128);
       const Bytes room = embedded_gpu("H100 SXM").hbm_bytes;
       const Bytes naive = ledger_of("naive", layer).peak_bytes, flash = ledger_of("flash_v2", layer).peak_bytes;
       v.add("speedup_min", std::int64_t{2});
       v.add("speedup_max", std::int64_t{4});
       v.add("naive_32K_peak_GB", naive, unit::GB);
       v.add("flash_32K_peak_GB", flash, unit::GB);
       v.add("naive_fits_H100", naive <= room);
       v.add("flash_fits_H100", flash <= room);
     },
     nullptr,
     "The factor is the authors' summary of their measurements. What fits is computed: one layer of 64 heads at 32,768 "
     "tokens, d = 128, against the 80 GB of an H100.",
     "Dao, FlashAttention-2, arXiv 2307.08691, abstract, July 2023, on the first version"},
    {"S1-33", "How much on-chip memory does a multiprocessor have?", Provenance::quoted,
     [](V& v) {
       Bytes least = embedded_gpus_parsed().front().smem_per_sm_bytes, most = least;
       for (const GpuSpec& gpu : embedded_gpus_parsed()) {
         least = std::min(least, gpu.smem_per_sm_bytes);
         most = std::max(most, gpu.smem_per_sm_bytes);
       }
       v.add("A100_smem_per_SM_KiB", embedded_gpu("A100 SXM 40GB").smem_per_sm_bytes, unit::KiB);
       v.add("A100_with_L1_KiB", Count(192) * Bytes(1024), unit::KiB);
       v.add("H100_smem_per_SM_KiB", embedded_gpu("H100 SXM").smem_per_sm_bytes, unit::KiB);
       v.add("H100_with_L1_KiB", Count(256) * Bytes(1024), unit::KiB);
       v.add("least_of_all_KiB", least, unit::KiB);
       v.add("most_of_all_KiB", most, unit::KiB);
     },
     nullptr,
     "Texts quote L1 and shared memory together, 192 and 256 KB; what kernels can use as shared memory is less. Least "
     "and most are of the GPUs of `hbmscope gpu list`.",
     "NVIDIA, A100 and H100 Tensor Core GPU Architecture white papers, 2020 and 2023; CUDA C++ Programming Guide 13.0, "
     "August 2025"},
    {"S2-11", "Standard attention moves Nd + N^2, flash N^2 d^2/M: how large is M beside d^2?", Provenance::formula,
     [](V& v) {
       const Bytes sram(100'000);
       for (const auto& [d, d2, over] :
            {std::tuple{64, "d2_64", "M_over_d2_64"}, std::tuple{128, "d2_128", "M_over_d2_128"}}) {
         const AttentionShape tile = head(d, d);
         v.add(d2, Count(tensor_bytes(Tensor::Q, tile, {}).value() / tile.element_bytes()));
         v.add(over, paper_claims(tile, sram).reduction_m_over_d2);
       }
       v.add("M_elements_fp16", paper_claims(head(8192, 128), sram).sram_elements);
       v.add("M_over_3d2_128", paper_claims(head(8192, 128), sram).reduction_with_constants);
     },
     nullptr,
     "The paper's 100 KB are 50,000 elements of 2 bytes. \"Many times smaller\" holds at d = 64; at d = 128 d^2 is a "
     "third of M, and with Algorithm 1's constants nothing is left.",
     "Dao et al., FlashAttention, arXiv 2205.14135, Theorem 2 and the remark after it, May 2022"},
};

}  // namespace

std::span<const WorkedEntry> quoted() {
  return kEntries;
}

}  // namespace hbmscope::worked
