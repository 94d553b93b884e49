#include "simulate/tile_trace.hpp"

#include <algorithm>

namespace hbmscope {

void TileTrace::clear() {
  requests_.clear();
  pending_.clear();
  steps_.clear();
  totals_.clear();
}

void TileTrace::finish() {
  step();
  for (const Steps& steps : steps_) {
    for (std::uint32_t i = steps.begin; i < steps.end; ++i) {
      const TileRequest& r = requests_[i].first;
      auto total = std::find_if(totals_.begin(), totals_.end(), [&](const Total& t) { return t.tensor == r.tensor; });
      if (total == totals_.end()) total = totals_.insert(total, {r.tensor, 0, 0});
      (r.store ? total->write : total->read) += steps.repeats * r.bytes;
    }
  }
}

bool TileTrace::continues(const Steps& last) const {
  if (last.end - last.begin != pending_.size()) return false;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Request& before = requests_[last.begin + i];
    const TileRequest &a = before.first, &b = pending_[i].first;
    if (a.tensor != b.tensor || a.store != b.store || a.bytes != b.bytes) return false;
    const std::uint64_t expected = a.key + static_cast<std::uint64_t>(last.repeats) * before.key_stride;
    if (last.repeats > 1 && b.key != expected) return false;
  }
  return true;
}

void TileTrace::step() {
  if (pending_.empty()) return;
  if (!steps_.empty() && continues(steps_.back())) {
    Steps& last = steps_.back();
    if (last.repeats == 1) {
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        Request& r = requests_[last.begin + i];
        r.key_stride = pending_[i].first.key - r.first.key;
      }
    }
    ++last.repeats;
  } else {
    const auto begin = static_cast<std::uint32_t>(requests_.size());
    requests_.insert(requests_.end(), pending_.begin(), pending_.end());
    steps_.push_back({begin, static_cast<std::uint32_t>(requests_.size()), 1});
  }
  pending_.clear();
}

}  // namespace hbmscope
