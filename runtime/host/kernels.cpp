#include "cairn/runtime/host/kernels.h"

#include <cstddef>

#include "cairn/runtime/host/kernels/call.h"

// This list has every kernel, in the order of core::OpKind.
// clang-format off
#define CAIRN_HOST_KERNELS(KERNEL) \
  KERNEL(matmul) KERNEL(reduce_rows) \
  KERNEL(add) KERNEL(scale) KERNEL(relu) KERNEL(relu_grad) KERNEL(gelu) KERNEL(gelu_grad) \
  KERNEL(conv2d) KERNEL(conv2d_grad_input) KERNEL(conv2d_grad_weight) \
  KERNEL(batchnorm_stats) KERNEL(batchnorm) KERNEL(batchnorm_with_stats) \
  KERNEL(batchnorm_grad_params) KERNEL(batchnorm_grad_input) \
  KERNEL(layernorm_stats) KERNEL(layernorm) KERNEL(layernorm_with_stats) \
  KERNEL(layernorm_grad_params) KERNEL(layernorm_grad_input) \
  KERNEL(maxpool) KERNEL(maxpool_grad) KERNEL(maxpool_with_indices) KERNEL(maxpool_with_indices_grad) \
  KERNEL(mean_pool) KERNEL(mean_pool_grad) KERNEL(upsample) KERNEL(upsample_grad) \
  KERNEL(concat) KERNEL(slice) KERNEL(permute) \
  KERNEL(softmax) KERNEL(softmax_grad) KERNEL(embedding) KERNEL(embedding_grad) \
  KERNEL(cross_entropy) KERNEL(cross_entropy_grad) KERNEL(mse) KERNEL(mse_grad) KERNEL(dropout) \
  KERNEL(sum_of_squares) KERNEL(sgd) KERNEL(adamw)
// clang-format on

namespace cairn::runtime {

namespace kernels {
#define CAIRN_DECLARE(kind) \
  template <class T>        \
  void kind(const Call<T>& call);
CAIRN_HOST_KERNELS(CAIRN_DECLARE)
}  // namespace kernels

namespace {

template <class T>
struct Entry {
  core::OpKind kind;
  void (*kernel)(const kernels::Call<T>&);
};

#define CAIRN_ENTRY(kind) Entry<T>{core::OpKind::kind, kernels::kind<T>},
template <class T>
constexpr Entry<T> kKernels[] = {CAIRN_HOST_KERNELS(CAIRN_ENTRY)};

constexpr bool in_order() {
  std::size_t next = 0;
  for (const Entry<float>& entry : kKernels<float>) {
    if (static_cast<std::size_t>(entry.kind) != next++) return false;
  }
  return next == core::kOpKindCount;
}
static_assert(in_order());

}  // namespace

template <class T>
void run_op(const core::Op& op, std::span<const TensorRef<T>> args, T* out, T* scratch, std::span<void* const> more,
            std::uint64_t dropout_key) {
  kKernels<T>[static_cast<std::size_t>(op.kind)].kernel(kernels::Call<T>{op, args, out, scratch, more, dropout_key});
}

template void run_op<float>(const core::Op&, std::span<const TensorRef<float>>, float*, float*, std::span<void* const>,
                            std::uint64_t);
template void run_op<double>(const core::Op&, std::span<const TensorRef<double>>, double*, double*,
                             std::span<void* const>, std::uint64_t);

}  // namespace cairn::runtime
