// The L2 by itself: its two halves and its sets, on requests whose outcome is worked out by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "simulate/l2_cache.hpp"

using namespace hbmscope;

namespace {

constexpr std::int64_t kTile = 100;  ///< bytes

/// Asks for tiles of 100 bytes. Tile n belongs to half n % 2.
struct Asker {
  explicit Asker(const L2Build& build) : cache(build) {}
  bool load(std::int64_t n, unsigned half) { return ask(n, half, false); }
  void store(std::int64_t n, unsigned half) { ask(n, half, true); }
  bool ask(std::int64_t n, unsigned half, bool store) {
    const std::uint64_t key = tile_key({store ? Tensor::S : Tensor::K, 0, n});
    return cache.request(key, {key, kTile, store ? Tensor::S : Tensor::K, store}, half);
  }
  ReadWrite moved() { return cache.take_traffic().sum(); }
  L2Cache cache;
};

L2Build halves_of(std::int64_t tiles) {
  return {Bytes(tiles * kTile), true, false};
}

}  // namespace

TEST_CASE("a tile that only the other half asks for grows old at home, and leaves with its copy") {
  // Half 0 has room for 8 tiles, and before each request for tile 0 its own SMs bring two more. Before the k-th request
  // 2 k + 1 tiles have come to half 0, and tile 0 is the oldest of them if its home noticed no request: of 9 it leaves.
  for (const bool noticed : {false, true}) {
    CAPTURE(noticed);
    Asker l2(halves_of(8));
    std::int64_t others = 0;
    CHECK_FALSE(l2.load(0, 1));
    for (int request = 1; request <= 4; ++request) {
      for (int i = 0; i < 2; ++i) {
        CHECK_FALSE(l2.load(others += 2, 0));
        CHECK_FALSE(l2.load(others + 1, 1));  // of half 1, so that tile 0 is not the newest there
      }
      if (noticed && request == 2) CHECK(l2.load(0, 0));
      CAPTURE(request);
      // In half 1 each request makes the copy the newest of as many.
      CHECK(l2.load(0, 1) == (noticed || request < 4));
    }
  }
}

TEST_CASE("without halves every request keeps a tile young") {
  Asker l2({Bytes(8 * kTile)});
  std::int64_t others = 0;
  CHECK_FALSE(l2.load(0, 0));
  for (int request = 0; request < 20; ++request) {
    for (int i = 0; i < 2; ++i) CHECK_FALSE(l2.load(others += 2, 0));
    CHECK(l2.load(0, 0));
  }
}

TEST_CASE("what the other half reads or writes takes room in both, and crosses to HBM once each way") {
  Asker l2(halves_of(4));
  // Tiles of half 0, for SMs of half 1: home and copy of four tiles fill both halves.
  for (const std::int64_t n : {0, 2, 4, 6}) l2.store(n, 1);
  CHECK(l2.moved() == ReadWrite{});
  // A fifth for the other half's SMs, of half 1: it takes the place of the oldest copy there, and of the oldest at home
  // here, whose bytes go to HBM; once, though there were two.
  CHECK_FALSE(l2.load(1, 0));
  CHECK(l2.moved() == ReadWrite{Bytes(kTile), Bytes(kTile)});
  // The others are still dirty, and are written back once.
  l2.cache.flush();
  CHECK(l2.moved() == ReadWrite{Bytes(0), Bytes(3 * kTile)});
  l2.cache.flush();
  CHECK(l2.moved() == ReadWrite{});
}

TEST_CASE("a copy is not read after its tile was written at home") {
  Asker l2(halves_of(4));
  const std::uint64_t key = tile_key({Tensor::S, 0, 0});
  const auto ask = [&](bool store, unsigned half) {
    return l2.cache.request(key, {key, kTile, Tensor::S, store}, half);
  };
  CHECK_FALSE(ask(false, 1));
  CHECK(ask(true, 0));
  // From home again: if the copy were still taken, home would not become young and leave after four more.
  for (std::int64_t n = 2; n <= 6; n += 2) CHECK_FALSE(l2.load(n, 0));
  CHECK(ask(false, 1));
  CHECK_FALSE(l2.load(8, 0));
  CHECK(ask(false, 1));
}

TEST_CASE("of a loop over x times the capacity as much is found again as sets of 16 hold on to") {
  // N lines in sets of 16, spread by a hash: a line is found again if at most 15 of the others fell into its set. That
  // is Poisson's distribution, in eighths.
  constexpr std::int64_t kCapacity = 8000;
  for (const double x : {0.3, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0}) {
    CAPTURE(x);
    double found = 0, term = std::exp(-16 * x);
    for (int others = 0; others < 16; ++others) {
      found += term;
      term *= 16 * x / (others + 1);
    }
    Asker l2({Bytes(kCapacity * kTile), false, true});
    const auto tiles = static_cast<std::int64_t>(x * kCapacity);
    std::int64_t hits = 0;
    for (int turn = 0; turn < 2; ++turn) {
      for (std::int64_t n = 0; n < tiles; ++n) hits += l2.load(n, 0) ? 1 : 0;
    }
    CHECK(std::fabs(static_cast<double>(hits) / static_cast<double>(tiles) - found) <= 1.0 / 16 + 0.001);
  }
}
