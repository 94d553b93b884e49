#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "lesson/quantity.hpp"

namespace hbmscope::lesson {

/// A function of expressions. Calling it with a unit that it cannot take is an Error (kind data).
struct Function {
  std::string_view name;
  std::size_t least, most;  ///< arguments
  Quantity (*call)(const std::vector<Quantity>&);
};

/// nullptr where there is none of this name.
const Function* find_function(std::string_view name);
std::vector<std::string_view> function_names();

}  // namespace hbmscope::lesson
