#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "cuda/internal/convolution.h"
#include "cuda/internal/gemm.h"
#include "runtime/device/library.h"

namespace cairn::cuda {

/// The Machine of runtime/device/machine.h on a GPU: everything is enqueued on one stream, nothing waits. For one
/// thread at a time. launch() is defined in machine.cuh, for .cu files.
class Machine {
 public:
  /// Starts cuBLASLt and cuDNN on the current device. No op will need more than `workspace_limit_bytes` of workspace
  /// for a library. Throws DeviceError.
  explicit Machine(std::int64_t workspace_limit_bytes);

  cudaStream_t stream() const { return stream_; }
  void set_stream(cudaStream_t stream) { stream_ = stream; }

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0);

  void fill(void* address, int byte, std::int64_t bytes);

  std::int64_t gemm_workspace(const runtime::device::GemmShape& shape) { return gemms_.workspace(shape); }
  void gemm(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands, void* workspace) {
    gemms_.run(shape, operands, workspace, stream_);
  }

  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape& shape) {
    return convolutions_.workspace(shape);
  }
  void conv(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace) {
    convolutions_.run(shape, operands, workspace, stream_);
  }

  std::int64_t sort_workspace(std::int64_t count);
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace);

  std::int64_t shared_limit() const { return shared_limit_; }
  const Convolutions& convolutions() const { return convolutions_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::int64_t shared_limit_ = 0;
  Gemms gemms_;
  Convolutions convolutions_;
};

}  // namespace cairn::cuda
