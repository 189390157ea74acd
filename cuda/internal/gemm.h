#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "cairn/runtime/device/library.h"

namespace cairn::cuda {

/// Matrix products by cuBLASLt. The algorithm of a shape is chosen once, so that the same product has the same bits
/// whenever it is computed. For one thread at a time.
class Gemms {
 public:
  /// Loads cuBLAS. No product will need more than `workspace_limit_bytes` of workspace.
  /// Throws DeviceError where cuBLAS or a device is missing.
  explicit Gemms(std::int64_t workspace_limit_bytes);
  Gemms(Gemms&&) noexcept;
  Gemms& operator=(Gemms&&) noexcept;
  ~Gemms();

  /// Bytes of workspace that run() needs for this shape, whose algorithm is chosen by the first call; tens of
  /// microseconds then. Throws DeviceError that names the shape when cuBLAS has no algorithm for it, InputError when
  /// the shape is none (extents below 1, or bias together with accumulate).
  std::int64_t workspace(const runtime::device::GemmShape& shape);

  /// Enqueues the product. Every tensor begins at a multiple of 16 bytes, the workspace at a multiple of 256. May be
  /// captured into a graph. Throws DeviceError that names the shape.
  void run(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands, void* workspace,
           cudaStream_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::cuda
