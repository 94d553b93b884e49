#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace hbmscope {

/// JSON as text, on one line unless `indent` says otherwise. All that this program writes goes through here: arguments
/// and file names may hold any bytes, JSON holds UTF-8 alone, and what is none becomes U+FFFD.
template <class Json>
std::string json_dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hbmscope
