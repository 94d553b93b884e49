#include "sweep/in_order.hpp"

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace hbmscope {
namespace {

constexpr std::size_t kWindowPerThread = 8;

/// What has been made, and who waits for what. A slot of the ring is free again once its result was taken.
class Window {
 public:
  Window(std::int64_t count, std::size_t slots) : count_(count), slots_(slots) {}

  /// The next number to make; nothing when there is none. Waits while the window is full.
  std::optional<std::int64_t> next() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return stopped_ || next_ >= count_ || next_ < taken_ + std::int64_t(slots_.size()); });
    if (stopped_ || next_ >= count_) return std::nullopt;
    return next_++;
  }
  void put(std::int64_t number, Rows rows) {
    const std::lock_guard lock(mutex_);
    slot(number) = std::move(rows);
    if (number == taken_) ready_.notify_one();
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stopped_ = true;
    room_.notify_all();
    ready_.notify_one();
  }
  /// The next result in the order; nothing after the last, or once something failed.
  std::optional<Rows> take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return error_ || taken_ == count_ || slot(taken_).has_value(); });
    if (error_ || taken_ == count_) return std::nullopt;
    std::optional<Rows> rows = std::exchange(slot(taken_), std::nullopt);
    ++taken_;
    room_.notify_all();
    return rows;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::optional<Rows>& slot(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  std::int64_t count_;
  std::vector<std::optional<Rows>> slots_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::int64_t next_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
};

}  // namespace

void make_in_order(std::int64_t count, int jobs, const std::function<Rows(std::int64_t)>& make,
                   const std::function<void(const Rows&)>& take) {
  Window window(count, kWindowPerThread * static_cast<std::size_t>(jobs));
  const auto work = [&] {
    try {
      while (const std::optional<std::int64_t> number = window.next()) window.put(*number, make(*number));
    } catch (...) {
      window.fail(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int job = 0; job < jobs && job < count; ++job) {
      try {
        threads.emplace_back(work);
      } catch (const std::system_error&) {
        if (!threads.empty()) break;  // fewer do as well
        throw Error(ErrorKind::output, "no thread can be started on this machine",
                    "raise the limit of processes or of memory (ulimit -u, ulimit -v)");
      }
    }
    while (const std::optional<Rows> rows = window.take()) take(*rows);
  } catch (...) {
    window.fail(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  window.rethrow();
}

}  // namespace hbmscope
