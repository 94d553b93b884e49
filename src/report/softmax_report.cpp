#include "report/softmax_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/version.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

/// 2.471; beyond a million 1.235e+09.
std::string decimals(double x) {
  if (!std::isfinite(x)) return fmt::format("{}", x);
  const std::string shown = std::abs(x) < 1e6 ? fmt::format("{:.3f}", x) : fmt::format("{:.3e}", x);
  return shown == "-0.000" ? "0.000" : shown;
}

std::string decimals(const Vector& v) {
  if (v.size() == 1) return decimals(v[0]);
  std::string list;
  for (const double x : v) list += (list.empty() ? "(" : ", ") + decimals(x);
  return list + ")";
}

/// "2, 1", as it was typed; a long block is cut short.
std::string listed(const Vector& scores) {
  constexpr std::size_t kMostCharacters = 24;
  std::string list;
  for (const double s : scores) {
    const std::string next = (list.empty() ? "" : ", ") + fmt::format("{}", s);
    if (list.size() + next.size() > kMostCharacters) return list + fmt::format(", ... {} in all", scores.size());
    list += next;
  }
  return list;
}

std::string_view format_name(Precision precision) {
  return precision ? info(*precision).name : "fp64";
}

std::size_t count_scores(const SoftmaxInput& input) {
  return input.values.size();
}

std::string counted(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

Paragraph answer(const SoftmaxReport& report) {
  const SoftmaxResult& r = report.result;
  if (std::isinf(r.lse))
    return {"Every score is masked: l = 0, so o is set to 0 and LSE to -inf; 0 / 0 would be NaN.", true};
  const std::string rounded =
      report.precision ? fmt::format(", every result rounded to {}", format_name(report.precision)) : "";
  return {
      fmt::format("o = {}: the softmax of {} times the values, seen in {}{}.", decimals(r.o_unnormalised),
                  counted(count_scores(report.input), "score"), counted(report.input.blocks.size(), "block"), rounded),
      true};
}

Table unnormalised_table(const SoftmaxReport& report) {
  Table t{"Unnormalised: one division at the end (FlashAttention-2)",
          {{"block", false}, {"scores", false}, {"m"}, {"rescale"}, {"l"}, {"o, unnormalised"}},
          {},
          {}};
  for (std::size_t j = 0; j < report.input.blocks.size(); ++j) {
    const UnnormalisedStep& step = report.result.unnormalised[j];
    t.rows.push_back({std::to_string(j + 1), listed(report.input.blocks[j]), decimals(step.m), decimals(step.rescale),
                      decimals(step.l), decimals(step.o)});
  }
  const UnnormalisedStep& last = report.result.unnormalised.back();
  t.notes.emplace_back("m: greatest score so far; rescale = e^(m before - m), 0 where nothing stood before.");
  t.notes.emplace_back("l = rescale l + sum of e^(s - m);  o = rescale o + sum of e^(s - m) v.");
  if (last.l > 0)
    t.notes.push_back(fmt::format("Then o / l = {} / {} = {}.", decimals(last.o), decimals(last.l),
                                  decimals(report.result.o_unnormalised)));
  return t;
}

Table normalised_table(const SoftmaxReport& report) {
  Table t{"Normalised: a softmax after every block (FlashAttention-1, split-KV)",
          {{"block", false},
           {"its m"},
           {"its l"},
           {"its o"},
           {"its LSE"},
           {"w before"},
           {"w block"},
           {"merged o"},
           {"merged LSE"}},
          {},
          {}};
  for (std::size_t j = 0; j < report.result.normalised.size(); ++j) {
    const NormalisedStep& step = report.result.normalised[j];
    t.rows.push_back({std::to_string(j + 1), decimals(step.block.m), decimals(step.block.l), decimals(step.block.o),
                      decimals(step.block.lse), decimals(step.weight_before), decimals(step.weight_block),
                      decimals(step.merged.o), decimals(step.merged.lse)});
  }
  t.notes.emplace_back("Each block has a softmax of its own: o = sum of e^(s - m) v / l, LSE = m + ln l.");
  t.notes.emplace_back("Merged: w before = e^(LSE before - merged LSE), w block = e^(its LSE - merged LSE); sum 1.");
  return t;
}

std::string why_wrong(const SoftmaxReport& report) {
  const double sum = report.result.unmerged_probability_sum;
  if (sum == 0) return "Wrong in general; here there is no live score, so there is nothing to get wrong.";
  if (sum == 1) return "Wrong in general; here only one block has live scores, so it happens to be right.";
  return fmt::format(
      "Wrong because the probabilities of each block sum to 1, so those of all blocks sum to {}, not to 1.", sum);
}

Table side_by_side(const SoftmaxReport& report) {
  Table t{"Side by side",
          {{"", false}, {report.precision ? fmt::format("o, {}", format_name(report.precision)) : "o"}},
          {},
          {why_wrong(report)}};
  if (report.precision) t.columns.push_back({"o, fp64"});
  const auto row = [&](std::string label, const Vector& o, const Vector& exact) {
    t.rows.push_back({std::move(label), decimals(o)});
    if (report.precision) t.rows.back().push_back(decimals(exact));
  };
  const SoftmaxResult &r = report.result, &x = report.exact;
  row("unnormalised, divided at the end", r.o_unnormalised, x.o_unnormalised);
  row("normalised at every step", r.normalised.back().merged.o, x.normalised.back().merged.o);
  row(fmt::format("plain softmax over {}", counted(count_scores(report.input), "score")), r.plain.o, x.plain.o);
  row("WRONG: blocks not merged", r.o_unmerged, x.o_unmerged);
  return t;
}

using Json = nlohmann::ordered_json;

Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}

Json list(const Vector& v) {
  Json out = Json::array();
  for (const double x : v) out.push_back(number(x));
  return out;
}

/// A number where the values are numbers.
Json values_json(const Vector& v) {
  return v.size() == 1 ? number(v[0]) : list(v);
}

Json block_json(const BlockSoftmax& b) {
  return {{"m", number(b.m)}, {"l", b.l}, {"o", values_json(b.o)}, {"lse", number(b.lse)}};
}

bool has_infinity(const SoftmaxReport& report) {
  for (const Vector& block : report.input.blocks) {
    for (const double s : block) {
      if (std::isinf(s)) return true;
    }
  }
  return false;
}

std::string cells(std::string_view form, std::string_view numbers, const Vector& o) {
  std::string row = fmt::format("{},{}", form, numbers);
  for (const double x : o) row += fmt::format(",{}", x);
  return row + "\n";
}

}  // namespace

Document softmax_document(const SoftmaxReport& report) {
  Document document{answer(report), unnormalised_table(report), normalised_table(report), side_by_side(report)};
  if (std::isfinite(report.result.lse)) {
    const UnnormalisedStep& last = report.result.unnormalised.back();
    document.emplace_back(Labelled{"LSE", fmt::format("m + ln l = {} + ln {} = {}", decimals(last.m), decimals(last.l),
                                                      decimals(report.result.lse))});
  }
  return document;
}

Json softmax_to_json(const SoftmaxReport& report, const std::vector<std::string>& argv) {
  const SoftmaxResult& r = report.result;
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}};
  out["dtype"] = format_name(report.precision);
  out["blocks"] = Json::array();
  for (const Vector& scores : report.input.blocks) out["blocks"].push_back(list(scores));
  out["values"] = Json::array();
  for (const Vector& row : report.input.values) out["values"].push_back(values_json(row));

  Json unnormalised = Json::array(), normalised = Json::array();
  for (const UnnormalisedStep& s : r.unnormalised) {
    unnormalised.push_back({{"m", number(s.m)}, {"rescale", s.rescale}, {"l", s.l}, {"o", values_json(s.o)}});
  }
  for (const NormalisedStep& s : r.normalised) {
    normalised.push_back({{"block", block_json(s.block)},
                          {"weight_before", s.weight_before},
                          {"weight_block", s.weight_block},
                          {"merged", block_json(s.merged)}});
  }
  out["unnormalised"] = {{"steps", unnormalised}, {"o", values_json(r.o_unnormalised)}, {"lse", number(r.lse)}};
  out["normalised"] = {{"steps", normalised},
                       {"o", values_json(r.normalised.back().merged.o)},
                       {"lse", number(r.normalised.back().merged.lse)}};
  out["plain"] = block_json(r.plain);
  out["plain"]["probabilities"] = list(r.probabilities);
  out["unmerged"] = {
      {"o", values_json(r.o_unmerged)}, {"probability_sum", r.unmerged_probability_sum}, {"correct", false}};
  if (r.unmerged_probability_sum <= 1) out["unmerged"]["correct"] = true;
  out["exact_o"] = values_json(report.exact.plain.o);
  out["reason"] = has_infinity(report) ? Json("null is -infinity: a masked score, and m and LSE of masked scores alone")
                                       : Json(nullptr);
  return out;
}

std::string softmax_to_csv(const SoftmaxReport& report) {
  const SoftmaxResult& r = report.result;
  std::string out = "form,block,m,l,lse,rescale,weight_before,weight_block";
  const std::size_t width = report.input.values[0].size();
  for (std::size_t i = 1; i <= width; ++i) out += width == 1 ? ",o" : fmt::format(",o_{}", i);
  out += "\n";
  for (std::size_t j = 0; j < r.unnormalised.size(); ++j) {
    const UnnormalisedStep& s = r.unnormalised[j];
    out += cells("unnormalised", fmt::format("{},{},{},,{},,", j + 1, s.m, s.l, s.rescale), s.o);
  }
  const auto softmax = [](const BlockSoftmax& s) { return fmt::format("{},{},{}", s.m, s.l, s.lse); };
  for (std::size_t j = 0; j < r.normalised.size(); ++j) {
    const NormalisedStep& s = r.normalised[j];
    out += cells("block_alone", fmt::format("{},{},,,", j + 1, softmax(s.block)), s.block.o);
    out += cells("normalised", fmt::format("{},{},,{},{}", j + 1, softmax(s.merged), s.weight_before, s.weight_block),
                 s.merged.o);
  }
  const UnnormalisedStep& last = r.unnormalised.back();
  out += cells("unnormalised_result", fmt::format(",{},{},{},,,", last.m, last.l, r.lse), r.o_unnormalised);
  out += cells("normalised_result", fmt::format(",{},,,", softmax(r.normalised.back().merged)),
               r.normalised.back().merged.o);
  out += cells("plain_result", fmt::format(",{},,,", softmax(r.plain)), r.plain.o);
  out += cells("unmerged_wrong_result", ",,,,,,", r.o_unmerged);
  return out;
}

}  // namespace hbmscope
