#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "lesson/command.hpp"
#include "lesson/scan.hpp"
#include "lesson/value.hpp"

namespace hbmscope::lesson {

/// A Markdown file to be checked.
struct Source {
  std::string file;    ///< as messages name it
  std::string folder;  ///< where its commands run and its files lie
  std::string text;
};

/// A place where what is written is not what is computed.
struct Difference {
  std::size_t line = 0;
  std::string written;
  std::string computed;
  std::string of;         ///< the expression or the command
  bool recorded = false;  ///< stands in the list of numbers, and was not computed
};

struct Replacement {
  Range at;
  std::string text;
};

/// What became of one file.
struct Checked {
  std::string file;
  std::size_t values = 0;
  std::size_t blocks = 0;
  std::size_t other_consoles = 0;  ///< console blocks of other programs, which are left alone
  std::vector<Difference> differences;
  std::vector<Problem> problems;          ///< in the order of their lines
  std::vector<Replacement> replacements;  ///< that make it what it should be, in rising order
  std::vector<Range> computed;            ///< what is the tool's: values and the output of blocks
};

/// The file as it should be. Not to be called where there are problems: what they left out would stay as it was.
std::string rebuilt(std::string_view text, const Checked& checked);

/// A command did not come to its own end.
struct CommandStopped : Error {
  using Error::Error;
};

/// Results of commands and files, each got once.
class Results {
 public:
  explicit Results(CommandRunner& runner) : runner_(runner) {}
  /// Runs those that have not run yet, together.
  void prepare(std::span<const Command> commands);
  const CommandOutcome& outcome(const Command& command);
  /// Standard output of a command as JSON; of `batch`, as a list. Throws an Error (kind data) where it failed.
  const nlohmann::ordered_json& json(const Command& command);
  /// A JSON file, or a list of the lines of one that ends in .jsonl. Throws an Error (kind data).
  const nlohmann::ordered_json& file(const std::string& path);

 private:
  CommandRunner& runner_;
  std::map<Command, CommandOutcome> outcomes_;
  std::map<Command, std::unique_ptr<nlohmann::ordered_json>> parsed_;
  std::map<std::string, std::unique_ptr<nlohmann::ordered_json>> files_;
};

/// The definitions of one file, as far as they stand above what uses them.
class Definitions : public Names {
 public:
  Definitions(Results& results, std::string folder) : results_(results), folder_(std::move(folder)) {}
  /// Takes a definition over, or throws an Error (kind data); its name is then known as failed.
  void add(const Definition& definition);
  const Value& find(std::string_view name) override;

  /// `$ hbmscope ... @shape`: the command, the texts of names inserted. Throws an Error (kind data).
  [[nodiscard]] Command command(std::string_view text);

 private:
  Value value_of(std::string_view text);
  std::string with_texts(std::string_view text);

  struct Known {
    std::size_t line = 0;
    bool failed = false;
    Value value;
  };
  Results& results_;
  std::string folder_;
  std::map<std::string, Known, std::less<>> known_;
};

/// Checks files. Commands of all of them run together, the same ones once.
std::vector<Checked> check(std::span<const Source> sources, Results& results);

/// "EXPR as PATTERN"
struct ValueParts {
  std::string_view expression, pattern;
};
/// Throws an Error (kind data) where there is no " as ".
ValueParts value_parts(std::string_view directive);
/// The text of an inline value. Throws an Error (kind data), and DefinitionFailed.
std::string computed_text(std::string_view directive, Names& names);
/// What a block shows of a command, a line each. Throws an Error (kind data) where the command did not do as expected.
std::vector<std::string> shown_lines(const ConsoleBlock& block, const CommandOutcome& outcome);

}  // namespace hbmscope::lesson
