#include "simulate/numerics/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hbmscope::numerics {

int thread_count(int asked) {
  constexpr int kMost = 64;
  return std::clamp(asked > 0 ? asked : static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::int64_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::int64_t others = std::min<std::int64_t>(thread_count(threads), count) - 1;
    for (std::int64_t i = 0; i < others; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hbmscope::numerics
