#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hbmscope {

enum class Status : std::uint8_t { ok, unsupported, skipped, failed };

constexpr std::string_view name(Status status) {
  constexpr std::array<std::string_view, 4> names{"ok", "unsupported", "skipped", "failed"};
  return names[static_cast<std::size_t>(status)];
}

/// A value, or why there is none.
template <class T>
struct Known {
  std::optional<T> value;
  Status status = Status::ok;
  std::string reason;
  static Known missing(Status status, std::string reason) { return {std::nullopt, status, std::move(reason)}; }
  static Known of(T value) { return {std::move(value), Status::ok, {}}; }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
};

}  // namespace hbmscope
