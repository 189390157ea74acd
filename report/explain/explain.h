#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// Why a schedule's peak is as high as it is, and what recomputation buys: docs/explain.md defines every number. Bytes;
/// cost in the graph's unit; steps count from 0. All functions throw InputError on an invalid schedule.
namespace cairn::report {

/// The kind of a part of the memory. `tensor` where the graph does not tell forward nodes from backward ones.
enum class TensorKind : std::uint8_t {
  activation,  ///< made by a forward node
  gradient,    ///< made by a backward node
  statistic,   ///< saved statistics of a norm, or indices of a pooling: made beside an activation for the backward pass
  tensor,      ///< activation or gradient: the graph does not tell which
  kept,        ///< tensor that the graph keeps, in memory until the end
  scratch,     ///< work space of the node that runs
  in_place,    ///< less than 0 bytes: storage of inputs that the running node takes over for its outputs
};
inline constexpr int kTensorKinds = static_cast<int>(TensorKind::in_place) + 1;
std::string_view to_string(TensorKind kind);

/// The groups that tensors belong to.
struct TensorLabels {
  std::vector<TensorKind> kind_of;  ///< kind of each value
  bool kinds_known = false;         ///< forward and backward nodes can be told apart: no tensor has kind `tensor`
  std::vector<std::string> layers;  ///< prefixes of names; "(all)" alone where names tell no layers
  /// Layer of each node, as an index in `layers`; a backward node has its forward node's layer.
  std::vector<std::int32_t> layer_of;
  bool layers_known = false;  ///< there is more than one layer
};
/// Labels the tensors of a graph. A graph made by align_sizes has no ops: label the graph that it was made from. O(n +
/// m + characters in names).
TensorLabels label_tensors(const core::Graph& graph);

/// The rows by which tables show layers.
struct LayerRows {
  std::vector<std::string> names;
  std::vector<std::int32_t> row_of;  ///< row of each layer, as an index in `names`
};
/// Joins layers with successive numbers into rows such as `block0-3`: at most `most` rows, in the order of layers. Each
/// layer has its own row where that is few enough, or where their numbers do not allow to join them.
LayerRows rows_of_layers(const TensorLabels& labels, std::size_t most);

/// A tensor in memory at a step, or scratch of the node that runs there.
struct LiveTensor {
  core::ValueId value = core::kNoValue;  ///< kNoValue: scratch, or storage taken over in place
  core::NodeId node = core::kNoNode;     ///< the node that made it, or whose scratch it is
  std::int64_t bytes = 0;                ///< never 0; below 0 only for TensorKind::in_place
  TensorKind kind = TensorKind::tensor;
  std::int32_t layer = 0;
  std::int64_t first = 0;       ///< the step that made it
  std::int64_t last = 0;        ///< the last step that reads it; `first` if none does; kept: the number of steps
  std::int64_t next_read = -1;  ///< the first step from now on that reads it; -1: none does, it is kept or just made
  bool recomputed = false;      ///< whether its node ran before `first`, too
  bool operator==(const LiveTensor&) const = default;
};
/// Returns the name of a tensor in tables, such as `conv1`, `conv1[mean]`, `conv1 (scratch)` or `relu1 (in place)`.
std::string name_of(const core::Graph& graph, const LiveTensor& tensor);
/// Number of steps, from this one on, during which nothing makes or reads the tensor: to its next read, or to the end
/// of the schedule where it is kept and not read again. 0 where this step makes or reads it.
std::int64_t idle_steps(const LiveTensor& tensor, std::int64_t step);

/// The sum of the tensors of a group.
struct MemoryShare {
  std::int32_t group = 0;  ///< a TensorKind or an index in TensorLabels::layers
  std::int64_t bytes = 0;
  std::int64_t tensors = 0;
  bool operator==(const MemoryShare&) const = default;
};

/// All that is in memory during one step. The bytes of the tensors, and of each list of shares, sum to `bytes`.
struct MemoryAt {
  std::int64_t step = -1;             ///< -1: the schedule is empty
  core::NodeId node = core::kNoNode;  ///< node that runs there
  std::int64_t bytes = 0;             ///< during(step) of Evaluator::profile
  std::vector<LiveTensor> tensors;    ///< the largest first, then by first step and value
  std::vector<MemoryShare> by_kind;   ///< the largest first
  std::vector<MemoryShare> by_layer;  ///< the largest first
};
/// Collects what is in memory during a step. O(T + edges + k log k) for k tensors.
MemoryAt memory_at(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule,
                   std::int64_t step);
/// Collects what is in memory at the first step that reaches the peak.
MemoryAt memory_at_peak(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule);

/// A step whose node ran before.
struct Recomputation {
  core::NodeId node = core::kNoNode;
  std::int64_t step = 0;           ///< step at which the node runs again
  std::int64_t made = 0;           ///< last earlier step at which it ran
  std::int64_t dropped_after = 0;  ///< last step that read an output of that earlier run; `made` if none did
  std::int64_t first_use = -1;     ///< first step that reads what the new run made; -1: none does
  bool operator==(const Recomputation&) const = default;
};

/// A recomputed node and what that saves. A value is away at a step when an earlier step made it, it is not in memory
/// (nor made by that step), and it is read later, or kept: without recomputation it would have been in memory.
struct RecomputedNode {
  core::NodeId node = core::kNoNode;
  std::int64_t times = 0;       ///< runs beyond the first
  std::int64_t extra_cost = 0;  ///< times x cost
  std::int64_t bytes = 0;       ///< bytes of all its outputs
  std::int64_t away_steps = 0;  ///< steps during which one of its outputs of more than 0 bytes is away
  /// Bytes of its outputs that are in memory at the baseline's peak, and away where the schedule runs the peak's node.
  std::int64_t saved_at_baseline_peak = 0;
  std::int64_t saved_at_peak = 0;  ///< bytes away at the schedule's own peak
  double saved_on_average = 0;  ///< bytes away, averaged over the schedule's time (cost; steps where all costs are 0)
  bool operator==(const RecomputedNode&) const = default;
};

/// Sums over the recomputed nodes of a layer, or of all layers.
struct RecomputedShare {
  std::int32_t layer = 0;  ///< index in TensorLabels::layers; -1: all
  std::int64_t nodes = 0;
  std::int64_t times = 0;
  std::int64_t extra_cost = 0;
  std::int64_t saved_at_baseline_peak = 0;
  std::int64_t saved_at_peak = 0;
  double saved_on_average = 0;
};

/// Compares the schedule with the baseline at the node where the baseline peaks. Of the schedule's runs of that node,
/// the one with the most memory is taken, the first among equals. There `baseline_bytes - recomputed_later -
/// other_order + held_more == schedule_bytes`.
struct AtBaselinePeak {
  core::NodeId node = core::kNoNode;
  std::int64_t baseline_step = -1, schedule_step = -1;
  std::int64_t baseline_bytes = 0, schedule_bytes = 0;  ///< during those steps
  std::int64_t recomputed_later = 0;                    ///< bytes in memory only in the baseline, away in the schedule
  /// Bytes in memory only in the baseline, but not away: not yet made, or no longer needed.
  std::int64_t other_order = 0;
  std::int64_t held_more = 0;  ///< bytes in memory only in the schedule
};

struct RecomputationSummary {
  std::vector<Recomputation> events;  ///< the recomputations by step; as many as Evaluation::recomputed
  /// Recomputed nodes, sorted by what is saved: most at the baseline's peak first, then on average, then by node.
  std::vector<RecomputedNode> nodes;
  std::vector<RecomputedShare> by_layer;  ///< sums over each layer's nodes, in the same order
  RecomputedShare total;
  AtBaselinePeak at_baseline_peak;
};
/// Compares the schedule with the baseline, the graph's input order. O(T + edges + k log k) for k recomputed nodes.
RecomputationSummary explain_recomputation(const core::Graph& graph, const TensorLabels& labels,
                                           const core::Schedule& schedule);

}  // namespace cairn::report
