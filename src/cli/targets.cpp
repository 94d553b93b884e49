#include "cli/targets.hpp"

#include "cli/output.hpp"
#include "core/error.hpp"

namespace hbmscope {

void add_targets(CLI::App& command, Targets& targets) {
  command.add_option("--json", targets.json, "Write the whole result as JSON to FILE, or - for standard output")
      ->type_name("FILE|-");
  command.add_option("--csv", targets.csv, "Write flat rows as CSV to FILE or -")->type_name("FILE|-");
  command.add_option("--markdown", targets.markdown, "Write the tables as Markdown to FILE or -")->type_name("FILE|-");
}

void check_targets(const Targets& targets) {
  const std::string* all[]{&targets.json, &targets.csv, &targets.markdown};
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) {
      if (all[a]->empty() || *all[a] != *all[b]) continue;
      throw Error(ErrorKind::usage,
                  "two formats cannot both go to " + (*all[a] == "-" ? std::string("standard output") : *all[a]),
                  "give each format a file of its own");
    }
  }
  for (const std::string* path : all) check_result_path(*path);
}

}  // namespace hbmscope
