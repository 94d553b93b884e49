#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "gpu_shapes.hpp"
#include "model/algorithm.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

void hold_against_closed_form(const AttentionShape& shape, const PipelineMeasurement& p) {
  const std::vector<StageTraffic> stages = algorithm(p.pipeline->algorithm).closed_form(shape, p.plan);
  REQUIRE(stages.size() == p.stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    CAPTURE(stages[i].stage);
    CHECK(stages[i].stage == p.stages[i].name);
    if (!p.stages[i].kernel_counted) continue;  // a library's kernel
    for (const TensorInfo& t : kTensors) {
      CAPTURE(t.name);
      const ReadWrite expected = stages[i].traffic[t.tensor], counted = (*p.stages[i].kernel_counted)[t.tensor];
      CHECK(counted.read.value() == expected.read.value());
      CHECK(counted.write.value() == expected.write.value());
    }
  }
}

/// Runs, verifies and counts every pipeline of the list on one shape.
void check_shape(Device& device, const AttentionShape& shape, const TilePlan& wanted,
                 std::map<std::string_view, int>& seen,
                 std::span<const kernels::Pipeline* const> list = kernels::pipelines()) {
  const MeasureRequest request = request_for(shape, wanted, list);
  if (request.items.empty()) return;
  const DeviceMeasurement m = measure(device, request);
  for (const PipelineMeasurement& p : m.pipelines) {
    CAPTURE(p.pipeline->name);
    CAPTURE(describe(shape, p.plan));
    ++seen[p.pipeline->name];
    hold_against_closed_form(shape, p);
    REQUIRE(p.exactness);
    CAPTURE(p.exactness.reason);
    CAPTURE(p.exactness->exactness.max_abs_error);
    CAPTURE(p.exactness->exactness.tolerance);
    CHECK(p.exactness.status == Status::ok);
    CHECK(*p.bit_identical);
  }
}

/// Says `otherwise` where it is not.
bool is_hopper(const Device& device, const char* otherwise) {
  if (device.properties().compute_major == 9) return true;
  MESSAGE(otherwise);
  return false;
}

}  // namespace

TEST_CASE("on random shapes every kernel computes attention and counts the bytes that its closed form predicts") {
  const std::unique_ptr<Device> device = open_device(0);
  Draw draw(4711);
  std::map<std::string_view, int> seen;
  constexpr int kShapes = 320;
  for (int i = 0; i < kShapes; ++i) {
    AttentionShape shape = random_gpu_shape(draw, 700);
    if (i % 8 == 7) shape.dtype = Dtype::fp32;
    TilePlan wanted;
    if (draw.coin()) wanted.variant = FlashV1Variant::released;
    if (draw.coin()) wanted.order = CtaOrder::longest_first;
    check_shape(*device, shape, wanted, seen);
  }
  for (const kernels::Pipeline* p : kernels::pipelines()) {
    CAPTURE(p->name);
    MESSAGE(std::string(p->name) << ": " << seen[p->name] << " shapes");
    const bool everywhere =
        p->name != "naive_cublas" && (p->algorithm != "flash_v3" || device->properties().compute_major == 9);
    const bool rung = p->algorithm == "flash_v3" && p->name != "flash_v3";  // bf16 only
    CHECK((seen[p->name] >= (rung ? 100 : 250) || !everywhere));
  }
}

TEST_CASE("candidates of the tile search compute attention and count what their own plans predict, clusters too") {
  if (kernels::candidates().empty()) {
    MESSAGE("this build has none: configure it with HBMSCOPE_TILE_SEARCH");
    return;
  }
  const std::unique_ptr<Device> device = open_device(0);
  Draw draw(97);
  std::map<std::string_view, int> seen;
  for (int i = 0; i < 60; ++i) {
    AttentionShape shape = random_gpu_shape(draw, 900);
    shape.dtype = Dtype::bf16;
    if (i % 2 == 0) shape.mask = Mask::none();
    check_shape(*device, shape, {}, seen, kernels::candidates());
  }
  for (const kernels::Pipeline* p : kernels::candidates()) {
    CAPTURE(p->name);
    CHECK(seen[p->name] >= 5);
  }
}

TEST_CASE("long sequences, many heads and fully masked rows") {
  const std::unique_ptr<Device> device = open_device(0);
  std::map<std::string_view, int> seen;
  AttentionShape s;
  s.seqlen_q = s.seqlen_kv = 4096;
  s.num_heads = s.num_kv_heads = 2;
  for (const std::int64_t d : {64, 128, 256}) {
    s.head_dim = s.head_dim_v = d;
    for (const Mask& mask : {Mask::none(), Mask::causal()}) {
      s.mask = mask;
      check_shape(*device, s, {}, seen);
    }
  }
  s = {};
  s.seqlen_q = 300;  // rows above the diagonal see no key
  s.seqlen_kv = 100;
  s.mask = Mask::causal();
  check_shape(*device, s, {}, seen);
  s.mask = {0, 0, Alignment::bottom_right};  // one key a row
  check_shape(*device, s, {}, seen);
  s = {};
  s.num_heads = s.num_kv_heads = 40;  // naive's O in more pairs of tiles than an H200 has pairs of SMs
  s.seqlen_q = s.seqlen_kv = 300;
  for (const std::int64_t d : {136, 256}) {
    s.head_dim = s.head_dim_v = d;
    check_shape(*device, s, {}, seen);
  }
  s.num_heads = s.num_kv_heads = 1;
  s.seqlen_q = 150;
  s.seqlen_kv = 40'000;  // and more of V than stays in L2
  check_shape(*device, s, {}, seen);
  s = {};
  s.batch = 8300;  // a grid beyond 65535 CTAs, one query
  s.num_heads = s.num_kv_heads = 16;
  s.seqlen_q = s.seqlen_kv = 1;
  check_shape(*device, s, {}, seen);
}

TEST_CASE("pairs of CTAs that share their keys: random shapes, masks and orders, and a last pair of one query tile") {
  const std::unique_ptr<Device> device = open_device(0);
  if (!is_hopper(*device, "flash_v3 needs a Hopper GPU")) return;
  std::map<std::string_view, int> seen;
  const auto all = kernels::pipelines();
  const kernels::Pipeline* flash_v3 = *std::find_if(
      all.begin(), all.end(), [](const kernels::Pipeline* pipeline) { return pipeline->name == "flash_v3"; });
  Draw draw(53);
  for (int i = 0; i < 60; ++i) {
    AttentionShape shape = random_gpu_shape(draw, 900);
    shape.head_dim = shape.head_dim_v = 8 * draw.between(9, 32);
    TilePlan wanted;
    wanted.cluster = 2;
    if (shape.head_dim <= 128) wanted.block_kv = 176;
    wanted.order =
        draw.one_of<CtaOrder>({CtaOrder::ascending, CtaOrder::longest_first, CtaOrder::longest_first_interleaved});
    check_shape(*device, shape, wanted, seen, std::span(&flash_v3, 1));
  }
  CHECK(seen["flash_v3"] == 60);
  // More pairs than run at once, several times over, so that pairs draw; and heads whose first pairs see no key.
  AttentionShape many;
  many.dtype = Dtype::bf16;
  many.batch = 4;
  many.num_heads = 40, many.num_kv_heads = 8;
  for (const std::int64_t keys : {64, 700}) {
    for (const Mask& mask : {Mask::none(), Mask::causal(), Mask{50, 20, Alignment::bottom_right}}) {
      for (const CtaOrder order : {CtaOrder::ascending, CtaOrder::longest_first_interleaved}) {
        many.seqlen_q = 600, many.seqlen_kv = keys;
        many.head_dim = many.head_dim_v = keys == 64 ? 256 : 128;
        many.mask = mask;
        TilePlan wanted;
        wanted.cluster = 2, wanted.order = order;
        check_shape(*device, many, wanted, seen, std::span(&flash_v3, 1));
      }
    }
  }
  AttentionShape s;
  s.seqlen_kv = 8200;
  s.num_heads = 2, s.num_kv_heads = 1;
  for (const std::int64_t queries : {8192, 8300}) {
    for (const std::int64_t head_dim : {256, 200, 128}) {
      s.seqlen_q = queries;
      s.head_dim = s.head_dim_v = head_dim;
      s.dtype = queries == 8300 ? Dtype::fp16 : Dtype::bf16;
      CHECK(flash_v3->plan(s, {}).cluster == 2);
      check_shape(*device, s, {}, seen);
    }
  }
}

TEST_CASE("fp8: random shapes, heads that draw, long sequences, and rows that see no key") {
  const std::unique_ptr<Device> device = open_device(0);
  if (!is_hopper(*device, "fp8 needs a Hopper GPU")) return;
  std::map<std::string_view, int> seen;
  Draw draw(8);
  for (int i = 0; i < 120; ++i) {
    AttentionShape shape = random_gpu_shape(draw, 900);
    shape.dtype = Dtype::fp8;
    shape.head_dim = (shape.head_dim + 8) / 16 * 16, shape.head_dim_v = (shape.head_dim_v + 8) / 16 * 16;
    TilePlan wanted;
    wanted.order =
        draw.one_of<CtaOrder>({CtaOrder::ascending, CtaOrder::longest_first, CtaOrder::longest_first_interleaved});
    check_shape(*device, shape, wanted, seen);
  }
  AttentionShape s;
  s.dtype = Dtype::fp8;
  for (const std::int64_t head_dim : {64, 128, 256}) {
    s.head_dim = s.head_dim_v = head_dim;
    for (const Mask& mask : {Mask::none(), Mask::causal(), Mask{100, 50, Alignment::bottom_right}}) {
      s.mask = mask;
      s.batch = 2, s.num_heads = 60, s.num_kv_heads = 20;
      s.seqlen_q = 500, s.seqlen_kv = 333;  // the first queries of a causal head see no key
      check_shape(*device, s, {}, seen);
      s.batch = 1, s.num_heads = s.num_kv_heads = 2;
      s.seqlen_q = s.seqlen_kv = 4200;
      check_shape(*device, s, {}, seen);
    }
  }
  CHECK(seen["flash_v3"] == 138);
  CHECK(seen.size() == 1);
}

TEST_CASE("rows of S that SMEM, registers beside it, or nothing on chip holds") {
  const std::unique_ptr<Device> device = open_device(0);
  if (!is_hopper(*device, "the lengths are those of 227 KiB of SMEM, which this GPU has not")) return;
  std::map<std::string_view, int> seen;
  AttentionShape s;
  s.seqlen_q = 150;  // more rows than SMs
  s.head_dim = s.head_dim_v = 64;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    s.dtype = dtype;
    for (const std::int64_t keys : {58'001, 65'536, 74'001, 113'003, 131'072, 148'493, 160'001}) {
      s.seqlen_kv = keys;
      s.mask = keys % 2 == 0 ? Mask::causal() : Mask::none();
      check_shape(*device, s, {}, seen);
    }
  }
  s.dtype = Dtype::bf16, s.seqlen_kv = 148'000;
  const auto naive_reads = [&] {
    for (const MeasureRequest::Item& item : request_for(s).items) {
      if (item.pipeline->name == "naive") return item.plan.softmax_reads;
    }
    return std::int64_t{0};
  };
  CHECK(naive_reads() == 1);
  s.seqlen_kv = 150'000;
  CHECK(naive_reads() == 2);
}
