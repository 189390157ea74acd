#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/link.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/solvers/remat/bound/stage_uses.h"
#include "cairn/solvers/remat/bound/subgradient.h"

namespace cairn::solvers {

/// Holds costs of paths in the graph, which bound the time before and after a copy.
struct PathCosts {
  /// For each node, the cost of the most expensive path that ends with it; the whole path has run once the node has
  /// run.
  std::vector<std::int64_t> until;
  /// For each node, the least cost of a path that begins with it and ends with a node that must run, because nothing
  /// reads that node or it is kept. If a run of a node is needed, steps of at least this cost run from the begin of
  /// that run on.
  std::vector<std::int64_t> since;
  std::vector<std::int64_t> since_read;  ///< for each value, the least `since` of its readers; 0 if the value is kept
};
/// Computes the costs of paths. O(nodes + edges).
PathCosts path_costs(const core::Graph& graph);

/// Computes lower bounds on the makespan of all schedules with recomputation and transfers that keep to a budget on the
/// device and to a budget on the host. The stages are defined in FirstRunStages: c_0, c_1, ... are the nodes of a
/// chain, and stage t ends with the first run of c_t. Below, the run of c_t always means its first run. The stages must
/// be made without a known cost.
///
/// Theorem. Let `cut` be a stage before the last one. Let the following prices be >= 0: the prices device[t] and
/// host[t] of a byte for every stage t, and the prices `evict`, `fetch` and `both` of a unit of the link's time, where
/// `both` is 0 if the link is duplex. Let evict + both <= 1 and fetch + both <= 1. Let
///
///     out[t] = both + evict if t <= cut, else both         in[t] = both + fetch if t > cut, else both
///     work[t] = 1 - both - evict if t <= cut, else 1 - both - fetch
///
/// Then no schedule has a makespan below the least value of
///
///       sum of cost(v) * work[t]      over each stage t in which v runs; the first run of c_cut has the factor 1 -
///       both
///     + sum of device[t] * size(x)    over each value x on the device during the run of c_t
///     + sum of host[t] * size(x)      over each value x on the host during the run of c_t
///     + sum of out[t] * copy_cost(x)  over each x that has an evict which is over between the runs of c_(t-1) and c_t
///     + sum of in[t] * copy_cost(x)   over each x that has a fetch which starts between the runs of c_(t-1) and c_t
///     - sum of device[t] * (budget of the device - scratch(c_t)) - sum of host[t] * budget of the host
///     + evict * r + fetch * q + both * s, where r, q and s are times that no copy can use (see the proof)
///
/// over all choices of runs, places and copies in stages such that
/// - a value that a run in stage t reads, or that is on the device during the run of c_t, was made in stage t, or its
///   fetch starts in stage t, or it was on the device during the run of c_(t-1);
/// - if a fetch starts in stage t, the value was on the host during the run of c_(t-1);
/// - if a value is on the host during the run of c_t, it was there during the run of c_(t-1), or its evict is over in
///   stage t, and then it was made in stage t or was on the device during the run of c_(t-1);
/// - what FirstRunStages says about the stages of nodes and values holds.
///
/// Proof. Take a schedule. The choice consists of the schedule's runs and copies, but leaves out those that nothing
/// needs. It also leaves out a fetch of x that starts in stage t if x is on the device during the run of c_(t-1), or
/// made in stage t. The first condition holds, because an occurrence that is read in stage t comes from a step or a
/// fetch in stage t or before. If it comes from an earlier stage, it is on the device during the run of c_(t-1). To
/// prove the second condition, let a fetch in stage t be part of the choice. The evict of this fetch is over before the
/// first step after the fetch's `start`. If the evict were not over before the run of c_(t-1), its occurrence, which is
/// held until the evict is over, would be on the device during that run, or made in stage t. So the evict is over
/// before that run, and the host holds the copy until the fetch is over. The third condition holds for the same
/// reasons.
///
/// Let T be the makespan, and B and E the begin and the end of the run of c_cut. The link carries one copy after
/// another.
/// - Evicts that are over before B take at most B - r. Here r is at most the cost of the most expensive path to a node
///   whose value is evicted, because the copy starts after the run of this node. In case there is no such evict, r is
///   also at most the cost of the most expensive path to c_cut, without c_cut itself.
/// - Fetches that start after E take at most T - E - q. Here q is at most the least cost of what needs a fetched value
///   and runs after its fetch. In case there is no such fetch, q is also at most the least cost of what runs after a
///   run of c_cut.
/// - If both directions share the link, all copies together take at most T - s. Here s is at most the least cost of a
///   path to a node that makes a value that can be moved, plus the least cost of what needs such a value.
/// T is the sum of the time in which the steps of the choice run and of a rest >= 0, which is divided among the stages.
/// Multiply these three inequalities by evict, fetch and both, and those of the budgets by device[t] and host[t]. Add
/// the products to T. The rest of stage t gets the factor work[t] >= 0, so it may be left out. What is left is the sum
/// above. []
///
/// The least value is bounded from below as in StagePrices, by one pass over the stages, which computes a price for
/// having x in stage t. This price is the least of three: the price of holding x since the stage before, of making x
/// again, and of fetching x. A value on the host has a price as well: the least of holding it there, and of evicting it
/// from the device in this stage. These prices are distances in a graph in which every way to have x in some stage is a
/// path. If a reader surely needs x, the pass counts a part p of the price of x for this reader, and subtracts p from
/// the prices of x on the device and on the host. This subtraction is valid, because a distance d is the sum of
/// min(d, p) and d - min(d, p), and both of these numbers are feasible distances. So the prices paid for an edge add up
/// to at most its length. All arithmetic is in integers and rounds down, so the bound holds exactly.
class TransferPrices {
 public:
  /// `cut` is the stage `cut` of the theorem; if the chain has no nodes, it must be 0. Without `host_budget`, the host
  /// can hold any number of bytes. O(FirstRunStages::size() + inputs of nodes).
  TransferPrices(const FirstRunStages& stages, const core::Link& link, std::optional<std::int64_t> host_budget,
                 std::int32_t cut);

  /// Improves the prices by at most `rounds` subgradient steps. Ends early when the bound reaches `target` or the watch
  /// expires. A step takes time proportional to FirstRunStages::size() plus the number of inputs of the nodes that can
  /// run in the stages.
  void ascend(std::int64_t target, int rounds, core::Stopwatch& watch);

  /// Returns the highest bound so far, in units of cost. It is at least the cost of running each node once.
  std::int64_t bound() const { return bound_; }

  /// Largest number of bytes that a pass needs for each of the pairs that FirstRunStages::size() counts.
  static constexpr std::int64_t kBytesAPair = 256;

 private:
  class Pass;
  __extension__ using Wide = __int128;
  static constexpr int kWeightShift = 30;
  static constexpr std::int64_t kOne = std::int64_t{1} << kWeightShift;
  /// Holds the prices of the theorem, as integers.
  struct Multipliers {
    std::vector<std::int64_t> device, host;       ///< in 2^-(shift + price_shift) units of cost per byte
    std::vector<Wide> device_until;               ///< sum of device[s] over s < t
    std::int64_t evict = 0, fetch = 0, both = 0;  ///< in 2^-kWeightShift
    std::int32_t cut = 0;
    int price_shift = 0;

    std::int64_t out(std::int32_t t) const { return both + (t <= cut ? evict : 0); }
    std::int64_t in(std::int32_t t) const { return both + (t > cut ? fetch : 0); }
    std::int64_t work(std::int32_t t) const { return t <= cut ? before() : after(); }
    std::int64_t before() const { return kOne - both - evict; }
    std::int64_t after() const { return kOne - both - fetch; }
    std::int64_t at_cut() const { return kOne - both; }
  };
  // Indices in Ascent::point of the three prices of the link's time, which are stored as multiples of link_unit_. The
  // prices of bytes follow, as multiples of device_unit_.
  static constexpr std::size_t kEvict = 0, kFetch = 1, kBoth = 2, kScalars = 3;
  std::size_t device_at(std::int32_t t) const { return kScalars + static_cast<std::size_t>(t); }
  std::size_t host_at(std::int32_t t) const { return device_at(t) + count(); }

  std::size_t count() const { return static_cast<std::size_t>(end_) + 1; }
  void find_unused_time();
  Multipliers multipliers() const;
  void project();
  double evaluate(std::vector<double>& gradient);

  const FirstRunStages& stages_;
  const core::Graph& graph_;
  const StageUses uses_;
  const std::int32_t end_, cut_;
  const bool shared_;  ///< whether both directions share the link
  const std::optional<std::int64_t> host_budget_;
  std::vector<std::int64_t> copy_cost_;  ///< for each value, the time of a copy; -1: the value cannot be moved
  double device_unit_ = 1;               ///< in units of cost per byte
  double link_unit_ = 1;
  int shift_ = 0;
  std::int64_t before_evicts_ = 0, after_fetches_ = 0, beside_copies_ = 0;  ///< r, q and s of the theorem
  std::int64_t bound_ = 0;
  Ascent ascent_;
};

}  // namespace cairn::solvers
