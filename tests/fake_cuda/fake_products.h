#pragma once

#include "cairn/runtime/device/library.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"

namespace cairn::tests::fake {

/// Records a fault unless the tensors of a matrix product and its workspace have the alignment that cuBLASLt may
/// assume.
inline void require_aligned(const runtime::device::GemmOperands& operands, const void* workspace) {
  for (const void* tensor : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    require_aligned(tensor, 16, "a product's tensor");
  }
  require_aligned(workspace, 256, "a product's workspace");
}

}  // namespace cairn::tests::fake
