#pragma once
#include <string>
#include <vector>

namespace hbmscope {

/// Refuses --csv FILE where rows do not go to a file, from which they are read back so that those that were there
/// before are in it, where it is that file or one of `inputs`, and where it cannot be written. An empty `csv` is none.
void check_rows_csv(const std::string& csv, const std::string& rows, const std::vector<std::string>& inputs);

/// The rows of a file as CSV: to a file, whole or not at all, or to standard output.
void write_rows_as_csv(const std::string& rows, const std::string& csv);

}  // namespace hbmscope
