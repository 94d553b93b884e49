#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The commands that a lesson may run: this program's own, as far as they only read and end by themselves.
namespace hbmscope::lesson {

/// What to run: the words behind the program's name, in a lesson's folder.
struct Command {
  std::vector<std::string> words;
  std::string folder;
  friend auto operator<=>(const Command&, const Command&) = default;
};

/// The command that a `$` line holds. "hbmscope ARGS", "./dev hbmscope ARGS" and "./dev run ARGS" are the same program;
/// words are quoted as in a shell, and nothing else of a shell is there. Throws an Error (kind data) for what is no
/// such command, and for those that a lesson may not run: docs/writing-lessons.md.
Command parse_command(std::string_view text, std::string_view folder);

/// Does it write one JSON object a line, without being asked to?
bool gives_rows(const Command& command);

/// The same command with its result as JSON on standard output.
Command with_json(Command command);

struct CommandOutcome {
  int exit_code = 0;
  std::string out, err;
  std::string failure;  ///< why it did not come to its own end; empty if it did
};

/// Runs commands of this program; src/cli has the real one.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  /// One outcome a command, in their order.
  virtual std::vector<CommandOutcome> run(std::span<const Command> commands) = 0;
};

}  // namespace hbmscope::lesson
