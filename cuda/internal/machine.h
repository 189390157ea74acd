#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "cairn/cuda/internal/convolution.h"
#include "cairn/cuda/internal/gemm.h"
#include "cairn/cuda/internal/launcher.h"
#include "cairn/runtime/device/library.h"

namespace cairn::cuda {

/// The Machine of runtime/device/machine.h on a GPU: everything is enqueued on one stream, nothing waits. For one
/// thread at a time.
class Machine : public Launcher {
 public:
  /// Starts cuBLASLt and cuDNN on the current device. No op will need more than `workspace_limit_bytes` of workspace
  /// for a library. Throws DeviceError.
  explicit Machine(std::int64_t workspace_limit_bytes);

  std::int64_t gemm_workspace(const runtime::device::GemmShape& shape) { return gemms_.workspace(shape); }
  void gemm(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands, void* workspace) {
    gemms_.run(shape, operands, workspace, stream());
  }

  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape& shape) {
    return convolutions_.workspace(shape);
  }
  void conv(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace) {
    convolutions_.run(shape, operands, workspace, stream());
  }

  std::int64_t sort_workspace(std::int64_t count);
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace);

  const Convolutions& convolutions() const { return convolutions_; }

 private:
  Gemms gemms_;
  Convolutions convolutions_;
};

}  // namespace cairn::cuda
