#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hbmscope {

/// Everything attention keeps in HBM, by the names of the papers. `x` marks a copy per query head (repeat_kv, and dK,
/// dV before the sum over a GQA group).
enum class Tensor : std::uint8_t {
  Q,
  K,
  V,
  O,
  Kx,
  Vx,
  S,
  P,
  Pd,
  dmask,
  l,
  m,
  LSE,
  Otmp,
  Oacc,
  LSEacc,
  dO,
  dQ,
  dK,
  dV,
  dKx,
  dVx,
  dP,
  dS,
  D,
  dQtmp,
  dQacc,
};

enum class TensorRole : std::uint8_t {
  input,      ///< must be read
  output,     ///< must be written
  statistic,  ///< one number a row that outlives the kernel (LSE, D)
  temporary,  ///< lives in HBM between kernels or passes only
};

struct TensorInfo {
  Tensor tensor;
  std::string_view name;
  TensorRole role;
  std::string_view meaning;
};

inline constexpr std::array<TensorInfo, 27> kTensors{{
    {Tensor::Q, "Q", TensorRole::input, "queries"},
    {Tensor::K, "K", TensorRole::input, "keys"},
    {Tensor::V, "V", TensorRole::input, "values"},
    {Tensor::O, "O", TensorRole::output, "output"},
    {Tensor::Kx, "Kx", TensorRole::temporary, "keys repeated to every query head"},
    {Tensor::Vx, "Vx", TensorRole::temporary, "values repeated to every query head"},
    {Tensor::S, "S", TensorRole::temporary, "scores Q K^T"},
    {Tensor::P, "P", TensorRole::temporary, "probabilities softmax(S)"},
    {Tensor::Pd, "Pd", TensorRole::temporary, "probabilities after dropout"},
    {Tensor::dmask, "dmask", TensorRole::temporary, "which probabilities dropout keeps, one byte each"},
    {Tensor::l, "l", TensorRole::temporary, "running row sum of flash_v1"},
    {Tensor::m, "m", TensorRole::temporary, "running row maximum of flash_v1"},
    {Tensor::LSE, "LSE", TensorRole::statistic, "log-sum-exp of each row"},
    {Tensor::Otmp, "Otmp", TensorRole::temporary, "fp32 output between passes over the keys"},
    {Tensor::Oacc, "Oacc", TensorRole::temporary, "fp32 partial output of each key split"},
    {Tensor::LSEacc, "LSEacc", TensorRole::temporary, "log-sum-exp of each key split"},
    {Tensor::dO, "dO", TensorRole::input, "gradient of the output"},
    {Tensor::dQ, "dQ", TensorRole::output, "gradient of Q"},
    {Tensor::dK, "dK", TensorRole::output, "gradient of K"},
    {Tensor::dV, "dV", TensorRole::output, "gradient of V"},
    {Tensor::dKx, "dKx", TensorRole::temporary, "gradient of K per query head, before the sum over its group"},
    {Tensor::dVx, "dVx", TensorRole::temporary, "gradient of V per query head, before the sum over its group"},
    {Tensor::dP, "dP", TensorRole::temporary, "gradient of P"},
    {Tensor::dS, "dS", TensorRole::temporary, "gradient of S"},
    {Tensor::D, "D", TensorRole::statistic, "row sums of dO * O"},
    {Tensor::dQtmp, "dQtmp", TensorRole::temporary, "fp32 dQ between passes over the keys"},
    {Tensor::dQacc, "dQacc", TensorRole::temporary, "fp32 dQ, added to by atomics"},
}};

inline constexpr std::size_t kTensorCount = kTensors.size();

constexpr const TensorInfo& info(Tensor tensor) {
  return kTensors[static_cast<std::size_t>(tensor)];
}

}  // namespace hbmscope
