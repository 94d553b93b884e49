#pragma once
#include <cstdint>
#include <functional>

namespace hbmscope::numerics {

/// `asked`, or for 0 as many threads as the machine runs at once, at most 64.
int thread_count(int asked);

/// Calls body(i) once for every i in [0, count), in any order, from up to `threads` threads. The first exception is
/// passed on.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace hbmscope::numerics
