#include "analysis/worked_examples/parts.hpp"
#include "model/amdahl.hpp"
#include "model/roofline.hpp"

// What bytes and FLOPs take, and what that does to a step. The rates are the text's round figures.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
constexpr BytesPerSecond kBandwidth{3e12};
constexpr FlopPerSecond kRate{500e12};
constexpr Count kLayers(80);

AttentionShape layer() {
  return heads(1, 64, 8192, 128);
}
Bytes square_of_model() {
  return kLayers * square_bytes(traffic_of("naive", layer()));
}
Flop flop_of_model() {
  return kLayers * flops_of("naive", layer()).matmul;
}

constexpr WorkedEntry kEntries[] = {
    {"S1-08", "How long do the four trips of all layers take at 3 TB/s?", Provenance::formula,
     [](V& v) {
       v.add("s", rounded(square_of_model(), unit::TB, 2) / kBandwidth, unit::s);
       v.add("unrounded", square_of_model() / kBandwidth, unit::s);
     },
     nullptr, "From the printed 2.75 TB, and unrounded beside it."},
    {"S1-09", "How long do the products take at 500 TFLOP/s?", Provenance::formula,
     [](V& v) {
       v.add("s", rounded(flop_of_model(), unit::TFLOP, 0) / kRate, unit::s);
       v.add("unrounded", flop_of_model() / kRate, unit::s);
     },
     nullptr, "From the printed 176 TFLOP, and unrounded beside it; 500 TFLOP/s is assumed to be reached."},
    {"S1-10", "How much longer do the bytes take than the products?", Provenance::formula,
     [](V& v) { v.add("ratio", (square_of_model() / kBandwidth) / (flop_of_model() / kRate)); }, nullptr,
     "No text prints it; from the rounded seconds it would be 2.6 as well. It is the ridge over the intensity "
     "(S1-11)."},
    {"S1-11", "Which intensity have the four trips, and where is the ridge?", Provenance::formula,
     [](V& v) {
       const AttentionShape s = head(8192, 128);
       const Flop flop = flops_of("naive", s).matmul;
       const Roofline naive = roofline(flop, square_bytes(traffic_of("naive", s)), kRate, kBandwidth);
       v.add("intensity", naive.intensity, unit::FLOP_per_B);
       v.add("ridge", naive.ridge, unit::FLOP_per_B);
       v.add("flash_compulsory", flop / compulsory_bytes(s, Pass::forward), unit::FLOP_per_B);
     },
     nullptr, "Square passes alone: d/e FLOP a byte. A flash kernel at its compulsory bytes has N/e."},
    {"S1-24", "What does attention twice as fast do to a step of which it is 30 %?", Provenance::formula,
     [](V& v) {
       const Amdahl step = amdahl(0.3, 2);
       v.add("speedup", step.end_to_end_speedup);
       v.add("limit", step.limit);
     }},
};

}  // namespace

std::span<const WorkedEntry> time_and_roofs() {
  return kEntries;
}

}  // namespace hbmscope::worked
