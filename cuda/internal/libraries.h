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

#include "cairn/runtime/device/library.h"

/// The vendor's libraries, which are cuBLASLt and, if it is installed, cuDNN.
namespace cairn::cuda {

/// A library that is opened at run time, so that the program starts without it and loads it only when it is needed
/// (cuBLASLt alone costs 60 ms). It stays open to the end of the process, because such libraries have threads and exit
/// handlers of their own.
class SharedLibrary {
 public:
  /// A function, as a pointer of the type that it is assigned to; nullptr if the library has none of this name.
  struct Symbol {
    void* address;
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  /// Opens `file`.`major`, or `file` if it has the same major version: first where the loader looks, then in the folder
  /// of this build's toolkit. `name` is for messages; `version` is the library's function that returns 10000 times the
  /// major version and more.
  SharedLibrary(std::string name, const std::string& file, int major, const char* version);

  Symbol find(const char* symbol);
  /// One line that says what is missing and how to mend it; empty if nothing is.
  std::string why_not() const;

 private:
  void open(const std::string& file);

  std::string name_;
  int major_;
  void* library_ = nullptr;
  std::string reason_;
};

/// The choices made for shapes. Each is made once, so that the same op has the same bits whenever it is computed.
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

/// Returns the time in milliseconds of execute(buffers, stream) on buffers of these sizes, which are then freed. This
/// is the least time of a few runs after a first one, or the time of a single run if it takes longer than a
/// millisecond. Returns nullopt if a run is refused, as a library may refuse what it said it could do, and 0 if memory
/// does not suffice for a trial. Throws DeviceError if the enqueued work fails.
std::optional<double> trial_ms(std::span<const std::int64_t> bytes,
                               const std::function<bool(std::span<std::byte* const>, cudaStream_t)>& execute);

/// Speeds that a device reaches, measured by one large product and one large copy; zeros if memory did not suffice.
struct Ceilings {
  double flops_per_ms = 0;
  double bytes_per_ms = 0;  ///< read and written

  bool known() const { return flops_per_ms > 0; }
  /// The time above which it is worth searching for a faster way: twice the least time of so many operations and bytes,
  /// if that is known, plus the time of a launch.
  double near_ms(double flops, double bytes) const {
    constexpr double kNear = 2, kLaunchMs = 0.03;
    return kLaunchMs + (known() ? kNear * std::max(flops / flops_per_ms, bytes / bytes_per_ms) : 0);
  }
};

/// Ratio of times from which on another choice is preferred, so that noise decides nothing.
inline constexpr double kWorthIt = 1.2;

/// Matrix products by cuBLASLt. The algorithm of a shape is chosen once, so that the same product has the same bits
/// whenever it is computed. Only one thread may use it at a time.
class Gemms {
 public:
  /// Loads cuBLAS. No product needs more than `workspace_limit_bytes` of workspace. Throws DeviceError if cuBLAS or a
  /// device is missing.
  explicit Gemms(std::int64_t workspace_limit_bytes);
  ~Gemms();

  /// Bytes of workspace that run() needs for this shape. The first call for a shape chooses its algorithm, which takes
  /// tens of microseconds. Throws DeviceError, which names the shape, if cuBLAS has no algorithm for it; InputError if
  /// the shape is invalid (extents below 1, or bias together with accumulate).
  std::int64_t workspace(const runtime::device::GemmShape& shape);

  /// Whether gemm_tiles() of the shape are faster than run(). The first call measures this and may not be captured.
  bool in_tiles(const runtime::device::GemmShape& shape);

  /// Speeds of products of this type. The first call measures them and may not be captured.
  const Ceilings& ceilings(core::ElementType type, bool tf32);

  /// Enqueues the product. Every tensor begins at a multiple of 16 bytes, the workspace at a multiple of 256. May be
  /// captured into a graph. Throws DeviceError that names the shape.
  void run(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands, void* workspace,
           cudaStream_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the time in milliseconds of a convolution as products over patches (runtime/device/conv.h); 0 if memory does
/// not suffice for a trial. Throws DeviceError.
double lowered_ms(Gemms& gemms, const runtime::device::ConvShape& shape);

/// Whether tiles make a product faster (runtime/device/matmul.h). Throws DeviceError.
bool tiles_pay(Gemms& gemms, const runtime::device::GemmShape& shape);

/// Measures the ceilings of products of this type.
Ceilings measure_ceilings(Gemms& gemms, core::ElementType type, bool tf32);

/// Convolutions by cuDNN, if it is installed. The plan of a shape is chosen once, among those that give the same bits
/// every time. Only one thread may use it at a time.
class Convolutions {
 public:
  /// Loads and starts cuDNN, which takes some tenths of a second. No convolution needs more than
  /// `workspace_limit_bytes` of workspace. With `gemms`, which must outlive it, convolutions that products over patches
  /// compute faster than every plan are left to them.
  explicit Convolutions(std::int64_t workspace_limit_bytes, Gemms* gemms = nullptr);
  ~Convolutions();

  bool available() const;
  /// One line that says why cuDNN cannot be used and how to mend it; empty if it can.
  const std::string& why_not() const;

  /// Bytes of workspace that run() needs for this shape. Returns nullopt if there is no cuDNN, if it has no
  /// deterministic plan for the shape that also runs, or if products over patches are faster. The first call for a
  /// shape chooses the plan, the first of cuDNN's list unless that is far from what the device reaches, and executes it
  /// a few times. This takes milliseconds, or seconds if cuDNN compiles a kernel.
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

/// The libraries of a device.
struct Libraries {
  explicit Libraries(std::int64_t workspace_limit_bytes)
      : gemms(workspace_limit_bytes), convolutions(workspace_limit_bytes, &gemms) {}

  Gemms gemms;
  Convolutions convolutions;
};

/// Products on a stream, with the interface that ops use.
class StreamProducts : public runtime::device::Library {
 public:
  StreamProducts(Gemms& gemms, cudaStream_t stream) : gemms_(gemms), stream_(stream) {}

  std::int64_t gemm_workspace(const runtime::device::GemmShape& shape) final { return gemms_.workspace(shape); }
  void gemm(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands,
            void* workspace) final {
    gemms_.run(shape, operands, workspace, stream_);
  }

 protected:
  Gemms& gemms_;
  cudaStream_t stream_;
};

/// All libraries of a device, on a stream.
class StreamLibrary final : public StreamProducts {
 public:
  StreamLibrary(Libraries& libraries, cudaStream_t stream)
      : StreamProducts(libraries.gemms, stream), convolutions_(libraries.convolutions) {}

  bool gemm_in_tiles(const runtime::device::GemmShape& shape) override { return gemms_.in_tiles(shape); }
  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape& shape) override {
    return convolutions_.workspace(shape);
  }
  void conv(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands,
            void* workspace) override {
    convolutions_.run(shape, operands, workspace, stream_);
  }

 private:
  Convolutions& convolutions_;
};

}  // namespace cairn::cuda
