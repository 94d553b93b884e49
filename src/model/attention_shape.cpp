#include "model/attention_shape.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace hbmscope {
namespace {

struct Field {
  std::string_view option;
  std::string_view key;
};

/// Complains in the words of whoever gave the value.
class Complaint {
 public:
  explicit Complaint(Speaker speaker) : speaker_(speaker) {}
  [[nodiscard]] std::string name(Field field) const {
    return std::string(speaker_ == Speaker::option ? field.option : field.key);
  }
  [[noreturn]] void raise(Field field, const std::string& rest, const std::string& hint) const {
    const auto kind = speaker_ == Speaker::option ? ErrorKind::usage : ErrorKind::data;
    throw Error(kind, name(field) + ": " + rest, hint);
  }
  void at_least(Field field, std::int64_t value, std::int64_t least) const {
    if (value < least) {
      raise(field, "must be at least " + std::to_string(least) + ", got " + std::to_string(value),
            "give a positive whole number");
    }
  }
  void at_most(Field field, std::int64_t value, std::int64_t most) const {
    if (value > most) {
      raise(field, "must be at most " + std::to_string(most) + ", got " + std::to_string(value),
            "take a smaller value");
    }
  }

 private:
  Speaker speaker_;
};

constexpr Field kBatch{"--batch", "/shape/batch"};
constexpr Field kHeads{"--heads", "/shape/num_heads"};
constexpr Field kKvHeads{"--kv-heads", "/shape/num_kv_heads"};
constexpr Field kSeqlenQ{"--seqlen-q", "/shape/seqlen_q"};
constexpr Field kSeqlenKv{"--seqlen-kv", "/shape/seqlen_kv"};
constexpr Field kHeadDim{"--head-dim", "/shape/head_dim"};
constexpr Field kHeadDimV{"--head-dim-v", "/shape/head_dim_v"};
constexpr Field kWindowLeft{"--window", "/shape/window_left"};
constexpr Field kWindowRight{"--window", "/shape/window_right"};
constexpr Field kKvLengths{"--kv-lengths", "/shape/kv_lengths"};

constexpr std::int64_t kMaxHeadDim = 1 << 16;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;
constexpr std::int64_t kMaxWindow = std::int64_t{1} << 62;

void check_lengths(const AttentionShape& s, const Complaint& complain) {
  if (s.kv_lengths.empty()) return;
  if (static_cast<std::int64_t>(s.kv_lengths.size()) != s.batch) {
    complain.raise(kKvLengths,
                   "needs one length for each of the " + std::to_string(s.batch) + " batch entries, got " +
                       std::to_string(s.kv_lengths.size()),
                   "give as many lengths as the batch has entries");
  }
  for (const std::int64_t length : s.kv_lengths) {
    complain.at_least(kKvLengths, length, 0);
    complain.at_most(kKvLengths, length, s.seqlen_kv);
  }
}

/// Sum over q = 0 .. count-1 of clamp(q + shift, 0, top): a ramp between two flats.
WideInt sum_of_clamped_ramp(std::int64_t count, std::int64_t shift, std::int64_t top) {
  const std::int64_t ramp_first = std::clamp(-shift, std::int64_t{0}, count);  // first q above the lower flat
  const std::int64_t ramp_end = std::clamp(top - shift, ramp_first, count);    // first q on the upper flat
  const auto ramp_rows = static_cast<WideInt>(ramp_end - ramp_first);
  const WideInt ramp = ramp_rows * shift + ramp_rows * (ramp_first + ramp_end - 1) / 2;
  const WideInt sum = ramp + static_cast<WideInt>(count - ramp_end) * top;
  return sum;
}

/// Pairs of one head whose batch entry has `keys` keys. Key columns up to and including the band's right edge, less
/// those before its left edge.
Count live_pairs_of_head(const AttentionShape& s, std::int64_t keys) {
  const std::int64_t reach = s.seqlen_q + s.seqlen_kv;  // a band this wide has no edge
  const std::int64_t right = std::min(s.mask.window_right.value_or(reach), reach);
  const std::int64_t left = std::min(s.mask.window_left.value_or(reach), reach);
  return narrow(sum_of_clamped_ramp(s.seqlen_q, s.mask_offset() + right + 1, keys) -
                sum_of_clamped_ramp(s.seqlen_q, s.mask_offset() - left, keys));
}

struct LiveExtent {
  Count rows;  ///< query rows with a live key
  Count keys;  ///< key rows with a live query
};

LiveExtent live_extent(const AttentionShape& s, std::int64_t keys) {
  if (keys == 0) return {};
  const std::int64_t reach = s.seqlen_q + s.seqlen_kv;
  const std::int64_t right = std::min(s.mask.window_right.value_or(reach), reach);
  const std::int64_t left = std::min(s.mask.window_left.value_or(reach), reach);
  const std::int64_t offset = s.mask_offset();
  const std::int64_t last_key = std::min(keys - 1, s.seqlen_q - 1 + offset + right);
  const std::int64_t first_key = std::max(std::int64_t{0}, offset - left);
  const std::int64_t last_row = std::min(s.seqlen_q - 1, keys - 1 - offset + left);
  const std::int64_t first_row = std::max(std::int64_t{0}, -offset - right);
  return {Count(std::max(std::int64_t{0}, last_row - first_row + 1)),
          Count(std::max(std::int64_t{0}, last_key - first_key + 1))};
}

/// Sums f(keys) over the batch; a batch without padding is one product.
template <class Exactness, class F>
Exactness over_batch(const AttentionShape& s, F f) {
  if (s.kv_lengths.empty()) return Count(s.batch) * f(s.seqlen_kv);
  Exactness sum{};
  for (const std::int64_t keys : s.kv_lengths) sum += f(keys);
  return sum;
}

}  // namespace

void validate(const AttentionShape& s, Speaker speaker) {
  const Complaint complain(speaker);
  for (const auto& [field, value, most] :
       {std::tuple{kBatch, s.batch, kMaxCount}, std::tuple{kHeads, s.num_heads, kMaxCount},
        std::tuple{kKvHeads, s.num_kv_heads, kMaxCount}, std::tuple{kSeqlenQ, s.seqlen_q, kMaxSeqlen},
        std::tuple{kSeqlenKv, s.seqlen_kv, kMaxSeqlen}, std::tuple{kHeadDim, s.head_dim, kMaxHeadDim},
        std::tuple{kHeadDimV, s.head_dim_v, kMaxHeadDim}}) {
    complain.at_least(field, value, 1);
    complain.at_most(field, value, most);
  }
  if (s.num_heads % s.num_kv_heads != 0) {
    complain.raise(
        kKvHeads,
        "must divide " + complain.name(kHeads) + ", but " + std::to_string(s.num_heads) +
            " query heads do not split over " + std::to_string(s.num_kv_heads) + " kv heads",
        "each kv head serves the same number of query heads, so take a divisor of " + std::to_string(s.num_heads));
  }
  for (const auto& [field, window] :
       {std::pair{kWindowLeft, s.mask.window_left}, std::pair{kWindowRight, s.mask.window_right}}) {
    if (!window) continue;
    if (*window < 0) {
      complain.raise(field, "must be 0 or more, or -1 for no limit, got " + std::to_string(*window),
                     "a window counts keys beside the query's own; only -1 means unlimited");
    }
    complain.at_most(field, *window, kMaxWindow);
  }
  check_lengths(s, complain);
}

Count live_pairs(const AttentionShape& shape) {
  return Count(shape.num_heads) *
         over_batch<Count>(shape, [&](std::int64_t keys) { return live_pairs_of_head(shape, keys); });
}

Traffic compulsory_traffic(const AttentionShape& shape, Pass pass) {
  const Count H(shape.num_heads), Hkv(shape.num_kv_heads), d(shape.head_dim), dv(shape.head_dim_v);
  const Count q_rows = Count(shape.batch) * H * Count(shape.seqlen_q),
              kv_rows = Count(shape.batch) * Hkv * Count(shape.seqlen_kv);
  const Bytes e(shape.element_bytes());
  const Count live_q = H * over_batch<Count>(shape, [&](std::int64_t keys) { return live_extent(shape, keys).rows; });
  const Count live_kv =
      Hkv * over_batch<Count>(shape, [&](std::int64_t keys) { return live_extent(shape, keys).keys; });
  Traffic t(Boundary::compulsory);
  t.read(Tensor::Q, live_q * d * e);
  t.read(Tensor::K, live_kv * d * e);
  t.read(Tensor::V, live_kv * dv * e);
  if (pass == Pass::backward) {
    t.read(Tensor::dO, live_q * dv * e);
    t.write(Tensor::dQ, q_rows * d * e);
    t.write(Tensor::dK, kv_rows * d * e);
    t.write(Tensor::dV, kv_rows * dv * e);
  } else {
    t.write(Tensor::O, q_rows * dv * e);
  }
  return t;
}

}  // namespace hbmscope
