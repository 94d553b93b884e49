#include <algorithm>
#include <vector>

#include "analysis/worked_examples/parts.hpp"

// What lies in memory, and what a mask leaves to do.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;

/// Each value over the one before it.
std::vector<double> growth(const std::vector<double>& values) {
  std::vector<double> factors;
  for (std::size_t i = 1; i < values.size(); ++i) factors.push_back(values[i] / values[i - 1]);
  return factors;
}
bool all_near(const std::vector<double>& values, double wanted, double within) {
  return std::all_of(values.begin(), values.end(), [&](double x) { return std::abs(x - wanted) <= within; });
}

void no_square_in_hbm(V& v) {
  std::vector<std::int64_t> lengths{2048, 4096, 8192, 16384};
  std::vector<Bytes> naive, flash, one_square;
  for (const std::int64_t N : lengths) {
    naive.push_back(ledger_of("naive", head(N, 128)).intermediate_bytes);
    flash.push_back(ledger_of("flash_v2", head(N, 128)).intermediate_bytes);
    one_square.push_back(scores(head(N, 128)));
  }
  v.add("seqlen", lengths);
  v.add("naive_intermediate_MB", naive, unit::MB);
  v.add("flash_intermediate_MB", flash, unit::MB);
  v.add("one_square_MB", one_square, unit::MB);
}
bool grows_linearly(const V& v) {
  const std::vector<double> naive = v.list("naive_intermediate_MB"), square = v.list("one_square_MB"),
                            flash = v.list("flash_intermediate_MB"), seqlen = v.list("seqlen");
  for (std::size_t i = 0; i < naive.size(); ++i) {
    if (naive[i] != 2 * square[i] || flash[i] != kStatisticBytes * seqlen[i]) return false;
  }
  return true;
}

void saved_for_backward(V& v) {
  std::vector<std::int64_t> lengths{2048, 4096, 8192};
  std::vector<Bytes> naive, flash, statistics;
  for (const std::int64_t N : lengths) {
    const AttentionShape s = head(N, 128);
    const Bytes inputs = Count(3) * tensor_bytes(Tensor::Q, s, {});
    naive.push_back(ledger_of("naive", s).saved_for_backward_bytes - inputs);
    flash.push_back(ledger_of("flash_v2", s).saved_for_backward_bytes - inputs);
    statistics.push_back(flash.back() - tensor_bytes(Tensor::O, s, {}));
  }
  v.add("seqlen", lengths);
  v.add("naive_saves_MB", naive, unit::MB);
  v.add("flash_saves_MB", flash, unit::MB);
  v.add("flash_statistics", statistics);
}

/// Tiles of 128 x 128 that flash_v2 visits, from the FLOPs it executes.
Count visited_tiles(const AttentionShape& s) {
  const Flop one = flops_of("flash_v2", head(128, s.head_dim)).executed_matmul;
  return Count(flops_of("flash_v2", s).executed_matmul.value() / one.value());
}

void causal_halves(V& v) {
  std::vector<std::int64_t> lengths{1024, 4096, 16384}, query_tiles;
  std::vector<double> fraction;
  for (const std::int64_t N : lengths) {
    query_tiles.push_back(N / 128);
    fraction.push_back(ratio(visited_tiles(head(N, 128, Mask::causal())), visited_tiles(head(N, 128))));
  }
  v.add("seqlen", lengths);
  v.add("query_tiles", query_tiles);
  v.add("visited_fraction", fraction);
  v.add("speedup_at_most", 1 / fraction.back());
  v.add("measured_by_authors_min", 1.7);
  v.add("measured_by_authors_max", 1.8);
}

void window_is_linear(V& v) {
  constexpr std::int64_t kWindow = 1024;
  const Mask window{kWindow, 0};
  std::vector<std::int64_t> lengths{8192, 16384, 32768};
  std::vector<Count> windowed, causal;
  for (const std::int64_t N : lengths) {
    windowed.push_back(visited_tiles(head(N, 128, window)));
    causal.push_back(visited_tiles(head(N, 128, Mask::causal())));
  }
  v.add("seqlen", lengths);
  v.add("window_tiles", windowed);
  v.add("causal_tiles", causal);
  // Both sequences begin alike, so what the longer one visits more belongs to query tiles inside.
  const double more_query_tiles = static_cast<double>(lengths[1] - lengths[0]) / 128;
  v.add("tiles_per_query_tile", (windowed[1] - windowed[0]).as_double() / more_query_tiles);
  v.add("by_formula", std::ceil(kWindow / 128.0) + 1);
}

/// The FlashAttention column of the paper's Table 21, as printed.
struct PrintedMemory {
  std::int64_t seqlen, flash;
};
constexpr PrintedMemory kTable21[] = {{128, 22},   {256, 44},    {512, 104},    {1024, 209},   {2048, 418},
                                      {4096, 836}, {8192, 1672}, {16384, 3344}, {32768, 6688}, {65536, 13376}};

void memory_is_linear(V& v) {
  std::vector<std::int64_t> lengths, printed;
  std::vector<Bytes> fit, naive_peak, flash_peak;
  for (const PrintedMemory& row : kTable21) {
    lengths.push_back(row.seqlen);
    printed.push_back(row.flash);
    fit.push_back(paper_memory_fit(heads(16, 8, row.seqlen, 64)).flash);
  }
  std::vector<std::int64_t> curve{8192, 16384, 32768};
  for (const std::int64_t N : curve) {
    naive_peak.push_back(ledger_of("naive", heads(1, 64, N, 128)).peak_bytes);
    flash_peak.push_back(ledger_of("flash_v2", heads(1, 64, N, 128)).peak_bytes);
  }
  v.add("table21_seqlen", lengths);
  v.add("table21_printed", printed);
  v.add("table21_fit_MiB", fit, unit::MiB);
  v.add("seqlen", curve);
  v.add("naive_peak_GB", naive_peak, unit::GB);
  v.add("flash_peak_GB", flash_peak, unit::GB);
}
bool memory_fits(const V& v) {
  const std::vector<double> printed = v.list("table21_printed"), fit = v.list("table21_fit_MiB");
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (std::floor(fit[i] / unit::MiB.size) != printed[i]) return false;
  }
  return all_near(growth(v.list("flash_peak_GB")), 2, 1e-9) && all_near(growth(v.list("naive_peak_GB")), 4, 0.1);
}

constexpr WorkedEntry kEntries[] = {
    {"Q-03", "No N x N matrix ever lies in HBM, only O and statistics", Provenance::closed_form, no_square_in_hbm,
     grows_linearly, "Intermediates of one head in fp16: two squares against four bytes a row."},
    {"Q-05", "For the backward pass naive keeps P, flash O and one number a row", Provenance::closed_form,
     saved_for_backward,
     [](const V& v) {
       const std::vector<double> seqlen = v.list("seqlen"), statistics = v.list("flash_statistics");
       for (std::size_t i = 0; i < seqlen.size(); ++i) {
         if (statistics[i] != kStatisticBytes * seqlen[i]) return false;
       }
       return all_near(growth(v.list("naive_saves_MB")), 4, 1e-9) &&
              all_near(growth(v.list("flash_saves_MB")), 2, 1e-9);
     },
     "Beside Q, K and V, which both keep; one head, d = 128, fp16."},
    {"Q-14", "Tiles that a causal mask hides whole are skipped: about half the work", Provenance::closed_form,
     causal_halves,
     [](const V& v) {
       const std::vector<double> T = v.list("query_tiles"), fraction = v.list("visited_fraction");
       for (std::size_t i = 0; i < T.size(); ++i) {
         if (std::abs(fraction[i] - (T[i] + 1) / (2 * T[i])) > 1e-12) return false;
       }
       return v.number("measured_by_authors_max") < v.number("speedup_at_most") &&
              v.number("measured_by_authors_min") > 1;
     },
     "(T + 1)/(2T) of the tiles, T query tiles; the authors' measured speed-up is quoted.",
     "Dao, FlashAttention-2, arXiv 2307.08691, section 3.1.1, July 2023"},
    {"Q-15", "With a sliding window the work grows linearly with N", Provenance::closed_form, window_is_linear,
     [](const V& v) {
       return all_near(growth(v.list("window_tiles")), 2, 0.1) && all_near(growth(v.list("causal_tiles")), 4, 0.1) &&
              v.number("tiles_per_query_tile") == v.number("by_formula");
     },
     "1,024 past keys and tiles of 128: each query tile visits ceil(w/Bc) + Br/Bc of them, however long the sequence."},
    {"Q-16", "Extra memory is linear in N, so a 32K prefill fits", Provenance::closed_form, memory_is_linear,
     memory_fits,
     "Table 21 is printed as MB and is in MiB: 13 N d (11 up to 256 tokens) and two fp32 rows, rounded down, give all "
     "ten values; a fit, not a model. The curve is one layer of 64 heads, d = 128.",
     "Dao et al., FlashAttention, arXiv 2205.14135, Table 21, May 2022"},
};

}  // namespace

std::span<const WorkedEntry> demonstrations_of_memory() {
  return kEntries;
}

}  // namespace hbmscope::worked
