#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/json_text.hpp"
#include "model/algorithm.hpp"
#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"

namespace hbmscope {

/// One line of input of `hbmscope batch`.
struct BatchLine {
  AttentionShape shape;  ///< valid
  std::string algorithm;
  TilePlan plan;
  nlohmann::json shape_json;  ///< as it was given, for the line of output
  nlohmann::json plan_json;   ///< as it was given; an empty object if it was left out
};

/// Reads `{"shape": {...}, "algorithm": "flash_v2", "plan": {...}}`. Errors (kind data) name the key by its JSON
/// pointer. Keys of the top level and of the shape that nobody knows are ignored; an unknown plan key is an error, as
/// ignoring it would give the bytes of another plan. The mask stands either in the shape's own window_left,
/// window_right and alignment or, as in `run`'s output, in its `mask` object.
BatchLine parse_batch_line(std::string_view line);

/// The name of a plan key in JSON and in reports.
std::string_view name(PlanKey key);
/// The plan of a JSON object at `pointer`; null stands for a key's default.
TilePlan plan_from_json(const nlohmann::json& plan, std::string_view source_name, const std::string& pointer);
/// The given keys of a plan, in their order, as an object. What has not been chosen is null.
void write_plan(JsonText& to, const TilePlan& plan, std::span<const PlanKey> keys);
nlohmann::ordered_json plan_to_json(const TilePlan& plan, std::span<const PlanKey> keys);

/// The shape of a JSON object at `pointer`, checked by validate().
AttentionShape shape_from_json(const nlohmann::json& shape, std::string_view source_name, const std::string& pointer);
/// What shape_to_json() holds, as members of an object that the caller begins and ends.
void write_shape_members(JsonText& to, const AttentionShape& shape);
/// The `shape` object of a result, without `pass` and `live_pairs`; `kv_lengths` only where there are some.
nlohmann::ordered_json shape_to_json(const AttentionShape& shape);

}  // namespace hbmscope
