#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/profile_import.hpp"
#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/options_without_effect.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/run_options.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "device/ncu_csv.hpp"
#include "report/profile_report.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {
namespace {

/// ncu may still be writing into the pipe; the whole of it is read before anything is said.
std::string read_standard_input() {
  if (::isatty(STDIN_FILENO) == 1)
    say_error("waiting for the table of ncu --csv on this terminal", "Ctrl-D ends it; --help shows how to make one");
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw Error(ErrorKind::data, "standard input: cannot be read: " + std::generic_category().message(errno),
                  "give a file, or - with a pipe");
    }
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxJsonBytes) {
      throw Error(ErrorKind::data, "standard input: is larger than 64 MiB, the most that is read",
                  "let ncu collect fewer metrics, or fewer launches with --launch-count");
    }
  }
}

/// Takes away what `run` has beside shape, plan and the options of `machine`: it would say nothing here. Returns what
/// stays.
std::vector<const CLI::Option*> keep_options(CLI::App& command, std::initializer_list<std::string_view> machine) {
  std::vector<const CLI::Option*> kept;
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    const std::string group = option->get_group(), name = option->get_name();
    if (group == "Shape" || group == "Algorithms and tiles" ||
        std::find(machine.begin(), machine.end(), name) != machine.end()) {
      kept.push_back(option);
    } else if (option != command.get_help_ptr()) {
      command.remove_option(option);
    }
  }
  return kept;
}

// ---- profile import -------------------------------------------------------------------------------------------------

struct ImportOptions {
  std::string path, kernel;
  RunOptions run;
  Targets targets;
  std::vector<const CLI::Option*> of_prediction;  ///< shape, plan and machine
};

/// Of all that `run` takes, what a prediction of bytes needs.
void keep_options_of_prediction(CLI::App& command, ImportOptions& options) {
  options.of_prediction = keep_options(command, {"--gpu", "--sram", "--l2", "--l2-state"});
}

/// What to put beside the counters; nothing without --algorithm.
std::optional<RunRequest> beside(const CLI::App& command, const ImportOptions& o) {
  if (o.run.algorithm.empty()) {
    for (const CLI::Option* option : o.of_prediction) {
      if (option->count() == 0) continue;
      throw Error(ErrorKind::usage, option->get_name() + ": says nothing without --algorithm",
                  "name what to put beside the counters, such as --algorithm flash_v2 --block-q 128 --block-kv 64");
    }
    return std::nullopt;
  }
  RunRequest request = to_request(o.run);
  if (!request.flash.empty()) {
    throw Error(ErrorKind::usage,
                "--algorithm flash: names the fastest of our kernels, and the counters are of another",
                "name what that kernel does, such as flash_v2 with its --block-q and --block-kv");
  }
  request.engine = Engine::sim;  // counters are bytes: nothing is computed
  refuse_options_without_effect(command, request);
  return request;
}

void import(const CLI::App& command, const ImportOptions& o, const std::vector<std::string>& argv) {
  std::vector<std::string> inputs = files_among({o.run.gpu});
  inputs.push_back(o.path);
  check_targets(o.targets, inputs);
  ProfileRequest request;
  request.source = o.path == "-" ? "standard input" : o.path;
  request.kernel = o.kernel;
  request.beside = beside(command, o);
  request.file =
      parse_ncu_csv(o.path == "-" ? read_standard_input() : read_text_file(o.path, Pipes::taken), request.source);
  ProfileImport result;
  {
    ProgressLine progress("simulating the L2");
    result = import_profile(std::move(request), {[&](double fraction) { progress.at(fraction); }, {}});
  }
  if (!o.targets.json.empty()) write_json(o.targets.json, profile_to_json(result, argv));
  if (!o.targets.csv.empty()) write_result(o.targets.csv, profile_to_csv(result));
  if (!o.targets.markdown.empty()) write_result(o.targets.markdown, to_markdown(profile_document(result)));
  if (o.targets.text()) write_stdout(to_text(profile_document(result), output_width(), stdout_wants_colour()));
}

void add_import(CLI::App& profile, const Invocation& invocation) {
  CLI::App* const c =
      profile.add_subcommand("import", "What ncu counted, alone or beside the prediction for the same shape");
  const auto options = std::make_shared<ImportOptions>();
  add_run_options(*c, options->run);
  keep_options_of_prediction(*c, *options);
  c->get_option("--algorithm")
      ->description(
          "Put beside the counters: naive, flash_v1, flash_v2, flash_v3, split_kv, or with --pass backward naive_bwd, "
          "flash_v1_bwd, flash_v2_bwd (default: nothing)")
      ->type_name("NAME");
  c->add_option("FILE", options->path, "What ncu --csv wrote, either page, or - for standard input")
      ->required()
      ->type_name("FILE.csv|-");
  c->add_option("--kernel", options->kernel,
                "Only launches of kernels whose name contains this POSIX extended regular expression (default: all)")
      ->type_name("REGEX");
  add_targets(*c, options->targets);
  for (const char* target : {"--json", "--csv", "--markdown"}) c->get_option(target)->group("Output");
  c->footer(
      "A command that counts what is wanted, on an H200 in one pass:\n"
      "  ncu --csv --log-file FILE.csv --cache-control none --clock-control none --metrics \\\n"
      "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,\\\n"
      "l1tex__m_xbar2l1tex_read_bytes.sum,lts__t_sectors_srcunit_tex_op_read.sum,\\\n"
      "lts__t_sectors_srcunit_tex_op_write.sum,smsp__inst_executed_pipe_tensor.sum PROGRAM\n"
      "naive takes three launches, in the order of its kernels: qk, softmax, pv.\n"
      "Examples:\n"
      "  hbmscope profile import fa2.csv\n"
      "  hbmscope profile import fa2.csv --kernel flash_fwd --algorithm flash_v2 --block-q 128 \\\n"
      "    --block-kv 64 --seqlen 8k --heads 8 --dtype bf16 --gpu h200\n"
      "  hbmscope profile import naive.csv --algorithm naive --seqlen 4k --heads 32 --json -");
  c->callback([c, options, &invocation] { import(*c, *options, invocation.argv); });
}

// ---- profile: one shot ----------------------------------------------------------------------------------------------

/// As a shell takes it.
std::string in_quotes(const std::string& word) {
  const bool plain =
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%") ==
      std::string::npos;
  if (plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What to type to see the same launches in Nsight Compute, which counts, and in Nsight Systems, which shows the
/// timeline.
void one_shot(const CLI::App& options_of, const RunOptions& options, const std::vector<std::string>& argv) {
  const RunRequest request = to_request(options);
  refuse_options_without_effect(options_of, request);
  const std::vector<ProfiledPipeline> ran = run_for_profiler(request);
  std::string command;
  for (const std::string& word : argv) command += " " + in_quotes(word);
  std::string ranges, names;
  for (const ProfiledPipeline& p : ran) {
    names += (names.empty() ? "" : ", ") + std::string(p.name);
    for (const std::string_view stage : p.stages) {
      ranges += " --nvtx-include \"hbmscope@" + std::string(p.name) + "/" + std::string(stage) + "/\"";
    }
  }
  Document out;
  out.push_back(Paragraph{"Ran once: " + names +
                          ". Each kernel lies in a range of the NVTX domain hbmscope, whose payload "
                          "is its predicted bytes."});
  out.push_back(
      Labelled{"ncu", "counts these kernels; bring the file back with `hbmscope profile import profile.csv`"});
  out.push_back(Labelled{"nsys", "shows them on a time line (this line was never run by hbmscope's authors)"});
  write_stdout(to_text(out, output_width(), stdout_wants_colour()));
  // Lines to copy are not wrapped.
  write_stdout("\nncu --csv --log-file profile.csv --cache-control none --clock-control none --nvtx" + ranges +
               " --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
               "l1tex__m_xbar2l1tex_read_bytes.sum,lts__t_sectors_srcunit_tex_op_read.sum,"
               "lts__t_sectors_srcunit_tex_op_write.sum,smsp__inst_executed_pipe_tensor.sum" +
               command + "\n\nnsys profile --trace=cuda,nvtx --output=profile" + command + "\n");
}

}  // namespace

void add_profile(CLI::App& app, const Invocation& invocation) {
  CLI::App* const c = app.add_subcommand(
      "profile", "Runs kernels once for Nsight and prints its command lines; import brings its counters back");
  wrap_help(*c);
  c->require_subcommand(0, 1);
  const auto options = std::make_shared<RunOptions>();
  add_run_options(*c, *options);
  keep_options(*c, {"--gpu", "--sram", "--device", "--seed"});
  c->footer(
      "Examples:\n"
      "  hbmscope profile --seqlen 8k --heads 8 --algorithm flash_v2\n"
      "  hbmscope profile import profile.csv");
  c->callback([c, options, &invocation] {
    if (c->get_subcommands().empty()) one_shot(*c, *options, invocation.argv);
  });
  add_import(*c, invocation);
}

}  // namespace hbmscope
