#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/hiremate/level.h"

namespace cairn::solvers::level {

using core::NodeId;
using core::ValueId;

inline constexpr std::int32_t kAbsent = -1;
inline constexpr std::int32_t kEnd = 1 << 28;  ///< in Datum::readers, stands for the end of the level

/// Describes a value that passes from a compute node of a level (see Level) to other compute nodes or to nodes outside
/// the level.
struct Datum {
  std::int64_t bytes = 0;
  std::int32_t maker = 0;  ///< compute node that makes the value
  /// Indices of the compute nodes that can read the value, in ascending order. A compute node is listed if at least one
  /// of the ways to run it (ComputeNode::ways) reads the value. If the value must stay in memory until the end of the
  /// level, the last entry is kEnd.
  std::vector<std::int32_t> readers;
  /// Whether a forward half of an inner level makes the value and nodes outside the level read it. If so, the value
  /// stays in memory until the loss, i.e. until the compute node that stands for the rest of the graph.
  bool pinned_until_loss = false;
};

/// Describes one way to run a compute node: a sequence of nodes, with its effect on memory.
struct Way {
  struct Read {
    /// datum: index of a value that the sequence reads; last: index in `steps` of the last step that reads it.
    std::int32_t datum = 0, last = 0;
  };
  /// Consecutive steps during which reads[from] and all later entries of `reads` are still needed. During these steps,
  /// at most `bytes` bytes are in memory, not counting the values that other compute nodes made.
  struct Piece {
    std::int32_t from = 0;
    std::int64_t bytes = 0;
  };
  std::vector<NodeId> steps;
  std::int64_t cost = 0;
  std::vector<Read> reads;  ///< values that are made by other compute nodes, in the order of `last`
  /// Pieces with ascending `from` and ascending `bytes`. A piece is left out if an earlier piece needs at least as many
  /// bytes. The earlier piece also has all the values of `reads` in memory that the later one has. So if the earlier
  /// one fits into the budget, the later one does too.
  std::vector<Piece> pieces;
  std::int64_t saved = 0;  ///< bytes that stay in memory for the backward half
  /// - first: whether the compute node's first run can take this way.
  /// - again: whether its later runs can take this way.
  bool first = true, again = true;
  bool saves = false;  ///< whether the way keeps what the backward half needs
};

struct ComputeNode {
  /// Index of the part in LevelProblem::parts. kAbsent: this compute node is the loss, which stands for the time during
  /// which the rest of the graph runs.
  std::int32_t part = kAbsent;
  bool backward = false;
  /// Ways to run the compute node. A backward half has one way for each way of its forward half that saves values, in
  /// the same order.
  std::vector<Way> ways;
};

/// Finds the values that the sequence reads before it makes them. Maps each of them to the index of the last step
/// that reads it.
std::unordered_map<ValueId, std::int32_t> external_reads(const core::Graph& graph, std::span<const NodeId> steps);

/// Computes the bytes in memory during each step. Counts scratch, the values that the sequence makes, and the values
/// of `stock`, which are in memory at the start and are freed after their last read. If stays(x) holds for a value x,
/// x is not freed after it was made for the last time.
template <class Stays>
std::vector<std::int64_t> profile(const core::Graph& graph, std::span<const NodeId> steps,
                                  std::span<const ValueId> stock, const Stays& stays) {
  const auto length = static_cast<std::int32_t>(steps.size());
  std::vector<std::int64_t> change(steps.size() + 2, 0);  // by how much memory changes right before each step
  struct Life {
    std::int32_t made, last;
  };
  std::unordered_map<ValueId, Life> live;
  const auto end_life = [&](ValueId x, const Life& life) {
    change[life.made] += graph.value_size(x);
    change[life.last + 1] -= graph.value_size(x);
  };
  for (const ValueId x : stock) live[x] = {0, -1};
  for (std::int32_t i = 0; i < length; ++i) {
    for (const ValueId x : graph.inputs(steps[i])) {
      if (const auto found = live.find(x); found != live.end()) found->second.last = i;
    }
    for (const ValueId x : graph.outputs(steps[i])) {
      if (const auto found = live.find(x); found != live.end()) end_life(x, found->second);
      live[x] = {i, i};
    }
  }
  for (auto& [x, life] : live) {
    if (stays(x)) life.last = length;
    end_life(x, life);
  }
  std::vector<std::int64_t> during(steps.size());
  std::int64_t bytes = 0;
  for (std::int32_t i = 0; i < length; ++i) {
    bytes += change[i];
    during[i] = bytes + graph.scratch(steps[i]);
  }
  return during;
}

/// A level in the form that the integer program uses (see Level for the terms).
struct Model {
  const core::Graph& graph;
  LevelProblem problem;
  /// Compute nodes in this order: the forward halves; the loss, if the level is inner; the backward halves in reverse
  /// order of their parts.
  std::vector<ComputeNode> nodes;
  std::vector<Datum> data;
  std::vector<std::int32_t> backward_of;  ///< backward compute node of each part, or kAbsent
  std::int32_t first_again = 0;           ///< first phase in which forward halves may run again
  std::int32_t loss = kAbsent;            ///< index in `nodes` of the loss, or kAbsent

  Model(const core::Graph& whole, LevelProblem level);

  std::int32_t size() const { return static_cast<std::int32_t>(nodes.size()); }
  /// Returns whether the part has a backward half.
  bool pairs(std::int32_t part) const { return backward_of[part] != kAbsent; }

  /// Selects nodes from `forward`, a list of consecutive forward nodes of a part: the nodes whose values are read
  /// outside the part, and the nodes that are needed to compute these values. If `level` is true, only readers outside
  /// the whole level count.
  std::vector<NodeId> needed_outside(const std::vector<NodeId>& forward, bool level = false) const;

 private:
  void lay_out();
  std::int32_t home(NodeId v) const;
  void find_data();
  std::int32_t datum_of(ValueId x) const;
  Way measured(std::int32_t k, std::vector<NodeId> steps, std::span<const ValueId> stock,
               const std::vector<ValueId>& saved);
  void measure_forward(std::int32_t k);
  /// Finds the values of the part's forward half that only its backward half reads, if the part runs by this option.
  std::vector<ValueId> saved_by(std::int32_t part, const LayerOption& option) const;
  void measure_backward(std::int32_t k);

  std::unordered_map<NodeId, std::int32_t> home_;
  std::unordered_map<ValueId, std::int32_t> datum_of_;
};

}  // namespace cairn::solvers::level
