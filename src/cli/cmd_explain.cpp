#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "cli/command_runner.hpp"
#include "cli/help_format.hpp"
#include "cli/options_without_effect.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/run_options.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "lesson/embedded_lessons.hpp"
#include "lesson/explain.hpp"
#include "lesson/scan.hpp"
#include "lesson/terminal.hpp"
#include "report/document.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

using lesson::ShapeOption;
using lesson::Topic;

struct ExplainOptions {
  std::string topic, lesson;
  RunOptions run;
  std::vector<const CLI::Option*> shape;
};

/// Of all that `run` takes, the shape and the GPU.
void keep_shape_options(CLI::App& command, ExplainOptions& options) {
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
std::vector<ShapeOption> given(const ExplainOptions& o) {
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

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A lesson of the reader's own; errors in it are told before anything is computed.
struct OwnLesson {
  explicit OwnLesson(const std::string& path)
      : text(read_text_file(path)), name(std::filesystem::path(path).stem().string()), file{name, text} {
    const lesson::Scan scan = lesson::scan(text);
    if (!scan.problems.empty()) {
      const lesson::Problem& first = scan.problems.front();
      throw Error(ErrorKind::data, path + ":" + std::to_string(first.line) + ": " + first.message, first.hint);
    }
    if (scan.cores.empty())
      throw Error(ErrorKind::data, path + ": has no core", "put <!-- core TOPIC --> and <!-- /core --> around one");
  }
  OwnLesson(const OwnLesson&) = delete;
  OwnLesson& operator=(const OwnLesson&) = delete;

  std::string text, name;
  EmbeddedFile file;
};

/// The topic of this name, or the only one of the lesson of this name. A path to the lesson is a name too.
const Topic& topic_of(const std::vector<Topic>& topics, const std::string& name) {
  const std::string stem = fold_name(std::filesystem::path(name).stem().string());
  std::vector<std::string_view> names, of_lesson;
  const Topic* found = nullptr;
  for (const Topic& topic : topics) {
    if (fold_name(topic.name) == fold_name(name)) return topic;
    names.push_back(topic.name);
    if (fold_name(topic.lesson->name) != stem) continue;
    of_lesson.push_back(topic.name);
    found = &topic;
  }
  if (of_lesson.size() == 1) return *found;
  throw Error(ErrorKind::usage, "explain: there is no topic " + in_quotes(name),
              did_you_mean(name, of_lesson.empty() ? names : of_lesson));
}

void explain(const CLI::App& command, const ExplainOptions& o, const std::vector<std::string>& argv) {
  std::optional<OwnLesson> own;
  if (!o.lesson.empty()) own.emplace(o.lesson);
  std::vector<Topic> topics = own ? lesson::topics_of(std::span(&own->file, 1)) : lesson::topics_of(embedded_lessons());
  for (Topic& topic : topics) {
    if (own) topic.folder = folder_of(o.lesson);
  }
  if (o.topic.empty() && !(own && topics.size() == 1)) {
    if (const auto options = given(o); !options.empty())
      throw Error(ErrorKind::usage, "explain: a shape without a topic",
                  "write explain TOPIC " + options[0].name + " ...");
    return list(topics);
  }
  const Topic& topic = o.topic.empty() ? topics.front() : topic_of(topics, o.topic);
  refuse_options_without_effect(command, to_request(o.run));  // told in the words of the reader's own options
  ProgressLine progress("explain");
  RunnerLimits limits;
  limits.waiting = [&] { progress.doing("explain: computes " + topic.name + " for this shape"); };
  const auto runner = program_runner(path_of_this_program(argv[0]), limits);
  lesson::Results results(*runner);
  const std::string text = lesson::core_for(topic, given(o), results);
  progress.clear();
  write_stdout(lesson::to_terminal("# " + topic.title + "\n\n" + text, output_width(), stdout_wants_colour()));
}

}  // namespace

void add_explain(CLI::App& app, const Invocation& invocation) {
  CLI::App* const c = app.add_subcommand("explain", "The core of a lesson, with a shape of your own filled in");
  wrap_help(*c);
  const auto options = std::make_shared<ExplainOptions>();
  add_run_options(*c, options->run);
  keep_shape_options(*c, *options);
  c->add_option("TOPIC", options->topic, "A topic, or a lesson's name; without one the topics are listed")
      ->type_name("TOPIC");
  c->add_option("--lesson", options->lesson, "A lesson of your own in place of those that are built in")
      ->type_name("FILE");
  c->footer(
      "Examples:\n"
      "  hbmscope explain\n"
      "  hbmscope explain scores --seqlen 32k --heads 32\n"
      "  hbmscope explain --lesson my_lesson.md --seqlen 32k");
  c->callback([c, options, &invocation] { explain(*c, *options, invocation.argv); });
}

}  // namespace hbmscope
