#include <algorithm>
#include <string>
#include <vector>

#include "analysis/worked_examples/parts.hpp"
#include "model/plan_choice.hpp"
#include "model/roofline.hpp"
#include "scenario/gpu_file.hpp"

// Decode: what FlashAttention does not change, and what does.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;

Bytes kv_bytes(const AttentionShape& s) {
  return tensor_bytes(Tensor::K, s, {}) + tensor_bytes(Tensor::V, s, {});
}

void nothing_to_fuse(V& v) {
  const AttentionShape one = decode(1, 1, 8192, 128), prefill = head(8192, 128);
  const Bytes naive = traffic_of("naive", one, {}).total(), flash = traffic_of("flash_v2", one, tiles(16, 128)).total();
  v.add("naive_bytes", naive);
  v.add("flash_bytes", flash);
  v.add("ratio", ratio(naive, flash));
  v.add("one_plus_2_over_d", 1 + 2.0 / static_cast<double>(one.head_dim));
  v.add("ratio_prefill", ratio(traffic_of("naive", prefill).total(), compulsory_bytes(prefill, Pass::forward)));
}

void two_kinds_of_bytes(V& v) {
  AttentionShape cache = decode(64, 8, 8192, 128), prefill = heads(1, 64, 8192, 128);
  std::vector<Bytes> kv{kv_bytes(cache)}, left_by_flash{square_bytes(traffic_of("flash_v2", prefill))};
  cache.dtype = prefill.dtype = Dtype::fp8;
  kv.push_back(kv_bytes(cache));
  left_by_flash.push_back(square_bytes(traffic_of("flash_v2", prefill)));
  kv.push_back(Bytes(kv.back().value() / 2));  // two 4-bit elements a byte
  v.add("bits_per_element", std::vector<std::int64_t>{16, 8, 4});
  v.add("decode_kv_MB", kv, unit::MB);
  v.add("prefill_S_P_naive_MB", square_bytes(traffic_of("naive", heads(1, 64, 8192, 128))), unit::MB);
  v.add("prefill_S_P_flash", left_by_flash);
}

/// Batch 1, 16 query heads on 2 kv heads, d = 128: times on an A100 that the Flash-Decoding authors print.
struct PrintedDecode {
  std::int64_t keys;
  Seconds time;
};
constexpr PrintedDecode kFlashDecoding[] = {{65536, {64.4e-6}}, {131072, {106.6e-6}}};

void reads_the_cache(V& v) {
  const GpuSpec& a100 = embedded_gpu("A100 SXM 40GB");
  std::vector<std::int64_t> keys;
  std::vector<Bytes> bytes;
  std::vector<Seconds> at_bandwidth, printed;
  std::vector<BytesPerSecond> implied;
  for (const PrintedDecode& row : kFlashDecoding) {
    const AttentionShape s = decode(16, 2, row.keys, 128);
    keys.push_back(row.keys);
    bytes.push_back(kv_bytes(s));
    at_bandwidth.push_back(bytes.back() / a100.hbm_bandwidth);
    printed.push_back(row.time);
    implied.push_back(bytes.back() / row.time);
  }
  const AttentionShape s = decode(16, 2, 65536, 128);
  const Bytes once = compulsory_bytes(s, Pass::decode);
  const Roofline roof = roofline(flops_of("split_kv", s, tiles(16, 128)).matmul, once,
                                 *a100.peak[static_cast<std::size_t>(Dtype::fp16)], a100.hbm_bandwidth);
  v.add("keys", keys);
  v.add("kv_MB", bytes, unit::MB);
  v.add("kv_share_of_bytes", ratio(kv_bytes(s), once));
  v.add("intensity", roof.intensity, unit::FLOP_per_B);
  v.add("ridge", roof.ridge, unit::FLOP_per_B);
  v.add("at_bandwidth_us", at_bandwidth, unit::us);
  v.add("printed_us", printed, unit::us);
  v.add("implied_TBs", implied, unit::TB_per_s);
  v.add("bandwidth_TBs", a100.hbm_bandwidth, unit::TB_per_s);
}

void too_few_ctas(V& v) {
  const GpuSpec& a100 = embedded_gpu("A100 SXM 40GB");
  const auto ctas = [](std::string_view name, const AttentionShape& s, const TilePlan& p) {
    return algorithm(name).walk(s, p).front().num_ctas;
  };
  TilePlan p = tiles(16, 128);
  p.pack_gqa = true;
  const AttentionShape one = decode(8, 1, 65536, 128), eight = decode(64, 8, 65536, 128);
  v.add("sms", a100.num_sms);
  v.add("ctas_1_kv_head", ctas("flash_v2", one, p));
  v.add("busy_1_kv_head", static_cast<double>(ctas("flash_v2", one, p)) / static_cast<double>(a100.num_sms));
  v.add("ctas_8_kv_heads", ctas("flash_v2", eight, p));
  p.num_kv_splits = choose_kv_splits(eight, p, a100.num_sms);
  v.add("splits_chosen", p.num_kv_splits);
  v.add("ctas_with_splits", ctas("split_kv", eight, p));
}

constexpr WorkedEntry kEntries[] = {
    {"Q-08", "In decode there is no N x N intermediate to save", Provenance::closed_form, nothing_to_fuse,
     [](const V& v) {
       return std::abs(v.number("ratio") / v.number("one_plus_2_over_d") - 1) < 1e-3 && v.number("ratio_prefill") > 10;
     },
     "One query on 8,192 keys: S and P are rows, so naive moves 1 + 2/d times what flash does; a prefill of that "
     "length stands beside it."},
    {"Q-11", "FlashAttention and a quantised KV cache save different bytes", Provenance::closed_form,
     two_kinds_of_bytes,
     [](const V& v) {
       const std::vector<double> bits = v.list("bits_per_element"), kv = v.list("decode_kv_MB"),
                                 left = v.list("prefill_S_P_flash");
       for (std::size_t i = 0; i < bits.size(); ++i) {
         if (kv[i] * bits[0] != kv[0] * bits[i]) return false;
       }
       return v.number("prefill_S_P_naive_MB") > kv[0] && left[0] == 0 && left[1] == 0;
     },
     "64 heads on 8 kv heads, 8,192 tokens. The cache shrinks with its bits; S and P are gone with flash, whatever K "
     "and V are stored in."},
    {"Q-17", "Decode is bound by reading the whole KV cache", Provenance::formula, reads_the_cache,
     [](const V& v) {
       const std::vector<double> implied = v.list("implied_TBs");
       const double bandwidth = v.number("bandwidth_TBs");
       return v.number("intensity") < v.number("ridge") && v.number("kv_share_of_bytes") > 0.99 &&
              std::all_of(implied.begin(), implied.end(),
                          [&](double rate) { return rate <= bandwidth && rate >= bandwidth / 2; });
     },
     "Printed times are quoted; they say A100 and not which, so they are held against the 1.555 TB/s of the 40 GB "
     "model: between half and all of it.",
     "Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference, micro-benchmark table, October 2023"},
    {"Q-19", "One query and few sequences leave a GPU idle", Provenance::closed_form, too_few_ctas,
     [](const V& v) {
       return v.number("ctas_1_kv_head") == 1 && v.number("busy_1_kv_head") < 0.01 &&
              v.number("ctas_8_kv_heads") < 0.1 * v.number("sms") &&
              v.number("ctas_with_splits") == v.number("ctas_8_kv_heads") * v.number("splits_chosen") &&
              v.number("ctas_with_splits") >= 0.8 * v.number("sms");
     },
     "CTAs on the 108 SMs of an A100, with the query heads of a kv head in one tile; splitting the keys fills it."},
};

}  // namespace

std::span<const WorkedEntry> demonstrations_of_serving() {
  return kEntries;
}

}  // namespace hbmscope::worked
