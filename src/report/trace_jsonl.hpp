#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "analysis/trace.hpp"

namespace hbmscope {

/// Takes text piece by piece, in order.
using TextSink = std::function<void(std::string_view)>;

/// Writes a line of JSON an event, as docs/schema/trace.schema.json describes it, and hands on some ten thousand bytes
/// at a time. finish() hands on the rest.
class TraceJsonl : public TraceListener {
 public:
  explicit TraceJsonl(TextSink sink) : sink_(std::move(sink)) {}
  void begin(const AlgorithmResult& algorithm) override;
  void stage(std::string_view name) override;
  void time(std::int64_t now) override { now_ = now; }
  void request(const PlayedRequest& request) override;
  void left_l2(const TileId& tile, Bytes bytes, bool written_back) override;
  void finish();

 private:
  void hand_on();

  TextSink sink_;
  std::string algorithm_, head_, out_;
  std::int64_t now_ = 0;
};

}  // namespace hbmscope
