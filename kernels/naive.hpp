#pragma once
#include <string>
#include <vector>

#include "kernels/attention.hpp"

/// What the pipelines naive and naive_cublas share: three kernels with S and P in HBM between them.
namespace hbmscope::kernels {

/// P = softmax(scale * S) by rows, hidden keys at 0 (naive_softmax.cu). Reads S as often as call.plan.softmax_reads
/// says.
void launch_naive_softmax(const Call& call);
/// How often its kernel has to read a row of S: once where a row fits the SMEM of one CTA of the current device, else
/// twice. Without a device, 227 KiB are taken for granted.
std::int64_t naive_softmax_reads(const AttentionShape& shape);

/// Both products in 16 bits on a Hopper GPU (naive_hopper.cu).
void launch_naive_qk_hopper(const Call& call);
void launch_naive_pv_hopper(const Call& call);
/// Both products in fp32 on ordinary cores (naive_fp32.cu).
void launch_naive_qk_fp32(const Call& call);
void launch_naive_pv_fp32(const Call& call);

std::string naive_unsupported(const AttentionShape& shape);
/// Throws for passes that exist in the model only; sets softmax_reads.
TilePlan naive_plan(std::string_view pipeline, const AttentionShape& shape, const TilePlan& wanted);
/// S and P.
std::vector<Temporary> naive_temporaries(const AttentionShape& shape, const TilePlan& plan);

}  // namespace hbmscope::kernels
