#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace hbmscope {

/// Which key the last query sees at the end of its band: bottom_right (FlashAttention since 2.1) or top_left.
enum class Alignment : std::uint8_t { bottom_right, top_left };

constexpr std::string_view name(Alignment a) {
  return a == Alignment::bottom_right ? "bottom_right" : "top_left";
}

/// A band of visible keys: key c is visible to query q iff q + offset - window_left <= c <= q + offset + window_right,
/// with offset = seqlen_kv - seqlen_q (bottom_right) or 0 (top_left). No value means no limit; causal is window_right =
/// 0.
struct Mask {
  std::optional<std::int64_t> window_left;
  std::optional<std::int64_t> window_right;
  Alignment alignment = Alignment::bottom_right;

  static Mask none() { return {}; }
  static Mask causal(Alignment a = Alignment::bottom_right) { return {std::nullopt, 0, a}; }

  /// "none", "causal" (no limit on the left, 0 on the right) or "window".
  [[nodiscard]] std::string_view kind() const {
    if (!window_left && !window_right) return "none";
    return !window_left && *window_right == 0 ? "causal" : "window";
  }
  [[nodiscard]] std::int64_t offset(std::int64_t seqlen_q, std::int64_t seqlen_kv) const {
    return alignment == Alignment::bottom_right ? seqlen_kv - seqlen_q : 0;
  }
  /// Is key `c` visible to query `q`?
  [[nodiscard]] bool visible(std::int64_t q, std::int64_t c, std::int64_t offset) const {
    return (!window_left || c >= q + offset - *window_left) && (!window_right || c <= q + offset + *window_right);
  }
  /// Is any key in [c_first, c_last] visible to any query in [q_first, q_last]? On that rectangle c - q takes every
  /// whole number from c_first - q_last to c_last - q_first, so the tile is live iff that range meets the band.
  [[nodiscard]] bool tile_is_live(std::int64_t q_first, std::int64_t q_last, std::int64_t c_first, std::int64_t c_last,
                                  std::int64_t offset) const {
    if (q_first > q_last || c_first > c_last) return false;
    const std::int64_t least = c_first - q_last - offset;
    const std::int64_t most = c_last - q_first - offset;
    return (!window_left || most >= -*window_left) && (!window_right || least <= *window_right);
  }
  friend bool operator==(const Mask&, const Mask&) = default;
};

}  // namespace hbmscope
