#include "cli/rows_csv_file.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/output.hpp"
#include "cli/targets.hpp"
#include "core/error.hpp"
#include "sweep/rows_csv.hpp"

namespace hbmscope {

void check_rows_csv(const std::string& csv, const std::string& rows, const std::vector<std::string>& inputs) {
  if (csv.empty()) return;
  std::error_code ignored;
  if (rows == "-" || (std::filesystem::exists(rows, ignored) && !std::filesystem::is_regular_file(rows, ignored)))
    throw Error(ErrorKind::usage, "--csv: is made of the rows in a file", "name it with -o FILE");
  if (csv != "-" && is_same_file(csv, rows))
    throw Error(ErrorKind::usage, "--csv " + csv + ": is the file of the rows", "give each a file of its own");
  refuse_inputs(csv, inputs);
  check_result_path(csv);
}

void write_rows_as_csv(const std::string& rows, const std::string& csv) {
  ResultFile file(csv);
  rows_to_csv(rows, [&](std::string_view text) { file.write(text); });
  file.finish();
}

}  // namespace hbmscope
