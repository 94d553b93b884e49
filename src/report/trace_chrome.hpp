#pragma once
#include <set>
#include <string>
#include <vector>

#include "analysis/trace.hpp"
#include "report/trace_jsonl.hpp"

namespace hbmscope {

/// Writes Chrome's trace event format (JSON object form), which ui.perfetto.dev and chrome://tracing open: a process a
/// stage, a thread an SM and one for what L2 writes back, a slice a step of a CTA with its tile requests in it, and
/// counters of the bytes so far. A step of the simulation is shown as 1,000 us; CTAs that share an SM share it. Within
/// a thread slices come in order and nest.
class TraceChrome : public TraceListener {
 public:
  explicit TraceChrome(TextSink sink);
  void begin(const AlgorithmResult& algorithm) override;
  void stage(std::string_view name) override;
  void time(std::int64_t now) override;
  void request(const PlayedRequest& request) override;
  void left_l2(const TileId& tile, Bytes bytes, bool written_back) override;
  /// Closes the text: shape, GPU, plans and sums under "otherData".
  void finish(const Trace& trace, const std::vector<std::string>& argv);

 private:
  struct WriteBack {
    TileId tile;
    std::int64_t bytes;
  };
  void event(std::string_view text);
  void name_thread(std::int64_t thread, std::string_view name);
  /// The write-backs of the step that ends share it, and the counters move on.
  void end_step();
  void end_stage();
  void counter(std::string_view name, const std::array<std::int64_t, 2>& read_and_write);

  TextSink sink_;
  std::string out_, algorithm_;
  std::int64_t process_ = 0, now_ = 0;
  std::set<std::int64_t> named_;  ///< threads of this process
  std::vector<WriteBack> write_backs_;
  std::array<std::int64_t, 2> sm_l2_{}, l2_hbm_{};  ///< bytes of this stage so far, read and written
  bool moved_ = false, first_ = true;
};

}  // namespace hbmscope
