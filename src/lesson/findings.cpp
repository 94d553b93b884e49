#include "lesson/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/suggest.hpp"
#include "core/utf8.hpp"
#include "core/version.hpp"
#include "report/run_json.hpp"

namespace hbmscope::lesson {
namespace {

/// Words of a file, which may hold what no JSON string can: bytes that are no UTF-8 become U+FFFD.
std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

/// Both texts from shortly before they begin to differ, so that long ones show where.
std::pair<std::string, std::string> shown(std::string_view a, std::string_view b) {
  constexpr std::size_t kFits = 60, kBefore = 20;
  if (a.size() <= kFits && b.size() <= kFits) return {in_quotes(a), in_quotes(b)};
  auto from = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  from = from > kBefore ? from - kBefore : 0;
  while (from > 0 && (static_cast<unsigned char>(a[from]) & 0xC0) == 0x80) --from;
  const std::string dots = from > 0 ? "..." : "";
  return {in_quotes(dots + std::string(a.substr(from))), in_quotes(dots + std::string(b.substr(from)))};
}

}  // namespace

std::string counted(std::size_t number, std::string_view one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

Counts count(std::span<const Checked> all) {
  Counts c;
  c.files = all.size();
  for (const Checked& one : all) {
    c.values += one.values;
    c.blocks += one.blocks;
    c.other_consoles += one.other_consoles;
    c.differences += one.differences.size();
    c.problems += one.problems.size();
  }
  return c;
}

std::string in_words(const Counts& c) {
  return counted(c.files, "file") + ", " + counted(c.values, "value") + ", " + counted(c.blocks, "block") +
         (c.other_consoles == 0 ? ""
                                : ", " + counted(c.other_consoles, "console block") + " of other programs left alone");
}

std::string finding_lines(const Checked& checked) {
  std::vector<std::pair<std::size_t, std::string>> lines;
  for (const Problem& p : checked.problems)
    lines.emplace_back(p.line, fmt::format("{}:{}: error: {}\n  hint: {}\n", checked.file, p.line, p.message, p.hint));
  for (const Difference& d : checked.differences) {
    const auto [written, computed] = shown(d.written, d.computed);
    lines.emplace_back(d.line, fmt::format("{}:{}: written {}, {} {} ({})\n", checked.file, d.line, written,
                                           d.recorded ? "recorded" : "computed", computed, d.of));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [number, line] : lines) text += line;
  return text;
}

nlohmann::ordered_json findings_to_json(std::span<const Checked> all, const std::vector<std::string>& argv) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}};
  const Counts total = count(all);
  out["values"] = total.values;
  out["blocks"] = total.blocks;
  out["other_console_blocks"] = total.other_consoles;
  out["files"] = Json::array();
  for (const Checked& one : all) {
    Json differences = Json::array(), errors = Json::array();
    for (const Difference& d : one.differences) {
      differences.push_back({{"line", d.line},
                             {"written", as_utf8(d.written)},
                             {"computed", as_utf8(d.computed)},
                             {"of", as_utf8(d.of)}});
    }
    for (const Problem& p : one.problems)
      errors.push_back({{"line", p.line}, {"message", as_utf8(p.message)}, {"hint", as_utf8(p.hint)}});
    out["files"].push_back({{"file", as_utf8(one.file)},
                            {"values", one.values},
                            {"blocks", one.blocks},
                            {"differences", std::move(differences)},
                            {"errors", std::move(errors)}});
  }
  return out;
}

}  // namespace hbmscope::lesson
