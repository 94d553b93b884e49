#include <fmt/format.h>

#include <cctype>
#include <map>

#include "report/format.hpp"
#include "report/run_document.hpp"

namespace hbmscope {
namespace {

std::string plural(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", text::integer(n), n == 1 ? one : many);
}

std::string mask_words(const AttentionShape& s) {
  const Mask& m = s.mask;
  std::string words = "no mask";
  if (m.kind() == "causal") words = "causal";
  if (m.kind() == "window") {
    const auto edge = [](const std::optional<std::int64_t>& e) { return e ? text::integer(*e) : std::string("all"); };
    words = fmt::format("window of {} keys before and {} after", edge(m.window_left), edge(m.window_right));
  }
  // The alignment makes no difference to a square shape.
  if (m.kind() != "none" && s.seqlen_q != s.seqlen_kv)
    words += m.alignment == Alignment::bottom_right ? ", bottom-right" : ", top-left";
  if (!s.kv_lengths.empty()) words += ", key padding";
  return words;
}

}  // namespace

std::string shape_words(const AttentionShape& s, std::string_view pass) {
  std::string words = fmt::format("{}, batch {}, ", pass, text::integer(s.batch));
  words += plural(s.num_heads, "head", "heads");
  if (s.num_kv_heads != s.num_heads) words += fmt::format(" over {}", plural(s.num_kv_heads, "kv head", "kv heads"));
  words += s.seqlen_q == s.seqlen_kv
               ? fmt::format(", N {}", text::integer(s.seqlen_q))
               : fmt::format(", {} x {}", plural(s.seqlen_q, "query", "queries"), plural(s.seqlen_kv, "key", "keys"));
  words += fmt::format(", d {}", s.head_dim);
  if (s.head_dim_v != s.head_dim) words += fmt::format(", d_v {}", s.head_dim_v);
  return words + fmt::format(", {}, {}", info(s.dtype).name, mask_words(s));
}

std::string_view standard_order(const AttentionShape& s) {
  return s.seqlen_q == s.seqlen_kv ? "N d + N^2" : "Nq Nk + (Nq + Nk) d";
}
std::string_view flash_order(const AttentionShape& s) {
  return s.seqlen_q == s.seqlen_kv ? "N^2 d^2/M" : "Nq Nk d^2/M";
}

std::string filled_in(std::string_view formula, const AttentionShape& s, const TilePlan& plan) {
  const std::array<std::int64_t, 2> gemm = plan.gemm_tile.value_or(kDefaultGemmTile);
  const std::map<std::string, std::int64_t, std::less<>> values{
      {"N", s.seqlen_q},         {"Nq", s.seqlen_q},
      {"Nk", s.seqlen_kv},       {"d", s.head_dim},
      {"e", s.element_bytes()},  {"Br", plan.block_q},
      {"C", cluster_of(plan)},   {"Bc", plan.block_kv},
      {"S", plan.num_kv_splits}, {"bm", gemm[0]},
      {"bn", gemm[1]},           {"T_c", plan.block_kv > 0 ? (s.seqlen_kv + plan.block_kv - 1) / plan.block_kv : 0}};
  // The explanation after a comma defines a symbol and stays out.
  formula = formula.substr(0, formula.find(", "));
  std::string out;
  bool after_value = false;  // two values side by side are a product
  for (std::size_t i = 0; i < formula.size();) {
    const char c = formula[i];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      std::size_t end = i;
      while (end < formula.size() &&
             (std::isalnum(static_cast<unsigned char>(formula[end])) != 0 || formula[end] == '_'))
        ++end;
      const std::string_view word = formula.substr(i, end - i);
      if (after_value) out += "x ";
      const auto value = values.find(word);
      out += value == values.end() ? std::string(word) : fmt::format("{}", value->second);
      after_value = word != "ceil";
      i = end;
    } else {
      if (c == '(' && after_value) out += "x ";
      if (c == '^') {
        out += c;
        out += formula[++i];  // the exponent is no factor
        ++i;
        continue;
      }
      if (c != ' ') after_value = c == ')';
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace hbmscope
