// Convolutions by cuDNN, if it is installed and the build had its headers (CAIRN_HAS_CUDNN).
#ifdef CAIRN_HAS_CUDNN
#include <cudnn_graph.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/libraries.h"

namespace cairn::cuda {
namespace {

using core::ElementType;
using runtime::device::ConvKind;
using runtime::device::ConvOperands;
using runtime::device::ConvShape;

/// Sizes of the three tensors in bytes.
struct ConvBytes {
  explicit ConvBytes(const ConvShape& s)
      : x(core::element_bytes(s.type) * s.images * s.in_h * s.in_w * s.in_c),
        w(core::element_bytes(s.type) * s.out_c * s.kernel_h * s.kernel_w * s.in_c),
        y(core::element_bytes(s.type) * s.images * s.out_h * s.out_w * s.out_c) {}
  std::int64_t x, w, y;
};

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

/// The functions of cuDNN 9 that Cairn calls. They belong to its backend API, which describes convolutions as graphs.
struct Cudnn {
  SharedLibrary library{"cuDNN", "libcudnn.so", CUDNN_MAJOR, "cudnnGetVersion"};
  decltype(cudnnGetErrorString)* error_string = library.find("cudnnGetErrorString");
  decltype(cudnnCreate)* create = library.find("cudnnCreate");
  decltype(cudnnDestroy)* destroy = library.find("cudnnDestroy");
  decltype(cudnnSetStream)* set_stream = library.find("cudnnSetStream");
  decltype(cudnnBackendCreateDescriptor)* create_descriptor = library.find("cudnnBackendCreateDescriptor");
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor = library.find("cudnnBackendDestroyDescriptor");
  decltype(cudnnBackendFinalize)* finalize = library.find("cudnnBackendFinalize");
  decltype(cudnnBackendSetAttribute)* set_attribute = library.find("cudnnBackendSetAttribute");
  decltype(cudnnBackendGetAttribute)* get_attribute = library.find("cudnnBackendGetAttribute");
  decltype(cudnnBackendExecute)* execute = library.find("cudnnBackendExecute");
};

/// Returns cuDNN's functions. The first call loads the library for the whole process.
const Cudnn& cudnn() {
  static const Cudnn dnn;
  return dnn;
}

struct CudnnFailure {
  cudnnStatus_t status;
};

void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnFailure{status};
}

/// Returns the type with which an integer attribute is passed to cuDNN. The overloads below do the same for attributes
/// of other types.
constexpr cudnnBackendAttributeType_t attribute_type(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t attribute_type(float) { return CUDNN_TYPE_FLOAT; }
constexpr cudnnBackendAttributeType_t attribute_type(void*) { return CUDNN_TYPE_VOID_PTR; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }

/// Owns a descriptor of the backend API. Attributes are set between construction and finalize(). Throws CudnnFailure.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t created = nullptr;
    check(cudnn().create_descriptor(type, &created));
    descriptor_.reset(created);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }
  void finalize() { check(cudnn().finalize(get())); }

  template <typename Value, std::size_t N>
  void set(cudnnBackendAttributeName_t name, const std::array<Value, N>& values) {
    check(cudnn().set_attribute(get(), name, attribute_type(Value{}), N, values.data()));
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, Value value) {
    set(name, std::array{value});
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    const cudnnBackendDescriptor_t descriptor = other.get();
    check(cudnn().set_attribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor));
  }

  std::int64_t get_integer(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    check(cudnn().get_attribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value));
    return value;
  }

 private:
  struct Deleter {
    void operator()(cudnnBackendDescriptor_t descriptor) const noexcept { cudnn().destroy_descriptor(descriptor); }
  };
  std::unique_ptr<void, Deleter> descriptor_;
};

/// Identifiers of the operands, in the order first, second, out. For cuDNN, the axes of a tensor are images (or
/// filters), channels, height and width. The channels are contiguous in memory.
enum Uid : std::int64_t { kFirst = 1, kSecond = 2, kOut = 3 };

Descriptor make_tensor(Uid uid, ElementType type, std::int64_t outer, std::int64_t height, std::int64_t width,
                       std::int64_t channels) {
  constexpr std::int64_t kAlignment = 16;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type == ElementType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::array{outer, channels, height, width});
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES,
             std::array{height * width * channels, std::int64_t{1}, width * channels, channels});
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{uid});
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  tensor.finalize();
  return tensor;
}

Descriptor make_convolution(const ConvShape& shape) {
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::array<std::int64_t, 2>{1, 1});
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::array{shape.stride, shape.stride});
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::array{shape.pad, shape.pad});
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::array{shape.pad, shape.pad});
  convolution.finalize();
  return convolution;
}

/// What distinguishes the three kinds of convolution: the operation, its attributes, and which operands are x, w and y.
struct KindNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
  Uid x_uid, w_uid, y_uid;
};

KindNames names_of(ConvKind kind) {
  switch (kind) {
    case ConvKind::grad_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              kOut,
              kSecond,
              kFirst};
    case ConvKind::grad_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              kSecond,
              kOut,
              kFirst};
    case ConvKind::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
          kFirst,
          kSecond,
          kOut};
}

/// cuDNN's graph of one convolution, with the descriptors that it consists of.
struct OperationGraph {
  OperationGraph(const ConvShape& shape, cudnnHandle_t handle) : OperationGraph(shape, names_of(shape.kind), handle) {}

  Descriptor x, w, y, convolution;
  Descriptor operation;
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};

 private:
  OperationGraph(const ConvShape& shape, const KindNames& names, cudnnHandle_t handle)
      : x(make_tensor(names.x_uid, shape.type, shape.images, shape.in_h, shape.in_w, shape.in_c)),
        w(make_tensor(names.w_uid, shape.type, shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c)),
        y(make_tensor(names.y_uid, shape.type, shape.images, shape.out_h, shape.out_w, shape.out_c)),
        convolution(make_convolution(shape)),
        operation(names.operation) {
    operation.set(names.convolution, convolution);
    operation.set(names.x, x);
    operation.set(names.w, w);
    operation.set(names.y, y);
    operation.set(names.alpha, 1.0f);
    operation.set(names.beta, 0.0f);
    operation.finalize();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.finalize();
  }
};

/// Returns the engines (kernels) that cuDNN's heuristic proposes for the graph, with their settings, the best first.
std::vector<Descriptor> engine_configs(const OperationGraph& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristic.finalize();
  std::int64_t count = 0;
  check(cudnn().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                              nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i)
    handles.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t filled = 0;
  if (count > 0)
    check(cudnn().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                &filled, handles.data()));
  configs.erase(configs.begin() + std::min(count, filled), configs.end());
  return configs;
}

/// Returns whether the engine gives the same bits every time, rounds factors only as the shape permits, and sums in
/// fp32.
bool acceptable(const Descriptor& config, const ConvShape& shape) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  check(cudnn().get_attribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &handle));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check(cudnn().get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(),
                              &count, notes.data()));
  const bool exact_factors = shape.type == ElementType::f32 && !shape.tf32;  // tensor cores would round factors to TF32
  return std::none_of(notes.begin(), notes.begin() + std::min<std::int64_t>(count, notes.size()), [&](auto note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (exact_factors && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  });
}

/// How cuDNN computes one shape. The graph and the engine's configuration must live as long as the plan made from them.
struct Plan {
  std::shared_ptr<const OperationGraph> graph;
  Descriptor config;
  Descriptor plan;
  std::int64_t workspace = 0;
};

Descriptor make_plan(const Descriptor& config, cudnnHandle_t handle) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  plan.finalize();
  return plan;
}

void execute(const Descriptor& plan, const ConvOperands& operands, void* workspace, cudnnHandle_t handle) {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::array<std::int64_t, 3>{kFirst, kSecond, kOut});
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
           std::array{const_cast<void*>(operands.first), const_cast<void*>(operands.second), operands.out});
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(cudnn().execute(handle, plan.get(), pack.get()));
}

/// Measures a plan as trial_ms does. Returns nullopt if the plan refuses to run, which can happen although it was
/// created.
std::optional<double> plan_ms(const Descriptor& plan, const ConvShape& shape, std::int64_t workspace,
                              cudnnHandle_t handle) {
  const KindNames names = names_of(shape.kind);
  const ConvBytes sizes(shape);
  std::int64_t bytes[4] = {0, 0, 0, workspace};
  bytes[names.x_uid - kFirst] = sizes.x;
  bytes[names.w_uid - kFirst] = sizes.w;
  bytes[names.y_uid - kFirst] = sizes.y;
  return trial_ms(bytes, [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
    try {
      check(cudnn().set_stream(handle, stream));
      execute(plan, {buffers[0], buffers[1], buffers[2]}, buffers[3], handle);
      return true;
    } catch (const CudnnFailure&) {
      return false;
    }
  });
}

double near_ms(const ConvShape& s, const Ceilings& ceilings) {
  const ConvBytes sizes(s);
  const double sums = static_cast<double>(s.images * s.out_h * s.out_w * s.out_c);
  const double flops = 2 * sums * static_cast<double>(s.kernel_h * s.kernel_w * s.in_c);
  return ceilings.near_ms(flops, static_cast<double>(sizes.x + sizes.w + sizes.y));
}

/// Largest number of plans of one shape that are tried if plans are slow. A convolution in fp32 can have 20 plans of
/// 100 ms each.
constexpr int kMostTrials = 6;
/// Time after which no further plan of a shape is tried.
constexpr std::chrono::milliseconds kMostTime{300};

/// Chooses, for one shape, between cuDNN's plans and the computation as matrix products. Plans are tried in the order
/// of cuDNN's heuristics.
class PlanChoice {
 public:
  /// Prepares the choice. `lowered_ms` is called if the first plan is slow. It returns the time of the computation as
  /// matrix products, or 0 if that is not possible.
  PlanChoice(const ConvShape& shape, cudnnHandle_t handle, std::int64_t workspace_limit, double near_ms,
             std::function<double()> lowered_ms)
      : shape_(shape),
        handle_(handle),
        workspace_limit_(workspace_limit),
        near_ms_(near_ms),
        lowered_ms_(std::move(lowered_ms)) {}

  /// Returns the chosen plan, or none if products are faster or cuDNN has no plan.
  std::unique_ptr<Plan> choose() {
    const auto end = std::chrono::steady_clock::now() + kMostTime;
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      std::vector<Descriptor> configs;
      try {
        configs = engine_configs(*graph_, mode);
      } catch (const CudnnFailure&) {
        continue;  // this heuristic does not know the shape; perhaps the other one does
      }
      for (Descriptor& config : configs) {
        if (best_ && (is_near() || trials_ >= kMostTrials || std::chrono::steady_clock::now() > end)) break;
        try {
          consider(std::move(config));
        } catch (const CudnnFailure&) {
          // The engine does not support the shape although the heuristic proposed it.
        }
      }
    }
    return rival_ms_ * kWorthIt < best_ms_ ? nullptr : std::move(best_);
  }

 private:
  bool is_near() const { return std::min(best_ms_, rival_ms_) <= near_ms_; }

  void consider(Descriptor config) {
    if (!acceptable(config, shape_)) return;
    Descriptor plan = make_plan(config, handle_);
    const std::int64_t workspace = plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (workspace > workspace_limit_) return;
    const std::optional<double> ms = plan_ms(plan, shape_, workspace, handle_);
    if (!ms) return;
    ++trials_;
    if (best_ && (*ms <= 0 || *ms * kWorthIt > best_ms_))
      return;  // a plan that could not be timed is taken only if no plan was taken before
    best_ = std::make_unique<Plan>(Plan{graph_, std::move(config), std::move(plan), workspace});
    best_ms_ = *ms;
    if (trials_ > 1 || is_near()) return;
    if (const double lowered = lowered_ms_(); lowered > 0) rival_ms_ = lowered;
  }

  const ConvShape& shape_;
  cudnnHandle_t handle_;
  std::int64_t workspace_limit_;
  double near_ms_;
  std::function<double()> lowered_ms_;
  std::shared_ptr<const OperationGraph> graph_ = std::make_shared<OperationGraph>(shape_, handle_);
  std::unique_ptr<Plan> best_;
  double best_ms_ = std::numeric_limits<double>::infinity(), rival_ms_ = best_ms_;
  int trials_ = 0;
};

struct HandleDeleter {
  void operator()(cudnnHandle_t handle) const noexcept { cudnn().destroy(handle); }
};

#endif

}  // namespace

#ifdef CAIRN_HAS_CUDNN

struct Convolutions::Impl {
  std::int64_t workspace_limit;
  Gemms* gemms;
  std::string why_not = cudnn().library.why_not();
  std::unique_ptr<cudnnContext, HandleDeleter> handle = nullptr;
  Plans<ConvShape, std::unique_ptr<Plan>> plans = {};

  void start() {
    if (!why_not.empty()) return;
    cudnnHandle_t created = nullptr;
    const cudnnStatus_t status = cudnn().create(&created);
    handle.reset(created);
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudaGetLastError();
    why_not = std::string("cuDNN does not start on this machine: ") + cudnn().error_string(status);
  }

  std::unique_ptr<Plan> choose(const ConvShape& shape) {
    const Ceilings reached = gemms ? gemms->ceilings(shape.type, shape.tf32) : Ceilings{};
    return PlanChoice(shape, handle.get(), workspace_limit, near_ms(shape, reached),
                      [&] { return gemms ? lowered_ms(*gemms, shape) : 0; })
        .choose();
  }

  const std::unique_ptr<Plan>& plan(const ConvShape& wanted) {
    return plans.of(wanted, [&](const ConvShape& shape) -> std::unique_ptr<Plan> {
      if (!why_not.empty()) return nullptr;
      std::unique_ptr<Plan> chosen;
      try {
        chosen = choose(shape);
      } catch (const CudnnFailure&) {
        // cuDNN does not support the convolution.
      }
      cudaGetLastError();  // clears an error that a refused engine may have left
      return chosen;
    });
  }

  std::optional<std::int64_t> workspace(const ConvShape& shape) {
    const std::unique_ptr<Plan>& chosen = plan(shape);
    return chosen ? std::optional(chosen->workspace) : std::nullopt;
  }

  void run(const ConvShape& shape, const ConvOperands& operands, void* workspace, cudaStream_t stream) {
    const std::unique_ptr<Plan>& chosen = plan(shape);
    if (!chosen) fail(shape, why_not.empty() ? "cuDNN has no deterministic plan for it" : why_not);
    try {
      check(cudnn().set_stream(handle.get(), stream));
      execute(chosen->plan, operands, workspace, handle.get());
    } catch (const CudnnFailure& failure) {
      fail(shape, cudnn().error_string(failure.status));
    }
  }
};

#else

struct Convolutions::Impl {
  std::int64_t workspace_limit;
  Gemms* gemms;
  std::string why_not = "this build has no cuDNN: install its headers or set CUDNN_ROOT, and build again";

  void start() {}
  std::optional<std::int64_t> workspace(const ConvShape&) { return std::nullopt; }
  void run(const ConvShape& shape, const ConvOperands&, void*, cudaStream_t) { fail(shape, why_not); }
};

#endif

Convolutions::Convolutions(std::int64_t workspace_limit_bytes, Gemms* gemms)
    : impl_(new Impl{.workspace_limit = std::max<std::int64_t>(workspace_limit_bytes, 0), .gemms = gemms}) {
  impl_->start();
}
Convolutions::~Convolutions() = default;

bool Convolutions::available() const { return impl_->why_not.empty(); }
const std::string& Convolutions::why_not() const { return impl_->why_not; }

std::optional<std::int64_t> Convolutions::workspace(const ConvShape& shape) { return impl_->workspace(shape); }

void Convolutions::run(const ConvShape& shape, const ConvOperands& operands, void* workspace, cudaStream_t stream) {
  impl_->run(shape, operands, workspace, stream);
}

}  // namespace cairn::cuda
