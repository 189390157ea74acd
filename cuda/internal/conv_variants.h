#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// The choice between ways to compute a convolution that differ in time and scratch. Nothing here needs a device: the
/// caller plans and times.
namespace cairn::cuda {

/// Workspaces in bytes that a device permits unless its options say otherwise.
inline constexpr std::int64_t kSmallWorkspace = std::int64_t{32} << 20;
inline constexpr std::int64_t kLargeWorkspace = std::int64_t{1} << 30;

/// An alternative is chosen only if it is faster by this factor, so that noise in the measurement does not decide.
inline constexpr double kWorthIt = 1.2;

/// A way to compute a convolution.
struct ConvVariant {
  /// Index of the engine among those that were proposed. None stands for matrix products over patches (im2col).
  std::optional<std::size_t> engine;
  std::int64_t scratch = 0;  ///< bytes: an engine's workspace, or patches and the workspace of their products
  double ms = 0;             ///< measured time in milliseconds; 0 if it could not be measured
};

/// What the choice asks of the engines that are proposed for one shape, the best first.
class ConvTrials {
 public:
  virtual ~ConvTrials() = default;

  virtual std::size_t engines() const = 0;
  /// Returns the engine's bytes of workspace, or nullopt if it must not or cannot compute the shape.
  virtual std::optional<std::int64_t> workspace(std::size_t engine) = 0;
  /// Returns the engine's milliseconds, 0 if memory does not suffice to measure them, or nullopt if the engine refuses
  /// to run, which can happen although it was planned.
  virtual std::optional<double> engine_ms(std::size_t engine) = 0;
  /// Returns time and scratch of the computation as matrix products over patches. The time is 0 if it is not known.
  virtual ConvVariant lowered() = 0;
};

/// Bounds of a choice.
struct ConvLimits {
  std::int64_t small_workspace = 0;  ///< bytes that an engine may use wherever the convolution is
  std::int64_t large_workspace = 0;  ///< bytes that an engine may use where memory is free anyway
  double near_ms = 0;                ///< no faster engine is searched for once one is as fast as this
  /// Largest number of engines that are timed of those with a small workspace, and of those with a large one. A
  /// convolution in fp32 can have 20 engines of 100 ms each.
  int most_trials = 6;
  std::chrono::milliseconds most_time{300};  ///< time after which no further engine of either kind is timed
};

/// The variants among which a convolution can choose. Each needs more scratch than the one before and is at least
/// kWorthIt times as fast.
struct ConvVariants {
  std::vector<ConvVariant> all;
  /// Index of the variant that is used unless another one is asked for. It is the fastest of im2col and of the engines
  /// with a small workspace.
  std::size_t usual = 0;

  /// Returns the index of the fastest variant with at most this scratch. Returns the first variant if none fits.
  std::size_t within(std::int64_t scratch) const;
  /// Returns the bytes of workspace of the engine that computes the convolution with this scratch, or of the usual
  /// variant. Returns nullopt if im2col computes it.
  std::optional<std::int64_t> workspace(std::optional<std::int64_t> scratch) const;
};

/// Times engines and keeps those that are worth their scratch. The result is empty if no engine runs; then only im2col
/// computes the convolution. Engines are tried in the order of cuDNN's heuristics. A second engine, and im2col, are
/// tried only if the first one is not near what the device can reach.
ConvVariants find_variants(ConvTrials& trials, const ConvLimits& limits);

}  // namespace cairn::cuda
