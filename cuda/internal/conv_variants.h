#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// The choice between ways to compute a convolution. They differ in time and scratch. A way is an engine, which is one
/// of cuDNN's implementations, or im2col, which copies patches of the images and computes matrix products of them. This
/// code needs no device, because the caller provides the measured times (ConvTrials).
namespace cairn::cuda {

/// Workspaces in bytes that a device permits unless its options say otherwise.
inline constexpr std::int64_t kSmallWorkspace = std::int64_t{32} << 20;
inline constexpr std::int64_t kLargeWorkspace = std::int64_t{1} << 30;

/// A way with more scratch is chosen only if it is faster by this factor, so that noise in the measurement does not
/// decide.
inline constexpr double kWorthIt = 1.2;

/// A way to compute a convolution.
struct ConvVariant {
  /// Index of the engine among those that were proposed. None stands for im2col.
  std::optional<std::size_t> engine;
  std::int64_t scratch = 0;  ///< bytes: an engine's workspace, or patches and the workspace of their products
  double ms = 0;             ///< measured time in milliseconds; 0 if it could not be measured
};

/// Plans and times the engines that cuDNN proposes for one shape. Engine 0 is the one that cuDNN expects to be fastest.
class ConvTrials {
 public:
  virtual ~ConvTrials() = default;

  virtual std::size_t engines() const = 0;  ///< number of engines
  /// Returns the engine's bytes of workspace, or nullopt if it must not or cannot compute the shape.
  virtual std::optional<std::int64_t> workspace(std::size_t engine) = 0;
  /// Returns the engine's milliseconds, 0 if memory does not suffice to measure them, or nullopt if the engine fails to
  /// run, which can happen although it was planned.
  virtual std::optional<double> engine_ms(std::size_t engine) = 0;
  /// Returns time and scratch of im2col. The time is 0 if it is not known.
  virtual ConvVariant lowered() = 0;
};

/// Limits of the search for a convolution's variants. An engine has a small workspace if the workspace is at most
/// small_workspace, and a large one if it is above small_workspace and at most large_workspace. Other engines are not
/// tried.
struct ConvLimits {
  std::int64_t small_workspace = 0;  ///< in bytes
  std::int64_t large_workspace = 0;  ///< in bytes
  double near_ms = 0;                ///< milliseconds; once a variant takes no longer, no further engine is tried
  /// Largest number of engines with a small workspace that are timed. The same number applies to engines with a large
  /// workspace. Without this limit, a convolution in fp32 can take seconds: it can have 20 engines of 100 ms each.
  int most_trials = 6;
  std::chrono::milliseconds most_time{300};  ///< time after which no further engine of either kind is timed
};

/// The variants among which a convolution can choose. Each needs more scratch than the one before and is at least
/// kWorthIt times as fast.
struct ConvVariants {
  std::vector<ConvVariant> all;
  /// Index of the variant that is used if a node's scratch in the graph does not ask for another one. It is at least as
  /// fast as im2col and as every engine with a small workspace, within a factor of kWorthIt.
  std::size_t usual = 0;

  /// Returns the index of the fastest variant with at most this scratch. Returns the first variant if none fits.
  std::size_t within(std::int64_t scratch) const;
  /// Returns the bytes of workspace of the engine that computes the convolution if its node has `scratch` bytes. If
  /// `scratch` is nullopt, the engine is that of the usual variant. Returns nullopt if im2col computes the convolution.
  std::optional<std::int64_t> workspace(std::optional<std::int64_t> scratch) const;
};

/// Times engines and im2col, and keeps those that are worth their scratch. The result is empty if no engine runs, which
/// means that only im2col can compute the convolution. Engines are tried in the order of their indices. A second
/// engine, and im2col, are tried only if the first one takes more than limits.near_ms.
ConvVariants find_variants(ConvTrials& trials, const ConvLimits& limits);

}  // namespace cairn::cuda
