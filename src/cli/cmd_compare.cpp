#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "analysis/result_differences.hpp"
#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "core/error.hpp"
#include "core/file_error.hpp"
#include "report/compare_report.hpp"
#include "results/result_file.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string first, second;
  ComparisonLimits limits;
  bool strict = false, allow_missing = false;
  Targets targets;
};

/// Does the file begin with a result, or with something that may be one and is broken? Folders hold other JSON too.
bool may_hold_results(const std::string& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kMaxJsonBytes) return true;  // no document is as large: lines, to be read one by one
  const std::string text = read_text_file(path);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return true;
  for (const std::size_t end : {text.find('\n', begin), text.size()}) {
    try {
      const nlohmann::json first = parse_json(std::string_view(text).substr(begin, end - begin), path);
      return first.is_object() &&
             (first.contains("algorithms") || (first.contains("scenario") && first.contains("runs")));
    } catch (const Error&) {  // the line is no document: the file may be
    }
  }
  return true;
}

/// The files that a name stands for: itself, or what a folder and its own hold of .json and .jsonl, by name.
std::vector<std::string> result_files_of(const std::string& name) {
  std::error_code error;
  if (name == "-" || !fs::is_directory(name, error)) return {name};
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(name, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if ((extension == ".json" || extension == ".jsonl") && entry->is_regular_file(error))
      files.push_back(entry->path().string());
  }
  if (error) throw cannot_open(name, error.value());
  if (files.empty()) {
    throw Error(ErrorKind::data, name + ": holds no .json and no .jsonl file",
                "results are what `hbmscope run --json FILE` and `hbmscope sweep` write");
  }
  std::sort(files.begin(), files.end());
  return files;
}

ResultSet read_set(const std::string& name, std::vector<std::string>& passed_over) {
  const std::vector<std::string> files = result_files_of(name);
  const bool folder = files.size() != 1 || files.front() != name;
  ResultSet set;
  for (const std::string& file : files) {
    if (folder && !may_hold_results(file)) {
      if (std::find(passed_over.begin(), passed_over.end(), file) == passed_over.end()) passed_over.push_back(file);
      continue;
    }
    read_results(file, [&](Result&& result) { set.add(std::move(result)); });
  }
  if (set.results == 0) {
    throw Error(ErrorKind::data, name + ": none of its files holds a result",
                "results are what `hbmscope run --json FILE` and `hbmscope sweep` write");
  }
  return set;
}

/// "0.02" or "2%", of 0 or more.
double parse_tolerance(std::string_view text, std::string_view option) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const double value = parse_real(text, option) / (percent ? 100 : 1);
  if (value < 0) {
    throw Error(ErrorKind::usage, std::string(option) + ": must not be negative, got " + std::string(text),
                "give a share, such as 0.02 or 2%");
  }
  return value;
}

double parse_probability(std::string_view text, std::string_view option) {
  const double value = parse_tolerance(text, option);
  if (value > 0 && value < 1) return value;
  throw Error(ErrorKind::usage, std::string(option) + ": must lie between 0 and 1, got " + std::string(text),
              "0.01 lets one change in a hundred be chance");
}

bool has_failed(const ResultDifferences& d, const CompareOptions& o) {
  if (d.matched.empty()) return true;  // a comparison of nothing would pass for ever
  if (d.any(Verdict::different) || d.any(Verdict::slower)) return true;
  if (!o.allow_missing && (d.any(Verdict::lost) || !d.missing.empty())) return true;
  return o.strict && (!d.differences.empty() || !d.added.empty());
}

/// What made the comparison fail, in a few words.
std::string failure(const ResultDifferences& d, const CompareOptions& o) {
  const auto count = [&](Verdict verdict) {
    return std::count_if(d.differences.begin(), d.differences.end(),
                         [&](const ResultDifference& one) { return one.verdict == verdict; });
  };
  std::string words;
  const auto say = [&](std::ptrdiff_t n, const char* what) {
    if (n > 0) words += (words.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  };
  if (d.matched.empty()) words = "no entry is in both, so nothing was compared";
  say(count(Verdict::different), "of other size");
  say(count(Verdict::slower), "slower");
  if (o.strict) say(count(Verdict::faster), "faster");
  if (!o.allow_missing) say(count(Verdict::lost), "no longer known");
  if (o.strict) say(count(Verdict::gained), "newly known");
  if (!o.allow_missing) say(std::ssize(d.missing), d.missing.size() == 1 ? "entry missing" : "entries missing");
  if (o.strict) say(std::ssize(d.added), d.added.size() == 1 ? "entry new" : "entries new");
  return words;
}

void execute(const CompareOptions& o, const std::vector<std::string>& argv) {
  if (o.first == "-" && o.second == "-") {
    throw Error(ErrorKind::usage, "both sides are standard input", "give a file or a folder for one of them");
  }
  std::vector<std::string> inputs;
  for (const std::string& side : {o.first, o.second}) {
    const std::vector<std::string> files = result_files_of(side);
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  check_targets(o.targets, inputs);
  std::vector<std::string> passed_over;
  const ResultSet first = read_set(o.first, passed_over), second = read_set(o.second, passed_over);
  const ResultDifferences differences = compare_results(first, second, o.limits);
  const bool failed = has_failed(differences, o);
  const ComparisonReport report{o.first == "-" ? "standard input" : o.first,
                                o.second == "-" ? "standard input" : o.second,
                                passed_over,
                                first,
                                second,
                                differences,
                                o.limits,
                                failed};
  if (!o.targets.json.empty()) write_json(o.targets.json, compare_to_json(report, argv));
  if (!o.targets.csv.empty()) write_result(o.targets.csv, compare_to_csv(report));
  if (!o.targets.markdown.empty()) write_result(o.targets.markdown, to_markdown(compare_document(report)));
  if (o.targets.text()) write_stdout(to_text(compare_document(report), output_width(), stdout_wants_colour()));
  if (!failed) return;
  throw Error(ErrorKind::check, "the results differ: " + failure(differences, o),
              o.targets.text() ? "the tables above name each" : "the report names each");
}

}  // namespace

void add_compare(CLI::App& app, const Invocation& invocation) {
  CLI::App* c = app.add_subcommand("compare", "Two sets of results: bytes exact, times by a test on their samples");
  wrap_help(*c);
  const auto o = std::make_shared<CompareOptions>();
  c->add_option("A", o->first, "What was: a file of results, a folder of them, or - for standard input")
      ->required()
      ->type_name("FILE|DIR|-");
  c->add_option("B", o->second, "What is")->required()->type_name("FILE|DIR|-");
  add_parsed(*c, "--bytes-tolerance", o->limits.bytes, parse_tolerance,
             "Relative difference of bytes and FLOP that is let pass, 0.01 or 1% (default 0)", "X");
  add_parsed(*c, "--counter-tolerance", o->limits.counters, parse_tolerance,
             "The same for bytes of the hardware's counters (default 5%)", "X");
  add_parsed(*c, "--time-tolerance", o->limits.time, parse_tolerance,
             "Relative change of a median time that is let pass, however sure it is (default 3%)", "X");
  add_parsed(*c, "--p", o->limits.p, parse_probability,
             "How improbable a change must be in samples of one distribution to count (default 0.01)", "X");
  c->add_flag("--allow-missing", o->allow_missing, "What B lacks is listed and fails nothing");
  c->add_flag("--strict", o->strict, "Improvements, and what only B has, fail too");
  add_targets(*c, o->targets);
  c->footer(
      "Exit code 5 if bytes differ, a time got slower, or B lacks something that A has.\n"
      "Examples:\n"
      "  hbmscope compare baseline.json now.json\n"
      "  hbmscope compare reports/h200 new_reports --time-tolerance 5%\n"
      "In CI: docs/compare.md");
  c->callback([o, &invocation] { execute(*o, invocation.argv); });
}

}  // namespace hbmscope
