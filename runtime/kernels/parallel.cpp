#include "runtime/kernels/parallel.h"

namespace cairn::runtime::kernels {

void run_blocks(std::int64_t n, std::int64_t block, BlockFunction function, const void* context) {
  const std::int64_t blocks = (n + block - 1) / block;
  // Not as an `if` clause: a parallel region of one thread allocates its team anew each time.
  if (blocks <= 1) {
    if (n > 0) function(context, 0, n);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t b = 0; b < blocks; ++b) function(context, b * block, std::min(n, (b + 1) * block));
}

}  // namespace cairn::runtime::kernels
