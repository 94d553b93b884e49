#pragma once
#include "kernels/flash_v3_copies.cuh"

/// What fp8 adds to flash_v3: tiles of V turned round on chip. The tensor cores take V of 16 bits as it lies, by rows
/// of keys. Operands of 8 bits they take by columns only, each row of SMEM one column of V. Warps that have nothing to
/// copy see to that, ahead of those that compute.
namespace hbmscope::kernels {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// SMEM as those that compute know it: with tiles of V turned round, which lie in front of the others. Whoever copies
/// takes it as Smem, and finds tiles of V as they came.
template <class Tile>
struct SmemWithTurnedV : Smem<Tile> {
  using Copied = Smem<Tile>;
  static constexpr unsigned kStages = Tile::kStagesTurned;
  std::uint32_t first;
  __device__ explicit SmemWithTurnedV(const unsigned char* bytes)
      : Copied(bytes + kStages * Tile::kTileTurned), first(Copied::q - kStages * Tile::kTileTurned) {}
  __device__ std::uint32_t v_tile(unsigned n) const { return first + n % kStages * Tile::kTileTurned; }
  __device__ std::uint32_t v_full(unsigned n) const {
    static_assert(8 * Copied::kBarriers + 3 * sizeof(Work<Tile>) + 4 <= Tile::kBarrierBytes - 16 * kStages);
    return Copied::barriers + Tile::kBarrierBytes - 16 * (1 + n % kStages);
  }
  __device__ std::uint32_t v_free(unsigned n) const { return v_full(n) + 8; }
  __device__ void wait_v(unsigned n) const { wait_barrier(v_full(n), n / kStages % 2); }
  __device__ void wait_v_free(unsigned n) const { wait_barrier(v_free(n), n / kStages % 2 ^ 1); }
  __device__ void init_barriers() const {
    for (unsigned n = 0; n < kStages; ++n) {
      init_barrier(v_full(n), Tile::kTurners);
      init_barrier(v_free(n), 4 * Tile::kWarpgroups);
    }
    Copied::init_barriers();
  }
};

/// Turns 32 keys by 16 kChunks columns of V round, from a tile [keys, 128] to a panel [d, 128 keys]. A transposing load
/// gives each lane two neighbouring columns of keys 2 (l%4) and the next of four blocks of eight: the very keys that
/// put_p has side by side. Several chunks at once, since a load takes long where the tensor cores read SMEM, too.
template <int kChunks>
__device__ inline void turn_block(std::uint32_t from, std::uint32_t panel, int key, int column) {
  constexpr int kColumnsOfTile = 2 * kPanelWidth, kKeysOfPanel = 128;
  const int lane = lane_now(), matrix = lane / 8, row = lane % 8;
  std::uint32_t v[kChunks][4];
#pragma unroll
  for (int x = 0; x < kChunks; ++x) {
    load_matrices_transposed(v[x], from + tile_offset<kPanelWidth>(key + lane, column % kColumnsOfTile / 16 + x));
  }
  // Of two columns the upper lanes store the odd one first: the eight rows of a matrix then lie in different banks.
  const bool odd_first = lane >= 16;
  const int to_column = column + 2 * row + (matrix % 2 ^ row / 4), chunk = key % kKeysOfPanel / 16 + matrix / 2;
#pragma unroll
  for (int x = 0; x < kChunks; ++x) {
    std::uint32_t turned[4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t first = odd_first ? 0x7531 : 0x6420;
      turned[2 * i] = __byte_perm(v[x][2 * i], v[x][2 * i + 1], first);
      turned[2 * i + 1] = __byte_perm(v[x][2 * i], v[x][2 * i + 1], first ^ 0x1111);
    }
    store_matrices(panel + tile_offset<kPanelWidth>(to_column + 16 * x, chunk), turned);
  }
}

/// A warp's share, the `warp`th of Tile::kTurners, of the turning round of all tiles of V.
template <class Tile>
__device__ void turn_values(const SmemWithTurnedV<Tile>& turned, int warp) {
  const Smem<Tile>& copied = turned;  // whose tiles and barriers of V are those of V as it came
  constexpr int kChunks = Tile::kChunksTurned, kAcross = Tile::kHeadDim / (16 * kChunks);
  constexpr int kBlocks = Tile::kBlockKv / 32 * kAcross;
  unsigned kv_count = 0;  // of tiles so far
#pragma unroll 1
  for (unsigned q_count = 0;; ++q_count) {
    wait_barrier(turned.q_full(0), q_count % 2);
    const int kv_tiles = turned.work(q_count).kv_tiles;
    __syncwarp();
    release(turned.q_free(0));
    if (kv_tiles == Work<Tile>::kNone) break;
#pragma unroll 1
    for (int n = 0; n < kv_tiles; ++n, ++kv_count) {
      copied.wait_v(kv_count);
      turned.wait_v_free(kv_count);
      const std::uint32_t from = copied.v_tile(kv_count), to = turned.v_tile(kv_count);
#pragma unroll 1
      for (int block = warp; block < kBlocks; block += Tile::kTurners) {
        const int key = block / kAcross * 32, column = block % kAcross * (16 * kChunks);
        turn_block<kChunks>(from + column / 128 * (Tile::kBlockKv * 128), to + key / 128 * (Tile::kHeadDim * 128), key,
                            column);
      }
      publish_to_async_proxy();
      __syncwarp();
      release(copied.v_free(kv_count));
      release(turned.v_full(kv_count));
    }
  }
}

/// SMEM of a kernel, as those that compute know it.
template <class Tile>
using SmemOf = std::conditional_t<Tile::kElementBytes == 2, Smem<Tile>, SmemWithTurnedV<Tile>>;

#endif

}  // namespace hbmscope::kernels
