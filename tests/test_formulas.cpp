// The formulas that a reader sees, evaluated as they are printed, give the bytes that the closed forms give.
#include <doctest/doctest.h>

#include <cctype>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/run.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;

namespace {

using Symbols = std::map<std::string, std::int64_t, std::less<>>;

/// Whole numbers only: sums and differences of products; factors stand side by side; x^2; ceil(a/b). What follows the
/// first comma defines symbols: "..., T_c = ceil(Nk/Bc)".
class Formula {
 public:
  Formula(std::string_view text, Symbols symbols) : symbols_(std::move(symbols)) {
    formula_ = text.substr(0, text.find(", "));
    for (auto comma = text.find(", "); comma != std::string_view::npos; comma = text.find(", ")) {
      text.remove_prefix(comma + 2);
      const std::string_view definition = text.substr(0, text.find(", "));
      const auto equals = definition.find(" = ");
      if (equals == std::string_view::npos) throw std::invalid_argument("no definition: " + std::string(definition));
      symbols_.insert_or_assign(std::string(definition.substr(0, equals)), evaluate(definition.substr(equals + 3)));
    }
  }
  std::int64_t value() { return evaluate(formula_); }

 private:
  std::int64_t evaluate(std::string_view text) {
    rest_ = text;
    const std::int64_t value = sum();
    if (peek() != '\0') throw std::invalid_argument("cannot read on at: " + std::string(rest_));
    return value;
  }
  char peek() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  void take(char wanted) {
    if (peek() != wanted) throw std::invalid_argument(std::string("expected ") + wanted + " at: " + std::string(rest_));
    rest_.remove_prefix(1);
  }
  std::string_view word(int (*belongs)(int)) {
    std::size_t end = 0;
    while (end < rest_.size() && (belongs(static_cast<unsigned char>(rest_[end])) != 0 || rest_[end] == '_')) ++end;
    const std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return taken;
  }
  std::int64_t sum() {
    std::int64_t total = product();
    while (peek() == '+' || peek() == '-') {
      const bool minus = rest_.front() == '-';
      rest_.remove_prefix(1);
      total += minus ? -product() : product();
    }
    return total;
  }
  std::int64_t product() {
    std::int64_t result = power();
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '(') result *= power();
    return result;
  }
  std::int64_t power() {
    const std::int64_t base = factor();
    if (peek() != '^') return base;
    take('^');
    std::int64_t result = 1;
    for (std::int64_t exponent = factor(); exponent > 0; --exponent) result *= base;
    return result;
  }
  std::int64_t factor() {
    if (peek() == '(') {
      take('(');
      const std::int64_t inner = sum();
      take(')');
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0) return std::stoll(std::string(word(std::isdigit)));
    const std::string_view name = word(std::isalnum);
    if (name == "ceil") {
      take('(');
      const std::int64_t dividend = sum();
      take('/');
      const std::int64_t divisor = sum();
      take(')');
      return (dividend + divisor - 1) / divisor;
    }
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) throw std::invalid_argument("unknown symbol \"" + std::string(name) + "\"");
    return found->second;
  }

  std::string_view formula_, rest_;
  Symbols symbols_;
};

/// One head without a mask; N stands for both lengths and only where they are equal.
Symbols symbols_of(const AttentionShape& s, const TilePlan& p) {
  Symbols symbols{{"Nq", s.seqlen_q}, {"Nk", s.seqlen_kv}, {"d", s.head_dim},     {"e", s.element_bytes()},
                  {"Br", p.block_q},  {"Bc", p.block_kv},  {"S", p.num_kv_splits}};
  if (s.seqlen_q == s.seqlen_kv) symbols["N"] = s.seqlen_q;
  if (p.gemm_tile) {
    symbols["bm"] = (*p.gemm_tile)[0];
    symbols["bn"] = (*p.gemm_tile)[1];
  }
  return symbols;
}

AttentionShape plain(std::int64_t seqlen_q, std::int64_t seqlen_kv, std::int64_t head_dim, Dtype dtype) {
  AttentionShape s;
  s.seqlen_q = seqlen_q;
  s.seqlen_kv = seqlen_kv;
  s.head_dim = s.head_dim_v = head_dim;
  s.dtype = dtype;
  return s;
}

TilePlan tiles(std::int64_t block_q, std::int64_t block_kv) {
  TilePlan p;
  p.block_q = block_q;
  p.block_kv = block_kv;
  p.num_kv_splits = 4;  // every split meets a key in the shapes below
  return p;
}

}  // namespace

TEST_CASE("the evaluator reads sums, products side by side, powers, ceil and definitions") {
  const Symbols symbols{{"N", 10}, {"d", 3}, {"Bc", 4}};
  CHECK(Formula("4 N^2 d", symbols).value() == 4 * 10 * 10 * 3);
  CHECK(Formula("2 (N + d) d - 1", symbols).value() == 2 * 13 * 3 - 1);
  CHECK(Formula("T_c (N + 1) + 2, T_c = ceil(N/Bc)", symbols).value() == 3 * 11 + 2);
  CHECK(Formula("N - 2 d - 1", symbols).value() == 10 - 6 - 1);
  CHECK_THROWS_AS(Formula("N x", symbols).value(), std::invalid_argument);
  CHECK_THROWS_AS(Formula("N )", symbols).value(), std::invalid_argument);
}

TEST_CASE("each algorithm's formula gives its closed form to the byte, ragged tails included") {
  for (const Algorithm& a : algorithms()) {
    CAPTURE(a.name);
    const bool square_only = a.formula.find("N^2") != std::string_view::npos;
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::fp8}) {
      for (const std::int64_t d : {24, 64, 128}) {
        for (const auto& [nq, nk] :
             {std::pair<std::int64_t, std::int64_t>{8192, 8192}, {1000, 1000}, {1000, 4321}, {1, 777}}) {
          if (square_only && nq != nk) continue;
          for (const auto& [br, bc] : {std::pair<std::int64_t, std::int64_t>{128, 128}, {64, 32}, {16, 100}}) {
            const AttentionShape s = plain(nq, nk, d, dtype);
            const TilePlan p = tiles(br, bc);
            CAPTURE(nq);
            CAPTURE(nk);
            CAPTURE(br);
            CAPTURE(bc);
            CHECK(Formula(a.formula, symbols_of(s, p)).value() == total(a.closed_form(s, p)).total().value());
          }
        }
      }
    }
  }
}

TEST_CASE("a formula with one number changed would be noticed") {
  const AttentionShape s = plain(1000, 1000, 64, Dtype::fp16);
  const TilePlan p = tiles(128, 128);
  for (const Algorithm& a : algorithms()) {
    const std::int64_t right = total(a.closed_form(s, p)).total().value();
    for (std::size_t at = 0; at < a.formula.size(); ++at) {
      if (std::isdigit(static_cast<unsigned char>(a.formula[at])) == 0) continue;
      std::string wrong(a.formula);
      wrong[at] = wrong[at] == '9' ? '8' : static_cast<char>(wrong[at] + 1);
      CAPTURE(wrong);
      CHECK(Formula(wrong, symbols_of(s, p)).value() != right);
    }
  }
}

TEST_CASE("every formula that a run prints beside a plain shape's bytes gives those bytes") {
  int evaluated = 0;
  for (const std::string_view pass : {"both", "decode"}) {
    for (const std::int64_t seqlen : {8192, 1000}) {
      RunRequest request;
      request.gpu = embedded_gpu("H100 SXM");
      request.engine = Engine::model;
      request.pass = pass;
      request.shape = plain(seqlen, seqlen, 96, Dtype::fp16);
      request.plan.block_q = 64;
      request.plan.block_kv = 32;
      request.kv_splits = 4;
      request.plan.gemm_tile = {96, 80};  // neither divides d or N, so that each ceil() counts
      for (const AlgorithmResult& a : run(request).algorithms) {
        for (const TrafficEntry& entry : a.traffic) {
          if (entry.boundary != Boundary::sm_l2) continue;
          CAPTURE(a.algorithm->name);
          CAPTURE(entry.formula);
          REQUIRE_FALSE(entry.formula.empty());
          CHECK(Formula(entry.formula, symbols_of(request.shape, entry.plan)).value() ==
                entry.traffic->total().value());
          ++evaluated;
        }
      }
    }
  }
  // naive twice, once with tiles and once without; five others in one pass, and in the other naive, flash_v2, split_kv.
  CHECK(evaluated == 2 * (2 + 5) + 2 * (2 + 2));
}
