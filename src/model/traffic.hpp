#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "core/units.hpp"
#include "model/tensor.hpp"

namespace hbmscope {

/// Between which two levels of the memory hierarchy bytes are counted; compulsory <= l2_hbm <= sm_l2 from a cold start.
enum class Boundary : std::uint8_t {
  compulsory,  ///< what any schedule must move: live inputs once, outputs once, no statistics
  l2_hbm,      ///< between L2 and HBM, after what L2 absorbs
  sm_l2,       ///< every tile load and store a kernel issues; the two-level M-word model of the papers
};

constexpr std::string_view name(Boundary boundary) {
  constexpr std::array<std::string_view, 3> names{"compulsory", "l2_hbm", "sm_l2"};
  return names[static_cast<std::size_t>(boundary)];
}

/// Where a number comes from; every number in a report carries one.
enum class Provenance : std::uint8_t {
  formula,         ///< a textbook formula
  closed_form,     ///< the exact algebra of an algorithm's schedule
  simulated,       ///< counted while walking that schedule
  kernel_counter,  ///< counted by the kernel itself
  hw_counter,      ///< read from the hardware's counters
  timed,           ///< measured with a clock
  assumed,         ///< nobody measured it here
  quoted,          ///< somebody else's claim
};

constexpr std::string_view name(Provenance provenance) {
  constexpr std::array<std::string_view, 8> names{"formula",    "closed_form", "simulated", "kernel_counter",
                                                  "hw_counter", "timed",       "assumed",   "quoted"};
  return names[static_cast<std::size_t>(provenance)];
}

struct ReadWrite {
  Bytes read;
  Bytes write;
  [[nodiscard]] Bytes total() const { return read + write; }
  ReadWrite& operator+=(const ReadWrite& other) {
    read += other.read;
    write += other.write;
    return *this;
  }
  friend bool operator==(const ReadWrite&, const ReadWrite&) = default;
};

/// Bytes by tensor and direction across one boundary. Reads and writes are kept apart to the end.
class Traffic {
 public:
  explicit Traffic(Boundary boundary) : boundary_(boundary) {}
  [[nodiscard]] Boundary boundary() const { return boundary_; }
  [[nodiscard]] const ReadWrite& operator[](Tensor tensor) const { return bytes_[static_cast<std::size_t>(tensor)]; }
  void read(Tensor tensor, Bytes bytes) { bytes_[static_cast<std::size_t>(tensor)].read += bytes; }
  void write(Tensor tensor, Bytes bytes) { bytes_[static_cast<std::size_t>(tensor)].write += bytes; }

  /// Bytes that nobody can tell the tensor of: what hardware counts.
  void add_unattributed(const ReadWrite& bytes) { unattributed_ += bytes; }
  [[nodiscard]] const ReadWrite& unattributed() const { return unattributed_; }

  [[nodiscard]] ReadWrite sum() const {
    ReadWrite all = unattributed_;
    for (const ReadWrite& one : bytes_) all += one;
    return all;
  }
  [[nodiscard]] Bytes total() const { return sum().total(); }

  /// Sums two traffics across the same boundary; across different ones the sum has no meaning.
  Traffic& operator+=(const Traffic& other);
  friend bool operator==(const Traffic&, const Traffic&) = default;

 private:
  Boundary boundary_;
  std::array<ReadWrite, kTensorCount> bytes_{};
  ReadWrite unattributed_;
};

}  // namespace hbmscope
