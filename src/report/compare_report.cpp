#include "report/compare_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/csv.hpp"
#include "core/printable.hpp"
#include "core/version.hpp"
#include "report/format.hpp"
#include "report/json_dump.hpp"
#include "report/run_document.hpp"
#include "report/run_json.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {
namespace {

std::string number_of(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", text::integer(static_cast<std::int64_t>(n)), n == 1 ? one : many);
}

/// "forward.jsonl: line 17" of a path that may be long.
std::string short_place(const std::string& where) {
  const std::size_t slash = where.rfind('/', where.rfind(": line"));
  return printable(slash == std::string::npos ? where : where.substr(slash + 1));
}

std::string quantity_words(const Quantity& value, Measure measure) {
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return fmt::format("{} {}", text::integer(*whole), measure == Measure::flop ? "FLOP" : "B");
  if (const auto* real = std::get_if<double>(&value)) return text::seconds({*real});
  return "-";
}

std::string change_words(const ResultDifference& d) {
  if (!d.relative) return "-";
  const double percent = 100 * *d.relative;
  if (std::abs(percent) < 0.01 && std::holds_alternative<std::int64_t>(d.was)) {
    const std::int64_t more = std::get<std::int64_t>(d.is) - std::get<std::int64_t>(d.was);
    return fmt::format("{}{}", more > 0 ? "+" : "", text::integer(more));
  }
  if (!std::isfinite(percent)) return "more than any share";
  return fmt::format("{}{} %", percent > 0 ? "+" : "", text::significant(percent, 3));
}

std::string verdict_words(const ResultDifference& d) {
  std::string words(name(d.verdict));
  if (d.p) words += fmt::format(" (p {}, {} and {} samples)", text::scientific(*d.p), d.samples_was, d.samples_is);
  if (d.measure == Measure::measured_time && !d.p && d.relative) words += " (by medians)";
  return words;
}

std::string entry_title(const ResultEntry& e) {
  return printable(fmt::format("{}, {}", shape_words(e.shape, e.pass), e.gpu));
}

/// "218 of 218 entries match: 217 equal, 1 with differences (1 slower)."
std::string answer_words(const ComparisonReport& r) {
  const ResultDifferences& d = r.differences;
  const std::size_t unequal = d.matched.size() - static_cast<std::size_t>(d.equal);
  std::string words = fmt::format("{} {} in both: {} equal", number_of(d.matched.size(), "entry", "entries"),
                                  d.matched.size() == 1 ? "is" : "are", text::integer(d.equal));
  if (unequal > 0) words += fmt::format(", {} with differences", text::integer(static_cast<std::int64_t>(unequal)));
  std::string verdicts;
  for (const Verdict verdict : {Verdict::different, Verdict::slower, Verdict::faster, Verdict::lost, Verdict::gained}) {
    std::size_t count = 0;
    for (const ResultDifference& one : d.differences) count += one.verdict == verdict ? 1 : 0;
    if (count > 0)
      verdicts += fmt::format("{}{} {}", verdicts.empty() ? "" : ", ", text::integer(static_cast<std::int64_t>(count)),
                              name(verdict));
  }
  if (!verdicts.empty()) words += fmt::format(" ({})", verdicts);
  words += ".";
  if (!d.missing.empty())
    words += fmt::format(" {} missing in {}.", number_of(d.missing.size(), "entry is", "entries are"),
                         printable(r.second_name));
  if (!d.added.empty())
    words +=
        fmt::format(" {} only in {}.", number_of(d.added.size(), "entry is", "entries are"), printable(r.second_name));
  return words;
}

void append_differences(Document& out, const ComparisonReport& r) {
  std::string title;
  std::size_t shown = 0;
  for (const ResultDifference& d : r.differences.differences) {
    if (shown == kMostRowsShown) {
      out.push_back(
          Paragraph{fmt::format("{} more; --json and --csv hold all.",
                                number_of(r.differences.differences.size() - shown, "difference", "differences"))});
      return;
    }
    const ResultEntry& entry = r.first.entries[d.first];
    if (shown++ == 0 || entry_title(entry) != title) {
      title = entry_title(entry);
      out.push_back(Table{
          title,
          {{"algorithm", false}, {"what", false}, {"was"}, {"is"}, {"change"}, {"verdict", false}, {"place", false}},
          {},
          {}});
    }
    std::get<Table>(out.back())
        .rows.push_back({printable(entry.algorithm.name), printable(d.of), quantity_words(d.was, d.measure),
                         quantity_words(d.is, d.measure), change_words(d), verdict_words(d),
                         short_place(r.second.entries[d.second].where)});
  }
}

/// How a sum changed: in percent, in bytes where percents show nothing.
std::string sum_change(const AlgorithmTotals::Sum& sum) {
  if (!sum.was || !sum.is) return "-";
  if (*sum.was == *sum.is) return "0";
  const double percent = 100 * (static_cast<double>(*sum.is) / static_cast<double>(*sum.was) - 1);
  if (*sum.was == 0 || std::abs(percent) < 0.01)
    return fmt::format("{}{} B", *sum.is > *sum.was ? "+" : "", text::integer(*sum.is - *sum.was));
  return fmt::format("{}{} %", percent > 0 ? "+" : "", text::significant(percent, 3));
}

void append_totals(Document& out, const ComparisonReport& r) {
  const std::vector<AlgorithmTotals> totals = totals_by_algorithm(r.first, r.second, r.differences);
  if (totals.empty()) return;
  const auto bytes = [](const std::optional<std::int64_t>& sum) {
    return sum ? text::bytes(Bytes(*sum)) : std::string("-");
  };
  Table t{"Totals by algorithm",
          {{"", false},
           {"entries"},
           {"equal"},
           {"HBM was"},
           {"is"},
           {"change"},
           {"SM-L2 was"},
           {"is"},
           {"change"},
           {"time"}},
          {},
          {}};
  bool any_time = false;
  for (const AlgorithmTotals& one : totals) {
    any_time = any_time || one.time_ratio;
    t.rows.push_back({printable(one.algorithm), text::integer(one.matched), text::integer(one.equal),
                      bytes(one.hbm.was), bytes(one.hbm.is), sum_change(one.hbm), bytes(one.sm_l2.was),
                      bytes(one.sm_l2.is), sum_change(one.sm_l2),
                      one.time_ratio ? fmt::format("x {:.3f}", *one.time_ratio) : "-"});
  }
  t.notes.emplace_back(std::string("HBM simulated, SM-L2 by closed form, summed where both know them") +
                       (any_time ? "; time: geometric mean of the measured medians' ratios." : "."));
  out.push_back(std::move(t));
}

/// A plan's members as words: "block_q 64, block_kv 227". It is JSON, whose marks tell a reader nothing.
std::string plan_words(const std::string& plan) {
  std::string words;
  for (const char c : plan) {
    if (c == ',')
      words += ", ";
    else if (c == ':')
      words += ' ';
    else if (c != '"' && c != '{' && c != '}' && c != ' ')
      words += c;
  }
  return words;
}

void append_unmatched(Document& out, std::string title, const std::vector<std::size_t>& entries, const ResultSet& set) {
  if (entries.empty()) return;
  Table t{
      std::move(title), {{"algorithm", false}, {"plan", false}, {"shape and GPU", false}, {"place", false}}, {}, {}};
  for (const std::size_t i : entries) {
    if (t.rows.size() == kMostRowsShown) {
      t.notes.push_back(fmt::format("{} more; --json and --csv hold all.", entries.size() - t.rows.size()));
      break;
    }
    const ResultEntry& e = set.entries[i];
    t.rows.push_back(
        {printable(e.algorithm.name), printable(plan_words(e.algorithm.plan)), entry_title(e), short_place(e.where)});
  }
  out.push_back(std::move(t));
}

nlohmann::ordered_json quantity_json(const Quantity& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return nullptr;
}

nlohmann::ordered_json result_entry_json(const ResultEntry& e) {
  nlohmann::ordered_json shape = shape_to_json(e.shape);
  shape["pass"] = e.pass;
  return {{"shape", shape},
          {"gpu", e.gpu},
          {"algorithm", e.algorithm.name},
          {"plan", e.algorithm.plan.empty() ? nlohmann::ordered_json(nullptr)
                                            : nlohmann::ordered_json::parse(e.algorithm.plan)},
          {"place", e.where}};
}

constexpr std::array<std::string_view, 4> kMeasureNames{"bytes", "flop", "predicted_time", "measured_time"};

/// CSV is read in terminals, too.
std::string csv_text(std::string_view text) {
  return csv_field(printable(text));
}

std::string csv_entry(const ResultEntry& e) {
  const AttentionShape& s = e.shape;
  const auto edge = [](const std::optional<std::int64_t>& n) { return n ? fmt::format("{}", *n) : std::string(); };
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_text(e.gpu), csv_text(e.pass), s.batch,
                     s.num_heads, s.num_kv_heads, s.seqlen_q, s.seqlen_kv, s.head_dim, s.head_dim_v, info(s.dtype).name,
                     s.mask.kind(), edge(s.mask.window_left), edge(s.mask.window_right), name(s.mask.alignment),
                     csv_text(e.algorithm.name), csv_text(e.algorithm.plan));
}

nlohmann::ordered_json totals_json(const ComparisonReport& r) {
  using Json = nlohmann::ordered_json;
  const auto sum = [](const AlgorithmTotals::Sum& of) {
    return Json{{"was", of.was ? Json(*of.was) : Json(nullptr)}, {"is", of.is ? Json(*of.is) : Json(nullptr)}};
  };
  Json all = Json::array();
  for (const AlgorithmTotals& one : totals_by_algorithm(r.first, r.second, r.differences)) {
    all.push_back({{"algorithm", one.algorithm},
                   {"matched", one.matched},
                   {"equal", one.equal},
                   {"hbm_bytes", sum(one.hbm)},
                   {"sm_l2_bytes", sum(one.sm_l2)},
                   {"times", one.times},
                   {"time_ratio", one.time_ratio ? Json(*one.time_ratio) : Json(nullptr)}});
  }
  return all;
}

}  // namespace

Document compare_document(const ComparisonReport& r) {
  Document out;
  out.push_back(Paragraph{fmt::format("hbmscope {}   {} against {}", hbmscope_version(), printable(r.first_name),
                                      printable(r.second_name))});
  out.push_back(Paragraph{answer_words(r), true});
  append_totals(out, r);
  append_differences(out, r);
  append_unmatched(out, fmt::format("Missing in {}", printable(r.second_name)), r.differences.missing, r.first);
  append_unmatched(out, fmt::format("Only in {}", printable(r.second_name)), r.differences.added, r.second);
  const ResultDifferences& d = r.differences;
  const ComparisonLimits& limits = r.limits;
  std::string how =
      fmt::format("Bytes and FLOP {}; hardware counters within {}; ",
                  limits.bytes > 0 ? fmt::format("within {}", text::percent(limits.bytes)) : std::string("exact"),
                  text::percent(std::max(limits.counters, limits.bytes)));
  if (d.times_tested + d.times_by_median == 0) {
    how += "no measured times in both.";
  } else {
    how += fmt::format("measured times differ where the medians do by more than {}", text::percent(limits.time));
    if (d.times_tested > 0)
      how += fmt::format(" and the Mann-Whitney test gives p < {} ({} tested", text::significant(limits.p, 2),
                         number_of(static_cast<std::size_t>(d.times_tested), "time", "times"));
    if (d.times_tested > 0 && d.times_by_median > 0) how += fmt::format(", {} by medians alone", d.times_by_median);
    if (d.times_tested > 0) how += ")";
    how += ".";
  }
  out.push_back(Labelled{"Limits", how});
  if (r.first.failed + r.second.failed > 0)
    out.push_back(Labelled{"Failed", fmt::format("{} rows of {} and {} of {} say that they failed.", r.first.failed,
                                                 printable(r.first_name), r.second.failed, printable(r.second_name))});
  if (!r.passed_over.empty()) {
    std::string files;
    for (const std::string& file : r.passed_over) files += (files.empty() ? "" : ", ") + printable(file);
    out.push_back(Labelled{"No results", files + "."});
  }
  return out;
}

nlohmann::ordered_json compare_to_json(const ComparisonReport& r, const std::vector<std::string>& argv) {
  using Json = nlohmann::ordered_json;
  const ResultDifferences& d = r.differences;
  const auto side = [](const std::string& name, const ResultSet& set) {
    return Json{{"name", name},
                {"results", set.results},
                {"failed", set.failed},
                {"entries", static_cast<std::int64_t>(set.entries.size())}};
  };
  Json differences = Json::array(), missing = Json::array(), added = Json::array();
  for (const ResultDifference& one : d.differences) {
    Json row = result_entry_json(r.first.entries[one.first]);
    row["other_place"] = r.second.entries[one.second].where;
    row["measure"] = kMeasureNames[static_cast<std::size_t>(one.measure)];
    row["of"] = one.of;
    row["verdict"] = name(one.verdict);
    row["was"] = quantity_json(one.was);
    row["is"] = quantity_json(one.is);
    row["relative"] = one.relative ? Json(*one.relative) : Json(nullptr);
    row["p"] = one.p ? Json(*one.p) : Json(nullptr);
    row["samples"] = {one.samples_was, one.samples_is};
    differences.push_back(std::move(row));
  }
  for (const std::size_t i : d.missing) missing.push_back(result_entry_json(r.first.entries[i]));
  for (const std::size_t i : d.added) added.push_back(result_entry_json(r.second.entries[i]));
  return {{"schema_version", kSchemaVersion},
          {"meta",
           {{"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}}},
          {"first", side(r.first_name, r.first)},
          {"second", side(r.second_name, r.second)},
          {"limits",
           {{"bytes_tolerance", r.limits.bytes},
            {"counter_tolerance", r.limits.counters},
            {"time_tolerance", r.limits.time},
            {"p", r.limits.p}}},
          {"matched", static_cast<std::int64_t>(d.matched.size())},
          {"equal", d.equal},
          {"times_tested", d.times_tested},
          {"times_by_median", d.times_by_median},
          {"totals", totals_json(r)},
          {"differences", differences},
          {"missing", missing},
          {"added", added},
          {"passed_over", r.passed_over},
          {"failed", r.failed}};
}

std::string compare_to_csv(const ComparisonReport& r) {
  std::string out =
      "gpu,pass,batch,num_heads,num_kv_heads,seqlen_q,seqlen_kv,head_dim,head_dim_v,dtype,mask,window_left,window_"
      "right,alignment,algorithm,plan,measure,of,verdict,was,is,relative,p,place,other_place\n";
  const auto cell = [](const Quantity& value) {
    const nlohmann::ordered_json number = quantity_json(value);
    return number.is_null() ? std::string() : json_dump(number);
  };
  const auto real = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  for (const ResultDifference& d : r.differences.differences) {
    const ResultEntry& e = r.first.entries[d.first];
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_entry(e), kMeasureNames[static_cast<std::size_t>(d.measure)],
                    csv_text(d.of), name(d.verdict), cell(d.was), cell(d.is), real(d.relative), real(d.p),
                    csv_text(e.where), csv_text(r.second.entries[d.second].where));
  }
  for (const std::size_t i : r.differences.missing) {
    const ResultEntry& e = r.first.entries[i];
    out += fmt::format("{},,,missing,,,,,{},\n", csv_entry(e), csv_text(e.where));
  }
  for (const std::size_t i : r.differences.added) {
    const ResultEntry& e = r.second.entries[i];
    out += fmt::format("{},,,added,,,,,,{}\n", csv_entry(e), csv_text(e.where));
  }
  return out;
}

}  // namespace hbmscope
