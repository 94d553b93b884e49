#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace hbmscope {

/// Some rows, in their order.
struct Rows {
  std::string text;
  std::int64_t count = 0;
  std::int64_t failed = 0;
  std::string broken;  ///< why nothing more can be made after them; empty: it can
};

/// Calls `make` for 0, 1, ... count - 1 on `jobs` threads, and `take` for what they return on this one, in that order
/// and as soon as the order allows. Never holds more than a few results a thread, so memory stays flat, whichever is
/// slow. The first exception of either is rethrown, once all threads have ended.
void make_in_order(std::int64_t count, int jobs, const std::function<Rows(std::int64_t)>& make,
                   const std::function<void(const Rows&)>& take);

}  // namespace hbmscope
