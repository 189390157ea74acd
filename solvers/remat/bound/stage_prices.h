#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/solvers/remat/bound/stage_uses.h"
#include "cairn/solvers/remat/bound/subgradient.h"

namespace cairn::solvers {

/// Computes a lower bound on the cost of schedules from prices. The prices are a solution of the dual of the linear
/// program that StageProgram builds (stage_program.h), a relaxation of the search for the cheapest schedule. The nodes
/// of the chain are c_0, c_1, ... (see FirstRunStages). In this file, the run of c_t always means its first run. This
/// run ends stage t of a schedule. There is one price for each t: the price of holding one byte during the run of c_t.
/// Any prices >= 0 give a lower bound, which one pass over the stages computes. docs/remat/bound.md has the proof.
///
/// The pass computes a price for having value x available in stage t. This price is the smaller of two costs. The first
/// is the price of x in the stage before plus the price of holding x during the run of c_(t-1). The second is the cost
/// of computing x again from the inputs of its producer. In a stage where every solution of the relaxation needs x, the
/// price is collected: it is added to the bound, and x is available at no price from there on.
class StagePrices {
 public:
  explicit StagePrices(const FirstRunStages& stages);

  /// Improves the prices by at most `rounds` subgradient steps. Ends early when the bound reaches `target` or the watch
  /// expires. Bounds are on the extra cost, i.e. the cost above the cost of running each node once, in units of
  /// FirstRunStages::cost_unit(). Returns the best bound as a double, which is only an estimate. A step takes time
  /// proportional to FirstRunStages::size() plus the number of inputs of the nodes that can run in the stages.
  double ascend(double target, int rounds, core::Stopwatch& watch);

  /// Computes the bound for the best prices once more, in integers. This bound is exact, so it is proved.
  void fix();

  // The following functions return results of fix(), which are exact. Their unit is FirstRunStages::cost_unit() /
  // one().
  std::int64_t one() const { return std::int64_t{1} << shift_; }
  /// Returns the lower bound on the extra cost. The extra cost is the cost above the cost of running each node once.
  std::int64_t bound() const { return rest_.front(); }
  /// Returns a number r from which a lower bound follows: all nodes that run again after the run of c_t cost at least r
  /// minus the sum of worth(t, x) over all values x that are held during the run of c_t.
  std::int64_t rest(std::int32_t t) const { return rest_[static_cast<std::size_t>(t) + 1]; }
  /// Returns by how much the lower bound on the remaining extra cost falls if value x is held during the run of c_t.
  /// Returns 0 outside the range in which x can be held.
  std::int64_t worth(std::int32_t t, core::ValueId x) const;
  /// Returns the price of holding `bytes` bytes during the run of c_t.
  std::int64_t holding(std::int32_t t, std::int64_t bytes) const;
  /// Returns whether it is proved that v does not run again in stage t, in any schedule that costs at most `most_extra`
  /// units more than running each node once.
  bool never_run(std::int32_t t, core::NodeId v, std::int64_t most_extra) const {
    return excess_of_ + run_excess(t, v) > most_extra * one();
  }
  /// Returns whether it is proved that x is not held during the run of c_t, in any schedule that costs at most
  /// `most_extra` units more than running each node once.
  bool never_held(std::int32_t t, core::ValueId x, std::int64_t most_extra) const {
    return !stages_.forced(t, x) && excess_of_ + hold_excess(t, x) > most_extra * one();
  }

  std::span<const core::NodeId> active(std::int32_t t) const { return uses_.active(t); }  ///< see StageUses::active()

 private:
  std::int64_t run_excess(std::int32_t t, core::NodeId v) const {
    const FirstRunStages::Node& node = stages_.node(v);
    return t <= node.due || t > node.last ? 0 : run_excess_[run_begin_[v] + static_cast<std::size_t>(t - node.first)];
  }
  std::int64_t hold_excess(std::int32_t t, core::ValueId x) const {
    const FirstRunStages::Value& value = stages_.value(x);
    return t < value.from || t > value.until ? 0
                                             : hold_excess_[worth_begin_[x] + static_cast<std::size_t>(t - value.from)];
  }

  /// Says what the price of a value in a stage pays for: nothing, holding the value, or making it again.
  enum class Source : std::uint8_t { free, held, made };
  /// Says how the price of a value in a stage came about. `shared` says whether a part of the price is charged to the
  /// repeated runs of the value's readers.
  struct Origin {
    Source source;
    bool shared;
  };
  template <class Number, class Rules>
  Number forward(Rules& rules);
  struct Guide;
  struct Exact;
  double evaluate(std::vector<double>& gradient);

  const FirstRunStages& stages_;
  const core::Graph& graph_;
  std::int32_t end_;  // number of nodes of the chain, and index of the last stage
  const StageUses uses_;
  Ascent ascent_;  // over the prices, in units of cost per byte
  int shift_ = 0, price_shift_ = 0;
  std::vector<std::int64_t> whole_price_;  // best prices as integers, scaled by 2^(shift_ + price_shift_)
  __extension__ using Wide = __int128;
  std::vector<Wide> whole_price_until_;  // whole_price_until_[t]: sum of the prices of all stages before t
  std::vector<std::int64_t> rest_;       // rest_[t]: what stage t and all later stages add to the bound
  std::vector<std::size_t> worth_begin_;
  std::vector<std::int64_t> worth_, hold_excess_;
  std::vector<std::size_t> run_begin_;
  std::vector<std::int64_t> run_excess_;
  // Lower bound on the extra cost, without further conditions. If a node runs again in a stage, the bound rises by the
  // entry of run_excess_ for this node and stage. If a value is held, it rises by the entry of hold_excess_.
  std::int64_t excess_of_ = 0;
  std::vector<Origin> sources_;
  std::vector<double> price_until_;
};

}  // namespace cairn::solvers
