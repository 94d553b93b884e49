#include "lesson/command.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope::lesson {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::data, what, hint);
}

// ---- words ----------------------------------------------------------------------------------------------------------

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::vector<std::string> all() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t') {
        end_word();
        ++at_;
      } else if (c == '\'' || c == '"') {
        quoted(c);
      } else {
        plain(c);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  void add(char c) {
    word_ += c;
    in_word_ = true;
  }
  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  void plain(char c) {
    // What a shell would make something of.
    constexpr std::string_view kOfShells = "|&;<>$`\\(){}*?~!";
    if (kOfShells.find(c) != std::string_view::npos || (c == '#' && !in_word_)) {
      refuse("a lesson's command may not hold " + in_quotes(std::string(1, c)),
             "no pipes, redirections, variables or patterns: one command a line; quote the word if it is meant as it "
             "stands");
    }
    add(c);
    ++at_;
  }

  void quoted(char quote) {
    const std::size_t begin = at_ + 1;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos)
      refuse("a " + std::string(1, quote) + " is never closed", "write it behind the word too");
    const std::string_view inside = text_.substr(begin, end - begin);
    if (quote == '"' && inside.find_first_of("$`\\") != std::string_view::npos)
      refuse(in_quotes(inside) + " holds $, ` or \\ between double quotes", "take single quotes");
    word_ += inside;
    in_word_ = true;
    at_ = end + 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
};

// ---- what may run ---------------------------------------------------------------------------------------------------

struct Allowed {
  std::string_view command;
  std::vector<std::string_view> subcommands;  ///< empty: it has none
};

const std::vector<Allowed>& allowed_commands() {
  static const std::vector<Allowed> table{{"run", {}},
                                          {"batch", {}},
                                          {"sweep", {}},
                                          {"merge", {}},
                                          {"scenario", {"list", "show", "run", "check"}},
                                          {"softmax", {}},
                                          {"gpu", {"list", "show"}},
                                          {"profile", {"import"}},
                                          {"trace", {}},
                                          {"compare", {}},
                                          {"lesson", {"values"}}};
  return table;
}

bool is_help(std::string_view word) {
  return word == "--help" || word == "-h" || word == "--version";
}

void check_subcommand(const std::vector<std::string>& words) {
  std::vector<std::string_view> known;
  for (const Allowed& a : allowed_commands()) known.push_back(a.command);
  if (words.empty()) refuse("hbmscope needs a command", "for example $ hbmscope run --seqlen 8k");
  if (is_help(words[0])) return;
  const auto found = std::find_if(allowed_commands().begin(), allowed_commands().end(),
                                  [&](const Allowed& a) { return a.command == words[0]; });
  if (found == allowed_commands().end())
    refuse("a lesson may not run hbmscope " + words[0], did_you_mean(words[0], known));
  if (found->subcommands.empty() || (words.size() > 1 && is_help(words[1]))) return;
  const std::string second = words.size() > 1 ? words[1] : "";
  if (std::find(found->subcommands.begin(), found->subcommands.end(), second) == found->subcommands.end()) {
    refuse("a lesson may not run hbmscope " + words[0] + (second.empty() ? "" : " " + second) +
               ": it needs a device, writes files or runs lessons",
           did_you_mean(second, found->subcommands));
  }
}

/// The value of an option, written --name VALUE, --name=VALUE or -nVALUE; nothing if word `i` is another.
const char* value_of(const std::vector<std::string>& words, std::size_t i, std::string_view name) {
  const std::string& word = words[i];
  if (word == name) return i + 1 < words.size() ? words[i + 1].c_str() : nullptr;
  if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=')
    return word.c_str() + name.size() + 1;
  if (word.starts_with(name) && name.size() == 2 && word.size() > 2) return word.c_str() + 2;
  return nullptr;
}

void check_options(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 8> kTargets{"--json",   "--csv",   "--markdown", "-o",
                                                     "--output", "--jsonl", "--chrome",   "--html"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view target : kTargets) {
      const char* const value = value_of(words, i, target);
      if (value != nullptr && std::string_view(value) != "-")
        refuse(std::string(target) + " " + value + " would write a file", "write " + std::string(target) + " -");
    }
    const char* const engine = value_of(words, i, "--engine");
    if (engine != nullptr && std::string_view(engine) == "gpu")
      refuse("--engine gpu needs a device", "show a saved run instead: let r = file ../../reports/NAME.jsonl");
    if (value_of(words, i, "--require") != nullptr) refuse("--require needs a device", "leave it out");
    const bool for_target = i > 0 && std::find(kTargets.begin(), kTargets.end(), words[i - 1]) != kTargets.end();
    if (words[i].starts_with("/dev/") || words[i].starts_with("/proc/") || (words[i] == "-" && !for_target))
      refuse(in_quotes(words[i]) + " is no file of a lesson: it is empty, or has no end",
             "give a file beside the lesson");
  }
}

}  // namespace

Command parse_command(std::string_view text, std::string_view folder) {
  std::vector<std::string> words = Words(text).all();
  const bool through_dev = words.size() > 1 && words[0] == "./dev" && (words[1] == "run" || words[1] == "hbmscope");
  if (!through_dev && (words.empty() || words[0] != "hbmscope")) {
    refuse("a lesson runs hbmscope alone, not " + in_quotes(words.empty() ? text : words[0]),
           "write $ hbmscope ..., or show other commands in a block of their own");
  }
  // `./dev run` keeps its "run".
  words.erase(words.begin(), words.begin() + (through_dev && words[1] == "hbmscope" ? 2 : 1));
  check_subcommand(words);
  check_options(words);
  return {std::move(words), std::string(folder)};
}

bool gives_rows(const Command& command) {
  constexpr std::array<std::string_view, 3> kOfRows{"batch", "sweep", "merge"};
  return std::find(kOfRows.begin(), kOfRows.end(), command.words[0]) != kOfRows.end();
}

Command with_json(Command command) {
  const auto& words = command.words;
  const bool has_json = std::any_of(words.begin(), words.end(),
                                    [](const std::string& w) { return w == "--json" || w.starts_with("--json="); });
  if (!has_json && !gives_rows(command)) command.words.insert(command.words.end(), {"--json", "-"});
  return command;
}

}  // namespace hbmscope::lesson
