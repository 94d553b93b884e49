#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "core/suggest.hpp"

using namespace hbmscope;

namespace {

constexpr std::array<std::string_view, 6> kGpus{"A10", "A100 SXM 80GB", "H100 PCIe", "H100 SXM", "H200", "T4"};

}  // namespace

TEST_CASE("a name that was not typed to its end is completed, before any is taken for misspelt") {
  CHECK(did_you_mean("H10", kGpus) == "did you mean \"H100 PCIe\" or \"H100 SXM\"?");  // A10 is one letter off
  CHECK(did_you_mean("h 1", kGpus) == "did you mean \"H100 PCIe\" or \"H100 SXM\"?");
  CHECK(did_you_mean("a100", kGpus) == "did you mean \"A100 SXM 80GB\"?");
  CHECK(did_you_mean("h", kGpus) == "did you mean \"H100 PCIe\", \"H100 SXM\" or \"H200\"?");
}

TEST_CASE("a slip leads to the nearest name, and what is near nothing to all of them") {
  CHECK(did_you_mean("H20O", kGpus) == "did you mean \"H200\"?");
  CHECK(did_you_mean("T5", kGpus) == "did you mean \"T4\"?");
  const std::string_view all = "there is A10, A100 SXM 80GB, H100 PCIe, H100 SXM, H200 and T4";
  CHECK(did_you_mean("voodoo", kGpus) == all);
  CHECK(did_you_mean("", kGpus) == all);
}

TEST_CASE("more names than one can choose from are no suggestion") {
  constexpr std::array<std::string_view, 4> kOptions{"--seqlen", "--seqlen-q", "--seqlen-kv", "--sequences"};
  CHECK(did_you_mean("--se", kOptions) == "there is --seqlen, --seqlen-q, --seqlen-kv and --sequences");
  CHECK(did_you_mean("--seqlen-", kOptions) == "did you mean \"--seqlen\", \"--seqlen-q\" or \"--seqlen-kv\"?");
}

TEST_CASE("a long list of names is cut after the twelfth") {
  CHECK(first_names(kGpus) == "A10, A100 SXM 80GB, H100 PCIe, H100 SXM, H200, T4");
  const std::array<std::string_view, 13> many{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};
  CHECK(first_names(many) == "a, b, c, d, e, f, g, h, i, j, k, l, ... (13 in all)");
  CHECK(near_names("voodoo", kGpus).empty());
  CHECK(near_names("T5", kGpus) == std::vector<std::string_view>{"T4"});
}
