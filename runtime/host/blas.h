#pragma once

#include <cblas.h>

namespace cairn::runtime {

/// The library that computes matrix products. It is loaded when the first product is computed, because loading it
/// starts threads and takes memory that most commands do not need.
struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  /// Sets the number of threads that the library uses for the calling thread. Null if the library has no such function.
  void (*set_threads)(int) = nullptr;
};

/// Returns the library, which the first call opens. Throws DeviceError if there is none. Tests may replace the
/// functions.
Blas& blas();

/// Checks that the process can address the buffers that the library allocates when `threads` threads multiply for the
/// first time. Throws MemoryError if it cannot, because OpenBLAS would retry for ever. Buffers that an earlier call has
/// checked are taken as allocated. Does nothing for other libraries.
void require_blas_buffers(int threads);

}  // namespace cairn::runtime
