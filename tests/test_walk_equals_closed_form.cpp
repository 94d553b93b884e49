#include <doctest/doctest.h>

#include <algorithm>

#include "random_shapes.hpp"
#include "simulate/traffic_counter.hpp"

using namespace hbmscope;
using hbmscope::testing::describe;
using hbmscope::testing::Draw;

namespace {

/// Empty where walk and closed form agree stage by stage and tensor by tensor; else the first difference in words.
std::string difference(const std::vector<StageTraffic>& walked, const std::vector<StageTraffic>& closed) {
  if (walked.size() != closed.size())
    return std::to_string(walked.size()) + " stages walked, " + std::to_string(closed.size()) + " in closed form";
  for (std::size_t i = 0; i < walked.size(); ++i) {
    if (walked[i].stage != closed[i].stage)
      return "stage " + std::string(walked[i].stage) + " is called " + std::string(closed[i].stage);
    for (const TensorInfo& tensor : kTensors) {
      const ReadWrite w = walked[i].traffic[tensor.tensor], c = closed[i].traffic[tensor.tensor];
      if (w != c) {
        return std::string(walked[i].stage) + " " + std::string(tensor.name) + ": walked " +
               std::to_string(w.read.value()) + " r " + std::to_string(w.write.value()) + " w, closed form " +
               std::to_string(c.read.value()) + " r " + std::to_string(c.write.value()) + " w";
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE(
    "walk and closed form agree byte for byte, stage by stage, on 3,000 random shapes and plans of every algorithm") {
  Draw draw(20260101);
  for (int i = 0; i < 3000; ++i) {
    const AttentionShape shape = hbmscope::testing::random_shape(draw, 70);
    const TilePlan plan = hbmscope::testing::random_plan(draw, 33);
    validate(shape, Speaker::key);
    for (const Algorithm& a : algorithms()) {
      CAPTURE(a.name);
      CAPTURE(describe(shape, plan));
      REQUIRE(difference(simulate_sm_l2(a.walk(shape, plan)), a.closed_form(shape, plan)) == "");
    }
  }
}

TEST_CASE("a mask edge or a tile that is off by one does not go unnoticed") {
  // Each shape differs from its twin by one in one number; if walk and closed form of the two agreed, the test above
  // could not see such a slip.
  AttentionShape shape;
  shape.seqlen_q = 60;
  shape.seqlen_kv = 77;
  shape.head_dim = shape.head_dim_v = 8;
  shape.mask = Mask{5, 3, Alignment::bottom_right};
  TilePlan plan;
  plan.block_q = plan.block_kv = 4;
  const auto slips = [&](const AttentionShape& twin, const TilePlan& twin_plan) {
    for (const std::string_view name : {"flash_v1", "flash_v2", "split_kv", "flash_v1_bwd", "flash_v2_bwd"}) {
      CAPTURE(name);
      const Algorithm& a = algorithm(name);
      CHECK(difference(simulate_sm_l2(a.walk(shape, plan)), a.closed_form(twin, twin_plan)) != "");
      CHECK(difference(simulate_sm_l2(a.walk(twin, twin_plan)), a.closed_form(shape, plan)) != "");
    }
  };
  for (int field = 0; field < 4; ++field) {
    AttentionShape twin = shape;
    TilePlan twin_plan = plan;
    if (field == 0) twin.mask.window_left = 6;
    if (field == 1) twin.mask.window_right = 4;
    if (field == 2) twin_plan.block_q = 5;
    if (field == 3) twin_plan.block_kv = 5;
    CAPTURE(field);
    slips(twin, twin_plan);
  }
}

TEST_CASE("a tile is live exactly when one of its pairs is visible, by enumeration") {
  Draw draw(7);
  for (int i = 0; i < 4000; ++i) {
    const AttentionShape s = hbmscope::testing::random_shape(draw, 12);
    const std::int64_t q0 = draw.between(0, s.seqlen_q - 1), q1 = draw.between(q0, s.seqlen_q - 1);
    const std::int64_t c0 = draw.between(0, s.seqlen_kv - 1), c1 = draw.between(c0, s.seqlen_kv - 1);
    bool any = false;
    for (std::int64_t q = q0; q <= q1; ++q) {
      for (std::int64_t c = c0; c <= c1; ++c) any = any || s.mask.visible(q, c, s.mask_offset());
    }
    REQUIRE(s.mask.tile_is_live(q0, q1, c0, c1, s.mask_offset()) == any);
  }
}

TEST_CASE("live pairs and compulsory bytes equal their enumeration") {
  Draw draw(11);
  for (int i = 0; i < 3000; ++i) {
    const AttentionShape s = hbmscope::testing::random_shape(draw, 14);
    std::int64_t pairs = 0, rows = 0, keys = 0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      std::vector<bool> row_lives(static_cast<std::size_t>(s.seqlen_q)),
          key_lives(static_cast<std::size_t>(s.seqlen_kv));
      for (std::int64_t q = 0; q < s.seqlen_q; ++q) {
        for (std::int64_t c = 0; c < s.keys_of(b); ++c) {
          if (!s.mask.visible(q, c, s.mask_offset())) continue;
          ++pairs;
          row_lives[static_cast<std::size_t>(q)] = key_lives[static_cast<std::size_t>(c)] = true;
        }
      }
      rows += std::count(row_lives.begin(), row_lives.end(), true);
      keys += std::count(key_lives.begin(), key_lives.end(), true);
    }
    CAPTURE(describe(s, {}));
    REQUIRE(live_pairs(s).value() == pairs * s.num_heads);
    const std::int64_t e = s.element_bytes(), both = s.head_dim + s.head_dim_v;
    REQUIRE(
        compulsory_bytes(s, Pass::forward).value() ==
        e * (s.num_heads * (rows * s.head_dim + s.batch * s.seqlen_q * s.head_dim_v) + s.num_kv_heads * keys * both));
    REQUIRE(compulsory_bytes(s, Pass::backward).value() ==
            e * (s.num_heads * (rows * both + s.batch * s.seqlen_q * s.head_dim) +
                 s.num_kv_heads * (keys + s.batch * s.seqlen_kv) * both));
  }
}
