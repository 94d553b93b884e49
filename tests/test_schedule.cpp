// Whoever listens to a simulated schedule is told everything, in order, and changes nothing.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "random_shapes.hpp"
#include "simulate/l2_cache.hpp"
#include "simulate/l2_model.hpp"
#include "simulate/request_count.hpp"

using namespace hbmscope;
using hbmscope::testing::describe;
using hbmscope::testing::Draw;
using hbmscope::testing::random_plan;
using hbmscope::testing::random_shape;

namespace {

L2Config small_machine(Bytes capacity, bool warm) {
  return {capacity, warm, 3, 64 * 1024, 64 * 1024};
}

/// Adds up what it is told and holds it against the promises of ScheduleListener.
struct Auditor : ScheduleListener {
  struct Stage {
    std::string name;
    Traffic sm_l2{Boundary::sm_l2}, l2_hbm{Boundary::l2_hbm};
  };
  void stage(std::string_view name) override { stages.push_back({std::string(name)}); }
  void time(std::int64_t now) override {
    in_order = in_order && now >= clock;
    clock = now;
    of_this_step.clear();
  }
  void request(const PlayedRequest& r) override {
    Stage& s = stages.back();
    ++requests;
    r.store ? s.sm_l2.write(r.tile.tensor, r.bytes) : s.sm_l2.read(r.tile.tensor, r.bytes);
    if (r.through_hbm) r.store ? s.l2_hbm.write(r.tile.tensor, r.bytes) : s.l2_hbm.read(r.tile.tensor, r.bytes);
    in_bounds = in_bounds && r.index >= 0 && r.index < r.count && r.place >= 0 && r.place < r.places && r.sm >= 0;
    // A place on an SM does one step at a time.
    if (r.index == 0) one_each = one_each && of_this_step.emplace(r.sm, r.place).second;
  }
  void left_l2(const TileId& tile, Bytes bytes, bool written_back) override {
    if (written_back) stages.back().l2_hbm.write(tile.tensor, bytes);
  }
  std::vector<Stage> stages;
  std::int64_t requests = 0, clock = 0;
  bool in_order = true, in_bounds = true, one_each = true;
  std::set<std::pair<std::int64_t, std::int64_t>> of_this_step;
};

}  // namespace

TEST_CASE("events add up to the closed form and to the L2's own sums, and listening changes nothing") {
  Draw draw(71);
  for (int i = 0; i < 150; ++i) {
    const AttentionShape shape = random_shape(draw, 50);
    const TilePlan plan = random_plan(draw, 20);
    L2Config config = small_machine(Bytes(draw.one_of<std::int64_t>({0, 700, 5000, 60'000, INT64_MAX})), draw.coin());
    config.halves = draw.coin();
    config.hashed = draw.coin();
    const CtaOrder order =
        draw.one_of({CtaOrder::ascending, CtaOrder::longest_first, CtaOrder::longest_first_interleaved});
    const Pace pace = draw.one_of({Pace::lockstep, Pace::coupled, Pace::apart});
    for (const Algorithm& a : algorithms()) {
      CAPTURE(a.name);
      CAPTURE(describe(shape, plan));
      const auto kernels = a.walk(shape, plan);
      Auditor auditor;
      const L2Result told = simulate_l2(kernels, order, config, pace, {}, &auditor);
      const L2Result alone = simulate_l2(kernels, order, config, pace);
      const auto closed = a.closed_form(shape, plan);
      REQUIRE(auditor.stages.size() == closed.size());
      for (std::size_t s = 0; s < closed.size(); ++s) {
        CAPTURE(closed[s].stage);
        REQUIRE(auditor.stages[s].name == closed[s].stage);
        REQUIRE(auditor.stages[s].sm_l2 == closed[s].traffic);
        REQUIRE(auditor.stages[s].l2_hbm == alone.stages[s].traffic);
      }
      REQUIRE(told.traffic == alone.traffic);
      REQUIRE(auditor.in_order);
      REQUIRE(auditor.in_bounds);
      REQUIRE(auditor.one_each);
      REQUIRE(auditor.requests == count_requests(kernels));
    }
  }
}

TEST_CASE("a key gives its tile back") {
  Draw draw(5);
  for (int i = 0; i < 1000; ++i) {
    const TileId tile{static_cast<Tensor>(draw.between(0, 26)), draw.between(0, (1 << 21) - 1),
                      draw.between(0, (1 << 19) - 1), draw.between(0, (1 << 19) - 1)};
    const TileId back = tile_of(tile_key(tile));
    CHECK(back.tensor == tile.tensor);
    CHECK(back.batch_head == tile.batch_head);
    CHECK(back.row == tile.row);
    CHECK(back.column == tile.column);
  }
}
