#include "cairn/runtime/host/parallel.h"

#include <omp.h>

namespace cairn::runtime::kernels {

void run_blocks(std::int64_t n, std::int64_t block, BlockFunction function, const void* context) {
  const std::int64_t blocks = (n + block - 1) / block;
  const auto run = [=](std::int64_t b) { function(context, b * block, std::min(n, (b + 1) * block)); };
  // A parallel region of one thread would allocate its team anew each time, and nothing may be allocated here.
  if (blocks <= 1 || omp_get_max_threads() == 1) {
    for (std::int64_t b = 0; b < blocks; ++b) run(b);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t b = 0; b < blocks; ++b) run(b);
}

}  // namespace cairn::runtime::kernels
