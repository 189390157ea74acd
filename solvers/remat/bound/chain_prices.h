#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/remat/bound/chain_program.h"

namespace cairn::solvers {

/// A solution of the dual of ChainProgram's linear relaxation. It is given by prices of memory, one price for a byte
/// during each first run of the chain (see ChainStages). Any prices >= 0 give a solution, and so a bound, in one pass
/// over the stages; docs/remat/bound.md has the proof.
///
/// The price of having value x available in stage t is at most the cost of holding it during c_(t-1), plus the price of
/// having it before, and at most the cost of making it again with its inputs at hand. Where the relaxation cannot do
/// without x the price is collected, and x is free from there on.
class ChainPrices {
 public:
  explicit ChainPrices(const ChainStages& stages);

  /// Moves the prices by `rounds` subgradient steps, towards a bound of `target` units of cost above that of running
  /// each node once. Returns the best bound, not rounded, which is only a guide. Each round takes time in proportion to
  /// ChainStages::size() and the edges of open entries.
  double ascend(double target, int rounds, core::Stopwatch& watch);

  /// Computes the bound of the best prices in whole numbers.
  void fix();

  // Values after fix(): exact, in units of cost times one().
  std::int64_t one() const { return std::int64_t{1} << shift_; }
  /// Least cost beyond that of running each node once, which every schedule has.
  std::int64_t bound() const { return rest_.front(); }
  /// Lower bound on the remaining cost after the run of c_t: a schedule that holds the values A during c_t pays at
  /// least rest(t) less the worth of A for the nodes that it runs again later.
  std::int64_t rest(std::int32_t t) const { return rest_[static_cast<std::size_t>(t) + 1]; }
  /// Worth of holding value x during the run of c_t; 0 outside of the range in which x may be held.
  std::int64_t worth(std::int32_t t, core::ValueId x) const;
  /// Price of holding `bytes` bytes during the run of c_t.
  std::int64_t holding(std::int32_t t, std::int64_t bytes) const;
  /// Whether reduced costs prove that no schedule that costs at most `most_extra` units more than running each node
  /// once runs v again in stage t, or holds x during c_t.
  bool never_run(std::int32_t t, core::NodeId v, std::int64_t most_extra) const {
    return excess_of_ + run_excess(t, v) > most_extra * one();
  }
  bool never_held(std::int32_t t, core::ValueId x, std::int64_t most_extra) const {
    return !stages_.forced(t, x) && excess_of_ + hold_excess(t, x) > most_extra * one();
  }

  /// Returns the nodes that may run in the stage, or whose values may be of use there, in topological order.
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

  // The origin of each price in the forward pass, for the subgradient.
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
  /// Finds the first stage after t in which x is certainly read; -1: none.
  std::int32_t next_use(std::int32_t t, core::ValueId x) const;
  bool used(std::int32_t t, core::ValueId x) const;

  const ChainStages& stages_;
  const core::Graph& graph_;
  std::int32_t end_;  // number of first runs in the chain (K)
  std::vector<std::size_t> active_begin_;
  std::vector<core::NodeId> active_;
  std::vector<std::size_t> uses_begin_;
  std::vector<std::int32_t> uses_;          // stages in which a value is certainly read, by value
  std::vector<double> price_, best_price_;  // current and best prices, in units of cost per byte
  double best_ = 0;
  int shift_ = 0, price_shift_ = 0;
  std::vector<std::int64_t> whole_price_;  // best prices as whole numbers, times 2^(shift_ + price_shift_)
  __extension__ using Wide = __int128;
  std::vector<Wide> whole_price_until_;  // sums of the prices over the earlier stages, by stage
  std::vector<std::int64_t> rest_;       // sums of the bound over the stages from t on, by t
  std::vector<std::size_t> worth_begin_;
  std::vector<std::int64_t> worth_, hold_excess_;
  std::vector<std::size_t> run_begin_;
  std::vector<std::int64_t> run_excess_;
  std::int64_t excess_of_ = 0;  // bound to which the excesses (reduced costs) are added
  std::vector<Origin> sources_;
  std::vector<double> price_until_;
};

}  // namespace cairn::solvers
