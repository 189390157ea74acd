#pragma once

#include <cblas.h>

namespace cairn::runtime {

/// The library that computes products: opened when the first one is asked for, as loading it starts threads and takes
/// memory that most commands have no use for.
struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  void (*set_threads)(int) = nullptr;  ///< of the thread that asks; null: the library has no threads
};

/// Opens it, once. Throws DeviceError where there is none. Tests may put other functions in.
Blas& blas();

}  // namespace cairn::runtime
