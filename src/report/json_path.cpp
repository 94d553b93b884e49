#include "report/json_path.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "report/json_dump.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostListed = 12;  ///< elements that an error lists

struct Condition {
  std::string_view key;
  std::string_view value;
};

/// The place of the first of `characters` outside brackets, or the end.
std::size_t find_outside_brackets(std::string_view text, std::string_view characters) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && characters.find(text[i]) != std::string_view::npos) return i;
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
  }
  return text.size();
}

const Json* member_at(const Json& element, std::string_view dotted) {
  const Json* at = &element;
  while (true) {
    const std::size_t dot = std::min(dotted.find('.'), dotted.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(dotted.substr(0, dot)));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == dotted.size()) return at;
    dotted.remove_prefix(dot + 1);
  }
}

/// As a condition would write it.
std::string written(const Json* value) {
  if (value == nullptr) return "(absent)";
  return value->is_string() ? value->get<std::string>() : json_dump(*value);
}

std::string kind_of(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.is_null() ? "null" : written(&value);
}

/// Letters, digits and _: what a lesson may write without quotes.
bool is_plain(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Walks a path one step at a time and remembers how far it has come, for errors.
class Walk {
 public:
  /// The first `walked` characters of the path lead to `start`.
  Walk(const Json& start, std::string_view path, std::size_t walked)
      : at_(&start), path_(path), rest_(path.substr(walked)) {}

  const Json& end() {
    if (rest_.size() == path_.size() && !quoted_key(rest_)) step_into_key();
    while (true) {
      while (rest_.starts_with('[')) step_into_brackets();
      if (!next_key_follows()) return *at_;
      step_into_key();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error(ErrorKind::data, std::string(path_) + ": " + what, hint);
  }
  /// What of the path has been walked, in words.
  [[nodiscard]] std::string here() const {
    const std::string_view walked = path_.substr(0, path_.size() - rest_.size());
    return walked.empty() ? "the result"
                          : std::string(walked.substr(0, walked.size() - (walked.ends_with('.') ? 1 : 0)));
  }

  bool next_key_follows() {
    if (rest_.empty()) return false;
    if (rest_.front() != '.') fail("a '.' or '[' must follow " + here(), "write keys with '.' between them");
    rest_.remove_prefix(1);
    return true;
  }

  void step_into_key() {
    const std::string_view key = rest_.substr(0, std::min(rest_.find_first_of(".["), rest_.size()));
    if (key.empty()) fail("a key is missing after " + here(), "write keys with '.' between them, as in amdahl.limit");
    step_into(key);
    rest_.remove_prefix(key.size());
  }

  void step_into(std::string_view key) {
    if (!at_->is_object())
      fail(here() + " is " + kind() + " and has no key " + in_quotes(key),
           at_->is_array() ? list_hint() : "end the path there");
    const auto found = at_->find(std::string(key));
    if (found == at_->end()) fail_without(key);
    object_ = at_;
    key_ = key;
    at_ = &*found;
  }

  /// What stands here, of a null with its reason.
  [[nodiscard]] std::string kind() const {
    const std::string reason = at_->is_null() && object_ != nullptr ? reason_of_null(*object_, key_) : "";
    return kind_of(*at_) + (reason.empty() ? "" : " (" + reason + ")");
  }

  /// The keys there are, those that come near first.
  [[noreturn]] void fail_without(std::string_view key) const {
    std::vector<std::string_view> keys;
    for (const auto& [name, value] : at_->items()) keys.emplace_back(name);
    std::string hint = "take a key that is there";
    const std::vector<std::string_view> near = near_names(key, keys);
    if (!near.empty()) hint = did_you_mean(key, near);
    // "-" ends a key in a lesson's expression, so v.S1-01 arrives here as v.S1.
    const auto longer = std::find_if(keys.begin(), keys.end(), [&](std::string_view name) {
      return name.size() > key.size() && name.starts_with(key) && !is_plain(name.substr(key.size(), 1));
    });
    if (longer != keys.end() && is_plain(key))
      hint = "a key with other characters than letters, digits and _ stands in quotes: " + before_key() + "[\"" +
             std::string(*longer) + "\"]";
    std::stable_partition(keys.begin(), keys.end(), [&](std::string_view name) {
      return std::find(near.begin(), near.end(), name) != near.end() || (near.empty() && name.starts_with(key));
    });
    fail(here() + " has no key " + in_quotes(key) + (keys.empty() ? "" : "; it has " + first_names(keys)), hint);
  }
  /// The path as far as it has been walked, empty at its start.
  [[nodiscard]] std::string before_key() const { return rest_.size() == path_.size() ? "" : here(); }

  static std::string list_hint() { return "choose an element: [0], or [key=value]"; }

  void step_into_brackets() {
    if (const auto key = quoted_key(rest_)) {
      step_into(*key);
      rest_.remove_prefix(key->size() + 4);
    } else if (rest_.starts_with("[\"")) {
      fail("the [\" after " + here() + " has no \"]", "write a key that needs quotes as [\"S1-01\"]");
    } else {
      step_into_list();
    }
  }

  void step_into_list() {
    const std::string_view inside = rest_.substr(1);
    const std::size_t close = find_outside_brackets(inside, "]");
    if (close == inside.size()) fail("the [ after " + here() + " has no ]", "close it");
    const std::string_view selector = inside.substr(0, close);
    if (!at_->is_array()) fail(here() + " is " + kind() + ", not a list", "leave out [" + std::string(selector) + "]");
    at_ = selector.find('=') == std::string_view::npos ? &element(selector) : &only_match(selector);
    object_ = nullptr;
    rest_.remove_prefix(close + 2);
  }

  [[nodiscard]] const Json& element(std::string_view selector) const {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
    if (error != std::errc() || end != selector.data() + selector.size()) {
      fail("[" + std::string(selector) + "] is neither a number nor key=value", list_hint());
    }
    if (index >= at_->size())
      fail(here() + " has " + std::to_string(at_->size()) + " elements, so there is no [" + std::string(selector) + "]",
           "the first is [0]");
    return (*at_)[index];
  }

  [[nodiscard]] std::vector<Condition> conditions(std::string_view selector) const {
    std::vector<Condition> all;
    while (true) {
      const std::size_t comma = find_outside_brackets(selector, ",");
      const std::string_view one = selector.substr(0, comma);
      const std::size_t equals = one.find('=');
      if (equals == 0 || equals == std::string_view::npos) fail(in_quotes(one) + " is no condition", "write key=value");
      all.push_back({one.substr(0, equals), one.substr(equals + 1)});
      if (comma == selector.size()) return all;
      selector.remove_prefix(comma + 1);
    }
  }

  [[nodiscard]] const Json& only_match(std::string_view selector) const {
    const std::vector<Condition> wanted = conditions(selector);
    const Json* match = nullptr;
    std::size_t matches = 0;
    for (const Json& candidate : *at_) {
      const bool meets = std::all_of(wanted.begin(), wanted.end(), [&](const Condition& c) {
        const Json* const value = member_at(candidate, c.key);
        return value != nullptr && written(value) == c.value;
      });
      if (!meets) continue;
      match = &candidate;
      ++matches;
    }
    if (matches == 1) return *match;
    fail((matches == 0 ? std::string("no element") : std::to_string(matches) + " elements") + " of " + here() +
             (matches == 0 ? " has " : " have ") + std::string(selector) + "; there are " + listed(wanted),
         matches == 0 ? "take a value that is there"
                      : "add a condition, such as a key of its plan: [...,plan.gemm_tile=null]");
  }

  /// The elements by the keys that were asked for.
  [[nodiscard]] std::string listed(const std::vector<Condition>& wanted) const {
    std::string all;
    std::size_t count = 0;
    for (const Json& candidate : *at_) {
      if (count++ == kMostListed) return all + ", ...";
      std::string one;
      for (const Condition& c : wanted)
        one += (one.empty() ? "" : ",") + std::string(c.key) + "=" + written(member_at(candidate, c.key));
      all += (all.empty() ? "[" : ", [") + one + "]";
    }
    return all.empty() ? "none at all" : all;
  }

  const Json* at_;
  const Json* object_ = nullptr;  ///< that holds it as `key_`, if a key was the last step
  std::string_view path_, rest_, key_;
};

}  // namespace

const nlohmann::ordered_json& at_path(const nlohmann::ordered_json& document, std::string_view path) {
  return Walk(document, path, 0).end();
}

const nlohmann::ordered_json& at_steps(const nlohmann::ordered_json& value, std::string_view name,
                                       std::string_view steps) {
  const std::string path = std::string(name) + std::string(steps);
  return Walk(value, path, name.size()).end();
}

std::optional<std::string_view> quoted_key(std::string_view steps) {
  if (!steps.starts_with("[\"")) return std::nullopt;
  const std::size_t end = steps.find("\"]", 2);
  if (end == std::string_view::npos) return std::nullopt;
  return steps.substr(2, end - 2);
}

std::string reason_of_null(const nlohmann::ordered_json& object, std::string_view key) {
  constexpr std::string_view kEnd = "_reason";
  std::string best;
  std::size_t most = 0;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    const std::string_view stem = std::string_view(name).ends_with(kEnd)
                                      ? std::string_view(name).substr(0, name.size() - kEnd.size())
                                      : std::string_view();
    const bool of_key = !stem.empty() && key.find(stem) != std::string_view::npos && stem.size() > most;
    if (!of_key && (name != "reason" || most > 0)) continue;
    best = value.get<std::string>();
    most = of_key ? stem.size() : most;
  }
  return best;
}

}  // namespace hbmscope
