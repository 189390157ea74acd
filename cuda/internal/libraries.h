#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/cuda/internal/conv_variants.h"
#include "cairn/runtime/device/library.h"

/// This file declares the classes that use the vendor's libraries: cuBLASLt and, if it is installed, cuDNN.
namespace cairn::cuda {

/// A library that is opened when it is first needed. So Cairn also runs if the library is not installed, and starts
/// faster (loading cuBLASLt takes 60 ms). The library is never closed, because it can have threads and exit handlers.
class SharedLibrary {
 public:
  /// The address of a function, or nullptr if the library has no such function. Converts to any pointer to a function.
  struct Symbol {
    void* address;
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  /// Opens the file `file`.`major`, or `file` if it is a library of this major version. Searches where the loader
  /// looks, then in the folders of the CUDA toolkit and of the cuDNN with which Cairn was built. `name` names the
  /// library in messages. `version` is the name of the library's function that returns its version number; divided by
  /// 10000, this number gives the major version.
  SharedLibrary(std::string name, const std::string& file, int major, const char* version);

  Symbol find(const char* symbol);
  /// Returns one line that says what is missing and how to fix it, or an empty text if nothing is missing.
  std::string why_not() const;

 private:
  void open(const std::string& file);

  std::string name_;
  int major_;
  void* library_ = nullptr;
  std::string reason_;
};

/// Stores the algorithm (plan) of each shape. of() chooses the algorithm of a shape only once, so that the same op
/// always gives the same bits.
template <class Shape, class Plan>
class Plans {
 public:
  template <class Choose>
  const Plan& of(const Shape& shape, const Choose& choose) {
    auto found = plans_.find(shape);
    if (found == plans_.end()) found = plans_.emplace(shape, choose(shape)).first;
    return found->second;
  }

 private:
  std::map<Shape, Plan> plans_;
};

/// Returns the time in milliseconds of execute(buffers, stream), with temporary buffers of the given sizes. After a
/// first run to warm up, takes the least time of a few runs, or the time of one run if it takes longer than a
/// millisecond. Returns 0 if there is not enough memory for the buffers. Returns nullopt if execute() returns false or
/// leaves a CUDA error, because a library can fail to run what it has planned. Throws DeviceError if the enqueued work
/// fails.
std::optional<double> trial_ms(std::span<const std::int64_t> bytes,
                               const std::function<bool(std::span<std::byte* const>, cudaStream_t)>& execute);

/// The speeds that a device reaches, measured with one large matrix product and one large copy. The speeds are 0 if
/// memory did not suffice for the measurement.
struct Ceilings {
  double flops_per_ms = 0;
  double bytes_per_ms = 0;  ///< bytes read plus bytes written

  bool known() const { return flops_per_ms > 0; }
  /// Returns a time in milliseconds: an algorithm that takes at most this time is fast enough to end the search for a
  /// faster one. This is the time of a launch plus twice the least time that `flops` operations and `bytes` bytes can
  /// take at these speeds. If the speeds are not known, this is the time of a launch alone.
  double near_ms(double flops, double bytes) const {
    constexpr double kNear = 2, kLaunchMs = 0.03;
    return kLaunchMs + (known() ? kNear * std::max(flops / flops_per_ms, bytes / bytes_per_ms) : 0);
  }
};

/// Computes matrix products by cuBLASLt. The algorithm of a shape is chosen once, so that the same product always gives
/// the same bits. Only one thread may use a Gemms at a time.
class Gemms {
 public:
  /// Loads cuBLASLt. No product uses more than `workspace_limit_bytes` of workspace. Throws DeviceError if cuBLASLt or
  /// a device is missing.
  explicit Gemms(std::int64_t workspace_limit_bytes);
  ~Gemms();

  /// Returns the bytes of workspace that run() needs for this shape. The first call for a shape chooses its algorithm,
  /// which takes tens of microseconds. Throws DeviceError, which names the shape, if cuBLASLt has no algorithm for it.
  /// Throws InputError if the shape is invalid (extents below 1, or a bias together with accumulate).
  std::int64_t workspace(const runtime::device::GemmShape& shape);

  /// Returns whether cuBLASLt has an algorithm for this shape. For a shape with a bias there may be no algorithm,
  /// because many algorithms cannot add a bias.
  bool adds_bias(const runtime::device::GemmShape& shape);

  /// Returns whether the product is faster in tiles, which are copies of a few rows with padding (gemm_tiles() in
  /// runtime/device/kernels/matmul.h), than with run(). The first call for a shape measures both times, so no stream
  /// may be captured during the call.
  bool in_tiles(const runtime::device::GemmShape& shape);

  /// Returns the speeds that products of this type reach. The first call for a type measures them, so no stream may be
  /// captured during the call.
  const Ceilings& ceilings(core::ElementType type, bool tf32);

  /// Enqueues the product. Every tensor must begin at a multiple of 16 bytes, and the workspace at a multiple of 256.
  /// May be captured into a CUDA graph. Throws DeviceError, which names the shape.
  void run(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands, void* workspace,
           cudaStream_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns time and scratch of a convolution that is computed by im2col, as products over patches
/// (runtime/device/kernels/conv.h). The time is 0 if memory does not suffice to measure it. Throws DeviceError.
ConvVariant lowered_conv(Gemms& gemms, const runtime::device::ConvShape& shape);

/// Measures whether a product is faster in tiles; see Gemms::in_tiles(). Throws DeviceError.
bool tiles_pay(Gemms& gemms, const runtime::device::GemmShape& shape);

Ceilings measure_ceilings(Gemms& gemms, core::ElementType type, bool tf32);

/// Limits on the workspace of an op, in bytes.
struct WorkspaceLimits {
  std::int64_t small_bytes = 0;  ///< for every op
  std::int64_t large_bytes = 0;  ///< for a convolution whose node has at least as much scratch in the graph
};

/// Computes convolutions by cuDNN, if it is installed. An engine is one of cuDNN's implementations. The engines for a
/// shape are chosen once, among the engines that give the same bits every time. Only one thread may use a Convolutions
/// at a time.
class Convolutions {
 public:
  /// Loads and starts cuDNN, which takes a few tenths of a second. If `gemms` is not nullptr, the choice of engines
  /// also times im2col, which computes a convolution as matrix products over patches. `gemms` must outlive this object.
  explicit Convolutions(const WorkspaceLimits& limits, Gemms* gemms = nullptr);
  ~Convolutions();

  bool available() const;
  /// Returns one line that says why cuDNN cannot be used and how to fix it, or an empty text if it can be used.
  const std::string& why_not() const;

  /// Returns the implementations from which a program can choose for this shape. The result is empty if cuDNN is
  /// missing, or if no deterministic engine runs; in both cases, im2col must compute the convolution. The first call
  /// for a shape times engines. This takes milliseconds, or seconds if cuDNN compiles a kernel.
  const ConvVariants& variants(const runtime::device::ConvShape& shape);

  std::optional<std::int64_t> workspace(const runtime::device::ConvShape& shape,
                                        std::optional<std::int64_t> scratch = std::nullopt) {
    return variants(shape).workspace(scratch);
  }

  /// Enqueues a convolution. `workspace_bytes` must be a result of workspace() for this shape; it identifies the
  /// engine. Every tensor must begin at a multiple of 16 bytes, and the workspace at a multiple of 256. May be captured
  /// into a CUDA graph once workspace() was called for the shape. Throws DeviceError, which names the shape.
  void run(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace,
           std::int64_t workspace_bytes, cudaStream_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Libraries {
  explicit Libraries(const WorkspaceLimits& limits) : gemms(limits.small_bytes), convolutions(limits, &gemms) {}

  Gemms gemms;
  Convolutions convolutions;
};

/// Implements the part of runtime::device::Library that computes matrix products. Work is enqueued on one stream.
class StreamProducts : public runtime::device::Library {
 public:
  StreamProducts(Gemms& gemms, cudaStream_t stream) : gemms_(gemms), stream_(stream) {}

  std::int64_t gemm_workspace(const runtime::device::GemmShape& shape) final { return gemms_.workspace(shape); }
  bool gemm_adds_bias(const runtime::device::GemmShape& shape) final { return gemms_.adds_bias(shape); }
  void gemm(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands,
            void* workspace) final {
    gemms_.run(shape, operands, workspace, stream_);
  }

 protected:
  Gemms& gemms_;
  cudaStream_t stream_;
};

/// Implements runtime::device::Library. cuBLASLt computes products, and cuDNN computes convolutions. Work is enqueued
/// on one stream.
class StreamLibrary final : public StreamProducts {
 public:
  StreamLibrary(Libraries& libraries, cudaStream_t stream)
      : StreamProducts(libraries.gemms, stream), convolutions_(libraries.convolutions) {}

  bool gemm_in_tiles(const runtime::device::GemmShape& shape) override { return gemms_.in_tiles(shape); }
  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape& shape,
                                             std::optional<std::int64_t> scratch) override {
    return convolutions_.workspace(shape, scratch);
  }
  void conv(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace,
            std::int64_t workspace_bytes) override {
    convolutions_.run(shape, operands, workspace, workspace_bytes, stream_);
  }
  std::vector<runtime::ScratchVariant> conv_variants(const runtime::device::ConvShape& shape) override;

 private:
  Convolutions& convolutions_;
};

}  // namespace cairn::cuda
