#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cairn/runtime/device/library.h"

namespace cairn::cuda {

/// Convolutions by cuDNN, where it is installed. The plan of a shape is chosen once, among those that give the same
/// bits every time. For one thread at a time.
class Convolutions {
 public:
  /// Loads cuDNN and starts it: some tenths of a second. No convolution will need more than `workspace_limit_bytes` of
  /// workspace.
  explicit Convolutions(std::int64_t workspace_limit_bytes);
  Convolutions(Convolutions&&) noexcept;
  Convolutions& operator=(Convolutions&&) noexcept;
  ~Convolutions();

  bool available() const;
  /// One line that says why cuDNN cannot be used and how to mend; empty when it can.
  const std::string& why_not() const;

  /// Bytes of workspace that run() needs for this shape; nullopt when there is no cuDNN, or it has no deterministic
  /// plan for the shape. The first call for a shape chooses the plan: milliseconds, and seconds where cuDNN compiles a
  /// kernel for it.
  std::optional<std::int64_t> workspace(const runtime::device::ConvShape& shape);

  /// Enqueues the convolution of a shape for which workspace() gives a size. Every tensor begins at a multiple of 16
  /// bytes, the workspace at a multiple of 256. May be captured into a graph once workspace() was called.
  /// Throws DeviceError that names the shape.
  void run(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace,
           cudaStream_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::cuda
