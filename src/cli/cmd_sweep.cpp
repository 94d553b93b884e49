#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/row_output.hpp"
#include "cli/rows_csv_file.hpp"
#include "cli/sweep_points.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "core/error.hpp"
#include "report/format.hpp"
#include "sweep/shard.hpp"

namespace hbmscope {
namespace {

struct SweepCommandOptions {
  SweepOptions sweep;
  std::string output = "-", shard, csv;
  std::optional<std::int64_t> jobs;
  bool resume = false, dry_run = false;
};

std::optional<std::string> variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

/// The cores that this process may use; a task of Slurm those that it asked for.
int cores() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string of_task = variable("SLURM_CPUS_PER_TASK").value_or("");
  int asked = 0;
  const auto [end, error] = std::from_chars(of_task.data(), of_task.data() + of_task.size(), asked);
  return error == std::errc{} && asked > 0 ? std::min(all, asked) : all;
}

/// The part that is to be computed, and whether a part was asked for.
struct ChosenShard {
  Shard shard;
  bool asked_for;
};

/// One line on standard error says what Slurm's variables made of it, or that they were not looked at.
ChosenShard choose_shard(const std::string& given) {
  if (!given.empty() && given != "auto") return {parse_shard(given), true};
  if (given.empty()) {
    std::string words;
    try {
      const SlurmShard slurm = shard_of_slurm(variable);
      if (slurm.shard.of > 1) words = slurm.words;
    } catch (const Error&) {
      // Nobody asked for them: variables that do not fit together are somebody else's.
    }
    if (!words.empty()) say_error(words + " computes all points; --shard auto would give each task its part", "");
    return {Shard{}, false};
  }
  const SlurmShard slurm = shard_of_slurm(variable);
  if (slurm.words.empty()) {
    say_error("--shard auto: neither a task of a Slurm array nor of a step of several: all points", "");
  } else {
    say_error("shard " + std::to_string(slurm.shard.number) + "/" + std::to_string(slurm.shard.of) + ": " + slurm.words,
              "");
  }
  return {slurm.shard, true};
}

/// `-o rows.{shard}.jsonl` names a file for each shard.
std::string output_path(std::string path, const ChosenShard& chosen) {
  constexpr std::string_view kPlace = "{shard}";
  const std::size_t at = path.find(kPlace);
  if (at == std::string::npos) return path;
  if (!chosen.asked_for)
    throw Error(ErrorKind::usage, "-o " + path + ": names a shard, and there is none",
                "add --shard I/N or --shard auto");
  return path.replace(at, kPlace.size(), std::to_string(chosen.shard.number));
}

std::string time_left(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

/// "12,345 of 100,000 points, 35 s left", a few times a second.
class SweepProgress {
 public:
  SweepProgress(std::int64_t all, std::int64_t before, bool wanted)
      : line_("sweep"), all_(all), before_(before), done_(before), wanted_(wanted) {}
  void add(std::int64_t points) {
    done_ += points;
    const auto now = Clock::now();
    if (!wanted_ || now - told_ < std::chrono::milliseconds(200)) return;
    told_ = now;
    const double passed = std::chrono::duration<double>(now - start_).count();
    const double left = passed * static_cast<double>(all_ - done_) / static_cast<double>(done_ - before_);
    line_.doing(text::integer(done_) + " of " + text::integer(all_) + " points, " + time_left(left) + " left");
  }

 private:
  using Clock = std::chrono::steady_clock;
  ProgressLine line_;
  std::int64_t all_, before_, done_;
  bool wanted_;
  Clock::time_point start_ = Clock::now(), told_ = start_;
};

/// Points that one thread computes at a time: many where one takes microseconds, so that rows are written in pieces
/// worth a system call; one where each takes long, so that none waits for its neighbours.
std::int64_t chunk_of(const SweepPoints& points, bool full) {
  return points.engine() == Engine::model && !full ? 16 : 1;
}

int jobs_of(const SweepPoints& points, const SweepCommandOptions& o) {
  const bool on_gpu = points.engine() >= Engine::gpu && !points.device().empty();
  if (on_gpu && o.jobs.value_or(1) > 1) {
    throw Error(ErrorKind::usage, "--jobs: a GPU measures one point at a time",
                "leave it out; --shard and --device spread a sweep over several GPUs");
  }
  // The numerics take all cores for one point.
  const bool one = on_gpu || (o.sweep.full && points.engine() >= Engine::cpu);
  constexpr std::int64_t kMost = 1024;
  if (o.jobs && (*o.jobs < 1 || *o.jobs > kMost))
    throw Error(ErrorKind::usage, "--jobs: takes 1 to " + std::to_string(kMost) + ", got " + std::to_string(*o.jobs),
                "leave it out to use all cores");
  return static_cast<int>(o.jobs.value_or(one ? 1 : cores()));
}

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" \t'\"\\$&|;<>()*?[]{}~`#!") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void show_plan(const SweepPoints& points, const Shard& shard, std::int64_t mine) {
  constexpr std::int64_t kShown = 5;
  const std::int64_t all = points.grid().points();
  std::string out = text::integer(all) + (all == 1 ? " point" : " points");
  if (const std::string product = points.grid().product(); !product.empty()) out += ": " + product;
  out += "\n";
  if (shard.of > 1) {
    out += "shard " + std::to_string(shard.number) + "/" + std::to_string(shard.of) + " has " + text::integer(mine) +
           " of them\n";
  }
  out += "key of the sweep: " + points.key() + "\n\n";
  for (std::int64_t k = 0; k < std::min(mine, kShown); ++k) {
    out += std::to_string(shard.index(k)) + ":";
    for (const std::string& word : points.command_line(shard.index(k))) out += " " + quoted(word);
    out += "\n";
  }
  if (mine > kShown) out += "...\n";
  write_stdout(out);
}

void execute(const CLI::App& command, const SweepCommandOptions& o) {
  const SweepPoints points(command, o.sweep);
  const ChosenShard chosen = choose_shard(o.shard);
  const Shard& shard = chosen.shard;
  const std::int64_t mine = shard.points(points.grid().points());
  const int jobs = jobs_of(points, o);
  if (o.dry_run) return show_plan(points, shard, mine);
  const std::string path = output_path(o.output, chosen);
  if (o.resume && path == "-")
    throw Error(ErrorKind::usage, "--resume goes on with a file of rows", "name it with -o FILE");
  refuse_inputs(path, points.gpu_files());
  check_rows_csv(o.csv, path, points.gpu_files());

  RowOutput output(path, o.resume);
  RowsThere done;
  if (o.resume) {
    const auto expected = [&](std::int64_t k) { return ExpectedRow{shard.index(k), points.head(shard.index(k))}; };
    done = output.resume(mine, expected, points.device());
  }
  const std::int64_t chunk = chunk_of(points, o.sweep.full), left = mine - done.rows;
  const auto make = [&](std::int64_t number) {
    Rows rows;
    const std::int64_t first = done.rows + number * chunk;
    for (std::int64_t k = first; k < std::min(first + chunk, mine); ++k) points.compute(shard.index(k), rows);
    return rows;
  };
  std::int64_t failed = done.failed;
  {
    // Rows on a terminal are progress enough.
    SweepProgress progress(mine, done.rows, path != "-" || !stdout_is_terminal());
    make_in_order((left + chunk - 1) / chunk, jobs, make, [&](const Rows& rows) {
      output.append(rows.text);
      failed += rows.failed;
      progress.add(rows.count);
      if (!rows.broken.empty())
        throw Error(ErrorKind::output, rows.broken, "its row says so; --resume goes on with the next point");
    });
  }
  if (!o.csv.empty()) write_rows_as_csv(path, o.csv);
  if (failed == 0) return;
  throw Error(ErrorKind::check, text::integer(failed) + " of " + text::integer(mine) + " points failed",
              "their rows have \"status\":\"failed\" and a reason; all others are whole");
}

}  // namespace

void add_sweep(CLI::App& app, const Invocation&) {
  CLI::App* c = app.add_subcommand("sweep", "Many shapes, plans and GPUs: one line of JSON a point, as they finish");
  wrap_help(*c);
  const auto options = std::make_shared<SweepCommandOptions>();
  add_sweep_options(*c, options->sweep);
  const char* group = "Sweep";
  c->add_option("-o,--output", options->output, "Append the rows to FILE, or - for standard output")
      ->type_name("FILE|-")
      ->capture_default_str()
      ->group(group);
  c->add_flag("--resume", options->resume, "Go on behind the rows that -o FILE holds")->group(group);
  c->add_option("--csv", options->csv, "When all points are there, write the rows as CSV to FILE or - as well")
      ->type_name("FILE|-")
      ->group(group);
  c->add_option("--shard", options->shard,
                "Compute part I of N alone, or the part of this task of a Slurm array or step")
      ->type_name("I/N|auto")
      ->group(group);
  add_count(*c, "--jobs", options->jobs, "Points computed at a time (default: as many as there are cores)")
      ->group(group);
  add_positive_count(*c, "--max-points", options->sweep.max_points,
                     "The most points that a sweep may have (default 1000000)")
      ->group(group);
  c->add_flag("--full", options->sweep.full, "Rows with all that `hbmscope run --json` gives")->group(group);
  c->add_flag("--dry-run", options->dry_run, "Say how many points there are, and which come first")->group(group);
  c->footer(
      "An option with several values is an axis: lists a,b,c, ranges FIRST:LAST:xFACTOR or FIRST:LAST:STEP.\n"
      "--window, --kv-lengths and --gemm-tile have commas of their own: give them once a value.\n"
      "The last axis of the command line changes fastest.\n"
      "Examples:\n"
      "  hbmscope sweep --seqlen 1k:64k:x2 --head-dim 64,128 -o rows.jsonl\n"
      "  hbmscope sweep --seqlen 1k:64k:x2 --gpu a100,h100,h200 --engine sim -o gpus.jsonl --resume\n"
      "  srun -n 8 hbmscope sweep --seqlen 64:64k:64 --shard auto -o 'part.{shard}.jsonl'");
  c->callback([c, options] { execute(*c, *options); });
}

}  // namespace hbmscope
