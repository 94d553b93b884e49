#pragma once
#include <nlohmann/json.hpp>

/// What every test takes of the JSON library is compiled in json_once.cpp and not in each of them.
extern template class nlohmann::basic_json<>;
