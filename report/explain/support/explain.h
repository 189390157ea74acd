#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// These functions explain which tensors make up the peak memory of a schedule, and how much memory recomputation
/// saves. docs/explain.md defines every number. Sizes are in bytes, costs in the graph's unit; steps count from 0. All
/// functions throw InputError if a schedule is invalid.
namespace cairn::report {

/// The kinds of tensors and of other things in memory.
enum class TensorKind : std::uint8_t {
  activation,  ///< computed by a forward node
  gradient,    ///< computed by a backward node
  statistic,   ///< statistics of a norm, or indices of a pooling, computed with an activation for the backward pass
  tensor,      ///< activation or gradient, if the graph does not tell forward from backward nodes
  kept,        ///< tensor that the graph keeps in memory until the end
  scratch,     ///< work space of the node that runs
  in_place,    ///< storage of inputs that the running node reuses for its outputs; counts as a negative number of bytes
};
inline constexpr int kTensorKinds = static_cast<int>(TensorKind::in_place) + 1;
std::string_view to_string(TensorKind kind);

/// The kind and the layer of every tensor of a graph. A layer is a group of nodes whose names begin in the same way.
struct TensorLabels {
  std::vector<TensorKind> kind_of;  ///< kind of each value
  /// Whether forward and backward nodes can be told apart. If so, no tensor has the kind `tensor`.
  bool kinds_known = false;
  /// Names of the layers, which are prefixes of node names; only "(all)" if the names show no layers.
  std::vector<std::string> layers;
  /// Layer of each node, as an index in `layers`. A backward node gets the layer of its forward node (Node::forward).
  std::vector<std::int32_t> layer_of;
  bool layers_known = false;  ///< whether there is more than one layer
};
/// Finds the kind and the layer of the tensors of a graph. `graph` must not be a result of align_sizes(), because such
/// a graph has no ops. O(nodes + edges + characters in names).
TensorLabels label_tensors(const core::Graph& graph);

/// The rows in which tables show layers.
struct LayerRows {
  std::vector<std::string> names;
  std::vector<std::int32_t> row_of;  ///< row of each layer, as an index in `names`
};
/// Merges layers with consecutive numbers into rows such as `block0-3`, so that there are at most `most` rows. If there
/// are at most `most` layers, or if their numbers do not permit merging, each layer has its own row. Rows are in the
/// order of the layers.
LayerRows rows_of_layers(const TensorLabels& labels, std::size_t most);

/// A tensor in memory at a step, or scratch of the node that runs at this step.
struct LiveTensor {
  core::ValueId value = core::kNoValue;  ///< kNoValue: scratch, or storage reused in place
  core::NodeId node = core::kNoNode;     ///< the node that computed the tensor or whose scratch this is
  std::int64_t bytes = 0;                ///< never 0; below 0 only for TensorKind::in_place
  TensorKind kind = TensorKind::tensor;
  std::int32_t layer = 0;
  /// The step whose node computed the tensor. If the tensor is fetched, the step after whose end the fetch starts.
  std::int64_t first = 0;
  /// The last step that reads the tensor; `first` if no step reads it; the number of steps if the tensor is kept.
  std::int64_t last = 0;
  /// Let s be the step whose memory this LiveTensor belongs to (MemoryAt::step). `next_read` is the first step at or
  /// after s that reads the tensor, or -1 if no such step exists.
  std::int64_t next_read = -1;
  bool recomputed = false;  ///< whether the tensor's node also ran before the run that computed the tensor
  bool fetched = false;     ///< whether a fetch brought the tensor from the host
  bool operator==(const LiveTensor&) const = default;
};
/// Returns the name of a tensor in tables, such as `conv1`, `conv1[mean]`, `conv1 (scratch)` or `relu1 (in place)`.
std::string name_of(const core::Graph& graph, const LiveTensor& tensor);
/// Returns the number of consecutive steps, beginning with `step`, that neither compute nor read the tensor. These
/// steps end before the next step that reads the tensor. They end with the schedule if the tensor is kept and not read
/// again. Returns 0 if `step` itself computes or reads the tensor.
std::int64_t idle_steps(const LiveTensor& tensor, std::int64_t step);

/// Bytes and tensors of one kind or one layer.
struct MemoryShare {
  std::int32_t group = 0;  ///< a TensorKind or an index in TensorLabels::layers
  std::int64_t bytes = 0;
  std::int64_t tensors = 0;
  bool operator==(const MemoryShare&) const = default;
};

/// All that is in memory during one step. The bytes of `tensors`, of `by_kind` and of `by_layer` each add up to
/// `bytes`.
struct MemoryAt {
  std::int64_t step = -1;             ///< -1: the schedule is empty
  core::NodeId node = core::kNoNode;  ///< the node that runs at the step
  bool after = false;      ///< whether it is the memory between this step and the next, where only copies run
  std::int64_t bytes = 0;  ///< bytes in memory while the node runs or, with `after`, after it
  /// The tensors in descending order of size. Tensors of equal size are ordered by first step, then by value.
  std::vector<LiveTensor> tensors;
  std::vector<MemoryShare> by_kind;   ///< the largest first
  std::vector<MemoryShare> by_layer;  ///< the largest first
};
/// Collects what is in memory during a step or, if `after` is set, between this step and the next. O(T + edges + k log
/// k) for T steps and k tensors.
MemoryAt memory_at(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule,
                   std::int64_t step, bool after = false);
/// Collects what is in memory at the first step that reaches the peak, while it runs or after it.
MemoryAt memory_at_peak(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule);

/// A step whose node has already run at an earlier step.
struct Recomputation {
  core::NodeId node = core::kNoNode;
  std::int64_t step = 0;           ///< step at which the node runs again
  std::int64_t made = 0;           ///< the latest step before `step` at which the node also ran
  std::int64_t dropped_after = 0;  ///< last step that read an output of the run at `made`; `made` if no step did
  std::int64_t first_use = -1;     ///< first step that reads an output of the run at `step`; -1: no step does
  bool operator==(const Recomputation&) const = default;
};

/// A recomputed node, and the memory that recomputing it saves. In this header, a value is called away at a step if all
/// of the following are true:
/// - an earlier step computed the value;
/// - the value is not in memory at this step, and this step does not compute it;
/// - the value is read at a later step, or kept until the end.
/// Without recomputation, the value would be in memory.
struct RecomputedNode {
  core::NodeId node = core::kNoNode;
  std::int64_t times = 0;       ///< number of runs after the first
  std::int64_t extra_cost = 0;  ///< `times` x the node's cost
  std::int64_t bytes = 0;       ///< bytes of all its outputs
  std::int64_t away_steps = 0;  ///< number of steps during which an output of more than 0 bytes is away
  /// Bytes of the node's outputs that are in memory at the baseline's peak, and away at AtBaselinePeak::schedule_step,
  /// the step of the schedule that runs the same node.
  std::int64_t saved_at_baseline_peak = 0;
  std::int64_t saved_at_peak = 0;  ///< bytes of outputs that are away at the peak of the schedule itself
  /// Bytes of outputs that are away, i.e. dropped and not yet made again, averaged over the schedule. Steps are
  /// weighted by their costs, or equally if all costs are 0.
  double saved_on_average = 0;
  bool operator==(const RecomputedNode&) const = default;
};

/// Sums over the recomputed nodes of one layer, or of all layers.
struct RecomputedShare {
  std::int32_t layer = 0;  ///< index in TensorLabels::layers; -1: all
  std::int64_t nodes = 0;
  std::int64_t times = 0;
  std::int64_t extra_cost = 0;
  std::int64_t saved_at_baseline_peak = 0;
  std::int64_t saved_at_peak = 0;
  double saved_on_average = 0;
};

/// Compares the baseline's memory at the baseline's peak with the schedule's memory at the step that runs the same
/// node. If several steps of the schedule run this node, the step with the most memory is compared; of equals, the
/// first. The fields satisfy `baseline_bytes - recomputed_later - on_host - other_order + held_more == schedule_bytes`.
struct AtBaselinePeak {
  core::NodeId node = core::kNoNode;
  std::int64_t baseline_step = -1, schedule_step = -1;
  std::int64_t baseline_bytes = 0, schedule_bytes = 0;  ///< bytes in memory during these steps
  std::int64_t recomputed_later = 0;                    ///< bytes in memory in the baseline and away in the schedule
  std::int64_t on_host = 0;  ///< bytes in memory in the baseline and only on the host in the schedule
  /// Bytes of values that are in memory only in the baseline, and that are neither away nor on the host in the
  /// schedule: the schedule has not computed them yet or no longer needs them.
  std::int64_t other_order = 0;
  std::int64_t held_more = 0;  ///< bytes in memory only in the schedule
};

struct RecomputationSummary {
  std::vector<Recomputation> events;  ///< the recomputations by step; their number is Evaluation::recomputed
  /// Sorted by descending saved_at_baseline_peak, then by descending saved_on_average, then by ascending node.
  std::vector<RecomputedNode> nodes;
  std::vector<RecomputedShare> by_layer;  ///< sums for each layer, sorted like `nodes`
  RecomputedShare total;
  AtBaselinePeak at_baseline_peak;
};
/// Explains what the schedule recomputes, and compares the schedule with the baseline, which runs the graph's input
/// order. O(T + edges + k log k) for T steps and k recomputed nodes.
RecomputationSummary explain_recomputation(const core::Graph& graph, const TensorLabels& labels,
                                           const core::Schedule& schedule);

}  // namespace cairn::report
