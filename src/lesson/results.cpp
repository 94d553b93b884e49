#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "lesson/lesson.hpp"
#include "lesson/markdown.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope::lesson {
namespace {

using Json = nlohmann::ordered_json;

/// A list of the values that stand one a line.
Json json_lines(std::string_view text, const std::string& source) {
  Json list = Json::array();
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Line line = line_at(text, at);
    at = line.next;
    ++number;
    const std::string_view content = text.substr(line.begin, line.end - line.begin);
    if (!is_blank(content)) list.push_back(Json(parse_json(content, source + ", line " + std::to_string(number))));
  }
  return list;
}

std::string in_words(const Command& command) {
  std::string text = "hbmscope";
  for (const std::string& word : command.words) text += " " + word;
  return text;
}

/// The folder matters only to a command that may name a file.
Command place_of(Command command) {
  const auto names_file = [](const std::string& word) { return word.find_first_of("./") != std::string::npos; };
  if (std::none_of(command.words.begin(), command.words.end(), names_file) && !gives_rows(command) &&
      command.words[0] != "profile")
    command.folder.clear();
  return command;
}

}  // namespace

void Results::prepare(std::span<const Command> commands) {
  std::set<Command> wanted;
  for (const Command& command : commands) {
    Command placed = place_of(command);
    if (!outcomes_.contains(placed)) wanted.insert(std::move(placed));
  }
  const std::vector<Command> list(wanted.begin(), wanted.end());
  std::vector<CommandOutcome> outcomes = runner_.run(list);
  for (std::size_t i = 0; i < list.size(); ++i) outcomes_.emplace(list[i], std::move(outcomes[i]));
}

const CommandOutcome& Results::outcome(const Command& command) {
  prepare({&command, 1});
  const CommandOutcome& outcome = outcomes_.at(place_of(command));
  if (!outcome.failure.empty())
    throw CommandStopped(ErrorKind::data, in_words(command) + ": " + outcome.failure,
                         "take a smaller shape, or --engine model");
  return outcome;
}

const Json& Results::json(const Command& command) {
  const CommandOutcome& result = outcome(command);
  if (result.exit_code != 0) {
    std::string_view said = std::string_view(result.err).substr(0, result.err.find('\n'));
    if (said.starts_with("hbmscope: ")) said.remove_prefix(10);
    throw Error(ErrorKind::data,
                in_words(command) + ": ended with code " + std::to_string(result.exit_code) + ": " + std::string(said),
                "try the command by itself");
  }
  std::unique_ptr<Json>& document = parsed_[place_of(command)];
  if (document == nullptr) {
    document = std::make_unique<Json>(gives_rows(command) ? json_lines(result.out, in_words(command))
                                                          : Json(parse_json(result.out, in_words(command))));
  }
  return *document;
}

const Json& Results::file(const std::string& path) {
  std::unique_ptr<Json>& document = files_[path];
  if (document == nullptr) {
    document = std::make_unique<Json>(path.ends_with(".jsonl") ? json_lines(read_text_file(path), path)
                                                               : Json(read_json_file(path)));
  }
  return *document;
}

// ---- definitions ----------------------------------------------------------------------------------------------------

void Definitions::add(const Definition& definition) {
  const auto earlier = known_.find(definition.name);
  if (earlier != known_.end()) {
    throw Error(ErrorKind::data,
                in_quotes(definition.name) + " is defined in line " + std::to_string(earlier->second.line) + " already",
                "give it another name");
  }
  Known known;
  known.line = definition.line;
  try {
    if (definition.refused) {
      known.failed = true;
    } else {
      known.value = value_of(definition.text);  // before the name is known: a definition cannot rest on itself
    }
  } catch (...) {
    known.failed = true;
    known_.emplace(definition.name, std::move(known));
    throw;
  }
  known_.emplace(definition.name, std::move(known));
}

const Value& Definitions::find(std::string_view name) {
  const auto found = known_.find(name);
  if (found == known_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, unused] : known_) names.emplace_back(known);
    throw Error(ErrorKind::data, "there is no name " + in_quotes(name) + " above this line",
                near_names(name, names).empty() ? "define it: <!-- let " + std::string(name) + " = ... -->"
                                                : did_you_mean(name, names));
  }
  if (found->second.failed) throw DefinitionFailed{};
  return found->second.value;
}

Value Definitions::value_of(std::string_view text) {
  if (text.empty()) throw Error(ErrorKind::data, "a definition without a value", "write NAME = VALUE");
  if (starts_word(text, "hbmscope") || text.starts_with("./dev"))
    throw Error(ErrorKind::data, "the command " + in_quotes(text) + " stands without its $",
                "write $ before a command: NAME = $ hbmscope run --seqlen 8k");
  if (text[0] == '$') return JsonPlace{&results_.json(with_json(command(text.substr(1)))), {}};
  if (text.starts_with("file ")) {
    const std::string path(trimmed(text.substr(5)));
    return JsonPlace{&results_.file((std::filesystem::path(folder_) / path).lexically_normal().string()), {}};
  }
  if (text[0] == '"') {
    if (text.size() < 2 || text.find('"', 1) != text.size() - 1)
      throw Error(ErrorKind::data, "the text " + in_quotes(text) + " does not end with its second \"",
                  "write NAME = \"--seqlen 8k\"");
    return std::string(text.substr(1, text.size() - 2));
  }
  return evaluate(text, *this);
}

/// "@shape" becomes the text that `shape` stands for.
std::string Definitions::with_texts(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('@'), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    std::size_t end = 1;
    while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) ++end;
    const auto* value = std::get_if<std::string>(&find(text.substr(1, end - 1)));
    if (value == nullptr)
      throw Error(ErrorKind::data, in_quotes(text.substr(0, end)) + " is no text",
                  "only a text can be inserted: NAME = \"...\"");
    out += *value;
    text.remove_prefix(end);
  }
  return out;
}

Command Definitions::command(std::string_view text) {
  return parse_command(with_texts(text), folder_);
}

}  // namespace hbmscope::lesson
