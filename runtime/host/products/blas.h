#pragma once

#include <cblas.h>

namespace cairn::runtime {

/// The functions of the BLAS library, which computes matrix products. The library is loaded when the first product is
/// computed, because loading it can start threads and takes memory that most commands do not need.
struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  /// Sets the number of threads that the library uses for the calling thread. Null if the library has no such function.
  void (*set_threads)(int) = nullptr;
};

/// Returns the functions of the library, which the first call opens. Throws DeviceError if no library is found. Tests
/// may replace the functions.
Blas& blas();

/// Checks that the process can address the buffers that the library allocates when `threads` threads multiply for the
/// first time. Throws MemoryError if it cannot, because OpenBLAS would retry for ever. Does not check the
/// buffers that an earlier call has checked, because they should be allocated by now. Does nothing if the library is
/// not OpenBLAS.
void require_blas_buffers(int threads);

}  // namespace cairn::runtime
