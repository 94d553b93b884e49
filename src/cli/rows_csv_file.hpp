#pragma once
#include <string>

#include "cli/output.hpp"
#include "sweep/rows_csv.hpp"

namespace hbmscope {

/// The rows of a file as CSV: to a file, whole or not at all, or to standard output.
inline void write_rows_as_csv(const std::string& rows, const std::string& csv) {
  ResultFile file(csv);
  rows_to_csv(rows, [&](std::string_view text) { file.write(text); });
  file.finish();
}

}  // namespace hbmscope
