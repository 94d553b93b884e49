#include "analysis/worked_examples/parts.hpp"
#include "model/paper.hpp"

// The size of the square matrices, and what four trips to HBM make of it. d = 128 where a text names none: S does not
// depend on it.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
constexpr Count kHeads(64), kLayers(80);  // the model of the texts: 64 query heads in each of 80 layers

/// The shape of the texts that speak of one head at 8K, of one layer, and of one head at 4K.
AttentionShape head_8k() {
  return head(8192, 128);
}
AttentionShape layer_8k() {
  return heads(1, kHeads.value(), 8192, 128);
}
AttentionShape head_4k() {
  return head(4096, 128);
}

/// Times that S and P together pass between two kernels, in sizes of S.
Count trips(const AttentionShape& s) {
  return Count(square_bytes(traffic_of("naive", s)).value() / scores(s).value());
}

constexpr WorkedEntry kEntries[] = {
    {"S0-01", "How large is one N x N matrix at N = 8,192 in 16 bits?", Provenance::closed_form,
     [](V& v) {
       const Bytes S = traffic_of("naive", head_8k())[Tensor::S].write;
       v.add("bytes", S);
       v.add("MiB_", S, unit::MiB);
     },
     nullptr, "128 MiB and 134 MB are the same 2^27 bytes."},
    {"S0-02", "What do S and P cost when both are written and read again?", Provenance::closed_form,
     [](V& v) {
       const Traffic t = traffic_of("naive", head_8k());
       v.add("MiB_", square_bytes(t), unit::MiB);
       v.add("with_QKVO_MiB", t.total(), unit::MiB);
     },
     nullptr, "Counts the square passes alone; Q, K, V and O once each come on top."},
    {"S0-03", "How do Q and S grow when N doubles?", Provenance::closed_form,
     [](V& v) {
       const AttentionShape once = head(8192, 128), twice = head(2 * 8192, 128);
       v.add("ratio_linear", ratio(tensor_bytes(Tensor::Q, twice, {}), tensor_bytes(Tensor::Q, once, {})));
       v.add("ratio_quadratic", ratio(scores(twice), scores(once)));
     }},
    {"S0-05", "How many elements is the d^2 that M is held against, at d = 64?", Provenance::formula,
     [](V& v) {
       const AttentionShape tile = head(64, 64);
       v.add("d2", Count(tensor_bytes(Tensor::Q, tile, {}).value() / tile.element_bytes()));
     },
     nullptr, "d rows of Q, each of d elements."},
    {"S0-08", "What do the two running statistics of a row take at N = 8,192?", Provenance::closed_form,
     [](V& v) {
       Bytes l_and_m;
       for (const LedgerEntry& entry : ledger_of("flash_v1", head_8k()).entries) {
         if (entry.tensor == Tensor::l || entry.tensor == Tensor::m) l_and_m += entry.bytes;
       }
       v.add("stat_bytes", l_and_m);
       v.add("lse_only", ledger_of("flash_v2", head_8k()).intermediate_bytes);
     },
     nullptr,
     "The first paper stores l and m, in fp32 here; its code and all later versions store one log-sum-exp a row, half "
     "of that."},
    {"S1-01", "How many MB is S of one head at N = 8,192 in fp16?", Provenance::closed_form,
     [](V& v) {
       const Bytes S = traffic_of("naive", head_8k())[Tensor::S].write;
       v.add("bytes", S);
       v.add("MB", S, unit::MB);
     },
     nullptr, "Powers of ten: 134 MB is 128 MiB."},
    {"S1-02", "How much would S take for 64 heads and 80 layers at once?", Provenance::closed_form,
     [](V& v) {
       v.add("GB", kLayers * scores(layer_8k()), unit::GB);
       v.add("from_rounded_134", kLayers * kHeads * rounded(scores(head_8k()), unit::MB, 0), unit::GB);
     },
     nullptr, "687 needs the unrounded size of S; with the printed 134 MB the product is 686."},
    {"S1-03", "What does S grow to at 16K and 32K tokens?", Provenance::closed_form,
     [](V& v) {
       v.add("MB_16K", scores(head(2 * 8192, 128)), unit::MB);
       v.add("GB_32K", scores(head(4 * 8192, 128)), unit::GB);
       v.add("factor", ratio(scores(head(2 * 8192, 128)), scores(head_8k())));
     },
     nullptr, "16K and 32K are powers of two, MB and GB powers of ten."},
    {"S1-04", "What do the four trips of S and P move for one head?", Provenance::closed_form,
     [](V& v) {
       v.add("MB", square_bytes(traffic_of("naive", head_8k())), unit::MB);
       v.add("trips", trips(head_8k()));
       v.add("from_rounded_134", trips(head_8k()) * rounded(scores(head_8k()), unit::MB, 0), unit::MB);
     },
     nullptr, "537 comes from the unrounded size of S, four times 134 would be 536; Q, K, V and O are left out."},
    {"S1-05", "What do the four trips move for a layer of 64 heads, and for 80 layers?", Provenance::closed_form,
     [](V& v) {
       const Bytes layer = square_bytes(traffic_of("naive", layer_8k()));
       v.add("GB_layer", layer, unit::GB);
       v.add("TB_model", kLayers * layer, unit::TB);
     }},
    {"S1-06", "How many FLOP are the two products of one head at d = 128?", Provenance::closed_form,
     [](V& v) { v.add("GFLOP", flops_of("naive", head_8k()).matmul, unit::GFLOP); }, nullptr,
     "The same digits as the GB of a layer (S1-05) by coincidence: d is here twice the 64 heads."},
    {"S1-07", "How many FLOP are the products of 64 heads in 80 layers?", Provenance::closed_form,
     [](V& v) { v.add("TFLOP", kLayers * flops_of("naive", layer_8k()).matmul, unit::TFLOP); }, nullptr,
     "Forward pass, no mask."},
    {"S1-12", "What must any schedule move for one head?", Provenance::formula,
     [](V& v) {
       const Bytes once = compulsory_bytes(head_8k(), Pass::forward);
       v.add("MB", once, unit::MB);
       v.add("bytes", once);
     },
     nullptr, "Q, K and V read once and O written once, no statistics."},
    {"S1-13", "How many times less than the four trips is what must move (S1-12)?", Provenance::closed_form,
     [](V& v) {
       const Traffic naive = traffic_of("naive", head_8k()), flash = traffic_of("flash_v2", head_8k());
       const Bytes once = compulsory_bytes(head_8k(), Pass::forward), square = square_bytes(naive);
       v.add("factor", ratio(square, once));
       v.add("both_sides_with_QKVO", ratio(naive.total(), once));
       v.add("with_LSE", ratio(naive.total(), once + flash[Tensor::LSE].write));
       v.add("rounded", ratio(rounded(square, unit::MB, 0), rounded(once, unit::MB, 1)));
       v.add("flash_v2_tile_loads_MB", flash.total(), unit::MB);
       v.add("factor_at_sm_l2", ratio(naive.total(), flash.total()));
     },
     nullptr,
     "64 divides the square passes alone by Q, K, V and O alone and is N/d; with these on both sides it is 65. It is a "
     "statement about HBM behind an L2 that keeps K and V: what a flash kernel with 128-row tiles loads is only half "
     "of naive's floor."},
    {"S1-14", "By which factor does traffic fall, in terms of N and d?", Provenance::formula,
     [](V& v) {
       v.add("factor", paper_claims(head_8k(), Bytes(131072)).reduction_n_over_d);
       v.add("m_over_d2_at_d_64", paper_claims(head(8192, 64), Bytes(131072)).reduction_m_over_d2);
     },
     nullptr, "N/d is about compulsory bytes, M/d^2 (S0-04) about tile loads: two claims, never one for the other."},
    {"S2-01", "How large are Q, K and V each at N = 4,096 and d = 128?", Provenance::closed_form,
     [](V& v) {
       const Bytes Q = traffic_of("naive", head_4k())[Tensor::Q].read;
       v.add("elements", Count(Q.value() / head_4k().element_bytes()));
       v.add("MiB_", Q, unit::MiB);
     }},
    {"S2-02", "How large are S and P at N = 4,096?", Provenance::closed_form,
     [](V& v) {
       const Traffic t = traffic_of("naive", head_4k());
       v.add("elements", Count(t[Tensor::S].write.value() / head_4k().element_bytes()));
       v.add("MiB_", t[Tensor::S].write, unit::MiB);
       v.add("P_MiB", t[Tensor::P].write, unit::MiB);
     }},
    {"S2-03", "What do writing and reading S and P move at N = 4,096?", Provenance::closed_form,
     [](V& v) {
       const Traffic t = traffic_of("naive", head_4k());
       v.add("S", t[Tensor::S].total(), unit::MiB);
       v.add("P", t[Tensor::P].total(), unit::MiB);
       v.add("total", square_bytes(t), unit::MiB);
       const RunResult h100 = simulated_run(head_4k(), "H100 SXM", {"naive"});
       v.add("hbm_on_H100_MiB", h100.find("naive")->at(Boundary::l2_hbm)->traffic->total(), unit::MiB);
     },
     nullptr,
     "What the kernels ask for; an L2 of 50 MB absorbs a part of it for one head alone, so its HBM counters would show "
     "less (simulated here for an H100, with Q, K, V and O)."},
    {"S2-04", "What do S and P move for a layer of 32 heads?", Provenance::closed_form,
     [](V& v) { v.add("GiB_", square_bytes(traffic_of("naive", heads(1, 32, 4096, 128))), unit::GiB); }},
    {"S2-05", "How much larger is a square matrix at 8K than at 4K?", Provenance::closed_form,
     [](V& v) { v.add("factor", ratio(scores(head(2 * 4096, 128)), scores(head_4k()))); }},
    {"S2-06", "What is left when a fused kernel keeps S and P on chip?", Provenance::closed_form,
     [](V& v) {
       const Bytes once = compulsory_bytes(head_4k(), Pass::forward);
       const Bytes naive = traffic_of("naive", head_4k()).total();
       v.add("compulsory_MiB", once, unit::MiB);
       v.add("fa2_algorithmic_MiB", traffic_of("flash_v2", head_4k()).total(), unit::MiB);
       v.add("naive_with_QKVO_MiB", naive, unit::MiB);
       v.add("ratio_compulsory", ratio(naive, once));
     },
     nullptr, "The second value is every tile that 128-row query tiles load; most of it is served by the L2."},
};

}  // namespace

std::span<const WorkedEntry> sizes() {
  return kEntries;
}

}  // namespace hbmscope::worked
