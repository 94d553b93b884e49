#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/profile_import.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// The report of `hbmscope profile import`: what was counted, and, beside a prediction, how far apart the two are and
/// why.
Document profile_document(const ProfileImport& import);

/// As docs/schema/profile.schema.json describes it. `shape`, `gpu` and `algorithms` are those of `run`, with the
/// counters among the algorithm's and its stages' traffic.
nlohmann::ordered_json profile_to_json(const ProfileImport& import, const std::vector<std::string>& argv);

/// Flat rows: one a launch, boundary and provenance, units in the column names, plain numbers in the cells (RFC 4180).
std::string profile_to_csv(const ProfileImport& import);

}  // namespace hbmscope
