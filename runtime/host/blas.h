#pragma once

#include <cblas.h>

namespace cairn::runtime {

/// The library that computes products. It is opened when the first product is asked for, because loading it starts
/// threads and takes memory that most commands do not need.
struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  /// Sets the number of threads for the calling thread; null: the library has no threads.
  void (*set_threads)(int) = nullptr;
};

/// Opens the library, once. Throws DeviceError if there is none. Tests may replace the functions.
Blas& blas();

}  // namespace cairn::runtime
