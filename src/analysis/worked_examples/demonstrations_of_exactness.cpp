#include <algorithm>
#include <vector>

#include "analysis/worked_examples/demonstrations.hpp"
#include "analysis/worked_examples/parts.hpp"
#include "core/rounding.hpp"
#include "simulate/numerics/numerics.hpp"

// Attention computed for real on the CPU, and softmax by hand.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
using Floats = std::vector<float>;
constexpr std::uint64_t kSeed = 1;
/// The same bits on every processor, so that a lesson may print them.
constexpr CpuOptions kPortable{0, "portable"};

RowSample all_rows(const AttentionShape& s) {
  return sample_rows(s, std::int64_t{1} << 20, std::int64_t{1} << 10, kSeed);
}
AttentionResult computed(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  return run_cpu(name, s, p, all_rows(s), RandomInputs(kSeed, s.dtype), kPortable);
}
AttentionShape in(Dtype dtype, AttentionShape s) {
  s.dtype = dtype;
  return s;
}
TilePlan splits(std::int64_t count) {
  TilePlan p = tiles(16, 32);
  p.num_kv_splits = count;
  return p;
}

std::vector<Exactness> checked(const AttentionShape& s, const std::vector<NamedPlan>& plans) {
  return check_exactness(s, plans, all_rows(s), RandomInputs(kSeed, s.dtype), kPortable);
}
ReferenceResult reference(const AttentionShape& s) {
  return reference_fp64(s, all_rows(s), RandomInputs(kSeed, s.dtype), kPortable);
}

template <class A, class B>
double max_difference(const std::vector<A>& a, const std::vector<B>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}
std::int64_t count_different(const Floats& a, const Floats& b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += static_cast<std::int64_t>(a[i] != b[i]);
  return count;
}

/// Weights that `name` gives to keys and that are not 0. Where V is the identity, O is the matrix of probabilities.
Count contributing_pairs(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  const auto n = static_cast<std::size_t>(s.seqlen_kv), d = static_cast<std::size_t>(s.head_dim);
  Floats q(n * d), k(n * d), identity(n * n);
  const RandomInputs random(kSeed, s.dtype);
  for (std::size_t row = 0; row < n; ++row) {
    random.read_row(Tensor::Q, 0, 0, static_cast<std::int64_t>(row), std::span(q).subspan(row * d, d));
    random.read_row(Tensor::K, 0, 0, static_cast<std::int64_t>(row), std::span(k).subspan(row * d, d));
    identity[row * n + row] = 1;
  }
  const AttentionResult r = run_cpu(name, s, p, all_rows(s), ArrayInputs(s, q, k, identity), kPortable);
  return Count(std::count_if(r.o.begin(), r.o.end(), [](float weight) { return weight > 0; }));
}

void exact_not_approximate(V& v) {
  TilePlan released = tiles(16, 32);
  released.variant = FlashV1Variant::released;
  const std::vector<NamedPlan> plans{
      {"flash_v1", released}, {"flash_v2", tiles(64, 32)}, {"flash_v2", tiles(32, 48)}, {"split_kv", splits(3)}};
  double error = 0, of_tolerance = 0;
  for (const AttentionShape& s : {head(128, 64), head(200, 32, Mask::causal()), head(160, 40, {40, 0}),
                                  in(Dtype::bf16, heads(2, 2, 96, 64, Mask::causal()))}) {
    for (const Exactness& e : checked(s, plans)) {
      error = std::max(error, e.max_abs_error);
      of_tolerance = std::max(of_tolerance, e.max_abs_error / e.tolerance);
    }
  }
  v.add("max_abs_error", error);
  v.add("error_over_tolerance", of_tolerance);
  const AttentionShape causal = in(Dtype::fp32, head(96, 96, Mask::causal()));
  v.add("visible_pairs", live_pairs(causal));
  v.add("contributing_pairs", contributing_pairs("flash_v2", causal, tiles(32, 16)));
  // A window in place of the whole past is an approximation of it, and looks like one.
  const AttentionShape all = head(128, 64, Mask::causal()), near_keys = head(128, 64, {32, 0});
  const double tolerance = checked(all, plans)[0].tolerance;
  v.add("window_error_over_tolerance",
        max_difference(computed("flash_v2", near_keys, tiles(64, 32)).o, reference(all).o) / tolerance);
}

void order_shows_in_the_last_bits(V& v) {
  const AttentionShape s = in(Dtype::fp32, head(192, 64));
  const AttentionResult naive = computed("naive", s, {}), narrow_tiles = computed("flash_v2", s, tiles(64, 16)),
                        wide_tiles = computed("flash_v2", s, tiles(64, 64));
  v.add("elements", static_cast<std::int64_t>(naive.o.size()));
  v.add("differ_by_tile_size", count_different(narrow_tiles.o, wide_tiles.o));
  v.add("differ_from_naive", count_different(wide_tiles.o, naive.o));
  v.add("max_difference",
        std::max(max_difference(narrow_tiles.o, wide_tiles.o), max_difference(wide_tiles.o, naive.o)));
  const std::vector<NamedPlan> plans{{"flash_v2", tiles(64, 64)}};
  v.add("tolerance", checked(s, plans)[0].tolerance);
  const auto half = [](float x) { return round_to(x, Dtype::fp16); };
  const float a = 1000, b = half(0.2F);
  v.add("fp16_left", static_cast<double>(half(half(a + b) + b)));
  v.add("fp16_right", static_cast<double>(half(a + half(b + b))));
}

/// Online softmax whose maximum stays stale until it has grown by more than `threshold`: sums are then over e^(s - m)
/// with an m that is too small, which changes no quotient.
struct LazySoftmax {
  double o;
  std::int64_t rescales;
};
LazySoftmax lazy_softmax(const SoftmaxInput& input, double threshold) {
  double m = input.blocks[0][0], l = 0, o = 0;
  std::int64_t rescales = 0;
  std::size_t at = 0;
  for (const Vector& block : input.blocks) {
    const double greatest = *std::max_element(block.begin(), block.end());
    if (greatest - m > threshold) {
      const double rescale = std::exp(m - greatest);
      l *= rescale;
      o *= rescale;
      m = greatest;
      ++rescales;
    }
    for (const double score : block) {
      l += std::exp(score - m);
      o += std::exp(score - m) * input.values[at++][0];
    }
  }
  return {o / l, rescales};
}

void one_rescale_for_l_and_o(V& v) {
  const SoftmaxInput input{{{2, 1}, {3, 0}, {2.5, 3}, {12, 4}, {12.5, 3}},
                           {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}}};
  const SoftmaxResult r = online_softmax(input, std::nullopt);
  std::vector<double> of_l, of_o;
  std::int64_t rescales = 0;
  for (std::size_t j = 1; j < r.unnormalised.size(); ++j) {
    const UnnormalisedStep &before = r.unnormalised[j - 1], &step = r.unnormalised[j];
    const BlockSoftmax& block = r.normalised[j].block;
    // What the block adds, at the new maximum; the rest of l and o is what stood before, rescaled.
    const double added = block.l * std::exp(block.m - step.m);
    of_l.push_back((step.l - added) / before.l);
    of_o.push_back((step.o[0] - added * block.o[0]) / before.o[0]);
    rescales += step.rescale < 1 ? 1 : 0;
  }
  const LazySoftmax lazy = lazy_softmax(input, 8 * std::log(2.0));
  v.add("rescale_of_l", of_l);
  v.add("rescale_of_o", of_o);
  v.add("rescales", rescales);
  v.add("rescales_when_lazy", lazy.rescales);
  v.add("o", r.o_unnormalised[0]);
  v.add("o_when_lazy", lazy.o);
}

bool rescales_agree(const V& v) {
  const std::vector<double> l = v.list("rescale_of_l"), o = v.list("rescale_of_o");
  double apart = 0;
  std::int64_t below_one = 0;
  for (std::size_t j = 0; j < l.size(); ++j) {
    apart = std::max(apart, std::abs(l[j] - o[j]) / l[j]);
    below_one += l[j] < 1 - 1e-9 ? 1 : 0;
  }
  return apart < 1e-9 && static_cast<double>(below_one) == v.number("rescales") &&
         v.number("rescales_when_lazy") < v.number("rescales") && v.number("rescales_when_lazy") > 0 &&
         std::abs(v.number("o") - v.number("o_when_lazy")) < 1e-12;
}

void splits_merge(V& v) {
  AttentionShape s = decode(16, 2, 8192, 128);
  AttentionShape small = in(Dtype::fp32, decode(4, 1, 512, 64));
  std::vector<NamedPlan> plans;
  std::vector<std::int64_t> counts{1, 2, 4, 8, 16};
  for (const std::int64_t count : counts) plans.push_back({"split_kv", splits(count)});
  std::vector<double> errors;
  double tolerance = 0;
  for (const Exactness& e : checked(small, plans)) {
    errors.push_back(e.max_abs_error);
    tolerance = e.tolerance;
  }
  v.add("splits", counts);
  v.add("max_abs_error", errors);
  v.add("tolerance", tolerance);
  const SoftmaxResult by_hand = online_softmax({{{2, 1}, {3, 0}}, {{1}, {2}, {3}, {4}}}, std::nullopt);
  v.add("o_merged", by_hand.normalised.back().merged.o[0]);
  v.add("o_one_pass", by_hand.plain.o[0]);
  TilePlan eight = tiles(16, 128);
  eight.num_kv_splits = 8;
  const Count rows(s.num_heads);
  const Traffic t = traffic_of("split_kv", s, eight);
  v.add("partial_bytes_per_row", Bytes((t[Tensor::Oacc].total() + t[Tensor::LSEacc].total()).value() / rows.value()));
  v.add("by_formula", Count(2) * Count(8) * Count(s.head_dim + 1) * Bytes(kAccumulatorBytes));
  v.add("overhead", ratio(t.total(), traffic_of("split_kv", s, tiles(16, 128)).total()) - 1);
}

void tolerance_not_equality(V& v) {
  const AttentionShape s = head(128, 64), shorter = [] {
    AttentionShape cut = head(128, 64);
    cut.seqlen_kv = 112;  // as if the last tile of 16 keys had been forgotten
    return cut;
  }();
  const std::vector<NamedPlan> plans{{"flash_v2", tiles(64, 32)}};
  const Exactness e = checked(s, plans)[0];
  v.add("max_abs_error", e.max_abs_error);
  v.add("naive_max_abs_error", e.naive_max_abs_error);
  v.add("tolerance", e.tolerance);
  v.add("bitwise_equal", e.bitwise_equal_to_naive);
  v.add("error_without_a_tile", max_difference(computed("flash_v2", shorter, tiles(64, 16)).o, reference(s).o));
}

constexpr WorkedEntry kEntries[] = {
    {"Q-01", "FlashAttention is exact attention: every visible pair contributes", Provenance::simulated,
     exact_not_approximate,
     [](const V& v) {
       return v.number("error_over_tolerance") <= 1 && v.number("contributing_pairs") == v.number("visible_pairs") &&
              v.number("window_error_over_tolerance") > 10;
     },
     "Against fp64 over four shapes and masks in fp16 and bf16. With V the identity the output is the matrix of "
     "weights, so that pairs can be counted; a window instead of the whole past is what an approximation looks like."},
    {"Q-06", "The softmaxes of single tiles side by side are wrong", Provenance::formula,
     [](V& v) {
       show_unmerged(online_softmax({{{2, 1}, {3, 0}}, {{1}, {2}, {3}, {4}}}, std::nullopt), v);
     },
     merging_is_needed,
     "Scores 2,1|3,0 and values 1, 2, 3, 4. The mean of the tiles is wrong too: each tile's weight is its share of the "
     "common sum."},
    {"Q-07", "Exact does not mean the same bits", Provenance::simulated, order_shows_in_the_last_bits,
     [](const V& v) {
       return v.number("differ_by_tile_size") > 0 && v.number("differ_from_naive") > 0 &&
              v.number("max_difference") <= v.number("tolerance") && v.number("fp16_left") != v.number("fp16_right");
     },
     "One head in fp32, N = 192, d = 64: key tiles of 16 against 64, and both against naive."},
    {"Q-13", "When the maximum grows, the output is rescaled as the sum is", Provenance::formula,
     one_rescale_for_l_and_o, rescales_agree,
     "Five blocks. Lazy is FlashAttention-4's rule: nothing is rescaled until the maximum has grown by log2(256) = 8 "
     "in powers of two; the quotient is the same."},
    {"Q-18", "Splits of the keys merge to the same result", Provenance::simulated, splits_merge,
     [](const V& v) {
       const std::vector<double> errors = v.list("max_abs_error");
       return *std::max_element(errors.begin(), errors.end()) <= v.number("tolerance") &&
              std::abs(v.number("o_merged") - v.number("o_one_pass")) < 1e-12 &&
              v.number("partial_bytes_per_row") == v.number("by_formula") && v.number("overhead") > 0;
     },
     "Overhead at 8,192 keys, d = 128, 16 heads on 2 kv heads and 8 splits: 2 S (d + 1) 4 bytes a query row for the "
     "partials, and Q once more for each further split."},
    {"Q-20", "Compare with a tolerance, not for equality", Provenance::simulated, tolerance_not_equality,
     [](const V& v) {
       return !v.flag("bitwise_equal") && v.number("max_abs_error") <= v.number("tolerance") &&
              v.number("tolerance") >= 2 * v.number("naive_max_abs_error") &&
              v.number("error_without_a_tile") > v.number("tolerance");
     },
     "The rule of FlashAttention's own tests: twice the error of the naive pipeline in the same dtype, here with one "
     "unit in the last place on top. A forgotten tile of 16 keys does not pass it."},
};

}  // namespace

void show_unmerged(const SoftmaxResult& r, WorkedValues& v) {
  v.add("weights_sum", r.unmerged_probability_sum);
  v.add("o_unmerged", r.o_unmerged[0]);
  v.add("o_mean_of_tiles", r.o_unmerged[0] / static_cast<double>(r.normalised.size()));
  v.add("o_merged", r.normalised.back().merged.o[0]);
  v.add("o_right", r.plain.o[0]);
}

bool merging_is_needed(const WorkedValues& v) {
  const double right = v.number("o_right");
  const auto is_right = [&](std::string_view name) {
    return std::abs(v.number(name) - right) < 1e-12 * std::abs(right);
  };
  return v.number("weights_sum") == 2 && is_right("o_merged") && !is_right("o_unmerged") &&
         !is_right("o_mean_of_tiles");
}

std::span<const WorkedEntry> demonstrations_of_exactness() {
  return kEntries;
}

}  // namespace hbmscope::worked
