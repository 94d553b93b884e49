// Idea:    naive with cuBLAS for the two products: what a framework runs where it has no fused kernel
// Reads:   Q = B*H*Nq*d*e; K = B*Hkv*Nk*d*e; S = B*H*Nq*Nk*e; P = B*H*Nq*Nk*e; V = B*Hkv*Nk*dv*e
// Writes:  S = B*H*Nq*Nk*e; P = B*H*Nq*Nk*e; O = B*H*Nq*dv*e
// On chip: Nk*e
// Costs:   2*B*H*Nq*Nk*(d+dv)
//
// Reads are those of operands taken once, and On chip is the softmax's row: cuBLAS has tiles of its own, keeps them to
// itself and re-reads accordingly. The library is looked for at run time, so that the program starts without it. Query
// heads that share a kv head are neighbours, so their rows form one matrix of G*Nq rows: one strided batch of B*Hkv
// products serves GQA as it is. The softmax is that of naive.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

#include "core/error.hpp"
#include "kernels/common.cuh"
#include "kernels/naive.hpp"

namespace hbmscope::kernels {
namespace {

/// What is called of cuBLAS, and why it cannot be where something is missing.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                             const void*, cudaDataType, int, long long, const void*, cudaDataType, int, long long,
                             const void*, void*, cudaDataType, int, long long, int, cublasComputeType_t,
                             cublasGemmAlgo_t) = nullptr;
  std::string missing;
};

const Cublas& cublas() {
  static const Cublas found = [] {
    Cublas c;
    void* library = nullptr;
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) {
      c.missing =
          "cuBLAS was not found: put libcublas.so.13 or .12 of the CUDA toolkit where the loader looks "
          "(LD_LIBRARY_PATH)";
      return c;
    }
    c.create = reinterpret_cast<decltype(c.create)>(dlsym(library, "cublasCreate_v2"));
    c.set_stream = reinterpret_cast<decltype(c.set_stream)>(dlsym(library, "cublasSetStream_v2"));
    c.multiply = reinterpret_cast<decltype(c.multiply)>(dlsym(library, "cublasGemmStridedBatchedEx"));
    if (c.create == nullptr || c.set_stream == nullptr || c.multiply == nullptr) {
      c.missing = "the cuBLAS that was found has no cublasGemmStridedBatchedEx";
    }
    return c;
  }();
  return found;
}

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::output,
              std::string("cuBLAS failed: status ") + std::to_string(static_cast<int>(status)) + " from " + call,
              "the numbers of this run are void; leave out naive_cublas, or install a cuBLAS that knows this GPU");
}

/// One for each device, kept to the end of the process: a context may be gone before a destructor would run.
cublasHandle_t handle_of_device(CUstream_st* stream) {
  static std::mutex mutex;
  static std::map<int, cublasHandle_t> handles;
  int device = 0;
  cudaGetDevice(&device);
  const std::lock_guard lock(mutex);
  cublasHandle_t& handle = handles[device];
  if (handle == nullptr) check_cublas(cublas().create(&handle), "cublasCreate");
  check_cublas(cublas().set_stream(handle, stream), "cublasSetStream");
  return handle;
}

/// A matrix for each kv head of each batch entry, row by row.
struct Operand {
  const void* data;
  int stride;         ///< elements from row to row
  std::int64_t head;  ///< elements from one kv head to the next
};

/// C[rows, columns] = A[rows, depth] B, for every kv head. cuBLAS counts by columns, so it makes C^T = B^T A^T.
/// by_column: B is [columns, depth].
void multiply(const Call& call, bool by_column, const Operand& a, const Operand& b, const Operand& c, int columns,
              int depth) {
  if (call.counted) {
    throw Error(ErrorKind::usage, "the kernels of cuBLAS count no bytes",
                "count those of naive, or use hardware counters");
  }
  const AttentionArgs& args = call.args;
  const cudaDataType type = call.dtype == Dtype::fp16   ? CUDA_R_16F
                            : call.dtype == Dtype::bf16 ? CUDA_R_16BF
                                                        : CUDA_R_32F;
  const float one = 1, zero = 0;
  const int rows = args.num_heads / args.num_kv_heads * args.seqlen_q;
  check_cublas(cublas().multiply(handle_of_device(call.stream), by_column ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
                                 columns, rows, depth, &one, b.data, type, b.stride, b.head, a.data, type, a.stride,
                                 a.head, &zero, const_cast<void*>(c.data), type, c.stride, c.head,
                                 args.batch * args.num_kv_heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
}

/// Rows of all query heads of a kv head: Q and O by head dim, S and P by their padded stride.
Operand by_query(const AttentionArgs& a, Tensor tensor, int stride) {
  const std::int64_t rows = std::int64_t{a.num_heads / a.num_kv_heads} * a.seqlen_q;
  return {a.get<const void>(tensor), stride, rows * stride};
}
Operand by_key(const AttentionArgs& a, Tensor tensor, int stride) {
  return {a.get<const void>(tensor), stride, std::int64_t{a.seqlen_kv} * stride};
}

/// S = Q K^T
void launch_qk(const Call& call) {
  const AttentionArgs& a = call.args;
  multiply(call, true, by_query(a, Tensor::Q, a.head_dim), by_key(a, Tensor::K, a.head_dim),
           by_query(a, Tensor::S, a.score_stride), a.seqlen_kv, a.head_dim);
}
/// O = P V
void launch_pv(const Call& call) {
  const AttentionArgs& a = call.args;
  multiply(call, false, by_query(a, Tensor::P, a.score_stride), by_key(a, Tensor::V, a.head_dim_v),
           by_query(a, Tensor::O, a.head_dim_v), a.head_dim_v, a.seqlen_kv);
}

std::string unsupported(const AttentionShape& s) {
  if (std::string reason = naive_unsupported(s); !reason.empty()) return reason;
  if (s.group_size() * s.seqlen_q > INT32_MAX) return "cuBLAS takes matrices of up to 2^31 - 1 rows";
  return cublas().missing;
}
/// A gemm_tile that was asked for is the caller's guess at cuBLAS's own; none stands for operands read once.
TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  return naive_plan("naive_cublas", s, wanted);
}
std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"qk", launch_qk, false}, {"softmax", launch_naive_softmax}, {"pv", launch_pv, false}};
}

}  // namespace

extern const Pipeline kPipeline_naive_cublas{"naive_cublas",    "naive", "kernels/naive_cublas.cu", unsupported, plan,
                                             naive_temporaries, stages};

}  // namespace hbmscope::kernels
