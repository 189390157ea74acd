// Computes a lower bound on the makespan of schedules with transfers (makespan_bound.h). Some bounds divide a schedule
// into stages: c_0, c_1, ... are the nodes of a chain, and the first run of c_t ends stage t (FirstRunStages).

#include "cairn/solvers/offload/bound/makespan_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/transferable.h"
#include "cairn/solvers/offload/bound/transfer_prices.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/solvers/remat/bound/stage_uses.h"

namespace cairn::solvers {
namespace {

/// Returns a lower bound on the makespan of every schedule that moves at least one of the values in `movable` to the
/// host and back. Returns kUnknownCost if `movable` is empty. O(nodes + edges).
std::int64_t least_with_a_transfer(const core::Graph& graph, const core::Link& link,
                                   const std::vector<core::ValueId>& movable) {
  const PathCosts costs = path_costs(graph);
  std::int64_t least = kUnknownCost;
  for (const core::ValueId x : movable) {
    const std::int64_t copy = core::copy_cost(link, graph.value_size(x), graph.cost_unit());
    const std::int64_t sum = core::saturating_add(core::saturating_add(copy, copy), costs.since_read[x]);
    least = std::min(least, core::saturating_add(sum, costs.until[graph.producer(x)]));
  }
  return least;
}

/// Returns the stage t for which the values that are made before the first run of c_t, and surely read after this run,
/// have the most bytes. c_t is the node of the chain whose first run ends stage t.
std::int32_t stage_of_most_bytes(const FirstRunStages& stages) {
  const core::Graph& graph = stages.graph();
  const StageUses uses(stages);
  std::vector<std::int64_t> change(static_cast<std::size_t>(stages.chain_length()) + 2, 0);
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    const std::int32_t made = stages.node(graph.producer(x)).due;
    if (uses.uses(x).empty() || uses.uses(x).back() <= made) continue;
    change[made] += graph.value_size(x);
    change[uses.uses(x).back()] -= graph.value_size(x);
  }
  std::int64_t bytes = 0, most = 0;
  std::int32_t stage = 0;
  for (std::int32_t t = 0; t < stages.chain_length(); ++t) {
    bytes += change[t];
    if (bytes > most) {
      most = bytes;
      stage = t;
    }
  }
  return stage;
}

/// Computes the bound of makespan_bound() by raising answer_.value step by step. A value is movable if it may be moved
/// to the host and fits there.
class MakespanBounding {
 public:
  MakespanBounding(const core::Graph& graph, const MakespanBoundOptions& options)
      : graph_(graph), options_(options), common_(options.common), watch_(options.common.limit) {
    for (core::ValueId x = 0; x < graph.value_count(); ++x) {
      const bool fits = !options.host_budget || graph.value_size(x) <= *options.host_budget;
      if (fits && transferable(graph, x)) movable_.push_back(x);
    }
  }

  CostBound run() {
    if (!options_.link || movable_.empty()) return cost_bound(graph_, common_);
    watch_.charge(graph_.node_count());
    raise(cost_of(graph_, graph_.input_order()));
    answer_.infeasible = core::peak_lower_bound(graph_) > common_.budget;
    if (!finished()) raise_by_cuts();
    if (!finished()) raise_by_cases();
    if (!finished()) raise_by_prices();
    answer_.work = watch_.work();
    return answer_;
  }

 private:
  std::int64_t known() const {
    return common_.known_cost == nullptr ? kUnknownCost : common_.known_cost->load(std::memory_order_relaxed);
  }
  void raise(std::int64_t bound) {
    bound = std::min(bound, known());
    if (bound <= answer_.value) return;
    answer_.value = bound;
    if (common_.raised) common_.raised(bound);
  }
  bool finished() { return answer_.infeasible || answer_.value >= known() || watch_.expired_now(); }

  /// Raises the bound by cut_bound(), which considers the bytes in memory and on the host at one moment.
  void raise_by_cuts() {
    const MomentCutOptions at{common_.budget, common_.order, options_.link, options_.host_budget};
    const CutBound bound = cut_bound(
        graph_, at, known(), [&](std::int64_t value) { raise(value); }, watch_);
    answer_.infeasible = answer_.infeasible || bound.infeasible;
  }

  /// Raises the bound to the smaller of two bounds: one for schedules without transfers, and one for schedules with at
  /// least one transfer.
  void raise_by_cases() {
    constexpr double kPart = 0.5;
    const std::int64_t with = least_with_a_transfer(graph_, *options_.link, movable_);
    if (with <= answer_.value) return;
    CostBoundOptions without = common_;
    without.limit = watch_.share(kPart);
    without.raised = nullptr;
    const CostBound bound = cost_bound(graph_, without);
    watch_.charge(bound.work);
    raise(bound.infeasible ? with : std::min(with, bound.value));
  }

  void raise_by_prices() {
    constexpr std::int64_t kPairs = std::int64_t{1} << 18;
    constexpr int kSteps = 150, kTargets = 24;
    constexpr std::int64_t kLittle = 1000;
    const std::optional<FirstRunStages> stages =
        stages_of_size(graph_, chain_for(graph_, common_.order), common_.budget, kUnknownCost,
                       std::min(common_.memory_bytes / TransferPrices::kBytesAPair, kPairs), watch_);
    if (!stages) return;
    if (!stages->fits()) {
      answer_.infeasible = true;
      return;
    }
    TransferPrices prices(*stages, *options_.link, options_.host_budget, stage_of_most_bytes(*stages));
    const std::int64_t base = stages->base_cost();
    // `target`, the bound aimed at, and `last`, the bound of the previous round, are counted from `base`. If the bound
    // reaches the target, the next target is twice as high. Otherwise the next target is closer to the bound.
    std::int64_t target = known() == kUnknownCost ? base / 50 + 1 : known() - base, last = 0;
    for (int k = 0; k < kTargets && !finished(); ++k) {
      prices.ascend(core::saturating_add(base, target), kSteps, watch_);
      raise(prices.bound());
      const std::int64_t reached = prices.bound() - base;
      const bool better = reached - last > std::max<std::int64_t>(last / kLittle, 0);
      last = reached;
      if (reached >= target) {
        target = 2 * reached + 1;
      } else if (better || k == 0) {
        target = reached + (target - reached) / 4 + 1;
      } else {
        break;
      }
    }
    answer_.exhausted = !watch_.expired_now();
  }

  const core::Graph& graph_;
  const MakespanBoundOptions& options_;
  const CostBoundOptions& common_;
  core::Stopwatch watch_;
  std::vector<core::ValueId> movable_;
  CostBound answer_;
};

}  // namespace

CostBound makespan_bound(const core::Graph& graph, const MakespanBoundOptions& options) {
  return MakespanBounding(graph, options).run();
}

}  // namespace cairn::solvers
