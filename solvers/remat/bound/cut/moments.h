#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/cut/moment.h"

namespace cairn::solvers {

/// Represents a set of stages: bit t stands for stage t.
using StageSet = std::uint8_t;

/// Represents several moments and the stages between them. A moment is the first run of a node. The order of the
/// moments must be the same in every schedule. Moment t is the first run of node p_t. Stage t begins after moment t-1
/// and ends with moment t, so the first run of p_t belongs to stage t. The last stage begins after the last moment.
class Moments {
 public:
  static constexpr int kMost = 3;  ///< largest number of moments

  explicit Moments(const core::Graph& graph, Moment moment);

  /// Returns these moments and one more. Returns nothing if there are already kMost moments, if the new moment is one
  /// of them, or if the order of the new moment and one of these moments is not the same in every schedule.
  std::optional<Moments> with(Moment moment) const;

  int count() const { return static_cast<int>(moments_.size()); }
  /// Returns the number t of the moment at which `node` runs, i.e. for which p_t = node. Returns count() if there is no
  /// such moment.
  int place(core::NodeId node) const;
  const Moment& operator[](int t) const { return moments_[static_cast<std::size_t>(t)]; }
  /// Returns the first and the last stage in which the first run of a node can be.
  int earliest(core::NodeId v) const { return earliest_[v]; }
  int latest(core::NodeId v) const { return latest_[v]; }
  /// Returns the stages t for which value x takes none of the bytes of Moment::room at moment t. This is so if x is in
  /// memory at moment t in every schedule and is already counted in Moment::room, or if x has 0 bytes.
  StageSet free(core::ValueId x) const { return free_[x]; }

 private:
  void find_stages();

  const core::Graph* graph_;
  std::vector<Moment> moments_;
  std::vector<std::int8_t> earliest_, latest_;
  std::vector<StageSet> free_;
};

/// Says in which stages nodes run, and what is in memory at each moment.
struct MomentsChoice {
  std::vector<core::NodeId> moments;
  std::vector<StageSet> runs;  ///< for each node, the stages in which it runs
  std::vector<StageSet> held;  ///< for each value, the stages t for which it is in memory at moment t
};

/// Returns a schedule that follows a choice. Each node runs in the first stage that the choice names for it. Within a
/// stage, nodes run in the input order, but the node whose first run is moment t runs last in stage t. Before a node
/// runs, its missing inputs are computed, after the missing inputs of their producers, and so on. After a moment, only
/// two kinds of values are still in memory: those that the choice holds at this moment, and outputs of pinned nodes.
/// The schedule may exceed the budget between the moments.
core::Schedule follow_choice(const core::Graph& graph, const MomentsChoice& choice);

}  // namespace cairn::solvers
