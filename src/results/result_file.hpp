#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "results/result.hpp"

namespace hbmscope {

class Fields;
/// Throws an Error (kind data) where a document is of another major schema_version than kResultSchemaMajor, or of none.
void check_schema_version(const Fields& top);

/// One result from its JSON. Throws an Error (kind data) that begins with `where` and names the member by its JSON
/// pointer: for a document that is no result, for another major schema_version, for a member that is missing or of
/// another kind, and for bytes that do not add up.
Result result_from_json(const nlohmann::json& document, std::string where);

/// Hands on every result of a file as it is read, so that a file of any length takes the memory of one line: one
/// document over many lines, or JSONL with one a line (blank lines are passed over); what `scenario run --json` wrote
/// holds several. "-" is standard input, and a pipe
/// will do. Returns how many there were; none is an Error, as is whatever cannot be read, with its line.
std::size_t read_results(const std::string& path, const std::function<void(Result&&)>& take);

/// All results of a file.
std::vector<Result> read_results(const std::string& path);

}  // namespace hbmscope
