#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "model/algorithm.hpp"
#include "simulate/l2_cache.hpp"
#include "simulate/l2_model.hpp"
#include "simulate/tile_trace.hpp"

namespace hbmscope {

/// One kernel's CTAs as they come and go in the places that the GPU has for them, asking the L2 for their tiles.
class KernelRun {
 public:
  using Progress = std::function<void(std::int64_t requests)>;

  /// Where there is a `listener`, it is told of every request, the first one in step `start` of the simulation; then
  /// nothing that repeats is skipped.
  KernelRun(const KernelWalk& kernel, CtaOrder order, const L2Config& config, Pace pace, L2Cache& cache,
            ScheduleListener* listener = nullptr, std::int64_t start = 0);
  void play(const Progress& progress);
  /// What the SMs asked for, at sm_l2.
  [[nodiscard]] Traffic requested() const;
  [[nodiscard]] std::int64_t requests_played() const { return played_; }
  /// The step of the simulation after the last one.
  [[nodiscard]] std::int64_t end() const { return now_; }

 private:
  /// The CTA that runs in one of the places, and how far it has come.
  struct Slot {
    std::int64_t cta = -1, pass = 0;
    const TileTrace* trace = nullptr;
    TileTrace own_trace;    ///< where heads are not alike
    HeadShift shift;        ///< from the trace's head to this CTA's
    std::size_t steps = 0;  ///< place in the trace
    std::int64_t repeat = 0;
    std::int64_t stalls = 0;  ///< time lost, in parts of a step
    std::int64_t older = 0;   ///< CTAs on its SM that started before it
    unsigned half = 0;        ///< of the L2, that serves its SM
    std::int64_t turn = 0;    ///< steps taken, counted for a listener only
    [[nodiscard]] bool busy() const { return cta >= 0; }
  };
  /// All that decides what the CTAs after the first `started` will do to the L2, and the bytes so far.
  struct Snapshot {
    std::int64_t started, played;
    L2Cache::State cache;
    std::vector<std::array<std::int64_t, 6>> slots;
    std::array<L2Cache::Sums, 4> sums;
  };

  void take_clocks(const L2Config& config);
  void play_one_step_ctas(const Progress& progress);
  void tell_of_one_step_ctas();
  void start_ctas();
  void next_pass(Slot& slot);
  /// Calls `f` with each CTA that shares the slot's SM.
  template <class F>
  void each_beside(const Slot& slot, F&& f);
  const TileTrace* own_trace(Slot& slot);
  const TileTrace* shared_trace(Slot& slot);
  template <bool kTold>
  std::int64_t take_step(Slot& slot);
  /// Plays the request and tells the listener. False for a load that had to go to HBM.
  bool play_and_tell(std::uint64_t key, const TileRequest& r, unsigned half, std::int64_t slot, PlayedRequest& who);
  /// The half of the L2 that serves the SM of a CTA of a single step.
  [[nodiscard]] unsigned half_of(std::int64_t cta) const;

  [[nodiscard]] HeadShift shift_to(std::int64_t head) const { return {head, head / kernel_.heads_per_kv}; }
  void choose_period();
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] bool is_moved_on(const Snapshot& now, const Snapshot& then) const;
  void skip_repetitions(const Progress& progress);

  const KernelWalk& kernel_;
  CtaOrder order_;
  Pace pace_;
  std::int64_t sms_;  ///< or groups of SMs, where a cluster takes more than one
  bool coupled_;
  std::int64_t younger_stall_;              ///< parts of a step, for each older CTA
  std::vector<std::int64_t> clock_stalls_;  ///< parts of a step, by SM; empty where all are as fast
  std::int64_t clocks_apart_until_ = std::numeric_limits<std::int64_t>::max();  ///< until so many CTAs have started
  L2Cache& cache_;
  ScheduleListener* listener_;
  std::int64_t now_;  ///< step of the simulation, counted for a listener only
  std::vector<Slot> slots_;
  std::vector<TileTrace> shared_;  ///< by tile and pass, where heads are alike
  std::int64_t started_ = 0, running_ = 0, played_ = 0;
  std::int64_t period_ = 0;     ///< heads after which the same may begin again; 0: nothing to be had by looking
  std::int64_t looked_at_ = 0;  ///< requests played when it was last looked
  std::optional<Snapshot> last_;
  L2Cache::Sums read_{}, written_{};
};

}  // namespace hbmscope
