#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "scenario/batch_line.hpp"

using namespace hbmscope;

namespace {

constexpr std::string_view kContractLine =
    R"({"shape": {"batch":1,"num_heads":4,"num_kv_heads":2,"seqlen_q":1000,"seqlen_kv":1000,"head_dim":64,"head_dim_v":64,"element_bytes":2,"window_left":null,"window_right":0,"alignment":"bottom_right"}, "algorithm":"flash_v2","plan":{"block_q":128,"block_kv":128}})";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kContractLine);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& line) {
  try {
    (void)parse_batch_line(line);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "";
}

Mask mask_of(std::string_view from, std::string_view to) {
  return parse_batch_line(with(from, to)).shape.mask;
}

}  // namespace

TEST_CASE("the line of the contract is read in full") {
  const BatchLine line = parse_batch_line(kContractLine);
  AttentionShape shape;
  shape.batch = 1;
  shape.num_heads = 4;
  shape.num_kv_heads = 2;
  shape.seqlen_q = shape.seqlen_kv = 1000;
  shape.head_dim = shape.head_dim_v = 64;
  shape.mask = Mask::causal();
  shape.dtype = Dtype::fp16;
  CHECK(line.shape == shape);
  CHECK(line.algorithm == "flash_v2");
  TilePlan plan;
  plan.block_q = plan.block_kv = 128;
  CHECK(line.plan == plan);
  CHECK(line.shape_json == nlohmann::json::parse(kContractLine)["shape"]);
  CHECK(line.plan_json == nlohmann::json::parse(kContractLine)["plan"]);
}

TEST_CASE("head_dim_v is head_dim unless it is given, and strange keys of the shape are ignored") {
  CHECK(parse_batch_line(with("\"head_dim_v\":64,", "")).shape.head_dim_v == 64);
  CHECK(parse_batch_line(with("\"head_dim_v\":64", "\"head_dim_v\":32,\"colour\":\"red\"")).shape.head_dim_v == 32);
}

TEST_CASE("dtype and element_bytes must agree") {
  CHECK(parse_batch_line(with("\"element_bytes\":2", "\"element_bytes\":1")).shape.dtype == Dtype::fp8);
  CHECK(parse_batch_line(with("\"element_bytes\":2", "\"element_bytes\":4")).shape.dtype == Dtype::fp32);
  CHECK(parse_batch_line(with("\"element_bytes\":2", "\"dtype\":\"bf16\"")).shape.dtype == Dtype::bf16);
  CHECK(parse_batch_line(with("\"element_bytes\":2", "\"element_bytes\":2,\"dtype\":\"bf16\"")).shape.dtype ==
        Dtype::bf16);
  CHECK(complaint(with("\"element_bytes\":2", "\"element_bytes\":4,\"dtype\":\"fp16\"")) ==
        "/shape/element_bytes: is 4, but an element of dtype fp16 has 2 | leave element_bytes out");
  CHECK(complaint(with("\"element_bytes\":2", "\"element_bytes\":3")) ==
        "/shape/element_bytes: must be 1, 2 or 4, got 3 | or leave it out and give dtype");
  CHECK(complaint(with("\"element_bytes\":2,", "")).starts_with("/shape/dtype: is missing"));
  CHECK(complaint(with("\"element_bytes\":2", "\"dtype\":\"bf61\"")) ==
        "/shape/dtype: does not know \"bf61\" | did you mean \"bf16\"?");
}

TEST_CASE("-1 and null are no limit, and any other negative window is refused") {
  CHECK(mask_of("\"window_right\":0", "\"window_right\":-1") == Mask::none());
  CHECK(mask_of("\"window_right\":0", "\"window_right\":null") == Mask::none());
  CHECK(mask_of("\"window_left\":null", "\"window_left\":0").window_left == 0);
  CHECK(complaint(with("\"window_right\":0", "\"window_right\":-2")).starts_with("/shape/window_right: "));
  CHECK(mask_of("bottom_right\"}", "top_left\"}") == Mask::causal(Alignment::top_left));
}

TEST_CASE("the mask object of a result is read as well, and must not contradict the shape's own window") {
  constexpr std::string_view kOwn = "\"window_left\":null,\"window_right\":0,\"alignment\":\"bottom_right\"";
  CHECK(mask_of(kOwn, R"("mask":{"kind":"causal"})") == Mask::causal());
  CHECK(mask_of(kOwn, R"("mask":{"kind":"window","window_left":127,"window_right":0,"alignment":"top_left"})") ==
        Mask{127, 0, Alignment::top_left});
  CHECK(complaint(with(kOwn, R"("mask":{"kind":"none","window_right":0})"))
            .starts_with("/shape/mask/kind: is \"none\", but its window"));
  CHECK(complaint(with(kOwn, R"("window_right":0,"mask":{"kind":"none"})")).starts_with("/shape/mask: differs"));
}

TEST_CASE("a wrong shape is refused by key, value and rule") {
  CHECK(complaint(with("\"batch\":1", "\"batch\":0")).starts_with("/shape/batch: must be at least 1, got 0"));
  CHECK(complaint(with("\"num_kv_heads\":2", "\"num_kv_heads\":3")).starts_with("/shape/num_kv_heads: must divide"));
  CHECK(complaint(with("\"seqlen_q\":1000,", "")) == "/shape/seqlen_q: is missing | add \"seqlen_q\" with its value");
  CHECK(complaint(with("\"seqlen_q\":1000", "\"seqlen_q\":99999999999999999999")) ==
        "/shape/seqlen_q: does not fit 64 bits: 1e+20 | write a whole number, without quotes");
  CHECK(complaint(with("\"seqlen_q\":1000", "\"seqlen_q\":\"1k\"")) ==
        "/shape/seqlen_q: must be a whole number, got the text \"1k\" | write a whole number, without quotes");
  CHECK(complaint(with("\"batch\":1", "\"batch\":1,\"kv_lengths\":[1001]"))
            .starts_with("/shape/kv_lengths: must be at most 1000"));
  CHECK(complaint("[]") == "the top level must be an object, got a list | write {\"key\": value, ...}");
  CHECK(complaint("{\"algorithm\":\"naive\"}") == "/shape: is missing | add \"shape\" with its value");
  CHECK(complaint(with("\"algorithm\":\"flash_v2\",", "")) ==
        "/algorithm: is missing | add \"algorithm\" with its value");
  CHECK(complaint("{").starts_with("column 2: "));
}

TEST_CASE("every plan key is read, and written again") {
  const auto given =
      nlohmann::json::parse(R"({"block_q": 64, "block_kv": 176, "variant": "released", "pack_gqa": true, "cluster": 2,
    "num_kv_splits": 8, "atomics": "rmw", "gemm_tile": [128, 256], "softmax_reads": 3, "scale_pass": true, "mask_pass": true, "dropout": true,
    "fp32_scores": true, "repeat_kv": true, "order": "longest_first_interleaved", "stages": 2})");
  constexpr std::array kAll{PlanKey::block_q,       PlanKey::block_kv,      PlanKey::variant,   PlanKey::pack_gqa,
                            PlanKey::cluster,       PlanKey::num_kv_splits, PlanKey::atomics,   PlanKey::gemm_tile,
                            PlanKey::softmax_reads, PlanKey::scale_pass,    PlanKey::mask_pass, PlanKey::dropout,
                            PlanKey::fp32_scores,   PlanKey::repeat_kv,     PlanKey::order,     PlanKey::stages};
  const TilePlan plan = plan_from_json(given, "", "/plan");
  CHECK(plan.gemm_tile == std::array<std::int64_t, 2>{128, 256});
  CHECK(plan.order == CtaOrder::longest_first_interleaved);
  const nlohmann::json written = plan_to_json(plan, kAll);
  CHECK(written == given);
  for (const auto& [key, value] : given.items()) {
    CAPTURE(key);
    TilePlan one = plan_from_json({{key, value}}, "", "/plan");
    CHECK_FALSE(one == TilePlan{});  // no key is read into nothing
  }
  const nlohmann::json defaults = plan_to_json(TilePlan{}, kAll);
  CHECK(defaults["block_q"].is_null());
  CHECK(plan_from_json(defaults, "", "/plan") == TilePlan{});
}

TEST_CASE("a plan key that nobody knows or a value it cannot have is refused") {
  const auto plan_complaint = [](std::string_view plan) {
    return complaint(with(R"({"block_q":128,"block_kv":128})", plan));
  };
  CHECK(plan_complaint(R"({"blok_q":128})") == "/plan/blok_q: is not a key of a plan | did you mean \"block_q\"?");
  CHECK(plan_complaint(R"({"block_q":0})") ==
        "/plan/block_q: must be at least 1, got 0 | write a whole number from 1 to 1048576, without quotes");
  CHECK(
      plan_complaint(R"({"block_kv":1048577})") ==
      "/plan/block_kv: must be at most 1048576, got 1048577 | write a whole number from 1 to 1048576, without quotes");
  CHECK(plan_complaint(R"({"softmax_reads":4})") ==
        "/plan/softmax_reads: must be at most 3, got 4 | write a whole number from 1 to 3, without quotes");
  CHECK(plan_complaint(R"({"gemm_tile":[128]})") ==
        "/plan/gemm_tile: must be null or [rows, columns], got 1 numbers | write [128, 128]");
  CHECK(plan_complaint(R"({"gemm_tile":[128,0]})") ==
        "/plan/gemm_tile/1: must be at least 1, got 0 | write a whole number from 1 to 1048576, without quotes");
  CHECK(plan_complaint(R"({"pack_gqa":1})") ==
        "/plan/pack_gqa: must be true or false, got the number 1 | write it without quotes");
  CHECK(plan_complaint(R"({"variant":"v1"})") == "/plan/variant: does not know \"v1\" | there is paper and released");
  CHECK(plan_complaint(R"({"block_q":1,"block_q":2})").find("stands in this object twice") != std::string::npos);
  CHECK(parse_batch_line(with(R"(,"plan":{"block_q":128,"block_kv":128})", "")).plan == TilePlan{});
}

TEST_CASE("a shape survives being written and read again") {
  AttentionShape shape = parse_batch_line(kContractLine).shape;
  shape.batch = 2;
  shape.mask = {127, std::nullopt, Alignment::top_left};
  shape.dtype = Dtype::bf16;
  CHECK_FALSE(shape_to_json(shape).contains("kv_lengths"));
  shape.kv_lengths = {0, 1000};
  const auto written = shape_to_json(shape);
  CHECK(
      written.dump() ==
      R"({"batch":2,"num_heads":4,"num_kv_heads":2,"seqlen_q":1000,"seqlen_kv":1000,"head_dim":64,"head_dim_v":64,"dtype":"bf16",)"
      R"("mask":{"kind":"window","alignment":"top_left","window_left":127,"window_right":null},"kv_lengths":[0,1000]})");
  CHECK(shape_from_json(nlohmann::json(written), "", "/shape") == shape);
}
