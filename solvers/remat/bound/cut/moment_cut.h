#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/link.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/support/flow_network.h"
#include "cairn/solvers/remat/bound/cut/moment.h"

namespace cairn::solvers {

/// Holds the options of MomentBound and cut_bound(). A moment is the first run of a node.
struct MomentCutOptions {
  std::int64_t budget = 0;                  ///< largest peak of the schedules, in bytes
  OrderRule order = OrderRule::free;        ///< order rule of the schedules
  std::optional<core::Link> link;           ///< without it, schedules have no transfers
  std::optional<std::int64_t> host_budget;  ///< largest number of bytes on the host; without it, there is no limit
  std::size_t solved = 4;                   ///< for how many single moments cut_bound() solves an integer program
  int together = 3;                         ///< largest number of moments of one integer program
  /// largest work of the programs of several moments, in units of core::Limit::work
  std::int64_t together_work = core::Limit::kAnyWork;
};

/// Says for each value that is made before a *moment*, the first run of a node, how nodes that run after the moment get
/// the value: its node runs again, it is held in memory, or it is on the host.
struct MomentCut {
  std::vector<std::uint8_t> again;  ///< for each node, whether it runs again after the moment
  std::vector<std::uint8_t> held;   ///< for each value, whether it is in memory at the moment
  std::vector<std::uint8_t> moved;  ///< for each value, whether it is on the host at the moment
  std::int64_t bytes = 0;           ///< bytes held at the moment besides the inputs and outputs of the moment's node
};

/// Bounds the cost of schedules from below by what is in memory at one moment: during the first run of a node p.
///
/// Theorem. Consider any schedule within the budget that follows the order rule. All ancestors of p have run before the
/// moment, and none of its descendants has. (If the order rule is not `free`, exactly the nodes before p in the input
/// order have run.) Call a value *needed* if its node is neither p nor a descendant of p, and if it is kept or a
/// descendant of p reads it. (If the order rule is not `free`, the nodes behind p in the input order take the place of
/// its descendants.) After the moment, a needed value x either is still in memory, or its node runs after the moment.
/// In the latter case, each input of that node must likewise be in memory at the moment or be computed again. So let
/// again[v] be 1 if v runs after the moment, and held[x] be 1 if x is in memory at the moment. Then
///
///     held[x] + again[node of x] >= 1                  for needed x
///     held[y] + again[node of y] >= again[v]           for inputs y of v
///     sum of size(x) held[x] <= budget - size(p) - scratch(p) - bytes of inputs of p, over all x that p does not read
///
/// If v has run before the moment in every schedule, again[v] = 1 adds cost(v) to the cost of running each node once.
/// Now give each held byte a price >= 0. The least sum of these costs and of the prices of the held bytes is the
/// capacity of a minimum cut. This capacity minus the price of all bytes on the right side of the last constraint is a
/// lower bound on the added cost, for every price. Without a link, the largest of these lower bounds is the optimum of
/// the linear program above.
///
/// With a link, a value may also be on the host at the moment. Then moved[x] is 1, and moved[x] is added to held[x] in
/// the first two constraints. The copies of these values to the host end before the moment, so together they take at
/// most the time until the moment. This time is at most the cost of all nodes that can run before the moment, plus the
/// time by which the makespan exceeds the cost of all first runs and of the runs counted by again[v]. If the host has a
/// budget, the moved bytes must also be within this budget.
class MomentBound {
 public:
  /// The graph and the options must outlive this object.
  MomentBound(const core::Graph& graph, core::NodeId moment, const MomentCutOptions& options);

  /// Computes the bound by some minimum cuts, usually about ten. If the watch expires, the bound is the best one found
  /// until then. Charges the watch the size of the network for each cut.
  void maximize(core::Stopwatch& watch);

  /// Returns a lower bound on the extra cost of every schedule within the budget, i.e. its cost above the cost of
  /// running each node once. With a link, returns a lower bound on the makespan above this cost. Rounded up to a whole
  /// unit of cost.
  std::int64_t extra() const { return extra_; }
  /// Returns whether it is proved that no schedule is within the budget.
  bool infeasible() const { return infeasible_; }
  /// Returns the price of a byte that gives the bound, in units of cost.
  double price() const { return std::ldexp(best_.price, -scale_); }
  const Moment& moment() const { return moment_; }

  /// Returns a cut whose held bytes are within the budget and whose cost is nearly the least. Returns nothing if the
  /// watch expired or no such cut was found. Of values of equal price, prefers to hold those that are made last,
  /// because they are mostly read by the descendants of p that run soonest.
  std::optional<MomentCut> cut(core::Stopwatch& watch);

 private:
  /// Says what limits the bytes that are on the host at the moment. `none`: there is no link, so no bytes are on the
  /// host. `link`: the time for copies. `host`: the budget of the host. `any`: nothing limits them, so that only values
  /// that cannot be moved need memory.
  enum class Mover : std::uint8_t { none, link, host, any };
  /// Holds a price of a byte, the value of the Lagrangian dual at this price in scaled units of cost, and the
  /// derivative of the dual with respect to the price.
  struct Point {
    double price = 0, value = 0, slope = 0;
  };
  struct ValueArc {
    core::ValueId value;
    std::int32_t arc;
    std::int64_t copy;  ///< scaled duration of a copy, or -1 if the value cannot be moved
    double weight;      ///< factor by which cut() multiplies the price of the value
  };

  void add_arcs();
  std::int64_t scaled(std::int64_t cost) const;
  double link_price(double price) const;
  void set_prices(double price, bool weighted);
  std::optional<std::int64_t> solve(core::Stopwatch& watch);
  bool on_source_side(std::int32_t node) const { return network_.source_side()[node] != 0; }
  bool crosses(const ValueArc& arc) const;
  std::optional<Point> evaluate(double price, core::Stopwatch& watch);
  void maximize_with(Mover mover, core::Stopwatch& watch);
  std::optional<MomentCut> cut_at(double price, core::Stopwatch& watch);

  const core::Graph& graph_;
  const MomentCutOptions& options_;
  const Moment moment_;
  FlowNetwork network_;
  std::int32_t source_, sink_;
  std::vector<ValueArc> arcs_;
  std::int64_t bytes_ = 0;      ///< total bytes of the values in arcs_
  std::int64_t link_time_ = 0;  ///< scaled time before the moment in a schedule that runs each node at most once
  std::int64_t all_again_ = 0;  ///< scaled cost of running again all nodes that may run again
  int scale_ = 0;               ///< numbers of the network are in units of 2^-scale_ of cost
  double bytes_per_cost_ = 0;   ///< largest speed of a copy, in bytes per scaled unit of cost
  Mover mover_ = Mover::none;
  Point best_;
  std::int64_t extra_ = 0;
  bool infeasible_ = false;
};

}  // namespace cairn::solvers
