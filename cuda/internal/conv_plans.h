#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/runtime/device/library.h"

/// This file says which of cuDNN's engines may compute a convolution. An engine is one of cuDNN's implementations.
/// Nothing in this file needs a device or cuDNN's headers.
namespace cairn::cuda {

/// What cuDNN says about how an engine computes. The values are equal to the values of cudnnBackendNumericalNote_t.
enum class EngineNote : std::uint8_t {
  tensor_core = 0,
  down_convert_inputs = 1,
  reduced_precision_reduction = 2,
  fft = 3,
  nondeterministic = 4,
  winograd = 5,
  winograd_4x4 = 6,
  winograd_6x6 = 7,
  winograd_13x13 = 8,
  strict_nan_propagation = 9,
};

class EngineNotes {
 public:
  void add(EngineNote note) { bits_ |= bit(note); }
  bool has(EngineNote note) const { return (bits_ & bit(note)) != 0; }

 private:
  static std::uint32_t bit(EngineNote note) { return std::uint32_t{1} << static_cast<unsigned>(note); }
  std::uint32_t bits_ = 0;
};

/// The reason that refusal() returns for an engine that is excluded only from fp32 convolutions, because it rounds
/// factors to TF32. For TF32 and bf16 convolutions, such an engine is allowed.
inline constexpr std::string_view kRoundsToTf32 = "rounds factors to TF32";

/// Returns the reason why an engine with these notes must not compute the shape. The text is empty if the engine may
/// compute it.
std::string_view refusal(const runtime::device::ConvShape& shape, EngineNotes notes);

/// Returns why cuDNN must not plan for the device that `json` describes (see CardPlanner), or an empty text if it may
/// plan. The only possible reason is that the device is newer than a visible one, because cuDNN would crash. `visible`
/// is the least compute capability of the visible devices, as in the JSON text (900 stands for 9.0), or 0 if there is
/// none.
std::string card_refusal(std::string_view json, int visible);

/// An engine that cuDNN's heuristics propose for a shape.
struct ConvProposal {
  std::int64_t engine = 0;  ///< cuDNN's index of the engine
  EngineNotes notes;
  std::string_view refusal;    ///< why the engine must not be used (refusal()); empty if it may be used
  std::int64_t workspace = 0;  ///< in bytes; 0 if the engine must not be used
};

/// Asks cuDNN which engines it would use on a device that need not be installed.
class CardPlanner {
 public:
  /// Plans for the device that `json` describes. The text has cuDNN's own JSON form of a device's properties; the files
  /// in cuda/cards/ are examples. Throws DeviceError if why_not(json) has a reason, or if cuDNN does not accept the
  /// properties.
  explicit CardPlanner(const std::string& json);
  ~CardPlanner();

  /// Returns one line that says why this build or this machine cannot plan for any device, or an empty text if it can
  /// plan.
  static std::string why_not();
  /// Returns one line that says why this build or this machine cannot plan for the device that `json` describes, or an
  /// empty text if it can plan. Calls why_not() without arguments, then card_refusal().
  static std::string why_not(const std::string& json);

  /// Returns the engines that cuDNN proposes for a shape, including those that refusal() excludes. First come the
  /// engines of CUDNN_HEUR_MODE_A, then those of CUDNN_HEUR_MODE_FALLBACK; both lists begin with the engine that cuDNN
  /// expects to be fastest. Takes milliseconds, and more if cuDNN compiles a kernel.
  std::vector<ConvProposal> proposals(const runtime::device::ConvShape& shape) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::cuda
