#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/cuda/internal/conv_plans.h"
#include "cairn/cuda/internal/cudnn.h"
#include "cairn/runtime/device/library.h"

// These classes describe convolutions to cuDNN's backend API. The header is included only if the build has cuDNN's
// headers.
namespace cairn::cuda {

/// The device for which cuDNN plans. This is either the device of a cuDNN handle, or a device that is described by its
/// properties and need not be installed.
class PlanTarget {
 public:
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  /// Makes a target for the device that `json` describes, in the JSON form of CardPlanner (conv_plans.h). Throws
  /// CudnnFailure.
  explicit PlanTarget(const std::string& json);

  void set_on_graph(Descriptor& graph) const;
  void set_on_heuristic(Descriptor& heuristic) const;
  void set_on_plan(Descriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<Descriptor> properties_;
};

/// Identifiers, in cuDNN's graph, of the tensors `first`, `second` and `out` of runtime::device::ConvOperands. For
/// cuDNN, the axes of a tensor are images (or filters), channels, height and width. The channels are contiguous in
/// memory.
enum Uid : std::int64_t { kFirst = 1, kSecond = 2, kOut = 3 };

/// The names in cuDNN's API that belong to one kind of convolution. x stands for the images, w for the filters, and y
/// for the convolution's result; if a kind of convolution computes or reads the gradient of one of these tensors, the
/// tensor's letter stands for the gradient. `x_uid`, `w_uid` and `y_uid` say which operand (Uid) x, w and y are.
struct KindNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
  Uid x_uid, w_uid, y_uid;
};

KindNames names_of(runtime::device::ConvKind kind);

/// Describes one convolution as a graph of cuDNN. Owns the descriptors of which this graph consists. Throws
/// CudnnFailure.
class OperationGraph {
 public:
  OperationGraph(const runtime::device::ConvShape& shape, const PlanTarget& target)
      : OperationGraph(shape, names_of(shape.kind), target) {}

  const Descriptor& get() const { return graph_; }

 private:
  OperationGraph(const runtime::device::ConvShape& shape, const KindNames& names, const PlanTarget& target);

  Descriptor x_, w_, y_, convolution_;
  Descriptor operation_;
  Descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

/// Returns the engines (implementations) that one of cuDNN's heuristics proposes for the graph, with their settings.
/// The engine that the heuristic expects to be fastest comes first. The result is empty if the heuristic does not know
/// the shape.
std::vector<Descriptor> engine_configs(const OperationGraph& graph, cudnnBackendHeurMode_t mode,
                                       const PlanTarget& target);

struct EngineFacts {
  std::int64_t index = 0;
  EngineNotes notes;
};
EngineFacts engine_facts(const Descriptor& config);

/// Returns the plan that computes with the given engine and settings. Throws CudnnFailure if the engine does not
/// support the shape.
Descriptor make_plan(const Descriptor& config, const PlanTarget& target);

}  // namespace cairn::cuda
