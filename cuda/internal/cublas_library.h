#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

namespace cairn::cuda {

/// The functions of cuBLASLt that Cairn calls.
struct CublasLt {
  decltype(cublasLtGetStatusName)* status_name = nullptr;
  decltype(cublasLtGetVersion)* version = nullptr;
  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtMatmul)* matmul = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
  decltype(cublasLtMatmulDescCreate)* create_desc = nullptr;
  decltype(cublasLtMatmulDescDestroy)* destroy_desc = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* set_desc = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* create_layout = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* destroy_layout = nullptr;
  decltype(cublasLtMatrixLayoutSetAttribute)* set_layout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* create_preference = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference = nullptr;
};

/// Loaded at the first call, for the whole process. Throws DeviceError where the library is missing, and says how to
/// mend.
const CublasLt& cublas_lt();

/// Throws DeviceError "<what>: <name of the status>".
[[noreturn]] void fail(cublasStatus_t status, const std::string& what);

/// fail() unless `status` is success. `what` is a callable, so that a call that succeeds does not pay for its text.
template <typename What>
void check(cublasStatus_t status, const What& what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(status, what());
}

template <auto kDestroy>
struct CublasLtDeleter {
  template <typename T>
  void operator()(T* handle) const noexcept {
    (cublas_lt().*kDestroy)(handle);  // loaded long ago: a handle was made
  }
};

using CublasLtHandle = std::unique_ptr<cublasLtContext, CublasLtDeleter<&CublasLt::destroy>>;
using ProductDesc = std::unique_ptr<cublasLtMatmulDescOpaque_t, CublasLtDeleter<&CublasLt::destroy_desc>>;
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CublasLtDeleter<&CublasLt::destroy_layout>>;
using ProductPreference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CublasLtDeleter<&CublasLt::destroy_preference>>;

}  // namespace cairn::cuda
