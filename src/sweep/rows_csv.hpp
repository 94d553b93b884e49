#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace hbmscope {

/// Reads a file of rows and hands out the same as CSV, in pieces: a header, then a line an algorithm, boundary and
/// witness of each point, and one for a point that failed. Axes have columns of their own. Throws an Error (kind data)
/// as read_results() does, and for a result that is no row of a sweep, or of another sweep's axes.
void rows_to_csv(const std::string& path, const std::function<void(std::string_view)>& to);

}  // namespace hbmscope
