#include "cli/sweep_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/run_row.hpp"
#include "cli/options_without_effect.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

/// What says how a sweep is computed, and is one for all its points.
constexpr std::string_view kSettings[]{"--algorithm",   "--engine",  "--device", "--repeats", "--kernel-counters",
                                       "--hw-counters", "--require", "--seed",   "--portable"};

bool is_setting(std::string_view name) {
  return std::find(std::begin(kSettings), std::end(kSettings), name) != std::end(kSettings);
}

AxisKind kind_of(const RunOption& option) {
  const std::string_view name = option.name;
  if (name == "--window") return AxisKind::windows;
  if (name == "--kv-lengths" || name == "--gemm-tile") return AxisKind::lists;
  if (name == "--l2") return AxisKind::capacity;
  if (std::holds_alternative<LengthOption>(option.kind)) return AxisKind::lengths;
  if (std::holds_alternative<CountOption>(option.kind)) return AxisKind::counts;
  if (std::holds_alternative<BytesOption>(option.kind)) return AxisKind::bytes;
  if (std::holds_alternative<RealOption>(option.kind)) return AxisKind::reals;
  if (std::holds_alternative<FlagOption>(option.kind)) return AxisKind::switches;
  return AxisKind::words;
}

/// Sets one value of an option, as the option alone would: --pack-gqa off is --no-pack-gqa, since leaving both out
/// means the algorithm's own default.
void set_value(RunOptions& options, const RunOption& option, const std::string& text) {
  if (std::string_view(option.name) == "--pack-gqa") options.no_pack_gqa = text == "off";
  set_option(options, option, text);
}

/// All that a prediction reads of a GPU.
std::string fingerprint_of(const GpuSpec& gpu) {
  Fingerprint print;
  print.add(gpu.name);
  for (const std::int64_t number :
       {gpu.num_sms, gpu.l2_bytes.value(), gpu.l2_effective_bytes.value(), gpu.smem_per_block_bytes.value(),
        gpu.smem_per_sm_bytes.value(), gpu.registers_per_sm_bytes.value(), gpu.hbm_bytes.value()})
    print.add(std::to_string(number));
  const auto add = [&](double number) { print.add(fmt::format("{}", number)); };
  add(gpu.hbm_bandwidth.value);
  add(gpu.launch_overhead.value);
  for (const auto& peak : gpu.peak) add(peak ? peak->value : 0);
  for (const GpuRoof& roof : gpu.measured_roofs) {
    print.add(roof.name);
    add(roof.rate);
  }
  for (const double clock : gpu.sm_clocks) add(clock);
  return print.hex();
}

/// The values that show whether all of them can be: what an option allows of numbers has a least and a most.
std::vector<const AxisValue*> telling(const std::vector<AxisValue>& values) {
  std::vector<const AxisValue*> few;
  const AxisValue *least = nullptr, *most = nullptr;
  const auto number = [](const AxisValue& value) { return parse_real(value.text, "a value"); };
  for (const AxisValue& value : values) {
    if (value.type != AxisValue::Type::number) {
      few.push_back(&value);
      continue;
    }
    if (least == nullptr || number(value) < number(*least)) least = &value;
    if (most == nullptr || number(value) > number(*most)) most = &value;
  }
  if (least != nullptr) few.insert(few.end(), {least, most});
  return few;
}

/// Is there anything wrong with a value by itself, whatever the other options are? They are set so that it has a
/// chance.
void check_alone(const RunOption& option, const std::string& text, const GpuSpec& gpu) {
  RunOptions alone;
  alone.engine = "model";
  set_value(alone, option, text);
  const std::string_view name = option.name;
  if (name == "--kv-heads") alone.heads = alone.kv_heads;
  if (name == "--kv-lengths") {
    alone.batch = static_cast<std::int64_t>(split_list(text).size());
    alone.seqlen_kv = kMaxSeqlen;
  }
  if (name == "--attention-speedup" || name == "--attention-time-saved") alone.amdahl.share = 0.5;
  (void)to_request(alone, gpu, false);
}

}  // namespace

void add_sweep_options(CLI::App& c, SweepOptions& o) {
  o.settings.engine = "model";  // closed forms: a sweep of many points is quick unless asked for more
  for (const RunOption& option : run_options()) {
    if (is_setting(option.name)) {
      add_run_option(c, option, o.settings);
      continue;
    }
    if (std::string_view(option.name) == "--no-pack-gqa") continue;  // --pack-gqa off
    SweepOptions::Given& given = o.given.emplace_back();
    given.option = &option;
    given.kind = kind_of(option);
    given.declared = c.add_option(option.name, given.texts, option.help)->group(option.group);
    const bool flag = given.kind == AxisKind::switches;
    given.declared->expected(flag ? 0 : 1, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    const char* types[]{"WORD,...",       "[on,off]", "N,...", "N,...", "BYTES,...",
                        "BYTES|none,...", "X,...",    nullptr, nullptr};
    const char* const type = types[static_cast<std::size_t>(given.kind)];
    given.declared->type_name(type != nullptr ? type : option.type);
    if (const std::string otherwise = text_of_option(o.settings, option); type == types[0] && !otherwise.empty())
      given.declared->default_str(otherwise);
  }
  c.get_option("--gpu")->type_name("NAME|FILE.json,...");
}

SweepPoints::SweepPoints(const CLI::App& command, const SweepOptions& options)
    : base_(options.settings), full_(options.full) {
  take_values(command, options);
  find_gpus();
  RunOptions settings = options.settings;
  if (!settings.algorithm.empty()) settings.pass = "both";  // of a point's own pass the point's row tells
  const RunRequest request = to_request(settings, gpus_.begin()->second.spec, false);
  engine_ = request.engine;
  check_values(options);
  check_effects(command, request);
  device_ = device_for(request);
  key_ = key_of_sweep();
  writer_.emplace(grid_, key_, device_.name);
}

void SweepPoints::take_values(const CLI::App& command, const SweepOptions& options) {
  std::vector<Axis> axes;
  std::vector<const CLI::Option*> seen;
  for (const CLI::Option* const option : command.parse_order()) {
    const auto given = std::find_if(options.given.begin(), options.given.end(),
                                    [&](const SweepOptions::Given& g) { return g.declared == option; });
    if (given == options.given.end() || std::find(seen.begin(), seen.end(), option) != seen.end()) continue;
    seen.push_back(option);
    Axis axis = parse_axis(given->option->name, given->kind, given->texts, options.max_points);
    if (axis.values.size() == 1) {
      set_value(base_, *given->option, axis.values.front().text);
    } else {
      axes_.push_back(given->option);
      axes.push_back(std::move(axis));
    }
  }
  grid_ = Grid(std::move(axes), options.max_points);
}

void SweepPoints::find_gpus() {
  std::vector<std::string> names;
  for (const Axis& axis : grid_.axes()) {
    if (axis.option != "--gpu") continue;
    for (const AxisValue& value : axis.values) names.push_back(value.text);
  }
  if (names.empty()) names.push_back(base_.gpu);
  std::map<std::string, std::string> by_print;
  for (const std::string& name : names) {
    RunOptions only;
    only.gpu = name;
    only.device = base_.device;
    ChosenGpu chosen = choose_gpu(only);
    if (!full_) {  // rows hold neither, and each point has a copy
      chosen.spec.sources.clear();
      chosen.spec.aliases.clear();
    }
    Gpu gpu{std::move(chosen.spec), {}, chosen.assumed};
    gpu.fingerprint = fingerprint_of(gpu.spec);
    const auto [before, is_new] = by_print.emplace(gpu.fingerprint, name);
    if (!is_new) {
      throw Error(ErrorKind::usage,
                  "--gpu: " + in_quotes(before->second) + " and " + in_quotes(name) + " are the same GPU",
                  "give each GPU once: a point is computed once");
    }
    gpus_.emplace(name, std::move(gpu));
  }
}

void SweepPoints::check_values(const SweepOptions& options) const {
  const GpuSpec& gpu = gpus_.begin()->second.spec;
  for (const SweepOptions::Given& given : options.given) {
    const RunOption& option = *given.option;
    const bool is_gpu = std::string_view(option.name) == "--gpu";
    if (given.texts.empty() || is_gpu) continue;
    if (std::holds_alternative<RealOption>(option.kind) && !full_) {
      throw Error(ErrorKind::usage, std::string(option.name) + ": has no effect on rows, which hold no step",
                  "add --full for rows with the whole result, or leave it out");
    }
    if (std::string_view(option.name) == "--l2" && !full_ && engine_ == Engine::model) {
      throw Error(ErrorKind::usage, "--l2: has no effect on rows with --engine model, which hold no HBM bytes",
                  "take --engine sim, or leave it out");
    }
    const auto axis = std::find(axes_.begin(), axes_.end(), &option);
    if (axis == axes_.end()) {
      check_alone(option, text_of_option(base_, option), gpu);
      continue;
    }
    for (const AxisValue* value : telling(grid_.axes()[static_cast<std::size_t>(axis - axes_.begin())].values))
      check_alone(option, value->text, gpu);
  }
  if (engine_ == Engine::cpu && !full_) {
    throw Error(ErrorKind::usage, "--engine cpu: rows hold nothing of the numerics that it adds",
                "add --full for rows with the whole result, or take --engine sim");
  }
}

void SweepPoints::check_effects(const CLI::App& command, RunRequest request) const {
  std::vector<std::string> passes;
  for (const Axis& axis : grid_.axes()) {
    if (axis.option != "--pass") continue;
    for (const AxisValue& value : axis.values) passes.push_back(value.text);
  }
  if (passes.empty()) passes.push_back(base_.pass);
  request.pass = passes.size() == 1 ? passes.front() : "both";
  if (request.algorithms.empty()) {
    for (const std::string& pass : passes) {
      for (const std::string& name : default_algorithms(pass)) {
        if (std::find(request.algorithms.begin(), request.algorithms.end(), name) == request.algorithms.end())
          request.algorithms.push_back(name);
      }
    }
  }
  refuse_options_without_effect(command, request);
}

RunOptions SweepPoints::options_at(std::int64_t index) const {
  RunOptions options = base_;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) set_value(options, *axes_[axis], grid_.at(index, axis).text);
  return options;
}

/// A GPU by what it is: h200 and H200 are one, and a file is another once it was edited.
std::string SweepPoints::text_for_key(const RunOption& option, const std::string& value) const {
  return std::string_view(option.name) == "--gpu" ? gpus_.at(value).fingerprint : value;
}

std::string SweepPoints::key_of(const RunOptions& options) const {
  Fingerprint print;
  print.add(full_ ? "full" : "");
  for (const RunOption& option : run_options()) {
    print.add(option.name);
    print.add(text_for_key(option, text_of_option(options, option)));
  }
  return print.hex();
}

std::string SweepPoints::key_of_sweep() const {
  Fingerprint print;
  print.add(full_ ? "full" : "");
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    print.add(axes_[axis]->name);
    for (const AxisValue& value : grid_.axes()[axis].values) print.add(text_for_key(*axes_[axis], value.text));
  }
  print.add("");
  for (const RunOption& option : run_options()) {
    if (std::find(axes_.begin(), axes_.end(), &option) != axes_.end()) continue;
    const std::string text = text_of_option(base_, option);
    print.add(option.name);
    // A GPU that nobody named may be another on each machine: the rows tell, and merging them asks.
    print.add(text.empty() ? text : text_for_key(option, text));
  }
  return print.hex();
}

std::vector<std::string> SweepPoints::gpu_files() const {
  std::vector<std::string> names;
  for (const auto& [name, gpu] : gpus_) names.push_back(name);
  return files_among(std::move(names));
}

std::string SweepPoints::head(std::int64_t index) const {
  std::string text;
  writer_->append_head(text, index, key_of(options_at(index)));
  return text;
}

void SweepPoints::compute(std::int64_t index, Rows& to) const {
  const RunOptions options = options_at(index);
  const Gpu& gpu = gpu_of(options);
  writer_->append_head(to.text, index, key_of(options));
  const std::size_t end_of_head = to.text.size();
  ++to.count;
  std::string reason;
  try {
    RunRequest request = to_request(options, gpu.spec, gpu.assumed);
    if (full_) {
      writer_->append_whole_result(to.text, run_on(std::move(request), device_), command_line(index));
    } else {
      writer_->append_result(to.text, run_row(std::move(request), device_));
    }
    return;
  } catch (const Error& error) {
    reason = error.what();
    // A GPU that failed answers nothing more in this process.
    if (error.kind() == ErrorKind::output) to.broken = "point " + std::to_string(index) + ": " + reason;
  } catch (const std::bad_alloc&) {
    reason = "out of memory";
  }
  ++to.failed;
  to.text.resize(end_of_head);
  writer_->append_failure(to.text, reason, gpu.spec.name);
}

std::vector<std::string> SweepPoints::command_line(std::int64_t index) const {
  const RunOptions options = options_at(index), defaults;
  std::vector<std::string> words{"hbmscope", "run"};
  for (const RunOption& option : run_options()) {
    const std::string text = text_of_option(options, option);
    if (text == text_of_option(defaults, option)) continue;
    words.emplace_back(option.name);
    if (!std::holds_alternative<FlagOption>(option.kind)) words.push_back(text);
  }
  return words;
}

}  // namespace hbmscope
