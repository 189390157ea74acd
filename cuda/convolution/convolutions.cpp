// Computes convolutions with cuDNN, if it is installed and the build had its headers (CAIRN_HAS_CUDNN).
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/conv_variants.h"
#include "cairn/cuda/internal/libraries.h"
#ifdef CAIRN_HAS_CUDNN
#include "cairn/cuda/internal/conv_graph.h"
#endif

namespace cairn::cuda {
namespace {

using runtime::device::ConvOperands;
using runtime::device::ConvShape;

std::string extents(std::initializer_list<std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : "x") + std::to_string(value);
  return text;
}

std::string describe(const ConvShape& shape) {
  constexpr std::array kKinds = {"convolution", "convolution's input gradient", "convolution's weight gradient"};
  return std::string(kKinds.at(static_cast<std::size_t>(shape.kind))) + " of x " +
         extents({shape.images, shape.in_h, shape.in_w, shape.in_c}) + ", w " +
         extents({shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c}) + ", y " +
         extents({shape.images, shape.out_h, shape.out_w, shape.out_c}) + ", stride " + std::to_string(shape.stride) +
         ", pad " + std::to_string(shape.pad) + " (" + std::string(core::to_string(shape.type)) +
         (shape.tf32 ? ", TF32)" : ")");
}

[[noreturn]] void fail(const ConvShape& shape, const std::string& reason) {
  cudaGetLastError();  // clears an error that cuDNN may have left
  throw core::DeviceError(describe(shape) + ": " + reason);
}

#ifdef CAIRN_HAS_CUDNN

/// Bytes of the tensors of a convolution: images x, filters w, result y.
struct ConvBytes {
  explicit ConvBytes(const ConvShape& s)
      : x(core::element_bytes(s.type) * s.images * s.in_h * s.in_w * s.in_c),
        w(core::element_bytes(s.type) * s.out_c * s.kernel_h * s.kernel_w * s.in_c),
        y(core::element_bytes(s.type) * s.images * s.out_h * s.out_w * s.out_c) {}
  std::int64_t x, w, y;
};

void execute(const Descriptor& plan, const ConvOperands& operands, void* workspace, cudnnHandle_t handle) {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::array<std::int64_t, 3>{kFirst, kSecond, kOut});
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
           std::array{const_cast<void*>(operands.first), const_cast<void*>(operands.second), operands.out});
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(cudnn().execute(handle, plan.get(), pack.get()));
}

double near_ms(const ConvShape& s, const Ceilings& ceilings) {
  const ConvBytes sizes(s);
  const double sums = static_cast<double>(s.images * s.out_h * s.out_w * s.out_c);
  const double flops = 2 * sums * static_cast<double>(s.kernel_h * s.kernel_w * s.in_c);
  return ceilings.near_ms(flops, static_cast<double>(sizes.x + sizes.w + sizes.y));
}

/// The engines (implementations) that cuDNN's heuristics propose for a shape. The plan of an engine is made when it is
/// first needed. cuDNN requires that the graph and the engines' configurations outlive the plans.
class Engines final : public ConvTrials {
 public:
  Engines(const ConvShape& shape, cudnnHandle_t handle, Gemms* gemms)
      : shape_(shape), handle_(handle), gemms_(gemms), target_(handle), graph_(shape, target_) {
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (Descriptor& config : engine_configs(graph_, mode, target_)) engines_.push_back({std::move(config), {}});
  }

  std::size_t engines() const override { return engines_.size(); }

  std::optional<std::int64_t> workspace(std::size_t engine) override {
    try {
      Engine& asked = engines_[engine];
      if (!asked.plan) {
        if (!refusal(shape_, engine_facts(asked.config).notes).empty()) return std::nullopt;
        asked.plan = make_plan(asked.config, target_);
      }
      return asked.plan->get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    } catch (const CudnnFailure&) {
      return std::nullopt;  // the engine does not support the shape although the heuristic proposed it
    }
  }

  std::optional<double> engine_ms(std::size_t engine) override {
    const KindNames names = names_of(shape_.kind);
    const ConvBytes sizes(shape_);
    std::int64_t bytes[4] = {0, 0, 0, *workspace(engine)};
    bytes[names.x_uid - kFirst] = sizes.x;
    bytes[names.w_uid - kFirst] = sizes.w;
    bytes[names.y_uid - kFirst] = sizes.y;
    return trial_ms(bytes, [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
      try {
        run(engine, {buffers[0], buffers[1], buffers[2]}, buffers[3], stream);
        return true;
      } catch (const CudnnFailure&) {
        return false;
      }
    });
  }

  ConvVariant lowered() override { return gemms_ ? lowered_conv(*gemms_, shape_) : ConvVariant{}; }

  /// Enqueues the convolution on `stream`. workspace(engine) must have been called before, because it makes the
  /// engine's plan. Throws CudnnFailure.
  void run(std::size_t engine, const ConvOperands& operands, void* workspace, cudaStream_t stream) const {
    check(cudnn().set_stream(handle_, stream));
    execute(*engines_[engine].plan, operands, workspace, handle_);
  }

  /// Discards the engines that `variants` does not use. The remaining engines get new indices, which are stored in
  /// ConvVariant::engine.
  void keep(std::vector<ConvVariant>& variants) {
    std::vector<Engine> kept;
    for (ConvVariant& variant : variants) {
      if (!variant.engine) continue;
      kept.push_back(std::move(engines_[*variant.engine]));
      variant.engine = kept.size() - 1;
    }
    engines_ = std::move(kept);
  }

 private:
  struct Engine {
    Descriptor config;
    std::optional<Descriptor> plan;
  };

  ConvShape shape_;
  cudnnHandle_t handle_;
  Gemms* gemms_;
  PlanTarget target_;
  OperationGraph graph_;
  std::vector<Engine> engines_;
};

struct HandleDeleter {
  void operator()(cudnnHandle_t handle) const noexcept { cudnn().destroy(handle); }
};

#endif

}  // namespace

#ifdef CAIRN_HAS_CUDNN

struct Convolutions::Impl {
  /// The engines and variants that were chosen for a shape. If cuDNN cannot compute the shape, `engines` is nullptr and
  /// `variants` is empty.
  struct Choice {
    std::unique_ptr<Engines> engines;
    ConvVariants variants;
  };

  WorkspaceLimits limits;
  Gemms* gemms;
  std::string why_not = cudnn().library.why_not();
  std::unique_ptr<cudnnContext, HandleDeleter> handle = nullptr;
  Plans<ConvShape, Choice> plans = {};

  void start() {
    if (!why_not.empty()) return;
    cudnnHandle_t created = nullptr;
    const cudnnStatus_t status = cudnn().create(&created);
    handle.reset(created);
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudaGetLastError();
    why_not = std::string("cuDNN does not start on this machine: ") + cudnn().error_string(status);
  }

  Choice choose(const ConvShape& shape) {
    const Ceilings reached = gemms ? gemms->ceilings(shape.type, shape.tf32) : Ceilings{};
    Choice choice{std::make_unique<Engines>(shape, handle.get(), gemms), {}};
    choice.variants = find_variants(*choice.engines, {.small_workspace = limits.small_bytes,
                                                      .large_workspace = limits.large_bytes,
                                                      .near_ms = near_ms(shape, reached)});
    choice.engines->keep(choice.variants.all);
    return choice;
  }

  const Choice& plan(const ConvShape& wanted) {
    return plans.of(wanted, [&](const ConvShape& shape) {
      Choice chosen;
      if (!why_not.empty()) return chosen;
      try {
        chosen = choose(shape);
      } catch (const CudnnFailure&) {
      }
      cudaGetLastError();  // clears an error that an engine may have left when it failed
      return chosen;
    });
  }

  const ConvVariants& variants(const ConvShape& shape) { return plan(shape).variants; }

  void run(const ConvShape& shape, const ConvOperands& operands, void* workspace, std::int64_t workspace_bytes,
           cudaStream_t stream) {
    const Choice& choice = plan(shape);
    const std::vector<ConvVariant>& all = choice.variants.all;
    const auto chosen = std::find_if(all.begin(), all.end(), [&](const ConvVariant& variant) {
      return variant.engine && variant.scratch == workspace_bytes;
    });
    if (chosen == all.end())
      fail(shape, why_not.empty() ? "cuDNN has no deterministic plan for it with " + std::to_string(workspace_bytes) +
                                        " bytes of workspace"
                                  : why_not);
    try {
      choice.engines->run(*chosen->engine, operands, workspace, stream);
    } catch (const CudnnFailure& failure) {
      fail(shape, cudnn().error_string(failure.status));
    }
  }
};

#else

struct Convolutions::Impl {
  WorkspaceLimits limits;
  Gemms* gemms;
  std::string why_not = "this build has no cuDNN: install its headers or set CUDNN_ROOT, and build again";
  ConvVariants none = {};

  void start() {}
  const ConvVariants& variants(const ConvShape&) { return none; }
  void run(const ConvShape& shape, const ConvOperands&, void*, std::int64_t, cudaStream_t) { fail(shape, why_not); }
};

#endif

Convolutions::Convolutions(const WorkspaceLimits& limits, Gemms* gemms)
    : impl_(new Impl{.limits = limits, .gemms = gemms}) {
  impl_->start();
}
Convolutions::~Convolutions() = default;

bool Convolutions::available() const { return impl_->why_not.empty(); }
const std::string& Convolutions::why_not() const { return impl_->why_not; }

const ConvVariants& Convolutions::variants(const ConvShape& shape) { return impl_->variants(shape); }

void Convolutions::run(const ConvShape& shape, const ConvOperands& operands, void* workspace,
                       std::int64_t workspace_bytes, cudaStream_t stream) {
  impl_->run(shape, operands, workspace, workspace_bytes, stream);
}

}  // namespace cairn::cuda
