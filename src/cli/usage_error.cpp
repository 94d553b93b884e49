#include "cli/usage_error.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "core/suggest.hpp"

namespace hbmscope {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::string nearest(std::string_view given, const std::vector<std::string>& names) {
  return did_you_mean(given, std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = app.get_name(), where;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
    where += (where.empty() ? "" : " ") + command->get_name();
  }
  if (!where.empty()) where += ": ";
  const std::string help = path + " --help lists what there is";
  const auto make = [&](const std::string& message, const std::string& hint) {
    return Error(ErrorKind::usage, where + message, hint);
  };

  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::vector<std::string> unknown = app.remaining(true);
  const std::vector<std::string> commands = command_names(*command);
  if ((extras || missing) && !unknown.empty()) {
    const std::string& given = unknown.front();
    if (given.starts_with('-')) {
      const std::string option = given.substr(0, given.find('='));
      const std::string hint = nearest(option, option_names(*command));
      return make("there is no option " + in_quotes(option), hint.starts_with("did you mean") ? hint : help);
    }
    if (!commands.empty()) return make("there is no command " + in_quotes(given), nearest(given, commands));
    return make("does not know what to do with " + in_quotes(given), help);
  }
  if (missing && !commands.empty()) {
    const std::string hint =
        command == &app ? "hbmscope run is the main job; hbmscope --help lists the commands" : help;
    return make("needs a command", hint);
  }
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const bool repeated = what.find("received") != std::string::npos;
    return make(what.substr(0, what.find(':')) + (repeated ? ": is given more than once" : ": needs a value"), help);
  }
  return make(what, help);
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_min() == 0) continue;  // a flag
    option->check([](const std::string& text) {
      return text.empty() ? std::string("needs a value, but the text is empty") : std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) refuse_empty_values(*command);
}

}  // namespace hbmscope
