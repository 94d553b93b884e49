#include <memory>
#include <vector>

#include "cli/app.hpp"
#include "cli/output.hpp"
#include "cli/softmax_text.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "report/softmax_report.hpp"

namespace hbmscope {
namespace {

struct SoftmaxOptions {
  std::string scores, values;
  std::string dtype = "fp64";
  Targets targets;
};

Precision parse_precision(const std::string& name) {
  std::vector<std::string_view> names{"fp64"};
  if (name == names[0]) return std::nullopt;
  for (const DtypeInfo& dtype : kDtypes) {
    if (name == dtype.name) return dtype.dtype;
    names.push_back(dtype.name);
  }
  throw Error(ErrorKind::usage, "--dtype: does not know " + in_quotes(name), did_you_mean(name, names));
}

void execute(const SoftmaxOptions& o, const std::vector<std::string>& argv) {
  check_targets(o.targets);
  SoftmaxReport report{parse_softmax(o.scores, o.values), parse_precision(o.dtype), {}, {}};
  report.result = online_softmax(report.input, report.precision);
  report.exact = online_softmax(report.input, std::nullopt);
  if (!o.targets.json.empty()) write_json(o.targets.json, softmax_to_json(report, argv));
  if (!o.targets.csv.empty()) write_result(o.targets.csv, softmax_to_csv(report));
  const Document document = softmax_document(report);
  if (!o.targets.markdown.empty()) write_result(o.targets.markdown, to_markdown(document));
  if (o.targets.text()) write_stdout(to_text(document, output_width(), stdout_wants_colour()));
}

}  // namespace

void add_softmax(CLI::App& app, const Invocation& invocation) {
  CLI::App* const command = app.add_subcommand("softmax", "Online softmax by hand: block by block, merged both ways");
  const auto options = std::make_shared<SoftmaxOptions>();
  command->add_option("--scores", options->scores, "Scores of one query, blocks between '|'; -inf is a masked key")
      ->required()
      ->type_name("S,S|S,S");
  command->add_option("--values", options->values, "One value for each score, or rows between ';'")
      ->required()
      ->type_name("V,V,...");
  command->add_option("--dtype", options->dtype, "Round after every operation: fp32, fp16, bf16 or fp8 (default fp64)")
      ->type_name("DTYPE");
  add_targets(*command, options->targets);
  command->footer(
      "Examples:\n"
      "  hbmscope softmax --scores \"2,1|3,0\" --values 1,2,3,4\n"
      "  hbmscope softmax --scores \"2,1|-inf,0\" --values \"1,0;0,1;1,1;2,2\" --dtype bf16");
  command->callback([options, &invocation] { execute(*options, invocation.argv); });
}

}  // namespace hbmscope
