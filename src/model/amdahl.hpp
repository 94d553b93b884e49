#pragma once

namespace hbmscope {

/// What a faster attention does to a whole step (Amdahl, 1967).
struct Amdahl {
  double attention_share;     ///< of the step's time, 0 to 1
  double attention_speedup;   ///< old attention time over new
  double end_to_end_speedup;  ///< 1 / (1 - p + p / s)
  double limit;               ///< 1 / (1 - p), what an attention of no time would give; infinite for p = 1
};

/// Speed-ups that are taken for one of attention: beyond them nobody measures, and curves are flat.
inline constexpr double kLeastSpeedup = 1e-6, kMostSpeedup = 1e6;
inline constexpr const char* kSpeedupsTaken = "must be between 1e-6 and 1e6";
constexpr bool is_taken(double speedup) {
  return speedup >= kLeastSpeedup && speedup <= kMostSpeedup;
}

/// `share` in [0, 1], `speedup` > 0.
constexpr Amdahl amdahl(double share, double speedup) {
  return {share, speedup, 1 / (1 - share + share / speedup), 1 / (1 - share)};
}

/// The speed-up of an attention that takes `saved` (0 to below 1) of its time less: "30 % less time" is 1.43x,
/// not 1.3x.
constexpr double speedup_of_time_saved(double saved) {
  return 1 / (1 - saved);
}

}  // namespace hbmscope
