#include <memory>
#include <string>

#include "cli/app.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/progress_line.hpp"
#include "cli/targets.hpp"
#include "cli/typed_options.hpp"
#include "core/parse.hpp"
#include "core/split_list.hpp"
#include "report/gpu_report.hpp"
#include "report/probe_report.hpp"
#include "report/tile_search_report.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope {
namespace {

struct GpuOptions {
  std::string name;
  std::string json;
  int device = 0;
};

/// The JSON goes to its file, or takes the text's place on standard output.
void write(const GpuOptions& o, const nlohmann::ordered_json& json, const Document& document) {
  if (!o.json.empty()) write_json(o.json, json);
  if (o.json != "-") write_stdout(to_text(document, output_width(), stdout_wants_colour()));
}

void add_json(CLI::App& command, GpuOptions& options, const std::string& help) {
  command.add_option("--json", options.json, help)->type_name("FILE|-");
}

void probe_device(const GpuOptions& o, const std::vector<std::string>& argv) {
  if (!o.json.empty()) check_result_path(o.json);
  const std::unique_ptr<Device> device = open_device(o.device);
  ProbeResult result;
  {
    ProgressLine progress("measuring");
    result = probe(*device, [&](const std::string& what) { progress.doing(what); });
  }
  const GpuSpec* datasheet = gpu_of_device(result.device.name);
  write(o, probe_to_json(result, datasheet, argv), probe_document(result, datasheet));
}

std::vector<std::int64_t> lengths(const std::string& list, std::string_view option) {
  std::vector<std::int64_t> values;
  for (const std::string& one : split_list(list)) values.push_back(parse_length(one, option));
  return values;
}

void search(const GpuOptions& o, const std::string& head_dims, const std::string& seqlens,
            const std::vector<std::string>& argv) {
  TileSearchRequest request;
  request.head_dims = lengths(head_dims, "--head-dim");
  request.seqlens = lengths(seqlens, "--seqlen");
  request.device = o.device;
  if (!o.json.empty()) check_result_path(o.json);
  TileSearchResult result;
  {
    ProgressLine progress("searching");
    result = search_tiles(request, [&](const std::string& what) { progress.doing(what); });
  }
  write(o, tile_search_to_json(result, argv), tile_search_document(result));
}

}  // namespace

void add_gpu(CLI::App& app, const Invocation& invocation) {
  CLI::App* const command = app.add_subcommand("gpu", "GPUs as data: figures, their sources, and what is only assumed");
  wrap_help(*command);
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hbmscope gpu list\n"
      "  hbmscope gpu show h200\n"
      "  hbmscope gpu show h200 --json my_gpu.json   (edit it, then --gpu my_gpu.json)\n"
      "  hbmscope gpu probe\n"
      "  hbmscope gpu tiles --head-dim 128 --seqlen 8k");
  const auto options = std::make_shared<GpuOptions>();

  CLI::App* const list = command->add_subcommand("list", "The GPUs that hbmscope knows, one a line");
  add_json(*list, *options, "Write the list as JSON to FILE, or - for standard output");
  list->footer("Example: hbmscope gpu list --json -");
  list->callback([options, &invocation] {
    write(*options, gpu_list_to_json(embedded_gpus_parsed(), invocation.argv),
          gpu_list_document(embedded_gpus_parsed()));
  });

  CLI::App* const show = command->add_subcommand("show", "One GPU: every value with its source and date");
  show->add_option("NAME", options->name, "A name of the list or one of its aliases, or a GPU file that ends in .json")
      ->required()
      ->type_name("NAME|FILE.json");
  add_json(*show, *options, "Write it as a GPU file to FILE, or - for standard output");
  show->footer("Example: hbmscope gpu show \"rtx 4090\"");
  show->callback([options] {
    const GpuSpec gpu = find_gpu(options->name);
    write(*options, gpu_to_json(gpu), gpu_document(gpu));
  });

  CLI::App* const probing =
      command->add_subcommand("probe", "Measure this machine's roofs, and whether its counters count right");
  add_device(*probing, options->device, "Which CUDA device, from 0");
  add_json(*probing, *options, "Write the result as JSON to FILE, or - for standard output");
  probing->footer("Takes some ten seconds. Example: hbmscope gpu probe --json roofs.json");
  probing->callback([options, &invocation] { probe_device(*options, invocation.argv); });

  CLI::App* const tiles =
      command->add_subcommand("tiles", "Time tiles and schedules of flash_v3 against each other on this GPU");
  struct Axes {
    std::string head_dims = "64,128,256", seqlens = "1k,2k,8k";
  };
  const auto axes = std::make_shared<Axes>();
  tiles->add_option("--head-dim", axes->head_dims, "Head dims, separated by commas")
      ->type_name("LIST")
      ->capture_default_str();
  tiles
      ->add_option("--seqlen", axes->seqlens,
                   "Lengths, separated by commas; each is timed with and without causal mask")
      ->type_name("LIST")
      ->capture_default_str();
  add_device(*tiles, options->device, "Which CUDA device, from 0");
  add_json(*tiles, *options, "Write the result as JSON to FILE, or - for standard output");
  tiles->footer(
      "Takes some ten seconds a shape. The choices are those of kernels/flash_v3_candidates.def, which a build has "
      "that "
      "was configured with -DHBMSCOPE_TILE_SEARCH=ON (docs/kernels.md); others time the shipped tiles alone.\n"
      "Example: hbmscope gpu tiles --head-dim 128 --seqlen 8k --json tiles.json");
  tiles->callback([options, axes, &invocation] { search(*options, axes->head_dims, axes->seqlens, invocation.argv); });
}

}  // namespace hbmscope
