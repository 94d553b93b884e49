#include <array>
#include <cmath>

#include "analysis/profile_import.hpp"

namespace hbmscope {
namespace {

/// What counters of a kernel that does exactly as predicted may be off: other tiles of the same traffic, and noise.
constexpr double kReadTolerance = 0.01, kWriteTolerance = 0.005;

class Differences {
 public:
  Differences(const LaunchComparison& counted, const Traffic& tiles, std::optional<Bytes> once_read, Bytes l2_bytes)
      : counted_(counted), tiles_(tiles), once_read_(once_read), l2_bytes_(l2_bytes) {}

  std::vector<Difference> find() {
    sm_reads();
    hbm_reads();
    const bool spilled = sm_writes();
    hbm_writes(spilled);
    return std::move(found_);
  }

 private:
  void say(DifferenceKind kind, Boundary boundary, bool write, Bytes bytes, Bytes of, Provenance of_provenance) {
    found_.push_back({kind, boundary, write, bytes, of, of_provenance});
  }
  static Provenance witness(bool counted) { return counted ? Provenance::hw_counter : Provenance::closed_form; }
  static bool beyond(Bytes difference, Bytes of, double tolerance) {
    return std::abs(difference.as_double()) > tolerance * of.as_double();
  }

  void sm_reads() {
    if (!counted_.sm.read.bytes) return;
    const Bytes predicted = tiles_.sum().read, more = *counted_.sm.read.bytes - predicted;
    if (!beyond(more, predicted, kReadTolerance)) return;
    if (more > Bytes(0)) {
      say(DifferenceKind::more_tile_loads, Boundary::sm_l2, false, more, predicted, Provenance::closed_form);
    } else {
      say(DifferenceKind::fewer_tile_loads, Boundary::sm_l2, false, Bytes(0) - more, predicted,
          Provenance::closed_form);
    }
  }

  void hbm_reads() {
    if (!counted_.hbm.read.bytes) return;
    const Bytes hbm = *counted_.hbm.read.bytes;
    const bool counted = static_cast<bool>(counted_.sm.read.bytes);
    const Bytes asked = counted ? *counted_.sm.read.bytes : tiles_.sum().read;
    if (asked > hbm) say(DifferenceKind::l2_absorbed, Boundary::l2_hbm, false, asked - hbm, asked, witness(counted));
    if (!once_read_ || !beyond(hbm - *once_read_, *once_read_, kReadTolerance)) return;
    if (hbm > *once_read_) {
      say(DifferenceKind::tile_reread, Boundary::l2_hbm, false, hbm - *once_read_, *once_read_, Provenance::formula);
    } else {
      say(DifferenceKind::inputs_in_l2, Boundary::l2_hbm, false, *once_read_ - hbm, *once_read_, Provenance::formula);
    }
  }

  [[nodiscard]] Bytes statistics_written() const {
    Bytes sum;
    for (const TensorInfo& tensor : kTensors) {
      if (tensor.role == TensorRole::statistic) sum += tiles_[tensor.tensor].write;
    }
    return sum;
  }

  /// Did the SMs store more than there is to store?
  bool sm_writes() {
    if (!counted_.sm.write.bytes) return false;
    const Bytes predicted = tiles_.sum().write, more = *counted_.sm.write.bytes - predicted;
    if (more < Bytes(0) && Bytes(0) - more == statistics_written()) {
      say(DifferenceKind::statistics_not_stored, Boundary::sm_l2, true, Bytes(0) - more, predicted,
          Provenance::closed_form);
      return false;
    }
    if (!beyond(more, predicted, kWriteTolerance)) return false;
    if (more < Bytes(0)) {
      say(DifferenceKind::fewer_stores, Boundary::sm_l2, true, Bytes(0) - more, predicted, Provenance::closed_form);
      return false;
    }
    say(DifferenceKind::spills, Boundary::sm_l2, true, more, predicted, Provenance::closed_form);
    return true;
  }

  /// L2 is write-back: what a kernel stores may stay there, and what an earlier one left may come out, up to all of L2.
  /// Spilled lines are mostly overwritten there and never come out.
  void hbm_writes(bool spilled) {
    if (!counted_.hbm.write.bytes) return;
    const Bytes hbm = *counted_.hbm.write.bytes;
    const bool counted = static_cast<bool>(counted_.sm.write.bytes) && !spilled;
    const Bytes stored = counted ? *counted_.sm.write.bytes : tiles_.sum().write;
    if (spilled && *counted_.sm.write.bytes > hbm) {
      const Bytes all = *counted_.sm.write.bytes;
      say(DifferenceKind::l2_absorbed, Boundary::l2_hbm, true, all - hbm, all, Provenance::hw_counter);
    }
    const Bytes more = hbm - stored;
    if (!beyond(more, stored, kWriteTolerance)) return;
    if (more > Bytes(0)) {
      const DifferenceKind kind = spilled             ? DifferenceKind::spilled_lines
                                  : more <= l2_bytes_ ? DifferenceKind::earlier_dirty_lines
                                                      : DifferenceKind::more_write_backs;
      say(kind, Boundary::l2_hbm, true, more, stored, witness(counted));
    } else {
      const Bytes less = Bytes(0) - more;
      say(less <= l2_bytes_ ? DifferenceKind::write_back_lag : DifferenceKind::l2_absorbed, Boundary::l2_hbm, true,
          less, stored, witness(counted));
    }
  }

  const LaunchComparison& counted_;
  const Traffic& tiles_;
  std::optional<Bytes> once_read_;
  Bytes l2_bytes_;
  std::vector<Difference> found_;
};

}  // namespace

std::string_view name(DifferenceKind kind) {
  constexpr std::array<std::string_view, 12> names{"l2_absorbed",      "tile_reread",           "inputs_in_l2",
                                                   "write_back_lag",   "earlier_dirty_lines",   "spilled_lines",
                                                   "spills",           "statistics_not_stored", "more_tile_loads",
                                                   "fewer_tile_loads", "fewer_stores",          "more_write_backs"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<Difference> differences_of(const LaunchComparison& counted, const Traffic& tiles,
                                       std::optional<Bytes> once_read, Bytes l2_bytes) {
  return Differences(counted, tiles, once_read, l2_bytes).find();
}

}  // namespace hbmscope
