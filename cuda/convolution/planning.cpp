// Decides which of cuDNN's engines (its implementations) may compute a convolution. Also asks cuDNN which engines it
// proposes for a device that need not be installed.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/conv_plans.h"
#ifdef CAIRN_HAS_CUDNN
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/conv_graph.h"
#include "cairn/cuda/internal/runtime.h"
#endif

namespace cairn::cuda {

using runtime::device::ConvShape;

// Returns why an engine must not be used, from its notes: flags by which cuDNN describes how the engine computes. cuDNN
// documents no bounds on rounding errors. So the errors of fast algorithms were found by simulating the algorithms in
// fp32, for 16 to 512 channels with values between -1 and 1. Each output of a convolution is a sum of terms. For each
// output, the magnitudes of its terms are added, too, and errors are given relative to the largest of these sums:
//
//   direct sums, Winograd tiles of 4x4    at most 2e-7
//   Winograd tiles of 6x6                 up to 8e-7
//   Winograd tiles of 13x13               up to 2e-2, because factors of the transforms differ by many powers of two
//   FFT of 32x32                          1e-7
//
// An FFT has a second error, because it spreads the rounding error of a large value over the whole image. If some value
// of the image is 1000 times as large as the terms of an output, the output can have an error of 3e-6 relative to its
// own terms, even if the large value is not among them.
//
// In fp32, an error of 2^-19 (about 2e-6) is acceptable, because a sum of a thousand terms already differs by as much
// if its terms are added in another order. So tiles of 4x4 and 6x6 are accurate enough, and tiles of 13x13 and FFTs are
// not. TF32 rounds each factor with an error of up to 2^-11, and bf16 with up to 2^-9. These errors are larger than
// that of an FFT, so FFTs are permitted for TF32 and bf16.
std::string_view refusal(const ConvShape& shape, EngineNotes notes) {
  if (notes.has(EngineNote::nondeterministic)) return "not deterministic";
  if (notes.has(EngineNote::down_convert_inputs)) return "rounds its inputs";
  if (notes.has(EngineNote::reduced_precision_reduction)) return "sums in less than fp32";
  const bool exact_factors = shape.type == core::ElementType::f32 && !shape.tf32;
  if (exact_factors && notes.has(EngineNote::tensor_core)) return kRoundsToTf32;
  if (exact_factors && notes.has(EngineNote::fft)) return "spreads rounding errors over the image (FFT)";
  if (notes.has(EngineNote::winograd_13x13)) return "amplifies rounding errors (Winograd with tiles of 13x13)";
  return {};
}

// Refuses to plan for a card (GPU) that is newer than a visible one, because cuDNN crashes then. For example, on an
// H100, cuDNN 9.19 plans for an A100, H100, H200 and RTX 4090, but crashes for a B200. The crash is in
// cudnnBackendGetAttribute, which returns what a heuristic proposes: this function looks up cuDNN's kernels for the
// described device, gets a null pointer, and uses it. The machine code of cuDNN 9.18 to 9.28 does not check this
// pointer either, so no version is known to be safe. If no device is visible, cuDNN plans for all of these cards.
std::string card_refusal(std::string_view json, int visible) {
  constexpr std::string_view kKey = "\"deviceVer\":";
  int card = 0;
  if (const auto key = json.find(kKey); key != json.npos) {
    const auto digits = std::min(json.find_first_not_of(' ', key + kKey.size()), json.size());
    std::from_chars(json.data() + digits, json.data() + json.size(), card);
  }
  if (visible == 0 || card <= visible) return {};
  const auto capability = [](int version) { return fmt::format("{}.{}", version / 100, version % 100 / 10); };
  return fmt::format(
      "cuDNN crashes if it plans for compute capability {} where a device of {} is visible: "
      "set CUDA_VISIBLE_DEVICES to an empty text",
      capability(card), capability(visible));
}

#ifdef CAIRN_HAS_CUDNN

namespace {

/// Returns the lowest compute capability of the visible devices (900 stands for 9.0), or 0 if no device is visible. The
/// lowest is the safe choice, because it is not known which of several devices cuDNN considers.
int least_visible_capability() {
  int least = 0;
  for (int device = 0; device < device_count(); ++device) {
    int major = 0, minor = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "the compute capability");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "the compute capability");
    const int found = 100 * major + 10 * minor;
    least = device == 0 ? found : std::min(least, found);
  }
  return least;
}

}  // namespace

struct CardPlanner::Impl {
  PlanTarget target;
};

CardPlanner::CardPlanner(const std::string& json) {
  if (const std::string reason = why_not(json); !reason.empty()) throw core::DeviceError(reason);
  try {
    impl_.reset(new Impl{PlanTarget(json)});
  } catch (const CudnnFailure& failure) {
    throw core::DeviceError(std::string("cuDNN does not accept the device's properties: ") +
                            cudnn().error_string(failure.status));
  }
}

std::string CardPlanner::why_not() { return cudnn().library.why_not(); }

std::string CardPlanner::why_not(const std::string& json) {
  if (std::string reason = why_not(); !reason.empty()) return reason;
  return card_refusal(json, least_visible_capability());
}

std::vector<ConvProposal> CardPlanner::proposals(const ConvShape& shape) const {
  std::vector<ConvProposal> found;
  try {
    const OperationGraph graph(shape, impl_->target);
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      for (const Descriptor& config : engine_configs(graph, mode, impl_->target)) {
        const EngineFacts facts = engine_facts(config);
        ConvProposal& proposal = found.emplace_back();
        proposal = {.engine = facts.index, .notes = facts.notes, .refusal = refusal(shape, facts.notes)};
        if (!proposal.refusal.empty()) continue;
        try {
          const Descriptor plan = make_plan(config, impl_->target);
          proposal.workspace = plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        } catch (const CudnnFailure&) {
          proposal.refusal = "does not support the shape";
        }
      }
    }
  } catch (const CudnnFailure&) {
  }
  return found;
}

#else

struct CardPlanner::Impl {};

CardPlanner::CardPlanner(const std::string&) { throw core::DeviceError(why_not()); }

std::string CardPlanner::why_not() {
  return "this build has no cuDNN: install its headers or set CUDNN_ROOT, and build again";
}

std::string CardPlanner::why_not(const std::string&) { return why_not(); }

std::vector<ConvProposal> CardPlanner::proposals(const ConvShape&) const { return {}; }

#endif

CardPlanner::~CardPlanner() = default;

}  // namespace cairn::cuda
