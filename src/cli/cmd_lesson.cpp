#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "cli/app.hpp"
#include "cli/command_runner.hpp"
#include "cli/help_format.hpp"
#include "cli/lesson_values.hpp"
#include "cli/output.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "lesson/embedded_lessons.hpp"
#include "lesson/explain.hpp"
#include "lesson/findings.hpp"
#include "lesson/numbers.hpp"
#include "report/document.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

namespace fs = std::filesystem;
using lesson::Checked;

struct LessonOptions {
  std::vector<std::string> paths;
  std::string numbers, json, folder;
};

// ---- files ----------------------------------------------------------------------------------------------------------

[[noreturn]] void cannot_read(const std::string& path, const std::error_code& error) {
  throw Error(ErrorKind::data, path + ": cannot be read: " + error.message(),
              "give a Markdown file, or a folder with some");
}

/// All *.md below a folder, hidden folders left out.
void add_folder(const fs::path& folder, std::set<std::string>& files) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const bool hidden = at->path().filename().string().starts_with('.');
    std::error_code unknown;
    if (hidden && at->is_directory(unknown)) at.disable_recursion_pending();
    if (!hidden && at->path().extension() == ".md" && at->is_regular_file(unknown))
      files.insert(at->path().lexically_normal().string());
  }
  if (error) cannot_read(folder.string(), error);
  if (files.empty()) {
    throw Error(ErrorKind::data, folder.string() + ": no Markdown file (*.md) in it",
                "name the file, or the folder that holds it");
  }
}

/// The files that paths stand for, each once, sorted.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::set<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error || !fs::exists(status))
      cannot_read(path, error ? error : std::make_error_code(std::errc::no_such_file_or_directory));
    if (fs::is_directory(status)) {
      std::set<std::string> below;
      add_folder(path, below);
      files.merge(below);
    } else {
      files.insert(fs::path(path).lexically_normal().string());
    }
  }
  return {files.begin(), files.end()};
}

/// The files' texts. One that cannot be read is told among what was found and keeps nobody from the others.
std::vector<lesson::Source> sources_of(const LessonOptions& o, std::vector<Checked>& unread) {
  std::vector<lesson::Source> sources;
  for (const std::string& file : files_of(o.paths)) {
    const std::string folder = fs::path(file).parent_path().string();
    try {
      sources.push_back({file, folder.empty() ? "." : folder, read_text_file(file)});
    } catch (const Error& error) {
      Checked checked;
      checked.file = file;
      checked.problems.push_back({1, error.what(), error.hint()});
      unread.push_back(std::move(checked));
    }
  }
  return sources;
}

// ---- the list of numbers
// ----------------------------------------------------------------------------------------------

/// How the list calls a file: by its path from the list's own folder.
std::string name_in_list(const std::string& file, const std::string& list) {
  std::error_code error;
  const fs::path base = fs::absolute(list, error).lexically_normal().parent_path();
  return fs::absolute(file, error).lexically_normal().lexically_relative(base).generic_string();
}

void add_number_differences(const LessonOptions& o, const std::vector<lesson::Source>& sources,
                            std::vector<Checked>& all) {
  const lesson::NumberList list = lesson::parse_number_list(read_text_file(o.numbers), o.numbers);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto recorded = list.find(name_in_list(sources[i].file, o.numbers));
    const std::vector<lesson::NumberWord> none;
    const auto differences = lesson::compare_numbers(lesson::numbers_of(sources[i].text, all[i].computed),
                                                     recorded == list.end() ? none : recorded->second);
    all[i].differences.insert(all[i].differences.end(), differences.begin(), differences.end());
  }
}

/// Numbers of these files that only a list would hold.
std::size_t numbers_in(const std::vector<lesson::Source>& sources, const std::vector<Checked>& all) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) count += lesson::numbers_of(sources[i].text, all[i].computed).size();
  return count;
}

/// The numbers of these files anew, and those of others as they were as long as the others are there. Says what it
/// wrote.
std::string write_numbers(const LessonOptions& o, const std::vector<lesson::Source>& sources,
                          const std::vector<Checked>& all) {
  lesson::NumberList list, before;
  const bool is_new = !fs::exists(o.numbers);
  if (!is_new) before = lesson::parse_number_list(read_text_file(o.numbers), o.numbers);
  const fs::path base = fs::absolute(o.numbers).parent_path();
  for (auto& [file, words] : before) {
    if (fs::exists(base / file)) list[file] = words;
  }
  std::size_t recorded = 0, changed = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!all[i].problems.empty()) continue;
    const std::string name = name_in_list(sources[i].file, o.numbers);
    std::vector<lesson::NumberWord> words = lesson::numbers_of(sources[i].text, all[i].computed);
    recorded += words.size();
    changed += lesson::compare_numbers(words, before[name]).size();
    list[name] = std::move(words);
  }
  write_result(o.numbers, lesson::number_list_text(list));
  return fmt::format("numbers: {} recorded, {}\n", recorded, is_new ? "all new" : fmt::format("{} changed", changed));
}

// ---- commands
// ---------------------------------------------------------------------------------------------------------

/// What `build` would do about these differences.
std::string hint_to_build(const LessonOptions& o, const std::vector<Checked>& all) {
  std::string command = "hbmscope lesson build";
  if (!o.numbers.empty()) command += " --numbers " + o.numbers;
  for (const std::string& path : o.paths) command += " " + path;
  bool recorded = false, computed = false;
  for (const Checked& one : all) {
    for (const lesson::Difference& d : one.differences) (d.recorded ? recorded : computed) = true;
  }
  const char* does = " writes what is computed, if that is right";
  if (recorded) does = " records the numbers as they are written, if they are right";
  if (recorded && computed)
    does = " writes what is computed and records the other numbers as they are written, if both are right";
  return command + does;
}

/// Errors before differences: what a file says cannot be judged until it can be read.
void fail_where_needed(const lesson::Counts& counts, const std::string& hint) {
  const std::string words = " in " + lesson::in_words(counts),
                    differences = lesson::counted(counts.differences, "difference");
  if (counts.problems > 0) {
    throw Error(ErrorKind::data, lesson::counted(counts.problems, "error") + " and " + differences + words,
                "each error has its file, its line and a hint above");
  }
  if (counts.differences > 0) throw Error(ErrorKind::check, differences + words, hint);
}

void check(const LessonOptions& o, const std::vector<std::string>& argv) {
  if (!o.json.empty()) check_result_path(o.json);
  std::vector<Checked> unread;
  const std::vector<lesson::Source> sources = sources_of(o, unread);
  check_targets({o.json, {}, {}}, files_of(o.paths));
  const auto runner = program_runner(path_of_this_program(argv[0]));
  lesson::Results results(*runner);
  std::vector<Checked> all = lesson::check(sources, results);
  if (!o.numbers.empty()) add_number_differences(o, sources, all);
  all.insert(all.end(), unread.begin(), unread.end());
  const lesson::Counts counts = lesson::count(all);
  if (!o.json.empty()) write_json(o.json, lesson::findings_to_json(all, argv));
  if (o.json != "-") {
    std::string text;
    for (const Checked& one : all) text += lesson::finding_lines(one);
    if (text.empty()) {
      text = lesson::in_words(counts) + ": all current";
      const std::size_t others = o.numbers.empty() ? numbers_in(sources, all) : 0;
      if (others > 0)
        text += fmt::format("; {} {} not checked without --numbers", lesson::counted(others, "other number"),
                            others == 1 ? "is" : "are");
      text += "\n";
    }
    write_stdout(text);
  }
  fail_where_needed(counts, hint_to_build(o, all));
}

void build(const LessonOptions& o, const std::vector<std::string>& argv) {
  check_result_path(o.numbers);
  std::vector<Checked> unread;
  std::vector<lesson::Source> sources = sources_of(o, unread);
  if (!o.numbers.empty() && fs::exists(o.numbers)) {  // told before anything is written
    lesson::parse_number_list(read_text_file(o.numbers), o.numbers);
  }
  const auto runner = program_runner(path_of_this_program(argv[0]));
  lesson::Results results(*runner);
  std::vector<Checked> all = lesson::check(sources, results);
  std::size_t changed = 0;
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].problems.empty() || all[i].replacements.empty()) continue;
    sources[i].text = lesson::rebuilt(sources[i].text, all[i]);
    write_result(sources[i].file, sources[i].text);
    text += fmt::format("{}: {} written\n", sources[i].file, all[i].differences.size());
    all[i].differences.clear();
    ++changed;
  }
  const std::string recorded = o.numbers.empty() ? "" : write_numbers(o, sources, lesson::check(sources, results));
  for (Checked& one : all) one.differences.clear();  // of files with errors, which stay as they are
  all.insert(all.end(), unread.begin(), unread.end());
  for (const Checked& one : all) text += lesson::finding_lines(one);
  const lesson::Counts counts = lesson::count(all);
  write_stdout(text + fmt::format("{}: {} changed\n", lesson::in_words(counts), changed) + recorded);
  fail_where_needed(counts, "");
}

struct Listed {
  std::string name, text;
};

void list(const LessonOptions& o) {
  std::vector<Listed> lessons;
  if (o.folder.empty()) {
    for (const EmbeddedFile& file : embedded_lessons())
      lessons.push_back({std::string(file.name), std::string(file.text)});
  } else {
    for (const std::string& file : files_of({o.folder})) lessons.push_back({file, read_text_file(file)});
  }
  Table table{"", {{"lesson", false}, {"title", false}, {"topics for explain", false}}, {}, {}};
  for (const Listed& one : lessons) {
    std::string topics;
    for (const lesson::CoreMark& core : lesson::scan(one.text).cores)
      topics += (topics.empty() ? "" : ", ") + core.topic;
    table.rows.push_back({one.name, lesson::title_of(one.text), topics});
  }
  write_stdout(to_text({table}, output_width(), stdout_wants_colour()));
}

void add_paths(CLI::App& command, LessonOptions& options) {
  command.add_option("PATH", options.paths, "Markdown files, or folders whose *.md are taken")
      ->required()
      ->type_name("FILE|FOLDER");
  command.add_option("--numbers", options.numbers, "The list of numbers that nobody computes")->type_name("FILE");
}

}  // namespace

void add_lesson(CLI::App& app, const Invocation& invocation) {
  CLI::App* const lesson =
      app.add_subcommand("lesson", "Markdown whose numbers and console blocks this program computes and checks");
  wrap_help(*lesson);
  lesson->require_subcommand(1);
  lesson->footer(
      "Examples:\n"
      "  hbmscope lesson check docs README.md\n"
      "  hbmscope lesson build my_lesson.md\n"
      "  hbmscope lesson values --only S1-01\n"
      "How to write one: docs/writing-lessons.md");
  const auto options = std::make_shared<LessonOptions>();

  CLI::App* const building = lesson->add_subcommand("build", "Write values and console blocks anew, in place");
  add_paths(*building, *options);
  building->footer("A file with an error stays as it was.\nExample: hbmscope lesson build docs/lessons");
  building->callback([options, &invocation] { build(*options, invocation.argv); });

  CLI::App* const checking = lesson->add_subcommand("check", "Say what is not as computed; exit code 5 if anything");
  add_paths(*checking, *options);
  checking->add_option("--json", options->json, "Write the findings as JSON to FILE, or - for standard output")
      ->type_name("FILE|-");
  checking->footer(
      "Changes nothing. Exit code 3 where a file has errors, with differences or without.\n"
      "Examples:\n"
      "  hbmscope lesson check docs README.md\n"
      "  hbmscope lesson check --numbers docs/numbers.txt docs README.md");
  checking->callback([options, &invocation] { check(*options, invocation.argv); });

  CLI::App* const listing = lesson->add_subcommand("list", "Lessons, their titles, and their topics for explain");
  listing->add_option("DIR", options->folder, "A folder or a file (default: those that are built in)")
      ->type_name("DIR");
  listing->footer("Example: hbmscope lesson list docs/lessons");
  listing->callback([options] { list(*options); });

  add_lesson_values(*lesson);
}

}  // namespace hbmscope
