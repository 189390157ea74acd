#include "cairn/runtime/host/kernels.h"

#include <iterator>

#include "cairn/runtime/host/families.h"

namespace cairn::runtime {
namespace {

template <class T>
struct KernelTable {
  using Kernel = void (*)(const kernels::Call<T>&);
  // In the order of OpKind.
  static constexpr Kernel kTable[] = {
      kernels::matmul<T>,
      kernels::reduce_rows<T>,
      kernels::add<T>,
      kernels::scale<T>,
      kernels::relu<T>,
      kernels::relu_grad<T>,
      kernels::gelu<T>,
      kernels::gelu_grad<T>,
      kernels::conv2d<T>,
      kernels::conv2d_grad_input<T>,
      kernels::conv2d_grad_weight<T>,
      kernels::batchnorm_stats<T>,
      kernels::batchnorm<T>,
      kernels::batchnorm_grad_params<T>,
      kernels::batchnorm_grad_input<T>,
      kernels::layernorm_stats<T>,
      kernels::layernorm<T>,
      kernels::layernorm_grad_params<T>,
      kernels::layernorm_grad_input<T>,
      kernels::maxpool<T>,
      kernels::maxpool_grad<T>,
      kernels::mean_pool<T>,
      kernels::mean_pool_grad<T>,
      kernels::upsample<T>,
      kernels::upsample_grad<T>,
      kernels::concat<T>,
      kernels::slice<T>,
      kernels::permute<T>,
      kernels::softmax<T>,
      kernels::softmax_grad<T>,
      kernels::embedding<T>,
      kernels::embedding_grad<T>,
      kernels::cross_entropy<T>,
      kernels::cross_entropy_grad<T>,
      kernels::mse<T>,
      kernels::mse_grad<T>,
      kernels::dropout<T>,
  };
  static_assert(std::size(kTable) == core::kOpKindCount);
};

}  // namespace

template <class T>
void run_op(const core::Op& op, std::span<const TensorRef<T>> args, T* out, T* scratch) {
  KernelTable<T>::kTable[static_cast<std::size_t>(op.kind)](kernels::Call<T>{op, args, out, scratch});
}

template void run_op<float>(const core::Op&, std::span<const TensorRef<float>>, float*, float*);
template void run_op<double>(const core::Op&, std::span<const TensorRef<double>>, double*, double*);

bool can_overwrite(core::OpKind kind, std::size_t arg) {
  using core::OpKind;
  switch (kind) {
    case OpKind::add:
    case OpKind::scale:
    case OpKind::relu:
    case OpKind::relu_grad:
    case OpKind::gelu:
    case OpKind::gelu_grad:
    case OpKind::dropout:
    case OpKind::softmax:
    case OpKind::softmax_grad:
    case OpKind::mse_grad:
      return true;
    case OpKind::batchnorm:
    case OpKind::layernorm:
    case OpKind::cross_entropy_grad:
      return arg == 0;
    case OpKind::batchnorm_grad_input:
    case OpKind::layernorm_grad_input:
      return arg == 0 || arg == 1;
    default:
      return false;
  }
}

}  // namespace cairn::runtime
