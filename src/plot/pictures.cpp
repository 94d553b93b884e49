#include "plot/pictures.hpp"

#include <array>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::array<Picture, 8> kPictures{
    {{"traffic", "Which tensors make up the traffic, and do the counters agree?", "bytes; their tensors where known",
      draw_traffic},
     {"agreement", "How far are predicted bytes from measured ones?", "counters of a GPU", draw_agreement},
     {"roofline", "What bounds each algorithm: memory or arithmetic?", "the GPU's bandwidth and a roofline",
      draw_roofline},
     {"sweep", "How does traffic grow?", "results that differ in a number, best the sequence length", draw_sweep},
     {"sram", "What would more on-chip memory save?", "a forward shape", draw_sram},
     {"memory", "How much memory do intermediates take as N grows?", "an algorithm's ledger", draw_memory},
     {"amdahl", "What does a faster attention do to the whole step?", "nothing; marks speed-ups that are there",
      draw_amdahl},
     {"error", "How far is each output from fp64?", "numerics, computed or verified on a GPU", draw_error}}};

}  // namespace

std::span<const Picture> pictures() {
  return kPictures;
}

Drawn drawn_of(const Picture& picture, const PlotData& data) {
  try {
    return picture.draw(data);
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

const Picture& picture(std::string_view name) {
  std::array<std::string_view, kPictures.size()> names;
  for (std::size_t i = 0; i < kPictures.size(); ++i) {
    if (kPictures[i].name == name) return kPictures[i];
    names[i] = kPictures[i].name;
  }
  throw Error(ErrorKind::usage, "--picture: does not know " + in_quotes(name), did_you_mean(name, names));
}

}  // namespace hbmscope::plot
