#include "plot/plot_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/suggest.hpp"
#include "report/format.hpp"
#include "report/tick_format.hpp"

namespace hbmscope::plot {
namespace {

Field number_field(std::string name, std::int64_t value) {
  return {std::move(name), fmt::format("{}", value), static_cast<double>(value)};
}

/// "causal", "window 1023,0", and "top_left" where the band does not end at the last query and key.
std::string mask_text(const Mask& mask) {
  std::string text(mask.kind());
  const auto side = [](const std::optional<std::int64_t>& limit) { return limit ? fmt::format("{}", *limit) : "-1"; };
  if (text == "window") text += " " + side(mask.window_left) + "," + side(mask.window_right);
  return text == "none" || mask.alignment == Alignment::bottom_right ? text : text + " top_left";
}

/// Axes of a sweep that the shape, the GPU or the pass tell already, by the names of run's options.
constexpr std::array<std::string_view, 21> kTold{
    "seqlen",   "seqlen_q",  "seqlen_kv",    "head_dim", "head_dim_v", "batch",      "heads",
    "kv_heads", "num_heads", "num_kv_heads", "dtype",    "causal",     "window",     "align",
    "mask",     "alignment", "pass",         "gpu",      "algorithm",  "kv_lengths", "order"};

std::string normalised(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  while (name.starts_with('_')) name.erase(0, 1);
  return name;
}

/// The order of CTAs that the command asked for: the one in a plan may be chosen by the shape.
std::string order_text(const Result& r) {
  for (std::size_t i = 0; i < r.argv.size(); ++i) {
    if (r.argv[i].starts_with("--order=")) return r.argv[i].substr(8);
    if (r.argv[i] == "--order" && i + 1 < r.argv.size()) return r.argv[i + 1];
  }
  return "chosen";
}

std::vector<Field> fields_of(const Result& r) {
  const AttentionShape& s = *r.shape;
  std::vector<Field> all{number_field("seqlen", s.seqlen_kv)};
  all.push_back(s.seqlen_q == s.seqlen_kv ? Field{"seqlen_q", "= seqlen", std::nullopt}
                                          : number_field("seqlen_q", s.seqlen_q));
  all.push_back(number_field("head_dim", s.head_dim));
  all.push_back(s.head_dim_v == s.head_dim ? Field{"head_dim_v", "= head_dim", std::nullopt}
                                           : number_field("head_dim_v", s.head_dim_v));
  all.push_back(number_field("batch", s.batch));
  all.push_back(number_field("heads", s.num_heads));
  all.push_back(number_field("heads_per_kv", s.group_size()));
  all.push_back({"dtype", std::string(info(s.dtype).name), std::nullopt});
  all.push_back({"mask", mask_text(s.mask), std::nullopt});
  std::string lengths;
  for (const std::int64_t keys : s.kv_lengths) lengths += (lengths.empty() ? "" : ",") + fmt::format("{}", keys);
  all.push_back({"kv_lengths", lengths.empty() ? "all" : lengths, std::nullopt});
  all.push_back({"pass", r.pass, std::nullopt});
  all.push_back({"gpu", r.gpu.name, std::nullopt});
  all.push_back({"order", order_text(r), std::nullopt});
  if (!r.run.empty()) all.push_back({"run", r.run, std::nullopt});
  if (r.sweep) {
    for (const SweepPoint::Axis& axis : r.sweep->axes) {
      const std::string name = normalised(axis.name);
      if (std::find(kTold.begin(), kTold.end(), name) == kTold.end()) all.push_back({name, axis.text, axis.number});
    }
  }
  return all;
}

/// Bits of a number stirred so that any of them is as good as random (splitmix64). A sample by every n-th result would
/// follow the order of a sweep, and miss whole values of its axes.
std::uint64_t stirred(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// As the result writes it, or as the command line does: "h200", "on", "8k", "64KiB".
bool has_value(const Field& field, const std::string& value) {
  const std::string text = lower(field.text), wanted = lower(value);
  if (text == wanted || (text == "true" && wanted == "on") || (text == "false" && wanted == "off")) return true;
  if (!field.number) return false;
  for (const bool bytes : {false, true}) {
    try {
      const std::int64_t number = bytes ? parse_bytes(value, "--where").value() : parse_length(value, "--where");
      if (static_cast<double>(number) == *field.number) return true;
    } catch (const Error&) {  // a text, or a number of another kind: it was compared as text
    }
  }
  return false;
}

/// What --where may name: the fields, and every axis of a sweep by the name of its option.
std::vector<Field> named_fields(const std::vector<Field>& fields, const Result& r) {
  std::vector<Field> all = fields;
  if (!r.sweep) return all;
  for (const SweepPoint::Axis& axis : r.sweep->axes) all.push_back({normalised(axis.name), axis.text, axis.number});
  return all;
}

}  // namespace

Condition parse_condition(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0)
    throw Error(ErrorKind::usage, "--where: needs NAME=VALUE, got " + in_quotes(text), "write it such as head_dim=64");
  return {normalised(text.substr(0, sign)), text.substr(sign + 1)};
}

bool PlotData::wanted(const std::vector<Field>& fields) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
      return field.name == condition.field && has_value(field, condition.value);
    });
  });
}

void PlotData::take(Result&& result, const std::string& file) {
  if (files_.empty() || files_.back() != file) files_.push_back(file);
  ++read_;
  if (result.failed()) {
    ++failed_;
    return;
  }
  std::vector<Field> fields = fields_of(result);
  fields.push_back({"file", file, std::nullopt});
  if (!conditions_.empty()) {
    const std::vector<Field> named = named_fields(fields, result);
    values_.resize(conditions_.size());
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
      for (const Field& field : named) {
        if (field.name == conditions_[i].field && values_[i].size() <= kMostValuesTold) values_[i].insert(field.text);
      }
    }
    if (!wanted(named)) return;
  }
  const std::uint64_t lot = stirred(read_);
  if (lot % one_in_ != 0) return;
  for (ResultAlgorithm& a : result.algorithms) {
    a.stages.clear();
    a.time.samples_s.clear();
  }
  results_.push_back(std::move(result));
  fields_.push_back(std::move(fields));
  lots_.push_back(lot);
  if (results_.size() > kMostResults) thin_out();
}

void PlotData::thin_out() {
  one_in_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (lots_[i] % one_in_ != 0) continue;
    if (kept != i) {
      results_[kept] = std::move(results_[i]);
      fields_[kept] = std::move(fields_[i]);
      lots_[kept] = lots_[i];
    }
    ++kept;
  }
  results_.resize(kept);
  fields_.resize(kept);
  lots_.resize(kept);
}

void PlotData::finish() {
  varying_ = differing();
  if (!results_.empty()) return;
  if (read_ > 0 && failed_ == read_) {
    throw Error(ErrorKind::data, fmt::format("all {} results failed, so there is nothing to draw", read_),
                "each has its reason under /sweep/reason");
  }
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    if (i < values_.size() && !values_[i].empty()) continue;
    throw Error(
        ErrorKind::usage, "--where: no result has a field " + in_quotes(conditions_[i].field),
        "fields are seqlen, head_dim, batch, heads, heads_per_kv, dtype, mask, pass, gpu, order, file, the run of a "
        "scenario and the axes of a sweep");
  }
  std::string seen;
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    seen += (seen.empty() ? "" : "; ") + conditions_[i].field + " is ";
    std::size_t told = 0;
    for (const std::string& value : values_[i]) {
      if (told == kMostValuesTold) break;
      seen += (told++ == 0 ? "" : ", ") + value;
    }
    if (values_[i].size() > kMostValuesTold) seen += ", ...";
  }
  throw Error(
      ErrorKind::usage,
      "--where: none of the results has " + std::string(conditions_.size() > 1 ? "all of these values" : "this value"),
      seen);
}

const Field* PlotData::find(std::size_t result, std::string_view field) const {
  const std::vector<Field>& all = fields_[result];
  const auto found = std::find_if(all.begin(), all.end(), [&](const Field& one) { return one.name == field; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> PlotData::notes() const {
  std::vector<std::string> all;
  if (failed_ > 0) {
    all.push_back(fmt::format("{} of {} points of the sweep failed and are not drawn.",
                              text::integer(static_cast<std::int64_t>(failed_)),
                              text::integer(static_cast<std::int64_t>(read_))));
  }
  for (const Condition& condition : conditions_)
    all.push_back(fmt::format("Only results with {} = {}.", condition.field, condition.value));
  if (one_in_ > 1) {
    all.push_back(fmt::format("A sample: of {} results {} are drawn, one in {} by lot.",
                              text::integer(static_cast<std::int64_t>(read_)),
                              text::integer(static_cast<std::int64_t>(results_.size())), one_in_));
  }
  return all;
}

std::vector<std::string> PlotData::differing() const {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const std::vector<Field>& fields : fields_) {
    for (const Field& field : fields) {
      if (!seen.insert(field.name).second) continue;
      const bool differs = std::any_of(fields_.begin(), fields_.end(), [&](const std::vector<Field>& others) {
        const auto other =
            std::find_if(others.begin(), others.end(), [&](const Field& f) { return f.name == field.name; });
        return other == others.end() || other->text != field.text;
      });
      if (differs) names.push_back(field.name);
    }
  }
  return names;
}

std::string PlotData::label(std::size_t result, const std::vector<std::string>& names) const {
  std::string words;
  for (const std::string& name : names) {
    const Field* field = find(result, name);
    if (field == nullptr) continue;
    const bool length = field->number && (name == "seqlen" || name == "seqlen_q");
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name,
                         length ? text::length_tick(*field->number) : field->text);
  }
  return words;
}

}  // namespace hbmscope::plot
