#pragma once
#include <cstdint>
#include <span>

#include "model/attention_shape.hpp"
#include "model/tensor.hpp"

namespace hbmscope {

/// Where the elements of Q, K and V come from.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Writes row `row` of head `head` (a kv head for K and V) in batch entry `batch`; out.size() is head_dim, or
  /// head_dim_v for V.
  virtual void read_row(Tensor tensor, std::int64_t batch, std::int64_t head, std::int64_t row,
                        std::span<float> out) const = 0;
};

/// Standard normal numbers, rounded to a dtype. Each depends on (seed, tensor, batch, head, row, column) only, so any
/// part of a tensor can be made alone, and is bitwise the same on every machine: after the hash, all steps are
/// whole-number arithmetic.
///
/// Method: a 64-bit hash (the finaliser of SplitMix64) gives two elements 32 bits each: a sign and an odd 24-bit number
/// k, the upper-tail probability u = k / 2^25 in (0, 1/2). The inverse of the normal distribution is interpolated
/// linearly between knots, 64 to each octave of u (error below 4e-5), in steps of 2^-20. The largest magnitude is 5.4.
class RandomInputs final : public InputSource {
 public:
  RandomInputs(std::uint64_t seed, Dtype dtype) : seed_(seed), dtype_(dtype) {}
  void read_row(Tensor tensor, std::int64_t batch, std::int64_t head, std::int64_t row,
                std::span<float> out) const override;

 private:
  std::uint64_t seed_;
  Dtype dtype_;
};

/// Given arrays, row-major: q [batch, num_heads, seqlen_q, head_dim], k [batch, num_kv_heads, seqlen_kv, head_dim],
/// v [batch, num_kv_heads, seqlen_kv, head_dim_v]. They must outlive this object, and are taken as they are: round them
/// to the dtype first.
class ArrayInputs final : public InputSource {
 public:
  /// Throws an Error (data) when a size does not fit the shape.
  ArrayInputs(const AttentionShape& shape, std::span<const float> q, std::span<const float> k,
              std::span<const float> v);
  void read_row(Tensor tensor, std::int64_t batch, std::int64_t head, std::int64_t row,
                std::span<float> out) const override;

 private:
  AttentionShape shape_;
  std::span<const float> q_;
  std::span<const float> k_;
  std::span<const float> v_;
};

namespace numerics {
/// A piece of the inverse normal distribution between two knots, for who makes the same numbers elsewhere.
struct NormalSegment {
  std::int32_t start;  ///< of the normal quantile at the segment's lower end, in steps of 2^-20
  std::uint32_t drop;  ///< by which it falls up to the upper end
};
std::span<const NormalSegment> normal_segments();
/// The 64-bit hash behind all of this room's random choices.
std::uint64_t hash(std::uint64_t key, std::uint64_t counter);
}  // namespace numerics

}  // namespace hbmscope
