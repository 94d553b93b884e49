#include "analysis/worked_examples/parts.hpp"

// Decode: one query, and a cache that is read whole.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
constexpr std::int64_t kContext = 128000;  // a decimal 128K
constexpr Count kLayers(80);

/// K and V of one layer with 64 query heads on 8 kv heads.
Bytes cache(std::int64_t tokens) {
  const AttentionShape s = decode(64, 8, tokens, 128);
  return tensor_bytes(Tensor::K, s, {}) + tensor_bytes(Tensor::V, s, {});
}

constexpr WorkedEntry kEntries[] = {
    {"S1-28", "How long does reading a KV cache of 128,000 tokens take on 8 GPUs?", Provenance::formula,
     [](V& v) {
       const Bytes all = kLayers * cache(kContext);
       const BytesPerSecond together = 8 * BytesPerSecond{3.3e12};
       v.add("GB", all, unit::GB);
       v.add("TBs", together, unit::TB_per_s);
       v.add("ms", all / together, unit::ms);
       v.add("kv_derived", kLayers * cache(1));
     },
     nullptr,
     "80 layers, 8 kv heads and d = 128 in 16 bits make the bytes a token; 128,000 is decimal, and 3.3 TB/s a GPU is "
     "the text's figure."},
    {"S1-30", "What is S in decode, with one query on 128,000 keys?", Provenance::closed_form,
     [](V& v) {
       const AttentionShape one = decode(1, 1, kContext, 128);
       const Bytes row = traffic_of("naive", one, {})[Tensor::S].write;
       v.add("elements", Count(row.value() / one.element_bytes()));
       v.add("bytes", row);
       v.add("vs_prefill", Count(scores(head(kContext, 128)).value() / row.value()));
     },
     nullptr, "A row for each head: next to nothing beside K and V."},
};

}  // namespace

std::span<const WorkedEntry> serving() {
  return kEntries;
}

}  // namespace hbmscope::worked
