#include "cairn/runtime/host/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "cairn/core/error.h"

namespace cairn::runtime {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Blas open_blas() {
  // The callers divide products among threads, so BLAS must not start threads. OpenBLAS starts a thread per core when
  // it is loaded. If there is no memory for the threads' stacks, it retries for ever.
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  std::string why;
  for (const char* name : {"libopenblas.so.0", CAIRN_BLAS_LIBRARY, "libblas.so.3", "libcblas.so.3"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (why.empty()) why = dlerror();
      continue;
    }
    Blas found;
    find(library, "cblas_sgemm", found.sgemm);
    find(library, "cblas_dgemm", found.dgemm);
    find(library, "openblas_set_num_threads", found.set_threads);
    if (found.sgemm != nullptr && found.dgemm != nullptr) return found;
    if (why.empty()) why = fmt::format("{} has no cblas_sgemm", name);
    dlclose(library);
  }
  throw core::DeviceError(
      fmt::format("products need a BLAS library, and none can be opened ({}); install libopenblas0", why));
}

}  // namespace

Blas& blas() {
  static Blas opened = open_blas();
  return opened;
}

}  // namespace cairn::runtime
