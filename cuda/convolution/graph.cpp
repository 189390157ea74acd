#ifdef CAIRN_HAS_CUDNN

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/cuda/internal/conv_graph.h"

namespace cairn::cuda {

static_assert(static_cast<int>(EngineNote::tensor_core) == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
static_assert(static_cast<int>(EngineNote::down_convert_inputs) == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
static_assert(static_cast<int>(EngineNote::reduced_precision_reduction) ==
              CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
static_assert(static_cast<int>(EngineNote::fft) == CUDNN_NUMERICAL_NOTE_FFT);
static_assert(static_cast<int>(EngineNote::nondeterministic) == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
static_assert(static_cast<int>(EngineNote::winograd) == CUDNN_NUMERICAL_NOTE_WINOGRAD);
static_assert(static_cast<int>(EngineNote::winograd_4x4) == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
static_assert(static_cast<int>(EngineNote::winograd_6x6) == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
static_assert(static_cast<int>(EngineNote::winograd_13x13) == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
static_assert(static_cast<int>(EngineNote::strict_nan_propagation) == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);

namespace {

using core::ElementType;
using runtime::device::ConvKind;
using runtime::device::ConvShape;

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

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn dnn;
  return dnn;
}

PlanTarget::PlanTarget(const std::string& json) : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  check(cudnn().set_attribute(properties_->get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                              static_cast<std::int64_t>(json.size() + 1), json.c_str()));
  properties_->finalize();
}

// A PlanTarget holds either a cuDNN handle, which stands for an installed device, or the properties of a device that
// need not be installed. cuDNN expects a handle as an attribute of the graph and of the plan, but properties as an
// attribute of the heuristic and of the plan.
void PlanTarget::set_on_graph(Descriptor& graph) const {
  if (!properties_) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle_);
}

void PlanTarget::set_on_heuristic(Descriptor& heuristic) const {
  if (properties_) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties_);
}

void PlanTarget::set_on_plan(Descriptor& plan) const {
  if (properties_) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *properties_);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_);
  }
}

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

OperationGraph::OperationGraph(const ConvShape& shape, const KindNames& names, const PlanTarget& target)
    : x_(make_tensor(names.x_uid, shape.type, shape.images, shape.in_h, shape.in_w, shape.in_c)),
      w_(make_tensor(names.w_uid, shape.type, shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c)),
      y_(make_tensor(names.y_uid, shape.type, shape.images, shape.out_h, shape.out_w, shape.out_c)),
      convolution_(make_convolution(shape)),
      operation_(names.operation) {
  operation_.set(names.convolution, convolution_);
  operation_.set(names.x, x_);
  operation_.set(names.w, w_);
  operation_.set(names.y, y_);
  operation_.set(names.alpha, 1.0f);
  operation_.set(names.beta, 0.0f);
  operation_.finalize();
  target.set_on_graph(graph_);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_);
  graph_.finalize();
}

std::vector<Descriptor> engine_configs(const OperationGraph& graph, cudnnBackendHeurMode_t mode,
                                       const PlanTarget& target) {
  std::vector<Descriptor> configs;
  try {
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    target.set_on_heuristic(heuristic);
    heuristic.finalize();
    std::int64_t count = 0, filled = 0;
    check(cudnn().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                &count, nullptr));
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::int64_t i = 0; i < count; ++i)
      handles.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    if (count > 0)
      check(cudnn().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                  &filled, handles.data()));
    configs.erase(configs.begin() + std::min(count, filled), configs.end());
  } catch (const CudnnFailure&) {
    configs.clear();  // this heuristic does not know the shape
  }
  return configs;
}

EngineFacts engine_facts(const Descriptor& config) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  check(cudnn().get_attribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &handle));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check(cudnn().get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(),
                              &count, notes.data()));
  EngineFacts facts;
  facts.index = engine.get_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (std::size_t i = 0; i < std::min<std::size_t>(static_cast<std::size_t>(count), notes.size()); ++i)
    facts.notes.add(static_cast<EngineNote>(notes[i]));
  return facts;
}

Descriptor make_plan(const Descriptor& config, const PlanTarget& target) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target.set_on_plan(plan);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  plan.finalize();
  return plan;
}

}  // namespace cairn::cuda

#endif
