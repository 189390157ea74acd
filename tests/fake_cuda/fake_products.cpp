// Replaces cuBLASLt. The host computes a matrix product at the time at which the fake runtime runs it.
#include "cairn/tests/fake_cuda/fake_products.h"

#include "cairn/cuda/internal/libraries.h"
#include "cairn/tests/support/host_library.h"

namespace cairn::cuda {

using runtime::device::GemmOperands;
using runtime::device::GemmShape;

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  tests::fake::require_aligned(operands, workspace);
  tests::fake::enqueue(
      stream, [=] { tests::HostLibrary().gemm(shape, operands, workspace); }, "a product");
}

}  // namespace cairn::cuda
