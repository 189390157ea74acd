#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/bound/stage_program.h"

namespace cairn::solvers {

/// Lists which nodes can matter in each stage of FirstRunStages, and in which stages each value is read. Passes over
/// the stages use these lists. The FirstRunStages must outlive this object.
class StageUses {
 public:
  /// Takes O(FirstRunStages::size() + m log m) time, where m is the number of inputs of all nodes together.
  explicit StageUses(const FirstRunStages& stages);

  /// Returns the nodes that can run in stage t, and the nodes whose values can be useful in stage t, in topological
  /// order.
  std::span<const core::NodeId> active(std::int32_t t) const {
    return {active_.data() + active_begin_[t], active_.data() + active_begin_[t + 1]};
  }
  std::size_t pairs() const { return active_.size(); }  ///< sum of the lengths of active(t) over all t

  /// Returns the stages in which every solution of the relaxation (cost_bound.h) reads x, ascending.
  std::span<const std::int32_t> uses(core::ValueId x) const {
    return {uses_.data() + uses_begin_[x], uses_.data() + uses_begin_[x + 1]};
  }
  bool used(std::int32_t t, core::ValueId x) const { return std::ranges::binary_search(uses(x), t); }
  /// Finds the first stage after t in which every solution reads x. Returns -1 if there is none.
  std::int32_t next_use(std::int32_t t, core::ValueId x) const {
    const auto use = std::ranges::upper_bound(uses(x), t);
    return use == uses(x).end() ? -1 : *use;
  }
  /// Counts the nodes that read x and that can run again in stage t.
  std::int32_t readers_again(std::int32_t t, core::ValueId x) const {
    std::int32_t count = 0;
    for (const core::NodeId reader : stages_.graph().readers(x)) {
      const FirstRunStages::Node& node = stages_.node(reader);
      count += node.due < t && t <= node.last ? 1 : 0;
    }
    return count;
  }

 private:
  const FirstRunStages& stages_;
  std::vector<std::size_t> active_begin_;
  std::vector<core::NodeId> active_;
  // For each value x, starting at index uses_begin_[x]: the stages in which every solution reads x, ascending.
  std::vector<std::size_t> uses_begin_;
  std::vector<std::int32_t> uses_;
};

}  // namespace cairn::solvers
