#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/remat/bound/chain_program.h"

namespace cairn::solvers {

/// A solution of the dual of ChainProgram's linear relaxation. It is defined by one price for each first run of the
/// chain (see ChainStages): the price of holding one byte during that run. Any prices >= 0 give a solution, and so a
/// bound, in one pass over the stages; docs/remat/bound.md has the proof.
///
/// The pass computes what it costs to have value x available in stage t. This is the smaller of two costs: having x in
/// the stage before and holding x during c_(t-1); or making x again when its inputs are available. In a stage where
/// every solution of the relaxation needs x, this cost is added to the bound (it is *collected*), and x costs nothing
/// from there on.
class ChainPrices {
 public:
  explicit ChainPrices(const ChainStages& stages);

  /// Improves the prices by `rounds` subgradient steps towards a bound of `target`. Bounds are in units of cost above
  /// the cost of running each node once. Returns the best bound as a double, which is only an estimate. The time of
  /// each round is proportional to ChainStages::size() plus the number of inputs of the nodes that may run there.
  double ascend(double target, int rounds, core::Stopwatch& watch);

  /// Recomputes the bound of the best prices in integers, so that it is a proved bound.
  void fix();

  // Results of fix(). They are exact, in units of cost times one().
  std::int64_t one() const { return std::int64_t{1} << shift_; }
  /// Returns the lower bound on the cost above that of running each node once.
  std::int64_t bound() const { return rest_.front(); }
  /// Returns a lower bound on the cost that remains after the first run of c_t. Let A be the values held during c_t.
  /// The nodes that run again later cost at least rest(t) less the worth of the values in A.
  std::int64_t rest(std::int32_t t) const { return rest_[static_cast<std::size_t>(t) + 1]; }
  /// Returns the worth of holding value x during the run of c_t: by how much this can lower the remaining cost. 0
  /// outside of the range in which x may be held.
  std::int64_t worth(std::int32_t t, core::ValueId x) const;
  /// Returns the price of holding `bytes` bytes during the run of c_t.
  std::int64_t holding(std::int32_t t, std::int64_t bytes) const;
  /// Return whether reduced costs prove that a schedule never runs v again in stage t, or never holds x during c_t. The
  /// schedules are those that cost at most `most_extra` units more than running each node once.
  bool never_run(std::int32_t t, core::NodeId v, std::int64_t most_extra) const {
    return excess_of_ + run_excess(t, v) > most_extra * one();
  }
  bool never_held(std::int32_t t, core::ValueId x, std::int64_t most_extra) const {
    return !stages_.forced(t, x) && excess_of_ + hold_excess(t, x) > most_extra * one();
  }

  /// Returns the nodes that may run in the stage, or whose values may be useful there, in topological order.
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

  // Where the forward pass took each price from. The subgradient needs this.
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
  /// Finds the first stage after t in which x is read in every solution; -1: there is none.
  std::int32_t next_use(std::int32_t t, core::ValueId x) const;
  bool used(std::int32_t t, core::ValueId x) const;

  const ChainStages& stages_;
  const core::Graph& graph_;
  std::int32_t end_;  // number of first runs in the chain (K)
  std::vector<std::size_t> active_begin_;
  std::vector<core::NodeId> active_;
  std::vector<std::size_t> uses_begin_;
  std::vector<std::int32_t> uses_;          // stages in which a value is read in every solution, by value
  std::vector<double> price_, best_price_;  // current and best prices, in units of cost per byte
  double best_ = 0;
  int shift_ = 0, price_shift_ = 0;
  std::vector<std::int64_t> whole_price_;  // best prices as integers, times 2^(shift_ + price_shift_)
  __extension__ using Wide = __int128;
  std::vector<Wide> whole_price_until_;  // sum of the prices of the earlier stages, by stage
  std::vector<std::int64_t> rest_;       // sum of the bound over stage t and all later ones, by t
  std::vector<std::size_t> worth_begin_;
  std::vector<std::int64_t> worth_, hold_excess_;
  std::vector<std::size_t> run_begin_;
  std::vector<std::int64_t> run_excess_;
  std::int64_t excess_of_ = 0;  // bound that is added to run_excess_ and hold_excess_, which are reduced costs
  std::vector<Origin> sources_;
  std::vector<double> price_until_;
};

}  // namespace cairn::solvers
