// Runs saved under reports/ are held against the model as it is now: a change of the model that its measurements do not
// bear out fails here, on machines without a GPU too.
#include "saved_cases.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

TEST_CASE("what kernels counted on an H200 is what the closed forms say, tensor by tensor") {
  const int compared = each_counted(
      {"h200/forward.jsonl", "h200/orders.jsonl", "h200/ladder.jsonl", "h200/cluster.jsonl", "h200/fp8.jsonl"},
      "kernel_counter",
      [](const json& counted, const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
        const Traffic expected = total(algorithm(name).closed_form(shape, plan));
        const json none = {{"read_bytes", 0}, {"write_bytes", 0}};
        for (const TensorInfo& t : kTensors) {
          CAPTURE(t.name);
          const json& tensors = counted["tensors"];
          const json& mine = tensors.contains(t.name) ? tensors[std::string(t.name)] : none;
          CHECK(mine["read_bytes"] == expected[t.tensor].read.value());
          CHECK(mine["write_bytes"] == expected[t.tensor].write.value());
        }
      });
  CHECK(compared >= 100);
}

TEST_CASE(
    "what the SMs received on an H200 is within half a per cent of the closed forms, of whole tiles for flash_v3") {
  const int compared =
      each_counted({"h200/forward.jsonl", "h200/fp8.jsonl"}, "hw_counter",
                   [](const json& counted, const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
                     const double read = counted["read_bytes"];
                     CHECK(std::fabs(read / received(name, shape, plan) - 1) < 0.005);
                   });
  CHECK(compared >= 150);
}

TEST_CASE(
    "the predictions beside the saved runs are those of the model as it is: else hbmscope_predict writes them anew") {
  const std::vector<json> lines = saved("h200/forward_model.jsonl");
  std::map<std::string, json> unmasked;  // naive moves as much under a mask: no need to simulate it twice
  std::size_t at = 0;
  const std::vector<json> runs = saved("h200/forward.jsonl");
  const reports::ClockSpreads spreads = reports::clock_spreads(runs);
  for (const json& run : runs) {
    for (const json& a : run["algorithms"]) {
      if (entry(a, "l2_hbm", "simulated") == nullptr) continue;
      REQUIRE(at < lines.size());
      const json& line = lines[at++];
      const bool naive = a["name"] == "naive";
      const std::string size = run["shape"]["seqlen_q"].dump() + ", " + run["shape"]["head_dim"].dump();
      if (naive && unmasked.contains(size)) {
        CHECK(line["l2_hbm"] == unmasked[size]);
        CHECK(line["stages"].size() == 3);
        continue;
      }
      CHECK(line == predicted(run, a, spreads));
      if (naive) unmasked[size] = line["l2_hbm"];
    }
  }
  CHECK(at == lines.size());
  CHECK(at >= 150);
}

TEST_CASE(
    "simulated with the clocks of their launches, HBM reads of flash_v2 and flash_v3 on an H200 are within 22 % of "
    "those counted, but for one run, and where K and V in flight take at most 15 MiB and no mask "
    "hides a tile within 0.2 % and 0.5 %") {
  int compared = 0, fitting = 0, side_by_side = 0;
  each_held_to_the_model({"h200/forward.jsonl", "h200/orders.jsonl"}, {"flash_v2", "flash_v3"}, [&](const Held& held) {
    const bool v3 = held.algorithm == "flash_v3";
    const double off = held.predicted["l2_hbm"]["read_bytes"].get<double>() / held.read - 1;
    ++compared;
    // docs/l2-model.md, what is still off: heads side by side, of 256 columns.
    if (!v3 && held.shape.head_dim == 256 && held.plan.order == CtaOrder::longest_first_interleaved &&
        held.shape.seqlen_q == 8192) {
      CHECK(std::fabs(off) < 0.25);
      ++side_by_side;
      return;
    }
    const bool masked = held.shape.mask != Mask::none(), upwards = held.plan.order == CtaOrder::ascending;
    const bool as_large_as_l2 = v3 && !masked && held.shape.seqlen_q == 65536 && held.shape.head_dim == 64;
    CHECK(std::fabs(off) < (as_large_as_l2 || (masked && upwards) ? 0.22 : 0.2));
    const std::vector<KernelWalk> kernels = algorithm(held.algorithm).walk(held.shape, held.plan);
    if (held.shape.mask == Mask::none() &&
        kv_in_flight(kernels[0], held.shape, l2_of(held.run), held.plan.order) <= Bytes(15 << 20)) {
      CHECK(std::fabs(off) < (v3 ? 0.005 : 0.002));
      ++fitting;
    }
  });
  CHECK(compared == 117);
  CHECK(fitting == 15);
  CHECK(side_by_side == 1);
}

TEST_CASE("what causal heads in ascending order move through HBM on an H200 lies inside the predicted interval") {
  int compared = 0;
  for (const json& run : saved("h200/orders.jsonl")) {
    for (const json& a : run["algorithms"]) {
      const json* counted = entry(a, "l2_hbm", "hw_counter");
      const AttentionShape shape = shape_of(run["shape"]);
      if (counted == nullptr || shape.seqlen_kv < 65536) continue;  // shorter ones fit, and have no interval
      const TilePlan plan = plan_of((*counted)["plan"]);
      if (plan.order != CtaOrder::ascending || shape.mask == Mask::none()) continue;
      CAPTURE(run["shape"].dump());
      const L2Estimate l2 =
          estimate_l2(algorithm(a["name"].get<std::string>()).walk(shape, plan), plan.order, l2_of(run));
      const auto [least, most] = std::minmax_element(l2.paces.begin(), l2.paces.end(),
                                                     [](const auto& x, const auto& y) { return x.total < y.total; });
      const double total = (*counted)["total_bytes"];
      CHECK(total > least->total.as_double());
      CHECK(total < most->total.as_double());
      ++compared;
    }
  }
  CHECK(compared == 2);
}

TEST_CASE("the younger of two CTAs on an SM loses to the older what the times of CTAs on an H200 say") {
  int held = 0;
  for (const json& launch : saved("h200/ctas.jsonl")) {
    CAPTURE(launch["shape"].dump());
    if (launch["shape"]["seqlen"] < 32768) continue;  // the start of a launch is no small part of shorter ones
    AttentionShape shape;
    shape.seqlen_q = shape.seqlen_kv = launch["shape"]["seqlen"];
    shape.head_dim = shape.head_dim_v = launch["shape"]["head_dim"];
    TilePlan plan;
    plan.block_q = plan.block_kv = 64;
    plan.stages = shape.head_dim > 128 ? 1 : 2;  // as the kernels have them
    const double stall = algorithm("flash_v2").walk(shape, plan)[0].younger_stall;
    CHECK(std::fabs(stall - launch["younger_stall"]["median"].get<double>()) < 0.005);
    CHECK(launch["younger_stall"]["most"].get<double>() - launch["younger_stall"]["least"].get<double>() < 0.04);
    CHECK(launch["apart_later_passes"].get<double>() > 0.3);
    ++held;
  }
  CHECK(held == 9);
}

TEST_CASE(
    "under a causal mask heads go one after the other where that is as fast to 3 %, and there they read less HBM") {
  std::map<std::string, std::map<CtaOrder, json>> measured;
  for (const json& row : saved("h200/order_times.jsonl")) {
    measured[row["algorithm"].get<std::string>() + row["shape"].dump()][plan_of(row["plan"]).order] = row;
  }
  int by_head = 0;
  for (const auto& [name, orders] : measured) {
    CAPTURE(name);
    const json &one = orders.at(CtaOrder::longest_first), &all = orders.at(CtaOrder::longest_first_interleaved);
    const CtaOrder chosen =
        causal_order(one["algorithm"].get<std::string>(), shape_of(one["shape"]), plan_of(one["plan"]), 132);
    const auto seconds = [](const json& row) { return row["measured_median_s"].get<double>(); };
    CHECK(seconds(orders.at(chosen)) < 1.03 * std::min(seconds(one), seconds(all)));
    if (chosen != CtaOrder::longest_first) continue;
    CHECK(one["hbm_read_bytes"].get<double>() < all["hbm_read_bytes"].get<double>() / 1.9);
    ++by_head;
  }
  CHECK(measured.size() == 30);
  CHECK(by_head == 13);
}

TEST_CASE("simulated with the clocks that its SMs had, a launch's HBM reads are within a fifth of those counted") {
  const std::vector<json> lines = saved("h200/drift_model.jsonl");
  std::size_t at = 0;
  for (const json& launch : saved("h200/drift.jsonl")) {
    const json& run = launch["run"];
    CAPTURE(launch["gpu_number"].dump() + ", " + launch["heads"].dump());
    REQUIRE(at < lines.size());
    const json &line = lines[at++], &counted = run["algorithms"][0]["traffic"][0];
    CHECK(line["shape"] == run["shape"]);
    if (run["shape"]["num_heads"] <= 2) CHECK(line == predicted(run, run["algorithms"][0]));
    CHECK(line["l2_hbm"]["read_bytes"].get<double>() ==
          doctest::Approx(counted["read_bytes"].get<double>()).epsilon(0.2));
    // A pass takes all SMs equally many cycles, though some find tiles in L2 that others fetched from HBM.
    const json& cycles = launch["cycles_of_a_pass"];
    CHECK(cycles["most"].get<double>() < 1.005 * cycles["least"].get<double>());
  }
  CHECK(at == 9);
}

TEST_CASE(
    "the HBM reads of naive on an H200 are within 1 % of the L2 model's, within 0.4 % up to N = 32,768; its "
    "writes within 0.1 %") {
  int compared = 0;
  each_held_to_the_model({"h200/forward.jsonl"}, {"naive"}, [&](const Held& held) {
    CHECK(held.plan.softmax_reads == 1);
    const double off_by = std::fabs(held.read / held.predicted["l2_hbm"]["read_bytes"].get<double>() - 1);
    CHECK(off_by < (held.shape.seqlen_q > 32768 ? 0.01 : 0.004));
    CHECK(std::fabs(held.written / held.predicted["l2_hbm"]["write_bytes"].get<double>() - 1) < 0.001);
    // By stage: what S = Q K^T has to fetch, as a share of all that its SMs ask for; and softmax.
    for (const json& pipeline : held.run["device"]["pipelines"]) {
      if (pipeline["name"] != "naive") continue;
      const auto off = [&](std::size_t stage) {
        const json& hw = pipeline["stages"][stage]["hw"];
        const double expected = held.predicted["stages"][stage]["read_bytes"];
        return std::fabs(hw["l2_hbm_read_bytes"].get<double>() - expected) / hw["sm_l2_read_bytes"].get<double>();
      };
      CHECK(off(0) < 0.014);
      CHECK(off(1) < 0.0005);
    }
    ++compared;
  });
  CHECK(compared == 50);
}
