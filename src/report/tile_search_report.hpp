#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/tile_search.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// A table for each shape, the fastest kernel first.
Document tile_search_document(const TileSearchResult& result);
nlohmann::ordered_json tile_search_to_json(const TileSearchResult& result, const std::vector<std::string>& argv);

}  // namespace hbmscope
