#include "model/online_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/rounding.hpp"

namespace hbmscope {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Arithmetic whose every result is rounded.
class Arithmetic {
 public:
  explicit Arithmetic(Precision precision) : precision_(precision) {}

  /// Infinities stay: fp8 has none, but a masked score is masked in any format.
  [[nodiscard]] double round(double x) const {
    if (!precision_ || !std::isfinite(x)) return x;
    return static_cast<double>(round_to(static_cast<float>(x), *precision_));
  }
  [[nodiscard]] double add(double a, double b) const { return round(a + b); }
  [[nodiscard]] double mul(double a, double b) const { return round(a * b); }
  [[nodiscard]] double div(double a, double b) const { return round(a / b); }
  /// e^(x - reference) for x <= reference, both possibly -inf.
  [[nodiscard]] double exp_less(double x, double reference) const {
    return x == kMinusInfinity ? 0 : round(std::exp(round(x - reference)));
  }
  [[nodiscard]] double log_sum_exp(double m, double l) const {
    return l > 0 ? add(m, round(std::log(l))) : kMinusInfinity;
  }

  /// to = to * factor + addend * weight, element by element.
  void scale_add(Vector& to, double factor, const Vector& addend, double weight) const {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = add(mul(to[i], factor), mul(addend[i], weight));
  }

 private:
  Precision precision_;
};

double greatest(const Vector& scores, double at_least = kMinusInfinity) {
  return std::accumulate(scores.begin(), scores.end(), at_least, [](double a, double b) { return std::max(a, b); });
}

Vector divided(const Arithmetic& in, Vector o, double l) {
  for (double& x : o) x = l > 0 ? in.div(x, l) : 0;
  return o;
}

/// Adds one block to (m, l, o) in the unnormalised form.
void absorb(const Arithmetic& in, UnnormalisedStep& state, const Vector& scores, std::span<const Vector> values) {
  const double before = state.m;
  state.m = greatest(scores, before);
  state.rescale = in.exp_less(before, state.m);
  state.l = in.mul(state.l, state.rescale);
  for (double& x : state.o) x = in.mul(x, state.rescale);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double p = in.exp_less(scores[i], state.m);
    state.l = in.add(state.l, p);
    in.scale_add(state.o, 1, values[i], p);
  }
}

UnnormalisedStep nothing(std::size_t width) {
  return {kMinusInfinity, 0, 0, Vector(width)};
}

/// The softmax of all given scores at once: probabilities first, then their product with the values, as the naive
/// kernels do it.
BlockSoftmax plain_softmax(const Arithmetic& in, const Vector& scores, std::span<const Vector> values,
                           Vector& probabilities) {
  BlockSoftmax s{greatest(scores), 0, Vector(values[0].size()), 0};
  for (const double score : scores) {
    probabilities.push_back(in.exp_less(score, s.m));
    s.l = in.add(s.l, probabilities.back());
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    probabilities[i] = s.l > 0 ? in.div(probabilities[i], s.l) : 0;
    in.scale_add(s.o, 1, values[i], probabilities[i]);
  }
  s.lse = in.log_sum_exp(s.m, s.l);
  return s;
}

NormalisedStep merge(const Arithmetic& in, const BlockSoftmax& before, const BlockSoftmax& block) {
  NormalisedStep step{block, 0, 0, before};
  BlockSoftmax& merged = step.merged;
  merged.m = std::max(before.m, block.m);
  const double l_before = in.mul(before.l, in.exp_less(before.m, merged.m));
  const double l_block = in.mul(block.l, in.exp_less(block.m, merged.m));
  merged.l = in.add(l_before, l_block);
  if (merged.l > 0) {
    step.weight_before = in.div(l_before, merged.l);
    step.weight_block = in.div(l_block, merged.l);
  }
  in.scale_add(merged.o, step.weight_before, block.o, step.weight_block);
  merged.lse = in.log_sum_exp(merged.m, merged.l);
  return step;
}

[[noreturn]] void fail(const std::string& sentence, const std::string& hint) {
  throw Error(ErrorKind::usage, sentence, hint);
}

[[noreturn]] void fail_range(const std::string& what, Precision precision) {
  const std::string format(precision ? info(*precision).name : "fp64");
  fail(what + " the range of " + format,
       precision ? "take smaller numbers or a wider --dtype" : "take smaller numbers");
}

void check(const SoftmaxInput& input) {
  std::size_t scores = 0;
  for (const Vector& block : input.blocks) {
    if (block.empty()) fail("--scores: a block is empty", "write blocks of at least one score, such as \"2,1|3,0\"");
    scores += block.size();
    for (const double s : block) {
      if (std::isnan(s) || s > std::numeric_limits<double>::max())
        fail("--scores: a score must be a number or -inf", "-inf stands for a masked key");
    }
  }
  if (scores == 0) fail("--scores: there is no score", "write blocks of at least one score, such as \"2,1|3,0\"");
  if (input.values.size() != scores) {
    fail("--values: needs one value for each of the " + std::to_string(scores) + " scores, got " +
             std::to_string(input.values.size()),
         "separate numbers by ',' and rows of a vector by ';', with '.' as the decimal point");
  }
  for (const Vector& row : input.values) {
    if (row.empty() || row.size() != input.values[0].size())
      fail("--values: all rows must have the same number of values", "write rows such as \"1,2;3,4\"");
    for (const double v : row) {
      if (!std::isfinite(v))
        fail("--values: a value must be a finite number", "a masked key gets the score -inf, not a value");
    }
  }
}

/// The input as the precision stores it. A score or a value beyond its range has no meaning there.
SoftmaxInput stored(const SoftmaxInput& input, Precision precision) {
  const Arithmetic in(precision);
  const auto store = [&](double& x, const char* option) {
    if (!std::isfinite(x)) return;
    const double given = x;
    x = in.round(x);
    if (std::isfinite(x) && (!precision || std::abs(given) <= info(*precision).max)) return;
    fail_range(std::string(option) + ": a number leaves", precision);
  };
  SoftmaxInput out = input;
  for (Vector& block : out.blocks) {
    for (double& s : block) store(s, "--scores");
  }
  for (Vector& row : out.values) {
    for (double& v : row) store(v, "--values");
  }
  return out;
}

bool is_finite(const Vector& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
}

}  // namespace

SoftmaxResult online_softmax(const SoftmaxInput& given, Precision precision) {
  check(given);
  const SoftmaxInput input = stored(given, precision);
  const Arithmetic in(precision);
  const std::size_t width = input.values[0].size();
  const std::span<const Vector> values(input.values);

  SoftmaxResult r;
  r.o_unmerged = Vector(width);
  UnnormalisedStep state = nothing(width);
  BlockSoftmax merged{kMinusInfinity, 0, Vector(width), kMinusInfinity};
  Vector all;
  bool finite = true;
  for (const Vector& scores : input.blocks) {
    const std::span<const Vector> rows = values.subspan(all.size(), scores.size());
    absorb(in, state, scores, rows);
    r.unnormalised.push_back(state);

    UnnormalisedStep alone = nothing(width);
    absorb(in, alone, scores, rows);
    const BlockSoftmax block{alone.m, alone.l, divided(in, alone.o, alone.l), in.log_sum_exp(alone.m, alone.l)};
    r.normalised.push_back(merge(in, merged, block));
    merged = r.normalised.back().merged;

    in.scale_add(r.o_unmerged, 1, block.o, 1);
    r.unmerged_probability_sum += block.l > 0 ? 1 : 0;
    all.insert(all.end(), scores.begin(), scores.end());
    finite = finite && is_finite(state.o) && is_finite(alone.o) && is_finite(merged.o);
  }
  r.o_unnormalised = divided(in, state.o, state.l);
  r.lse = in.log_sum_exp(state.m, state.l);
  r.plain = plain_softmax(in, all, values, r.probabilities);
  if (!finite || !is_finite(r.plain.o) || !is_finite(r.o_unmerged))
    fail_range("--values: a sum of these values leaves", precision);
  return r;
}

}  // namespace hbmscope
