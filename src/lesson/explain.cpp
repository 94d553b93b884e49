#include "lesson/explain.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "lesson/markdown.hpp"
#include "lesson/pattern.hpp"

namespace hbmscope::lesson {
namespace {

/// Options that an option answers for as long as they are not given themselves.
struct Follows {
  std::string_view follower, leader;
};
constexpr std::array<Follows, 6> kFollows{{{"--seqlen-q", "--seqlen"},
                                           {"--seqlen-kv", "--seqlen"},
                                           {"--kv-lengths", "--seqlen"},
                                           {"--kv-heads", "--heads"},
                                           {"--head-dim-v", "--head-dim"},
                                           {"--causal", "--window"}}};

/// As a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("-+=.,:/@%").find(c) != std::string_view::npos;
  });
  return plain ? word : "'" + word + "'";
}

std::string in_words(std::span<const ShapeOption> options) {
  std::string text;
  for (const ShapeOption& option : options) {
    text += (text.empty() ? "" : " ") + option.name;
    for (const std::string& value : option.values) text += " " + quoted(value);
  }
  return text;
}

std::vector<ShapeOption> options_of(std::string_view text) {
  std::vector<ShapeOption> options;
  for (const std::string& word : parse_command("hbmscope run " + std::string(text), "").words) {
    if (word.starts_with("--")) options.push_back({word.substr(0, word.find('=')), {}});
    if (options.empty()) continue;  // "run"
    if (!word.starts_with("--")) options.back().values.push_back(word);
    if (word.starts_with("--") && word.find('=') != std::string::npos)
      options.back().values.push_back(word.substr(word.find('=') + 1));
  }
  return options;
}

/// The words of a text that could be names.
void add_names(std::string_view text, std::set<std::string, std::less<>>& names) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && (is_letter(text[at]) || (at > begin && is_digit(text[at])))) ++at;
    if (at > begin) names.emplace(text.substr(begin, at - begin));
    if (at == begin) ++at;
  }
}

std::string_view shape_text(const Definition& definition) {
  std::string_view text = definition.text;
  if (definition.name != "shape" || text.size() < 2 || text.front() != '"' || text.back() != '"') return {};
  return text.substr(1, text.size() - 2);
}

/// A number and its unit stay on one line: with no-break spaces.
std::string unbroken(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == ' ' ? std::string("\xC2\xA0") : std::string(1, c);
  return out;
}

/// A core on its way from a lesson to a reader.
class Core {
 public:
  Core(const Topic& topic, std::span<const ShapeOption> of_reader, Results& results)
      : topic_(topic), text_(topic.lesson->text), scan_(scan(text_)), results_(results), names_(results, topic.folder) {
    inside_ = std::find_if(scan_.cores.begin(), scan_.cores.end(), [&](const CoreMark& c) {
                return c.topic == topic.name;
              })->inside;
    for (const Item& item : scan_.items) {
      const auto* definition = std::get_if<Definition>(&item);
      if (definition != nullptr && !shape_text(*definition).empty()) lessons_shape_ = shape_text(*definition);
    }
    if (lessons_shape_.empty() && !of_reader.empty())
      throw Error(ErrorKind::usage, said("this text has no shape to fill in"),
                  "leave " + of_reader.front().name + " out");
    if (!lessons_shape_.empty()) shape_ = shape_with(lessons_shape_, of_reader);
  }

  std::string for_reader() {
    try {
      define();
      pass_items();
    } catch (const CommandStopped& error) {
      if (shape_.empty() || shape_ == shape_with(lessons_shape_, {})) throw;
      throw CommandStopped(error.kind(), said("this shape takes too long to compute"),
                           "take a smaller one, such as the lesson's own: " + lessons_shape_);
    } catch (const DefinitionFailed&) {
      throw Error(ErrorKind::data, said("a name that it needs is defined wrongly"), "hbmscope lesson check says where");
    }
    remove_comments();
    std::sort(replacements_.begin(), replacements_.end(),
              [](const auto& a, const auto& b) { return a.at.begin < b.at.begin; });
    std::string out;
    std::size_t at = inside_.begin;
    for (const Replacement& r : replacements_) {
      if (r.at.begin < at) continue;
      out += text_.substr(at, r.at.begin - at);
      out += r.text;
      at = r.at.end;
    }
    out += text_.substr(at, inside_.end > at ? inside_.end - at : 0);
    return out;
  }

  [[nodiscard]] std::string said(const std::string& what) const { return "explain " + topic_.name + ": " + what; }
  [[nodiscard]] const std::string& lessons_shape() const { return lessons_shape_; }

 private:
  [[nodiscard]] bool is_inside(Range range) const { return range.begin >= inside_.begin && range.end <= inside_.end; }

  /// Only what the core needs: other definitions may read files that lie beside the lesson.
  void define() {
    std::set<std::string, std::less<>> needed;
    for (const Item& item : scan_.items) {
      if (const auto* value = std::get_if<InlineValue>(&item); value != nullptr && is_inside(value->whole))
        add_names(value_parts(value->directive).expression, needed);
    }
    std::vector<const Definition*> chosen;
    for (auto item = scan_.items.rbegin(); item != scan_.items.rend(); ++item) {
      const auto* definition = std::get_if<Definition>(&*item);
      if (definition == nullptr || !needed.contains(definition->name)) continue;
      chosen.push_back(definition);
      add_names(definition->text, needed);
    }
    for (auto definition = chosen.rbegin(); definition != chosen.rend(); ++definition) {
      Definition one = **definition;
      if (!shape_text(one).empty()) one.text = "\"" + shape_ + "\"";
      names_.add(one);
    }
  }

  /// A lesson's pattern may be too coarse for a reader's shape.
  std::string text_of(std::string_view directive) {
    try {
      return computed_text(directive, names_);
    } catch (const Vanished&) {
      return written(evaluate(value_parts(directive).expression, names_), "auto");
    }
  }

  void pass_items() {
    for (const Item& item : scan_.items) {
      if (const auto* value = std::get_if<InlineValue>(&item); value != nullptr && is_inside(value->whole))
        replacements_.push_back({value->whole, unbroken(text_of(value->directive))});
      const auto* block = std::get_if<ConsoleBlock>(&item);
      if (block == nullptr) continue;
      for (const ShownCommand& shown : block->commands) {
        if (is_inside(shown.output)) pass_command(*block, shown);
      }
    }
  }

  /// The command with the reader's shape in place of the lesson's, and its output.
  void pass_command(const ConsoleBlock& block, const ShownCommand& shown) {
    std::string command = shown.text;
    const std::size_t at = lessons_shape_.empty() ? std::string::npos : command.find(lessons_shape_);
    if (at != std::string::npos) command.replace(at, lessons_shape_.size(), shape_);
    std::string text = block.prefix + "$ " + command + "\n";
    for (const std::string& line : shown_lines(block, results_.outcome(parse_command(command, topic_.folder))))
      text += block.prefix + line + "\n";
    replacements_.push_back({{shown.whole.begin, shown.output.end}, std::move(text)});
  }

  void remove_comments() {
    for (Range range : scan_.comments) {
      if (!is_inside(range)) continue;
      // One that has its lines to itself goes with them.
      const std::size_t before = text_.rfind('\n', range.begin) + 1;
      const Line last = line_at(text_, range.end);
      const bool alone = is_blank(text_.substr(before, range.begin - before)) &&
                         is_blank(text_.substr(range.end, last.end - range.end));
      replacements_.push_back({alone ? Range{before, std::min(last.next, inside_.end)} : range, ""});
    }
  }

  const Topic& topic_;
  std::string_view text_;
  Scan scan_;
  Results& results_;
  Definitions names_;
  Range inside_;
  std::string lessons_shape_, shape_;
  std::vector<Replacement> replacements_;
};

/// The core with these options; nothing, and why, where it cannot be computed.
std::optional<std::string> attempt(const Topic& topic, std::span<const ShapeOption> options, Results& results,
                                   std::string& why) {
  try {
    return Core(topic, options, results).for_reader();
  } catch (const CommandStopped&) {
    throw;
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
}

/// The reader's options that the core cannot be computed with.
struct InTheWay {
  std::vector<ShapeOption> options;
  bool one_is_enough = false;  ///< to leave out any one of them helps; else all of them have to go
};
InTheWay in_the_way(const Topic& topic, std::span<const ShapeOption> of_reader, Results& results) {
  InTheWay found;
  std::string unused;
  for (const ShapeOption& one : of_reader) {
    std::vector<ShapeOption> others;
    std::copy_if(of_reader.begin(), of_reader.end(), std::back_inserter(others),
                 [&](const ShapeOption& o) { return o.name != one.name; });
    if (attempt(topic, others, results, unused)) found.options.push_back(one);
  }
  found.one_is_enough = !found.options.empty();
  if (!found.one_is_enough) found.options.assign(of_reader.begin(), of_reader.end());
  return found;
}

/// Which pass a shape is of, in a reader's words.
std::string pass_of(std::string_view shape) {
  for (const ShapeOption& option : options_of(shape)) {
    if (option.name != "--pass" || option.values.empty()) continue;
    if (option.values[0] == "decode") return "decode";
    if (option.values[0] == "both") return "the forward and the backward pass";
    return "the " + option.values[0] + " pass";
  }
  return "the forward pass";
}

/// What the reader should know of why it cannot be computed: a null's reason, or what a command said.
std::string reason_in(std::string_view why) {
  const std::size_t null = why.find("null (");
  if (null != std::string_view::npos && why.rfind(')') > null + 6)
    return ": " + std::string(why.substr(null + 6, why.rfind(')') - null - 6));
  constexpr std::string_view kEnded = ": ended with code ";
  const std::size_t ended = why.find(kEnded);
  const std::size_t said = ended == std::string_view::npos ? ended : why.find(": ", ended + kEnded.size());
  return said == std::string_view::npos ? "" : std::string(why.substr(said));
}

}  // namespace

std::string title_of(std::string_view markdown) {
  for (std::size_t at = 0; at < markdown.size();) {
    const Line line = line_at(markdown, at);
    at = line.next;
    const std::string_view content = markdown.substr(line.begin, line.end - line.begin);
    if (content.starts_with("# ")) return std::string(trimmed(content.substr(2)));
  }
  return {};
}

std::vector<Topic> topics_of(std::span<const EmbeddedFile> lessons) {
  std::vector<Topic> topics;
  for (const EmbeddedFile& lesson : lessons) {
    for (const CoreMark& core : scan(lesson.text).cores) topics.push_back({core.topic, title_of(lesson.text), &lesson});
  }
  return topics;
}

std::string shape_with(std::string_view of_lesson, std::span<const ShapeOption> of_reader) {
  const auto given = [&](std::string_view name) {
    return std::any_of(of_reader.begin(), of_reader.end(), [&](const ShapeOption& o) { return o.name == name; });
  };
  std::vector<ShapeOption> options;
  for (const ShapeOption& option : options_of(of_lesson)) {
    const bool leader_given = std::any_of(kFollows.begin(), kFollows.end(), [&](const Follows& f) {
      return f.follower == option.name && given(f.leader);
    });
    if (!given(option.name) && !leader_given) options.push_back(option);
  }
  options.insert(options.end(), of_reader.begin(), of_reader.end());
  return in_words(options);
}

std::string core_for(const Topic& topic, std::span<const ShapeOption> of_reader, Results& results) {
  Core core(topic, of_reader, results);
  if (of_reader.empty()) {
    try {
      return core.for_reader();
    } catch (const Error& error) {  // of the lesson, for its author
      throw Error(error.kind(), core.said(error.what()), error.hint());
    }
  }
  std::string why;
  if (auto text = attempt(topic, of_reader, results, why)) return *text;
  const auto [wrong, one_is_enough] = in_the_way(topic, of_reader, results);
  std::string names;
  for (const ShapeOption& one : wrong) names += (names.empty() ? "" : one_is_enough ? " or " : " and ") + one.name;
  const bool is_pass = wrong.size() == 1 && wrong[0].name == "--pass";
  throw Error(ErrorKind::usage,
              core.said(is_pass ? "this topic is about " + pass_of(core.lessons_shape())
                                : "it cannot be computed with " + in_words(wrong) + reason_in(why)),
              "leave " + names + " out");
}

}  // namespace hbmscope::lesson
