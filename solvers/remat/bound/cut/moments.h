#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/cut/moment.h"

namespace cairn::solvers {

/// A set of stages: bit t stands for stage t.
using StageSet = std::uint8_t;

/// Several moments, whose order is the same in every schedule, and the stages between them. Stage t begins after moment
/// t-1 and ends with moment t, i.e. with the first run of node p_t, which is a run in stage t. The last stage begins
/// after the last moment.
class Moments {
 public:
  static constexpr int kMost = 3;  ///< largest number of moments

  explicit Moments(const core::Graph& graph, Moment moment);

  /// Returns these moments and one more, or nothing if there are kMost already, or if its order with one of the others
  /// is not the same in every schedule.
  std::optional<Moments> with(Moment moment) const;

  int count() const { return static_cast<int>(moments_.size()); }
  /// Returns the number t of the moment p_t = node.
  int place(core::NodeId node) const;
  const Moment& operator[](int t) const { return moments_[static_cast<std::size_t>(t)]; }
  /// Returns the first and the last stage in which the first run of a node can be.
  int earliest(core::NodeId v) const { return earliest_[v]; }
  int latest(core::NodeId v) const { return latest_[v]; }
  /// Returns the stages t for which a value is in memory at moment t for certain and is counted in Moment::room, or has
  /// no bytes.
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

/// Returns a schedule that follows a choice. In each stage, those nodes run in the input order whose first stage it is,
/// the moment's node last. Before a node runs, its missing inputs are computed, with all that this needs. After a
/// moment, only what is held at it is still in memory. The schedule may exceed the budget between the moments.
core::Schedule follow_choice(const core::Graph& graph, const MomentsChoice& choice);

}  // namespace cairn::solvers
