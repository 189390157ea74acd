#include "cairn/runtime/host/products/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

#include "cairn/core/error.h"
#include "cairn/runtime/support/blas_library.h"

namespace cairn::runtime {
namespace {

template <class Function>
void find(void* library, const std::string& name, Function& function) {
  void* found = dlsym(library, name.c_str());
  if (found == nullptr) found = dlsym(library, ("scipy_" + name).c_str());
  function = reinterpret_cast<Function>(found);
}

/// Keeps OpenBLAS from starting threads if it is loaded while this object lives, whatever the user's environment says.
/// By default, OpenBLAS starts one thread per core when it is loaded. Cairn itself divides products among threads, so
/// OpenBLAS needs none. Besides, if there is no memory for the threads' stacks or buffers, OpenBLAS retries for ever,
/// even when the process exits.
class NoThreadsOfBlas {
 public:
  NoThreadsOfBlas() {
    if (const char* const text = std::getenv(kVariable)) before_ = text;
    setenv(kVariable, "1", 1);
  }
  ~NoThreadsOfBlas() {
    if (before_) setenv(kVariable, before_->c_str(), 1);
    // If the variable was not set before, it stays "1": libraries that are loaded later should start no threads,
    // either.
  }
  NoThreadsOfBlas(const NoThreadsOfBlas&) = delete;
  NoThreadsOfBlas& operator=(const NoThreadsOfBlas&) = delete;

 private:
  static constexpr const char* kVariable = "OPENBLAS_NUM_THREADS";
  std::optional<std::string> before_;
};

Blas open_blas() {
  const NoThreadsOfBlas no_threads;
  std::string why;
  for (const char* name :
       {"libopenblas.so.0", CAIRN_BLAS_LIBRARY, "libblas.so.3", "libcblas.so.3", blas_fallback().c_str()}) {
    if (*name == '\0') continue;
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
      fmt::format("products need a BLAS library, and none can be opened ({}); install libopenblas0, or the Python "
                  "package scipy-openblas32",
                  why));
}

}  // namespace

Blas& blas() {
  static Blas opened = open_blas();
  return opened;
}

void require_blas_buffers(int threads) {
  constexpr std::size_t kBufferOfThread = std::size_t{130} << 20;  // bytes; OpenBLAS maps 128 MiB and a few pages
  static std::mutex mutex;
  static int checked = 0;  // number of threads whose buffers are allocated
  const std::lock_guard lock(mutex);
  if (blas().set_threads == nullptr || threads <= checked) return;
  const std::size_t bytes = kBufferOfThread * static_cast<std::size_t>(threads - checked);
  void* const reserved =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    throw core::MemoryError(fmt::format(
        "products need {} MiB of addresses for the buffers of OpenBLAS, which a limit on the process (ulimit -v) "
        "does not leave; raise the limit",
        bytes >> 20));
  munmap(reserved, bytes);
  checked = threads;
}

}  // namespace cairn::runtime
