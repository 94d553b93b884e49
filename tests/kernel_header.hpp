#pragma once
#include <array>
#include <istream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// The five lines at the top of a kernel file, taken apart.
namespace hbmscope::testing {

inline constexpr std::array<std::string_view, 5> kContractLabels{"Idea", "Reads", "Writes", "On chip", "Costs"};

/// One formula of a header: "fused: l = m = B*H*Nq*4" has stage fused and two tensors, "2*B*H*Nq" has neither.
struct Entry {
  std::string stage;  ///< empty: summed over all stages
  std::vector<std::string> tensors;
  std::string formula;
  int line = 0;
};

struct Contract {
  std::string variant;  ///< empty: the pipeline's default
  int line = 1;
  std::map<std::string, std::vector<Entry>, std::less<>> lines;  ///< by label
};

inline std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

/// Entries stand between semicolons; "NAME:" before one holds for those that follow, on the next lines too.
inline void add_entries(std::vector<Entry>& entries, const std::string& text, int line) {
  std::istringstream parts(text);
  std::string stage = entries.empty() ? "" : entries.back().stage;
  for (std::string part; std::getline(parts, part, ';');) {
    if (trimmed(part).empty()) continue;
    if (const std::size_t colon = part.find(": "); colon != std::string::npos) {
      stage = trimmed(part.substr(0, colon));
      part.erase(0, colon + 1);
    }
    Entry entry{stage, {}, {}, line};
    std::istringstream terms(part);
    for (std::string term; std::getline(terms, term, '=');) entry.tensors.push_back(trimmed(term));
    entry.formula = entry.tensors.back();
    entry.tensors.pop_back();
    entries.push_back(entry);
  }
}

/// The contracts at the top of a file: the first lines of comment, "LABEL: text", continued on lines that are indented
/// under it. "Variant NAME:" begins another that differs in the labels it repeats.
inline std::vector<Contract> contracts_of(std::istream& file) {
  std::vector<Contract> contracts(1);
  std::string label;
  int number = 0;
  for (std::string line; std::getline(file, line) && line.starts_with("//");) {
    ++number;
    const std::string text = line.substr(2);
    std::smatch found;
    if (std::regex_match(text, found, std::regex(" Variant (\\w+):"))) {
      contracts.push_back(contracts.front());
      contracts.back().variant = found[1];
      contracts.back().line = number;
      label.clear();
      continue;
    }
    if (std::regex_match(text, found, std::regex(" (Idea|Reads|Writes|On chip|Costs):(.*)"))) {
      label = found[1];
      contracts.back().lines[label].clear();
      add_entries(contracts.back().lines[label], label == "Idea" ? "idea" : found[2].str(), number);
    } else if (!label.empty() && text.starts_with("  ")) {
      if (label != "Idea") add_entries(contracts.back().lines[label], text, number);
    } else {
      label.clear();
    }
  }
  return contracts;
}

}  // namespace hbmscope::testing
