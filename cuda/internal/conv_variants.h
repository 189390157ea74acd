#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// This file chooses between implementations of a convolution, which differ in time and scratch. One implementation is
/// im2col: it copies patches of the images and computes matrix products of these patches. All others are cuDNN's
/// engines. The choice needs no device, because the caller provides the measured times (ConvTrials).
namespace cairn::cuda {

/// Default limits on workspaces, in bytes.
inline constexpr std::int64_t kSmallWorkspace = std::int64_t{32} << 20;
inline constexpr std::int64_t kLargeWorkspace = std::int64_t{1} << 30;

/// An implementation with more scratch is chosen only if it is faster by more than this factor. With a smaller factor,
/// noise in the measured times could decide.
inline constexpr double kWorthIt = 1.2;

struct ConvVariant {
  /// Index of the engine among those that cuDNN proposed; nullopt stands for im2col.
  std::optional<std::size_t> engine;
  std::int64_t scratch =
      0;          ///< bytes; for an engine, its workspace; for im2col, the patches and the workspace of the products
  double ms = 0;  ///< measured time in milliseconds; 0 if it could not be measured
};

/// Plans and times the engines (implementations) that cuDNN proposes for one shape. Engine 0 is the engine that cuDNN
/// expects to be fastest.
class ConvTrials {
 public:
  virtual ~ConvTrials() = default;

  virtual std::size_t engines() const = 0;
  /// Returns the engine's bytes of workspace. Returns nullopt if the engine cannot compute the shape, or must not
  /// compute it (refusal()).
  virtual std::optional<std::int64_t> workspace(std::size_t engine) = 0;
  /// Returns the engine's time in milliseconds, 0 if memory does not suffice to measure it, or nullopt if the engine
  /// fails to run. An engine can fail even if its plan could be made.
  virtual std::optional<double> engine_ms(std::size_t engine) = 0;
  /// Returns time and scratch of im2col. The time is 0 if it could not be measured.
  virtual ConvVariant lowered() = 0;
};

/// Limits of the search for a convolution's variants. Engines are timed in two groups: first the engines whose
/// workspace has at most small_workspace bytes, then the engines with a larger workspace of up to large_workspace
/// bytes.
struct ConvLimits {
  std::int64_t small_workspace = 0;  ///< in bytes
  std::int64_t large_workspace = 0;  ///< in bytes
  double near_ms = 0;  ///< milliseconds; once a variant takes at most this time, no further engine is tried
  /// Largest number of engines that are timed in each group. Without this limit, a convolution in fp32 can take
  /// seconds, because it can have 20 engines of 100 ms each.
  int most_trials = 6;
  std::chrono::milliseconds most_time{300};  ///< after this time, no further engine of a group is timed
};

/// The variants among which a program can choose, by ascending scratch. Each variant is more than kWorthIt times as
/// fast as the variant before it.
struct ConvVariants {
  std::vector<ConvVariant> all;
  /// Index of the variant that is used by default. No engine with a small workspace is more than kWorthIt times as fast
  /// as this variant, nor is im2col.
  std::size_t usual = 0;

  /// Returns the index of the fastest variant with at most `scratch` bytes of scratch, or 0 if all variants need more.
  std::size_t within(std::int64_t scratch) const;
  /// Returns the bytes of workspace of the variant that within(scratch) chooses or, if `scratch` is nullopt, of the
  /// usual variant. Returns nullopt if this variant is im2col.
  std::optional<std::int64_t> workspace(std::optional<std::int64_t> scratch) const;
};

/// Times engines and im2col, and returns those that are worth their scratch (kWorthIt). If no engine runs, the result
/// is empty: only im2col can compute the convolution. Engines are tried in the order of their indices. A second engine
/// and im2col are tried only if the first engine takes more than limits.near_ms milliseconds.
ConvVariants find_variants(ConvTrials& trials, const ConvLimits& limits);

}  // namespace cairn::cuda
