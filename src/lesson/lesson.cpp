#include "lesson/lesson.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "lesson/console_block.hpp"
#include "lesson/markdown.hpp"
#include "lesson/pattern.hpp"

namespace hbmscope::lesson {
namespace {

/// One file on its way through the check.
class FileCheck {
 public:
  FileCheck(const Source& source, Results& results)
      : source_(source), scan_(scan(source.text)), results_(results), names_(results, source.folder) {
    checked_.file = source.file;
    checked_.problems = scan_.problems;
    checked_.other_consoles = scan_.other_consoles;
  }

  /// The commands of the file, as far as they can be told before any has run: texts are defined without running one.
  /// What is wrong with one is told when its turn comes.
  void collect(std::vector<Command>& commands) {
    Definitions texts(results_, source_.folder);
    const auto attempt = [](const auto& step) {
      try {
        step();
      } catch (const Error&) {
      } catch (const DefinitionFailed&) {
      }
    };
    for (const Item& item : scan_.items) {
      if (const auto* definition = std::get_if<Definition>(&item)) {
        const std::string_view text = definition->text;  // empty where it was refused
        if (text.starts_with('"')) attempt([&] { texts.add(*definition); });
        if (text.starts_with('$')) attempt([&] { commands.push_back(with_json(texts.command(text.substr(1)))); });
      } else if (const auto* block = std::get_if<ConsoleBlock>(&item)) {
        for (const ShownCommand& shown : block->commands)
          attempt([&] { commands.push_back(parse_command(shown.text, source_.folder)); });
      }
    }
  }

  Checked finish() {
    for (const Item& item : scan_.items) std::visit([&](const auto& one) { pass(one); }, item);
    std::stable_sort(checked_.problems.begin(), checked_.problems.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    return std::move(checked_);
  }

 private:
  // ---- one item after the other
  // -----------------------------------------------------------------------------------------

  void problem(std::size_t line, const Error& error) {
    checked_.problems.push_back({line, error.what(), error.hint()});
  }
  void replace(Range at, std::string text) { checked_.replacements.push_back({at, std::move(text)}); }

  void pass(const Definition& definition) {
    try {
      names_.add(definition);
    } catch (const Error& error) {
      problem(definition.line, error);
    } catch (const DefinitionFailed&) {
    }
  }

  void pass(const InlineValue& value) {
    ++checked_.values;
    checked_.computed.push_back(value.shown);
    try {
      const std::string computed = computed_text(value.directive, names_);
      const std::string shown = source_.text.substr(value.shown.begin, value.shown.end - value.shown.begin);
      if (computed == shown) return;
      checked_.differences.push_back(
          {value.line, shown, computed, std::string(value_parts(value.directive).expression)});
      replace(value.shown, computed);
    } catch (const Error& error) {
      problem(value.line, error);
    } catch (const DefinitionFailed&) {
    }
  }

  void pass(const ConsoleBlock& block) {
    ++checked_.blocks;
    for (const ShownCommand& shown : block.commands) {
      checked_.computed.push_back(shown.output);
      try {
        const Command command = parse_command(shown.text, source_.folder);
        compare(block, shown, shown_lines(block, results_.outcome(command)));
      } catch (const Error& error) {
        problem(shown.line, error);
      }
    }
  }

  void compare(const ConsoleBlock& block, const ShownCommand& shown, const std::vector<std::string>& computed) {
    const auto [written_at, computed_at] =
        std::mismatch(shown.lines.begin(), shown.lines.end(), computed.begin(), computed.end());
    if (written_at == shown.lines.end() && computed_at == computed.end()) return;
    const std::string kNothing = "(no line)";
    checked_.differences.push_back({shown.output_line + static_cast<std::size_t>(written_at - shown.lines.begin()),
                                    written_at == shown.lines.end() ? kNothing : std::string(*written_at),
                                    computed_at == computed.end() ? kNothing : *computed_at, "$ " + shown.text});
    std::string output;
    for (const std::string& line : computed) {
      std::string whole = block.prefix + line;
      whole.erase(whole.find_last_not_of(" \t") + 1);
      output += (line.empty() ? whole : block.prefix + line) + std::string(block.eol);
    }
    replace(shown.output, output);
  }

  const Source& source_;
  Scan scan_;
  Results& results_;
  Definitions names_;
  Checked checked_;
};

}  // namespace

std::string rebuilt(std::string_view text, const Checked& checked) {
  std::string out;
  std::size_t at = 0;
  for (const Replacement& r : checked.replacements) {
    out += text.substr(at, r.at.begin - at);
    out += r.text;
    at = r.at.end;
  }
  return out += text.substr(at);
}

std::vector<Checked> check(std::span<const Source> sources, Results& results) {
  std::vector<FileCheck> files;
  files.reserve(sources.size());
  std::vector<Command> commands;
  for (const Source& source : sources) files.emplace_back(source, results).collect(commands);
  results.prepare(commands);
  std::vector<Checked> all;
  for (FileCheck& file : files) all.push_back(file.finish());
  return all;
}

ValueParts value_parts(std::string_view directive) {
  const std::size_t as = directive.rfind(" as ");
  if (as == std::string_view::npos)
    throw Error(ErrorKind::data, in_quotes(directive) + " does not say how to write the value",
                "write EXPR as PATTERN, such as N * N as 0,000");
  return {trimmed(directive.substr(0, as)), trimmed(directive.substr(as + 4))};
}

std::string computed_text(std::string_view directive, Names& names) {
  const auto [expression, pattern] = value_parts(directive);
  std::string text = written(evaluate(expression, names), pattern);
  if (text.find_first_of("|\r\n") != std::string::npos || text.find("<!--") != std::string::npos)
    throw Error(ErrorKind::data, in_quotes(text) + " cannot stand inside a line", "show it in a console block");
  return text;
}

std::vector<std::string> shown_lines(const ConsoleBlock& block, const CommandOutcome& outcome) {
  if (outcome.exit_code != block.exit_code) {
    std::string_view said = std::string_view(outcome.err).substr(0, outcome.err.find('\n'));
    throw Error(ErrorKind::data,
                "the command ended with code " + std::to_string(outcome.exit_code) + ", and the block expects " +
                    std::to_string(block.exit_code) + (said.empty() ? "" : ": " + std::string(said)),
                outcome.exit_code == 0 ? "leave exit=" + std::to_string(block.exit_code) + " out"
                                       : "write ```console exit=" + std::to_string(outcome.exit_code) +
                                             " if that is what the block shows");
  }
  const std::string text = outcome.out + (block.exit_code == 0 ? "" : outcome.err);
  std::vector<std::string> lines;
  bool cut = false;
  for (std::size_t at = 0; at < text.size() && !cut;) {
    const Line line = line_at(text, at);
    at = line.next;
    cut = block.head && lines.size() == *block.head;
    lines.push_back(cut ? "..." : text.substr(line.begin, line.end - line.begin));
  }
  while (!lines.empty() && is_blank(lines.back())) lines.pop_back();
  for (const std::string& line : lines) {
    if (begins_command(line) || closes(line, block.fence))
      throw Error(ErrorKind::data, "the output's line " + in_quotes(line) + " would end the block or begin a command",
                  "open the block with a longer fence, or show less with head=");
  }
  return lines;
}

}  // namespace hbmscope::lesson
