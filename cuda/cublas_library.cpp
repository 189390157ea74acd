#include "cairn/cuda/internal/cublas_library.h"

#include <cuda_runtime_api.h>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/shared_library.h"

namespace cairn::cuda {
namespace {

CublasLt load() {
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  SharedLibrary library({"libcublasLt.so." + major, "libcublasLt.so"});
  CublasLt lt;
  library.find("cublasLtGetStatusName", lt.status_name);
  library.find("cublasLtGetVersion", lt.version);
  library.find("cublasLtCreate", lt.create);
  library.find("cublasLtDestroy", lt.destroy);
  library.find("cublasLtMatmul", lt.matmul);
  library.find("cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  library.find("cublasLtMatmulDescCreate", lt.create_desc);
  library.find("cublasLtMatmulDescDestroy", lt.destroy_desc);
  library.find("cublasLtMatmulDescSetAttribute", lt.set_desc);
  library.find("cublasLtMatrixLayoutCreate", lt.create_layout);
  library.find("cublasLtMatrixLayoutDestroy", lt.destroy_layout);
  library.find("cublasLtMatrixLayoutSetAttribute", lt.set_layout);
  library.find("cublasLtMatmulPreferenceCreate", lt.create_preference);
  library.find("cublasLtMatmulPreferenceDestroy", lt.destroy_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", lt.set_preference);

  std::string reason = library.why_not();
  constexpr std::size_t kPerMajor = 10000;
  if (reason.empty() && lt.version() / kPerMajor != CUBLAS_VER_MAJOR)
    reason = "libcublasLt.so is of version " + std::to_string(lt.version() / kPerMajor);
  if (!reason.empty())
    throw core::DeviceError("cuBLAS " + major + " cannot be loaded (" + reason +
                            "): install it or put its folder on LD_LIBRARY_PATH");
  return lt;
}

}  // namespace

const CublasLt& cublas_lt() {
  static const CublasLt lt = load();
  return lt;
}

void fail(cublasStatus_t status, const std::string& what) {
  cudaGetLastError();  // cuBLAS may leave one behind
  throw core::DeviceError(what + ": " + cublas_lt().status_name(status));
}

}  // namespace cairn::cuda
