#include "core/suggest.hpp"

#include <algorithm>
#include <cstddef>

#include "core/printable.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kMaxDistance = 3;
constexpr std::size_t kMaxSuggestions = 3;
constexpr std::size_t kMaxQuotedBytes = 60;

/// Fewest insertions, deletions, replacements and swaps of neighbours that make `a` into `b` (optimal string
/// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Few enough to choose from?
bool helps(const std::vector<std::string_view>& names) {
  return !names.empty() && names.size() <= kMaxSuggestions;
}

std::string listed(std::span<const std::string_view> names, std::string_view last_separator, bool as_quotes) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? last_separator : ", ";
    list += as_quotes ? in_quotes(names[i]) : std::string(names[i]);
  }
  return list;
}

/// The names that begin as `wanted` does: a name that was not typed to its end.
std::vector<std::string_view> begun(const std::string& wanted, std::span<const std::string_view> known) {
  std::vector<std::string_view> names;
  if (wanted.empty()) return names;
  for (const std::string_view name : known) {
    if (fold_name(name).starts_with(wanted)) names.push_back(name);
  }
  return names;
}

/// The names that the fewest slips of the finger lead to.
std::vector<std::string_view> misspelt(const std::string& wanted, std::span<const std::string_view> known) {
  std::vector<std::string_view> nearest;
  std::size_t least = kMaxDistance + 1;
  for (const std::string_view name : known) {
    const std::string candidate = fold_name(name);
    const std::size_t longer = std::max(wanted.size(), candidate.size());
    if (longer - std::min(wanted.size(), candidate.size()) > kMaxDistance) continue;
    const std::size_t distance = edit_distance(wanted, candidate);
    if (distance > std::max<std::size_t>(1, longer / 3)) continue;
    if (distance < least) nearest.clear();
    if (distance <= least) nearest.push_back(name);
    least = std::min(least, distance);
  }
  return nearest;
}

}  // namespace

std::string fold_name(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

std::vector<std::string_view> near_names(std::string_view given, std::span<const std::string_view> known) {
  const std::string wanted = fold_name(given);
  // "H10" is one letter from "A10" and yet more likely the start of "H100".
  for (auto& names : {begun(wanted, known), misspelt(wanted, known)}) {
    if (helps(names)) return names;
  }
  return {};
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> known) {
  const std::vector<std::string_view> names = near_names(given, known);
  return names.empty() ? "there is " + listed(known, " and ", false)
                       : "did you mean " + listed(names, " or ", true) + "?";
}

std::string first_names(std::span<const std::string_view> names) {
  constexpr std::size_t kMost = 12;
  if (names.size() <= kMost) return listed(names, ", ", false);
  return listed(names.first(kMost), ", ", false) + ", ... (" + std::to_string(names.size()) + " in all)";
}

std::string in_quotes(std::string_view text) {
  std::string shown = "\"";
  for (std::size_t i = 0; i < text.size();) {
    if (i >= kMaxQuotedBytes) return shown + "...\"";
    const PrintableCharacter next = first_printable(text.substr(i));
    shown += next.shown;
    i += next.bytes;
  }
  return shown + "\"";
}

}  // namespace hbmscope
