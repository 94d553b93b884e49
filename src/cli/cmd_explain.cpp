#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "cli/command_runner.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/run_options.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "lesson/embedded_lessons.hpp"
#include "lesson/explain.hpp"
#include "lesson/terminal.hpp"
#include "report/document.hpp"

namespace hbmscope {
namespace {

using lesson::ShapeOption;
using lesson::Topic;

struct Options {
  std::string topic;
  RunOptions run;
  std::vector<const CLI::Option*> shape;
};

/// Of all that `run` takes, the shape and the GPU.
void keep_shape_options(CLI::App& command, Options& options) {
  std::vector<CLI::Option*> others;
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    const bool kept = option->get_group() == "Shape" || option->get_name() == "--gpu";
    if (kept) {
      options.shape.push_back(option);
    } else if (option != command.get_help_ptr()) {
      others.push_back(option);
    }
  }
  for (CLI::Option* option : others) command.remove_option(option);
}

/// What the reader gave, as words of a command line. A flag has no value.
std::vector<ShapeOption> given(const Options& o) {
  std::vector<ShapeOption> options;
  for (const CLI::Option* option : o.shape) {
    if (option->count() == 0) continue;
    const bool is_flag = option->get_expected_min() == 0;
    options.push_back({option->get_name(), is_flag ? std::vector<std::string>{} : option->results()});
  }
  return options;
}

void list(const std::vector<Topic>& topics) {
  Table table{"",
              {{"topic", false}, {"lesson", false}},
              {},
              {"hbmscope explain TOPIC --seqlen 32k fills in a shape of your own."}};
  for (const Topic& topic : topics) table.rows.push_back({topic.name, topic.title});
  write_stdout(to_text({table}, output_width(), stdout_wants_colour()));
}

void explain(const Options& o, const std::vector<std::string>& argv) {
  const std::vector<Topic> topics = lesson::topics_of(embedded_lessons());
  if (o.topic.empty()) return list(topics);
  const auto topic = std::find_if(topics.begin(), topics.end(),
                                  [&](const Topic& t) { return fold_name(t.name) == fold_name(o.topic); });
  if (topic == topics.end()) {
    std::vector<std::string_view> names;
    for (const Topic& t : topics) names.push_back(t.name);
    throw Error(ErrorKind::usage, "explain: there is no topic " + in_quotes(o.topic), did_you_mean(o.topic, names));
  }
  (void)to_request(o.run);  // a shape that cannot be is told in the words of its options
  const auto runner = program_runner(path_of_this_program(argv[0]));
  lesson::Results results(*runner);
  const std::string text = lesson::core_for(*topic, given(o), results);
  write_stdout(lesson::to_terminal("# " + topic->title + "\n\n" + text, output_width(), stdout_wants_colour()));
}

}  // namespace

void add_explain(CLI::App& app, const Invocation& invocation) {
  CLI::App* const c = app.add_subcommand("explain", "The core of a lesson, with a shape of your own filled in");
  wrap_help(*c);
  const auto options = std::make_shared<Options>();
  add_run_options(*c, options->run);
  keep_shape_options(*c, *options);
  c->add_option("TOPIC", options->topic, "A topic; without one they are listed")->type_name("TOPIC");
  c->footer(
      "Examples:\n"
      "  hbmscope explain\n"
      "  hbmscope explain scores --seqlen 32k --heads 32");
  c->callback([options, &invocation] { explain(*options, invocation.argv); });
}

}  // namespace hbmscope
