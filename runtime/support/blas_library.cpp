#include "cairn/runtime/support/blas_library.h"

namespace cairn::runtime {

std::string& blas_fallback() {
  static std::string path;
  return path;
}

}  // namespace cairn::runtime
