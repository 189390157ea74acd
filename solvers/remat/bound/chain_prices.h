#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/remat/bound/chain_program.h"

namespace cairn::solvers {

/// A solution of the dual of ChainProgram's linear relaxation. It is defined by one price for each node c_t of the
/// chain (see ChainStages): the price of holding one byte during the first run of c_t. Any prices >= 0 give a solution,
/// and so a lower bound, in one pass over the stages. docs/remat/bound.md has the proof.
///
/// The pass computes what it costs to have value x available in stage t. This is the smaller of two costs. The first is
/// that of having x in the stage before and holding x during c_(t-1). The second is that of making x again when its
/// inputs are available. In a stage where every solution of the relaxation needs x, the cost is added to the bound, and
/// x costs nothing from there on.
class ChainPrices {
 public:
  explicit ChainPrices(const ChainStages& stages);

  /// Improves the prices by `rounds` subgradient steps towards a bound of `target`. Bounds are in units of cost above
  /// the cost of running each node once. Returns the best bound as a double, which is only an estimate. A round takes
  /// time proportional to ChainStages::size() plus the number of inputs of the nodes that can run in the stages.
  double ascend(double target, int rounds, core::Stopwatch& watch);

  /// Recomputes the bound of the best prices in integers, which makes it a proved bound.
  void fix();

  // The following are results of fix(). They are exact, in units of cost times one().
  std::int64_t one() const { return std::int64_t{1} << shift_; }
  /// Returns the lower bound on the extra cost, which is the cost above that of running each node once.
  std::int64_t bound() const { return rest_.front(); }
  /// Returns the main term of a lower bound on the extra cost after the first run of c_t. Let A be the set of values
  /// held during c_t. The nodes that run again later cost at least rest(t) less the sum of worth(t, x) over all x in A.
  std::int64_t rest(std::int32_t t) const { return rest_[static_cast<std::size_t>(t) + 1]; }
  /// Returns by how much holding value x during the run of c_t can lower the extra cost that remains. Returns 0 outside
  /// the range in which x can be held.
  std::int64_t worth(std::int32_t t, core::ValueId x) const;
  /// Returns the price of holding `bytes` bytes during the run of c_t.
  std::int64_t holding(std::int32_t t, std::int64_t bytes) const;
  /// Returns whether reduced costs prove that no schedule runs v again in stage t, among the schedules that cost at
  /// most `most_extra` units more than running each node once.
  bool never_run(std::int32_t t, core::NodeId v, std::int64_t most_extra) const {
    return excess_of_ + run_excess(t, v) > most_extra * one();
  }
  /// Returns whether reduced costs prove that no schedule holds x during the run of c_t, among the schedules that cost
  /// at most `most_extra` units more than running each node once.
  bool never_held(std::int32_t t, core::ValueId x, std::int64_t most_extra) const {
    return !stages_.forced(t, x) && excess_of_ + hold_excess(t, x) > most_extra * one();
  }

  /// Returns the nodes that can run in the stage, or whose values can be useful there, in topological order.
  std::span<const core::NodeId> active(std::int32_t t) const {
    return {active_.data() + active_begin_[t], active_.data() + active_begin_[t + 1]};
  }

 private:
  std::int64_t run_excess(std::int32_t t, core::NodeId v) const {
    const ChainStages::Node& node = stages_.node(v);
    return t <= node.due || t > node.last ? 0 : run_excess_[run_begin_[v] + static_cast<std::size_t>(t - node.first)];
  }
  std::int64_t hold_excess(std::int32_t t, core::ValueId x) const {
    const ChainStages::Value& value = stages_.value(x);
    return t < value.from || t > value.until ? 0
                                             : hold_excess_[worth_begin_[x] + static_cast<std::size_t>(t - value.from)];
  }

  // Where the forward pass took the price of a value from: the value is free, held, or made again. The subgradient
  // needs this.
  enum class Source : std::uint8_t { free, held, made };
  struct Origin {
    Source source;
    bool shared;
  };
  template <class Number, class Rules>
  Number forward(Rules& rules);
  struct Guide;
  struct Exact;
  double evaluate(std::vector<double>& gradient);
  /// Counts the nodes that read x and may run again in stage t.
  std::int32_t readers_again(std::int32_t t, core::ValueId x) const;
  /// Finds the first stage after t in which every solution reads x. Returns -1 if there is none.
  std::int32_t next_use(std::int32_t t, core::ValueId x) const;
  bool used(std::int32_t t, core::ValueId x) const;

  const ChainStages& stages_;
  const core::Graph& graph_;
  std::int32_t end_;  // number of first runs in the chain (K)
  std::vector<std::size_t> active_begin_;
  std::vector<core::NodeId> active_;
  std::vector<std::size_t> uses_begin_;
  std::vector<std::int32_t> uses_;          // stages in which every solution reads a value; indexed by value
  std::vector<double> price_, best_price_;  // current and best prices, in units of cost per byte
  double best_ = 0;
  int shift_ = 0, price_shift_ = 0;
  std::vector<std::int64_t> whole_price_;  // best prices as integers, times 2^(shift_ + price_shift_)
  __extension__ using Wide = __int128;
  std::vector<Wide> whole_price_until_;  // sum of the prices of all earlier stages, indexed by stage
  std::vector<std::int64_t> rest_;       // sum of the bound over stage t and all later stages, indexed by t
  std::vector<std::size_t> worth_begin_;
  std::vector<std::int64_t> worth_, hold_excess_;
  std::vector<std::size_t> run_begin_;
  std::vector<std::int64_t> run_excess_;
  // Bound that belongs to the reduced costs run_excess_ and hold_excess_ and is added to them.
  std::int64_t excess_of_ = 0;
  std::vector<Origin> sources_;
  std::vector<double> price_until_;
};

}  // namespace cairn::solvers
