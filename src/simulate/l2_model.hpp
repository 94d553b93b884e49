#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/known.hpp"
#include "model/algorithm.hpp"
#include "model/gpu_spec.hpp"
#include "simulate/schedule_listener.hpp"

namespace hbmscope {

/// How the CTAs that are resident at one time advance past each other. No GPU states it, so all three are simulated.
enum class Pace : std::uint8_t {
  lockstep,  ///< waves: all resident CTAs start together and take one step each a round; the next wave starts when all
             ///< are done
  coupled,   ///< a CTA that ends makes room for the next of the grid at once; a step that goes to HBM takes kMissStall
             ///< longer, so who runs ahead waits for HBM, and who follows finds the tiles in L2 and catches up; of
             ///< CTAs that share an SM the older go first (KernelWalk::younger_stall). The central value.
  apart,     ///< a CTA that ends makes room for the next at once, and every step takes the same time: CTAs that started
             ///< apart stay apart
  drifting,  ///< coupled, and each SM runs at its own clock (L2Config::sm_clocks)
};
inline constexpr std::array<Pace, 4> kPaces{Pace::lockstep, Pace::coupled, Pace::apart, Pace::drifting};
/// Stalls are counted in parts of a step, so that they add up exactly.
inline constexpr std::int64_t kPartsPerStep = 10'000;
/// Of a step with a tile from HBM: most of the latency hides behind loads that were issued ahead. Assumed, one value
/// for every GPU and shape.
inline constexpr std::int64_t kMissStall = kPartsPerStep / 20;

constexpr std::string_view name(Pace pace) {
  constexpr std::array<std::string_view, kPaces.size()> names{"lockstep", "coupled", "apart", "drifting"};
  return names[static_cast<std::size_t>(pace)];
}

struct L2Config {
  Bytes capacity;     ///< effective; 0: no L2, so that l2_hbm is sm_l2
  bool warm = false;  ///< the same kernels ran just before, and the last dirty tiles are left to the next run
  std::int64_t num_sms = 0;
  std::int64_t smem_per_sm = 0;       ///< bytes
  std::int64_t registers_per_sm = 0;  ///< bytes
  bool halves = false;                ///< two of `capacity` each: L2Build
  bool hashed = false;                ///< L2Build
  std::vector<double> sm_clocks{};    ///< of each SM, in any unit; empty: all alike
  double clocks_apart = 1;            ///< share of a kernel's CTAs after which its SMs run at one clock
  Status why_no_clocks = Status::ok;  ///< skipped: to save time; unsupported: they are not known or change nothing
  std::string no_clocks{};            ///< the same as a clause; empty where nobody asked
};
/// Of the GPU's L2: in halves where its effective capacity is half of the nominal one. All SMs run at one clock.
L2Config l2_config(const GpuSpec& gpu, Bytes effective_capacity, bool warm);
/// The same for kernels of a shape: with the GPU's clocks, where CTAs that drift apart by them no longer find each
/// other's tiles, which is where all that they stream is more than L2 holds, and where there is time to simulate it:
/// heads then no longer repeat each other.
L2Config l2_config(const GpuSpec& gpu, Bytes effective_capacity, bool warm, const std::vector<KernelWalk>& kernels,
                   const AttentionShape& shape, CtaOrder order);

/// CTAs of `kernel` that run at one time on the whole GPU, in units of its clusters: as many an SM as SMEM, registers
/// and 8 CTAs of 256 threads allow.
std::int64_t resident_units(const KernelWalk& kernel, const L2Config& config);

struct L2Result {
  std::vector<StageTraffic>
      stages;  ///< at l2_hbm; what a stage leaves dirty is written back in a later one, or in the last
  Traffic traffic{Boundary::l2_hbm};
  std::vector<StageTraffic> requested;  ///< at sm_l2: what the SMs asked for on the way
  std::int64_t requests_played = 0;     ///< the others repeat what was played for earlier heads
};

/// Plays the kernels' tile requests against an L2, one pace. `progress`, if given, is called now and then with the
/// number of requests so far and ends the simulation by throwing. `listener`, if given, is told of each request (of the
/// second run from a warm start), and ends it the same way; the result is that without one.
L2Result simulate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config, Pace pace,
                     const std::function<void(std::int64_t)>& progress = {}, ScheduleListener* listener = nullptr);

/// Tiles that walking these kernels looks at, live or not: what a simulation costs.
std::int64_t tiles_looked_at(const std::vector<KernelWalk>& kernels);
/// Where CTAs share no streams, or beyond the first limit, only the central pace is simulated, beyond the second
/// nothing is.
inline constexpr std::int64_t kMaxTilesForAllPaces = 100'000'000;
inline constexpr std::int64_t kMaxTilesSimulated = 250'000'000;
/// The paces of an estimate: drifting among them where the config has clocks.
std::vector<Pace> paces_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config);
/// Nanoseconds that estimate_l2() takes on one slow core, all its paces together. An estimate, and the same on every
/// machine: requests of three passes stand for all, those of an L2 of many tiles take longer, and of heads that are
/// alike only as many count as it takes to see that they repeat. Looks at few tiles only where tiles_looked_at() is
/// within kMaxTilesSimulated.
std::int64_t cost_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config);
inline constexpr std::int64_t kMaxCostSimulated = 15'000'000'000;
/// Bytes that estimate_l2() takes at most, all its paces together: where tiles are small L2 holds many.
std::int64_t memory_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config);
inline constexpr std::int64_t kMaxMemorySimulated = std::int64_t{2} << 30;

/// K and V of all heads whose CTAs are resident at one time, at most.
Bytes kv_in_flight(const KernelWalk& kernel, const AttentionShape& shape, const L2Config& config, CtaOrder order);

/// The central value, Pace::coupled, and the totals of all paces that were simulated.
struct L2Estimate {
  struct PaceTotal {
    Pace pace;
    Bytes total;
  };
  L2Result central;
  std::vector<PaceTotal> paces;
};
/// Simulates each pace on a thread of its own. `progress` is called from all of them.
L2Estimate estimate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config,
                       const std::function<void(std::int64_t)>& progress = {});

}  // namespace hbmscope
