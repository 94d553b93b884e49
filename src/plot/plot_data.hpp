#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plot/chart.hpp"
#include "results/result.hpp"

namespace hbmscope::plot {

/// More results than these are thinned out to a sample; a picture could not show them apart.
inline constexpr std::size_t kMostResults = 10'000;

/// What tells a result from another: a part of its shape, its GPU, an axis of its sweep.
struct Field {
  std::string name;
  std::string text;
  std::optional<double> number;
};

/// Keeps those results whose field has a value: `head_dim=64`, `mask=causal`, `seqlen=8k`.
struct Condition {
  std::string field, value;
};
/// Splits NAME=VALUE; an Error (kind usage) where there is no '='.
Condition parse_condition(const std::string& text);

/// The results that pictures are drawn of.
class PlotData {
 public:
  explicit PlotData(std::vector<Condition> conditions) : conditions_(std::move(conditions)) {}

  /// Takes one result of `file`. Stages and samples, which no picture shows, are dropped.
  void take(Result&& result, const std::string& file);
  /// To be called after the last: throws an Error (kind data) if no result is left to draw, with the reason.
  void finish();

  [[nodiscard]] const std::vector<Result>& results() const { return results_; }
  [[nodiscard]] const std::vector<Field>& fields(std::size_t result) const { return fields_[result]; }
  [[nodiscard]] const Field* find(std::size_t result, std::string_view field) const;
  [[nodiscard]] std::size_t failed() const { return failed_; }
  /// What a reader must know about which results these are: sentences, none where they are all of them.
  [[nodiscard]] std::vector<std::string> notes() const;

  /// Names of the fields that differ between results, in their order.
  [[nodiscard]] const std::vector<std::string>& varying() const { return varying_; }
  /// "seqlen 8k, head_dim 64": the fields of a result that `names` lists; the whole shape where it lists none.
  [[nodiscard]] std::string label(std::size_t result, const std::vector<std::string>& names) const;

 private:
  [[nodiscard]] bool wanted(const std::vector<Field>& fields) const;
  void thin_out();
  [[nodiscard]] std::vector<std::string> differing() const;

  std::vector<Condition> conditions_;
  std::vector<Result> results_;
  std::vector<std::vector<Field>> fields_;
  std::vector<std::uint64_t> lots_;  ///< a random number each, the same in every run
  std::vector<std::string> files_, varying_;
  static constexpr std::size_t kMostValuesTold = 8;
  std::vector<std::set<std::string>> values_;  ///< by condition: what results have there, some of it
  std::size_t read_ = 0, failed_ = 0;
  std::uint64_t one_in_ = 1;
};

/// The results that one line joins: equal in everything but `x`.
struct Group {
  std::string label;                 ///< "head_dim 64, mask causal"; empty where there is one group
  std::vector<std::size_t> results;  ///< by ascending x
};
struct Grouped {
  std::string x;          ///< a field: what the lines run along
  bool per_head = false;  ///< batch and heads change along a line: bytes are divided by both
  std::vector<Group> groups;
};
/// Nothing where no number differs between results.
std::optional<Grouped> grouped(const PlotData& data);

/// What a picture calls an axis: "N, sequence length (k = 1024)".
std::string axis_title(std::string_view field);
Unit axis_unit(std::string_view field);

}  // namespace hbmscope::plot
