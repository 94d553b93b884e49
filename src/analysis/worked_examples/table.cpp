#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>

#include "analysis/worked_examples.hpp"
#include "analysis/worked_examples/parts.hpp"
#include "core/suggest.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope {
namespace {

/// S0-01 ... S2-11 as the lessons go, then Q-01 ...
bool before(const WorkedEntry* a, const WorkedEntry* b) {
  const bool a_is_claim = a->id.starts_with('Q'), b_is_claim = b->id.starts_with('Q');
  return a_is_claim != b_is_claim ? b_is_claim : a->id < b->id;
}

std::optional<double> as_number(const WorkedValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.content)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.content)) return *real;
  return std::nullopt;
}

}  // namespace

void WorkedValues::add(std::string_view name, const WorkedValue::Content& content, Unit unit) {
  all_.push_back({name, content, unit, {}});
}

void WorkedValues::add_missing(std::string_view name, const std::string& reason) {
  all_.push_back({name, {}, unit::number, reason});
}

const WorkedValue& WorkedValues::operator[](std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const WorkedValue& v) { return v.name == name; });
  if (found == all_.end()) throw std::logic_error("no value " + std::string(name));
  return *found;
}

double WorkedValues::number(std::string_view name) const {
  const std::optional<double> value = as_number((*this)[name]);
  if (!value) throw std::logic_error(std::string(name) + " is no number");
  return *value;
}

bool WorkedValues::flag(std::string_view name) const {
  return std::get<bool>((*this)[name].content);
}

std::vector<double> WorkedValues::list(std::string_view name) const {
  const WorkedValue& value = (*this)[name];
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&value.content)) return {whole->begin(), whole->end()};
  return std::get<std::vector<double>>(value.content);
}

std::span<const WorkedTheme> worked_themes() {
  static const std::array<WorkedTheme, 12> themes{{
      {"Sizes and the four trips to HBM", worked::sizes()},
      {"Softmax by hand", worked::softmax()},
      {"Tiles and schedules", worked::schedule()},
      {"Serving", worked::serving()},
      {"Training and the figure of the FlashAttention paper", worked::training()},
      {"Time, roofs and Amdahl", worked::time_and_roofs()},
      {"Quoted", worked::quoted()},
      {"Demonstrations: exactness", worked::demonstrations_of_exactness()},
      {"Demonstrations: traffic", worked::demonstrations_of_traffic()},
      {"Demonstrations: memory and masks", worked::demonstrations_of_memory()},
      {"Demonstrations: serving", worked::demonstrations_of_serving()},
      {"Demonstrations: reading a result", worked::demonstrations_of_reading()},
  }};
  return themes;
}

std::vector<const WorkedEntry*> worked_entries() {
  std::vector<const WorkedEntry*> all;
  for (const WorkedTheme& theme : worked_themes()) {
    for (const WorkedEntry& entry : theme.entries) all.push_back(&entry);
  }
  std::sort(all.begin(), all.end(), before);
  return all;
}

std::vector<const WorkedEntry*> worked_entries(std::span<const std::string> ids, std::string_view option) {
  const std::vector<const WorkedEntry*> all = worked_entries();
  std::vector<std::string_view> known;
  for (const WorkedEntry* entry : all) known.push_back(entry->id);
  for (const std::string& id : ids) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    const std::string near = did_you_mean(id, known);
    throw Error(ErrorKind::usage, std::string(option) + ": there is no worked example " + in_quotes(id),
                near.starts_with("did you mean") ? near : "hbmscope lesson values shows all of them");
  }
  std::vector<const WorkedEntry*> wanted;
  std::copy_if(all.begin(), all.end(), std::back_inserter(wanted),
               [&](const WorkedEntry* entry) { return std::find(ids.begin(), ids.end(), entry->id) != ids.end(); });
  return wanted;
}

WorkedValues worked_values(const WorkedEntry& entry) {
  WorkedValues values;
  entry.compute(values);
  if (entry.claim != nullptr) values.add("holds", entry.claim(values));
  return values;
}

RunResult worked::simulated_run(const AttentionShape& shape, std::string_view gpu,
                                const std::vector<std::string>& algorithms) {
  RunRequest request;
  request.shape = shape;
  request.gpu = embedded_gpu(gpu);
  request.algorithms = algorithms;
  request.engine = Engine::sim;
  return run(request);
}

}  // namespace hbmscope
