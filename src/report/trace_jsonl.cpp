#include "report/trace_jsonl.hpp"

#include <fmt/format.h>

#include <iterator>

namespace hbmscope {
namespace {

constexpr std::size_t kJsonlPiece = std::size_t{1} << 16;

}  // namespace

void TraceJsonl::begin(const AlgorithmResult& algorithm) {
  algorithm_ = algorithm.algorithm->name;
}

// Names of algorithms, stages and tensors are words: nothing in them needs an escape.
void TraceJsonl::stage(std::string_view name) {
  head_ = fmt::format(R"({{"algorithm":"{}","stage":"{}","time":)", algorithm_, name);
}

void TraceJsonl::request(const PlayedRequest& r) {
  out_ += head_;
  fmt::format_to(
      std::back_inserter(out_),
      R"({},"sm":{},"cta":{},"step":{},"tensor":"{}","batch_head":{},"row":{},"column":{},"op":"{}","bytes":{},"l2":"{}","hbm_bytes":{}}})"
      "\n",
      now_, r.sm, r.cta, r.step, info(r.tile.tensor).name, r.tile.batch_head, r.tile.row, r.tile.column,
      r.store ? "write" : "read", r.bytes.value(), r.through_hbm ? "miss" : "hit", r.through_hbm ? r.bytes.value() : 0);
  hand_on();
}

void TraceJsonl::left_l2(const TileId& tile, Bytes bytes, bool written_back) {
  if (!written_back) return;
  out_ += head_;
  fmt::format_to(
      std::back_inserter(out_),
      R"({},"sm":null,"cta":null,"step":null,"tensor":"{}","batch_head":{},"row":{},"column":{},"op":"write","bytes":0,"l2":"write_back","hbm_bytes":{}}})"
      "\n",
      now_, info(tile.tensor).name, tile.batch_head, tile.row, tile.column, bytes.value());
  hand_on();
}

void TraceJsonl::hand_on() {
  if (out_.size() >= kJsonlPiece) finish();
}

void TraceJsonl::finish() {
  if (!out_.empty()) sink_(out_);
  out_.clear();
}

}  // namespace hbmscope
