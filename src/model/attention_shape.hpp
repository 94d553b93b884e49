#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/mask.hpp"
#include "model/traffic.hpp"

namespace hbmscope {

enum class Pass : std::uint8_t { forward, backward, decode };

/// One attention problem. Q is [batch, num_heads, seqlen_q, head_dim], K [batch, num_kv_heads, seqlen_kv, head_dim],
/// V [.., head_dim_v], O [batch, num_heads, seqlen_q, head_dim_v].
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t seqlen_q = 8192;
  std::int64_t seqlen_kv = 8192;
  std::int64_t head_dim = 128;
  std::int64_t head_dim_v = 128;
  Mask mask;
  Dtype dtype = Dtype::fp16;
  /// Key padding: batch entry b has kv_lengths[b] keys, the rest up to seqlen_kv is padding nobody attends to. Empty:
  /// no padding. Positions, and so the mask's alignment, stay those of the padded length.
  std::vector<std::int64_t> kv_lengths;

  [[nodiscard]] std::int64_t element_bytes() const { return info(dtype).bytes; }
  [[nodiscard]] std::int64_t group_size() const {
    return num_heads / num_kv_heads;
  }  ///< query heads that share a kv head (GQA)
  [[nodiscard]] std::int64_t mask_offset() const { return mask.offset(seqlen_q, seqlen_kv); }
  [[nodiscard]] std::int64_t keys_of(std::int64_t b) const {
    return kv_lengths.empty() ? seqlen_kv : kv_lengths[static_cast<std::size_t>(b)];
  }
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// Longest sequence the model takes: beyond it even a walk over query tiles would not end soon.
inline constexpr std::int64_t kMaxSeqlen = std::int64_t{1} << 32;

/// Who speaks: errors name `--kv-heads` to a command line and `/shape/num_kv_heads` to a file.
enum class Speaker : std::uint8_t { option, key };

/// Throws an Error (kind usage or data by speaker) that names the field, the value and the rule it breaks.
void validate(const AttentionShape& shape, Speaker speaker);

/// (query, key) pairs the mask leaves, over all batches and heads.
Count live_pairs(const AttentionShape& shape);

/// Bytes that no schedule avoids, by tensor: rows of Q with a live key, rows of K and V with a live query, all of O
/// (backward: dO with Q; all of dQ, dK and dV). Statistics are not counted.
Traffic compulsory_traffic(const AttentionShape& shape, Pass pass);
inline Bytes compulsory_bytes(const AttentionShape& shape, Pass pass) {
  return compulsory_traffic(shape, pass).total();
}

}  // namespace hbmscope
