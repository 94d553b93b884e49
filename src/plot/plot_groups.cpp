#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "plot/plot_data.hpp"

namespace hbmscope::plot {
namespace {

/// Of these the first that differs between results is what lines run along; then any other number.
constexpr std::array<std::string_view, 5> kPreferred{"seqlen", "seqlen_q", "head_dim", "batch", "heads"};

bool is_number_everywhere(const PlotData& data, const std::string& field) {
  for (std::size_t i = 0; i < data.results().size(); ++i) {
    const Field* one = data.find(i, field);
    if (one == nullptr || !one->number) return false;
  }
  return true;
}

std::string choose_x(const PlotData& data, const std::vector<std::string>& varying) {
  for (const std::string_view preferred : kPreferred) {
    const auto found = std::find(varying.begin(), varying.end(), preferred);
    if (found != varying.end() && is_number_everywhere(data, *found)) return *found;
  }
  for (const std::string& field : varying) {
    if (is_number_everywhere(data, field)) return field;
  }
  return {};
}

std::vector<Group> group_by(const PlotData& data, const std::vector<std::string>& names, const std::string& x) {
  std::map<std::string, std::size_t> places;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < data.results().size(); ++i) {
    std::string key;
    for (const std::string& name : names) {
      const Field* field = data.find(i, name);
      key += field == nullptr ? std::string(1, '\1') : field->text + '\0';
    }
    const auto [place, is_new] = places.emplace(std::move(key), groups.size());
    if (is_new) groups.push_back({data.label(i, names), {}});
    groups[place->second].results.push_back(i);
  }
  for (Group& group : groups) {
    std::stable_sort(group.results.begin(), group.results.end(),
                     [&](std::size_t a, std::size_t b) { return *data.find(a, x)->number < *data.find(b, x)->number; });
  }
  return groups;
}

/// Has no group two results that lie apart along x, where batch and heads tell them apart?
bool too_fine(const PlotData& data, const std::vector<Group>& groups, const std::string& x) {
  std::size_t apart = 0;
  for (const Group& group : groups) {
    std::set<double> values;
    for (const std::size_t i : group.results) values.insert(*data.find(i, x)->number);
    if (values.size() >= 3) apart += group.results.size();
  }
  return 2 * apart < data.results().size();
}

}  // namespace

std::optional<Grouped> grouped(const PlotData& data) {
  std::vector<std::string> names = data.varying();
  Grouped all;
  all.x = choose_x(data, names);
  if (all.x.empty()) return std::nullopt;
  std::erase(names, all.x);
  all.groups = group_by(data, names, all.x);
  const bool heads_vary = std::any_of(names.begin(), names.end(),
                                      [](const std::string& name) { return name == "batch" || name == "heads"; });
  if (heads_vary && too_fine(data, all.groups, all.x)) {
    std::erase(names, "batch");
    std::erase(names, "heads");
    std::vector<Group> coarser = group_by(data, names, all.x);
    if (!too_fine(data, coarser, all.x)) {
      all.groups = std::move(coarser);
      all.per_head = true;
    }
  }
  return all;
}

Unit axis_unit(std::string_view field) {
  if (field.starts_with("seqlen")) return Unit::length;
  return field == "sram" || field == "l2" ? Unit::bytes : Unit::plain;
}

std::string axis_title(std::string_view field) {
  if (field == "seqlen") return "N, sequence length (k = 1024)";
  if (field == "seqlen_q") return "queries (k = 1024)";
  if (field == "head_dim") return "d, head dimension";
  if (field == "sram") return "M, on-chip memory of a CTA";
  if (field == "l2") return "effective L2";
  return std::string(field);
}

}  // namespace hbmscope::plot
