#include <algorithm>

#include "simulate/numerics/numerics.hpp"

namespace hbmscope {

namespace {

constexpr std::int64_t kMaxInputElements = std::int64_t{1} << 28;
constexpr std::int64_t kMaxMultiplyAdds = std::int64_t{1} << 34;

/// One of [0, n) from each of `count` <= n equal parts, ascending.
std::vector<std::int64_t> one_of_each_part(std::int64_t n, std::int64_t count, std::uint64_t key) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t first = part * (n / count) + std::min(part, n % count);
    const std::int64_t size = n / count + (part < n % count ? 1 : 0);
    chosen.push_back(first + static_cast<std::int64_t>(numerics::hash(key, static_cast<std::uint64_t>(part)) %
                                                       static_cast<std::uint64_t>(size)));
  }
  return chosen;
}

}  // namespace

RowSample sample_rows(const AttentionShape& shape, std::int64_t max_rows, std::int64_t max_heads, std::uint64_t seed) {
  const std::int64_t all_heads = shape.batch * shape.num_heads;
  const std::int64_t width = shape.head_dim + shape.head_dim_v;
  const std::int64_t affordable_heads = kMaxInputElements / width / shape.seqlen_kv;
  const std::int64_t affordable_rows = kMaxMultiplyAdds / width / shape.seqlen_kv;
  const std::int64_t rows_in_all = std::min(max_rows, affordable_rows);
  const std::int64_t heads = std::min({all_heads, max_heads, affordable_heads, rows_in_all});
  if (heads <= 0) return {{}, {}, false};

  const std::int64_t rows = std::min(shape.seqlen_q, rows_in_all / heads);
  RowSample sample{one_of_each_part(all_heads, heads, numerics::hash(seed, 1)),
                   one_of_each_part(shape.seqlen_q, rows, numerics::hash(seed, 2)),
                   heads == all_heads && rows == shape.seqlen_q};
  sample.rows.front() = 0;
  if (rows > 1) sample.rows.back() = shape.seqlen_q - 1;
  return sample;
}

}  // namespace hbmscope
