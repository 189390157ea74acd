#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/dominance/internal_segments.h"
#include "cairn/sim/device/drawing/bucket_lanes.h"
#include "cairn/sim/device/drawing/draw_lanes.h"
#include "cairn/sim/device/drawing/order_lanes.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/simulator.h"

/// These are the kernels of MachineSimulator (machine_simulator.h): they draw candidates, evaluate them, and count what
/// was found.
namespace cairn::sim::device {

/// Places the arrays of each team in shared memory. If a kernel has this type as a template argument, the compiler uses
/// instructions for shared memory, which are faster than instructions for any kind of memory.
struct SharedSpace {
  template <class Team>
  CAIRN_HD std::byte* of(const Team& team, std::int64_t /*index*/) const {
    return team.template shared<std::byte>();
  }
};

/// Places the arrays of each team in a part of the machine's memory, for arrays that are too large for shared memory.
struct GlobalSpace {
  std::byte* pieces = nullptr;  ///< memory that is divided among the teams
  std::int64_t bytes = 0;       ///< size of a team's part

  template <class Team>
  CAIRN_HD std::byte* of(const Team& /*team*/, std::int64_t index) const {
    return pieces + index * bytes;
  }
};

/// Number of threads of a team that evaluates orders in lanes (sim/device/lanes.h). Two such teams run on a
/// multiprocessor at a time, so that one of them computes while the other one waits at a barrier.
inline constexpr int kThreadsOfOrders = 512;

/// Evaluates schedules that have as many steps as there are nodes, one in each lane.
template <class Id, class Sum, int kLanes, class Space>
struct EvaluateOrders {
  static constexpr int kThreads = kThreadsOfOrders;
  using Arrays = OrderArrays<Id, Sum, kLanes>;
  TablesView<Id> graph;
  BatchView<Id> batch;
  OutcomesView outcomes;
  Space space;
  std::int64_t teams;

  static std::int64_t bytes(std::int64_t nodes) { return Arrays::bytes(nodes, kThreads); }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    graph.single_output() ? run<true>(team, index) : run<false>(team, index);
  }

 private:
  template <bool kSingle, class Team>
  CAIRN_HD void run(const Team& team, std::int64_t index) const {
    const LaneGrid<Team, kLanes> grid(team);
    const auto arrays = Arrays::in(space.of(team, index), graph.node_count, kThreads);
    const OrderLanes<kSingle, Id, Id, Sum, kLanes, Team> orders(grid, graph, arrays);
    for (std::int64_t first = index * grid.lanes(); first < batch.count; first += teams * grid.lanes()) {
      const std::int64_t c = first + grid.lane();
      const bool whole = c < batch.count && batch.length[c] == graph.node_count;
      orders.begin();
      find_positions(grid, whole ? batch.steps + batch.begin[c] : nullptr, graph.node_count, arrays.position);
      orders.template find_changes<false>();
      const Outcome outcome = orders.outcome();
      if (grid.row() == 0 && c < batch.count) outcomes.put(c, outcome);
      team.sync();
    }
  }
};

/// Draws the keys (draw_keys()) of orders, one order per thread. The keys of kLanes candidates are interleaved: the
/// keys of candidate c begin at index c / kLanes * kLanes * node_count + c % kLanes and are kLanes entries apart.
template <class Id, int kLanes>
struct DrawKeys {
  static constexpr int kThreads = 1;
  TablesView<Id> graph;
  std::uint64_t seed;
  std::int64_t first;
  std::uint32_t* keys;
  std::uint32_t* highest;  ///< highest key of each candidate

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t c) const {
    highest[c] = draw_keys<kLanes>(graph, seed, first + c, keys + c / kLanes * kLanes * graph.node_count + c % kLanes);
  }
};

/// Orders whose keys have been drawn, in groups of kLanes orders. Only the first `count` orders are evaluated or
/// written; the last group can contain further orders.
template <class Id, int kLanes>
struct DrawnOrders {
  TablesView<Id> graph;
  std::uint32_t* keys;
  const std::uint32_t* highest;
  std::int64_t groups, count;
  /// For each group, whether RankKeys must evaluate its orders.
  std::uint8_t* by_ranks;

  CAIRN_HD std::uint32_t* keys_of(std::int64_t group, int lane) const {
    return keys + group * kLanes * graph.node_count + lane;
  }
};

/// Evaluates drawn orders by buckets (BucketLanes). Leaves a group to RankKeys if some order of it has more steps to
/// evaluate exactly than BucketLanes can list.
template <class Id, class Sum, int kLanes, class Space>
struct EvaluateKeys {
  static constexpr int kThreads = kThreadsOfOrders, kBlocks = 2;
  using Arrays = BucketArrays<Sum, kLanes>;
  DrawnOrders<Id, kLanes> drawn;
  OutcomesView outcomes;
  Space space;
  std::int64_t teams;
  std::int32_t buckets;

  static std::int64_t bytes(std::int64_t nodes, std::int64_t buckets) {
    return Arrays::bytes(nodes, buckets, kThreads);
  }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    drawn.graph.single_output() ? run<true>(team, index) : run<false>(team, index);
  }

 private:
  template <bool kSingle, class Team>
  CAIRN_HD void run(const Team& team, std::int64_t index) const {
    const LaneGrid<Team, kLanes> grid(team);
    const auto arrays = Arrays::in(space.of(team, index), drawn.graph.node_count, buckets, kThreads);
    for (std::int64_t group = index; group < drawn.groups; group += teams) {
      bool all_done = true;
      CAIRN_UNROLL_BY(1)
      for (int lane = grid.lane(); lane < kLanes; lane += grid.lanes()) {
        const std::int64_t c = group * kLanes + lane;
        const BucketLanes<kSingle, Id, Sum, kLanes, kLanes, Team> orders(grid, drawn.graph, arrays, buckets,
                                                                         drawn.keys_of(group, lane), drawn.highest[c]);
        Outcome outcome;
        const bool done = orders.evaluate(outcomes.peak_step != nullptr, outcome);
        if (done && grid.row() == 0 && c < drawn.count) outcomes.put(c, outcome);
        all_done = all_done && done;
        team.sync();
      }
      if (team.rank() == 0) drawn.by_ranks[group] = all_done ? 0 : 1;
    }
  }
};

/// Ranks the nodes of drawn orders by their keys. If `steps` is not nullptr, writes the steps of all orders. Otherwise,
/// evaluates the orders that EvaluateKeys has left.
template <class Id, class Sum, int kLanes, class Space>
struct RankKeys {
  static constexpr int kThreads = kThreadsOfOrders, kBlocks = 2, kOfTeam = 8;
  using Ranks = RankArrays<kOfTeam>;
  using Orders = OrderArrays<Id, Sum, kOfTeam>;
  DrawnOrders<Id, kLanes> drawn;
  OutcomesView outcomes;
  Id* steps;
  Space space;
  std::int64_t teams;

  static std::int64_t bytes(std::int64_t nodes) {
    return std::max(Ranks::bytes(nodes, kThreads), Orders::bytes(nodes, kThreads));
  }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for (std::int64_t group = index; group < drawn.groups; group += teams) {
      if (steps == nullptr && drawn.by_ranks[group] == 0) continue;
      const LaneGrid<Team, kOfTeam> grid(team);
      CAIRN_UNROLL_BY(1)
      for (int lane = grid.lane(); lane < kLanes; lane += grid.lanes()) {
        std::byte* const memory = space.of(team, index);
        rank_keys<kLanes>(grid, drawn.graph, Ranks::in(memory, drawn.graph.node_count, kThreads),
                          drawn.highest[group * kLanes + lane], drawn.keys_of(group, lane));
        if (steps != nullptr) {
          write_steps(grid, group, lane);
        } else if (drawn.graph.single_output()) {
          evaluate<true>(grid, memory, group, lane);
        } else {
          evaluate<false>(grid, memory, group, lane);
        }
      }
    }
  }

 private:
  template <class Grid>
  CAIRN_HD void write_steps(const Grid& grid, std::int64_t group, int lane) const {
    const std::int64_t c = group * kLanes + lane, nodes = drawn.graph.node_count;
    if (c >= drawn.count) return;
    const std::uint32_t* const rank = drawn.keys_of(group, lane);
    grid.for_each(drawn.graph.node_count,
                  [&](std::int32_t v) { steps[c * nodes + rank[std::int64_t{v} * kLanes] - 1] = static_cast<Id>(v); });
  }

  template <bool kSingle, class Team>
  CAIRN_HD void evaluate(const LaneGrid<Team, kOfTeam>& grid, std::byte* memory, std::int64_t group, int lane) const {
    const std::int64_t c = group * kLanes + lane;
    const std::uint32_t* const rank = drawn.keys_of(group, lane);
    const auto arrays = Orders::in(memory, drawn.graph.node_count, kThreads);
    const OrderLanes<kSingle, Id, Id, Sum, kOfTeam, Team> orders(grid, drawn.graph, arrays);
    orders.begin();
    grid.for_each(drawn.graph.node_count, [&](std::int32_t v) {
      arrays.position[v * grid.lanes() + grid.lane()] = static_cast<Id>(rank[std::int64_t{v} * kLanes]);
    });
    grid.team().sync();
    orders.template find_changes<true>();
    const Outcome outcome = orders.outcome();
    if (grid.row() == 0 && c < drawn.count) outcomes.put(c, outcome);
    grid.team().sync();
  }
};

/// Number of threads of a team whose threads run rewind() (sim/device/candidate_profile.h), each on a schedule of its
/// own.
inline constexpr int kThreadsOfRewind = 32;

/// Calls take(c, values) for each candidate c in [0, count) that this thread handles. `values` are new ValueBits in
/// `memory`, which the team's threads share. `index` is the team's number, and `teams` the number of teams.
template <class Id, class Team, class Take>
CAIRN_HD void for_each_rewound(const Team& team, const TablesView<Id>& graph, std::byte* memory, std::int64_t index,
                               std::int64_t teams, std::int64_t count, const Take& take) {
  const LaneGrid<Team, kThreadsOfRewind> grid(team);
  auto* const words = reinterpret_cast<std::uint32_t*>(memory) + grid.lane();
  for (std::int64_t c = index * grid.lanes() + grid.lane(); c < count; c += teams * grid.lanes()) {
    take(c, ValueBits(graph, words, grid.lanes()));
  }
}

/// Evaluates schedules that may recompute, one in each thread.
template <class Id, class Space>
struct EvaluateAny {
  static constexpr int kThreads = kThreadsOfRewind;
  TablesView<Id> graph;
  BatchView<Id> batch;
  OutcomesView outcomes;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_rewound(
        team, graph, space.of(team, index), index, teams, batch.count, [&](std::int64_t c, ValueBits values) {
          outcomes.put(c, rewind(graph, batch.steps + batch.begin[c], batch.length[c], values, IgnoreSteps{}));
        });
  }
};

/// Writes the memory profiles of candidates, one in each thread. Skips a candidate whose range in `begin` is empty,
/// because it is invalid.
template <class Id, class Space>
struct WriteProfiles {
  static constexpr int kThreads = kThreadsOfRewind;
  TablesView<Id> graph;
  BatchView<Id> batch;
  const std::int64_t* begin;  ///< batch.count + 1 offsets into `value`, one range per candidate
  std::int64_t* value;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_rewound(team, graph, space.of(team, index), index, teams, batch.count,
                     [&](std::int64_t c, ValueBits values) {
                       if (begin[c] == begin[c + 1]) return;
                       std::int64_t* const profile = value + begin[c];
                       profile[0] = 0;
                       rewind(graph, batch.steps + batch.begin[c], batch.length[c], values,
                              [&](std::int32_t i, std::int64_t during, std::int64_t after) {
                                // 32 bits suffice, because the index is below 2^32. With a 64-bit index, nvcc would add
                                // it to begin[c] at every step.
                                const std::uint32_t at = 2 * static_cast<std::uint32_t>(i) + 1;
                                profile[at] = during;
                                profile[std::uint64_t{at} + 1] = after;
                              });
                     });
  }
};

/// Finds the segments of the internal profiles of candidates (InternalSegments), one candidate in each thread. The part
/// of candidate c in `found` begins at index batch.begin[c]; its last segment comes first.
template <class Id, class Space>
struct FindInternalSegments {
  static constexpr int kThreads = kThreadsOfRewind;
  TablesView<Id> graph;
  BatchView<Id> batch;
  core::Segment* found;
  std::int64_t* starts;
  std::int64_t* counts;  ///< numbers of segments
  std::uint8_t* valid;   ///< whether the candidate has an internal profile: it is valid and has steps
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_rewound(
        team, graph, space.of(team, index), index, teams, batch.count, [&](std::int64_t c, ValueBits values) {
          const Id* const steps = batch.steps + batch.begin[c];
          InternalSegments<Id> segments(graph, steps, batch.length[c], found + batch.begin[c]);
          const Outcome outcome =
              rewind(graph, steps, batch.length[c], values,
                     [&](std::int32_t i, std::int64_t during, std::int64_t after) { segments.take(i, during, after); });
          segments.end();
          const bool whole = outcome.valid && batch.length[c] > 0;
          starts[c] = segments.start();
          counts[c] = whole ? segments.count() : 0;
          valid[c] = whole ? 1 : 0;
        });
  }
};

/// Copies the segments that FindInternalSegments has found to their final positions, without gaps and in the order of
/// the profile.
struct PlaceInternalSegments {
  static constexpr int kThreads = 1;
  const std::int64_t* parts;  ///< for each candidate, the index in `found` at which its part begins
  const core::Segment* found;
  const std::int64_t* begins;
  core::Segment* segments;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t c) const {
    const core::Segment* from = found + parts[c];
    for (std::int64_t k = begins[c], left = begins[c + 1] - k; left > 0; ++k) segments[k] = from[--left];
  }
};

/// Draws schedules. A team draws one candidate at a time.
template <class Id, class Space>
struct DrawSchedules {
  static constexpr int kThreads = 128;
  TablesView<Id> graph;
  std::uint64_t seed;
  std::int32_t moves;
  std::int64_t first, count, stride;
  Id* steps;
  std::int64_t* begin;
  std::int32_t* length;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const DrawSpace arrays = DrawSpace::in(space.of(team, index), graph.node_count, graph.edge_count);
    for (std::int64_t c = index; c < count; c += teams) {
      const std::int32_t drawn = draw_schedule(team, graph, seed, moves, first + c, arrays, steps + c * stride);
      if (team.rank() == 0) {
        begin[c] = c * stride;
        length[c] = drawn;
      }
      team.sync();
    }
  }
};

/// Sets, for each of the orders that RankKeys writes, where its steps begin and how many there are.
struct PlaceOrders {
  static constexpr int kThreads = 1;
  std::int64_t* begin;
  std::int32_t* length;
  std::int32_t nodes;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t c) const {
    begin[c] = c * nodes;
    length[c] = nodes;
  }
};

/// A 128-bit WideSum as two words. If threads exchange a WideSum (a 128-bit integer), nvcc keeps the WideSum in local
/// memory, which is slow. These two words stay in registers.
struct TwoWords {
  std::uint64_t low = 0, high = 0;

  static CAIRN_HD TwoWords of(std::int64_t value) {
    return {static_cast<std::uint64_t>(value), value < 0 ? ~std::uint64_t{0} : 0};
  }
  CAIRN_HD TwoWords operator+(const TwoWords& other) const {
    const std::uint64_t sum = low + other.low, carry = sum < low ? 1 : 0;
    return {sum, high + other.high + carry};
  }
  WideSum value() const { return static_cast<WideSum>(high) << 64 | low; }
};

/// The numbers of sim::TallyCounts in a form that device code can add up.
struct Counted {
  std::int64_t valid = 0, invalid = 0, within = 0, outside = 0;
  std::int64_t least_peak = INT64_MAX, most_peak = 0, least_cost = INT64_MAX, most_cost = 0;
  TwoWords peak_sum, cost_sum;

  CAIRN_HD Counted operator+(const Counted& other) const {
    const auto least = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
    const auto most = [](std::int64_t a, std::int64_t b) { return a > b ? a : b; };
    return {valid + other.valid,
            invalid + other.invalid,
            within + other.within,
            outside + other.outside,
            least(least_peak, other.least_peak),
            most(most_peak, other.most_peak),
            least(least_cost, other.least_cost),
            most(most_cost, other.most_cost),
            peak_sum + other.peak_sum,
            cost_sum + other.cost_sum};
  }
  TallyCounts counts() const {
    return {valid,     invalid,    within,    outside,          least_peak,
            most_peak, least_cost, most_cost, peak_sum.value(), cost_sum.value()};
  }
};

/// Counts outcomes for a Tally. The candidates are divided among the threads of all teams. Each team writes the sum of
/// its threads' counts to `counts`, and all teams add to one histogram.
struct CountOutcomes {
  static constexpr int kThreads = 256;
  OutcomesView outcomes;
  std::int64_t count;
  std::int64_t from, budget;
  std::int32_t shift, bins;
  std::int64_t teams;
  std::int64_t* histogram;
  Counted* counts;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    Counted own;
    for (std::int64_t c = index * team.size() + team.rank(); c < count; c += teams * team.size()) {
      if (outcomes.valid[c] == 0) {
        ++own.invalid;
        continue;
      }
      const std::int64_t peak = outcomes.peak[c], cost = outcomes.cost[c];
      const std::int64_t bin = peak < from ? -1 : (peak - from) >> shift;
      const bool outside = bin < 0 || bin >= bins;
      own = own + Counted{1,    0,    peak <= budget ? 1 : 0, outside ? 1 : 0,   peak, peak,
                          cost, cost, TwoWords::of(peak),     TwoWords::of(cost)};
      fetch_add(&histogram[bin < 0 ? 0 : outside ? bins - 1 : bin], std::int64_t{1});
    }
    const Counted all = team.reduce(own, core::Sum());
    if (team.rank() == 0) counts[index] = all;
  }
};

/// Returns whether a candidate must be added to the tally. A candidate must be added in each of three cases: it is
/// invalid, it is better than the worst entry of Tally::top, or no entry of the Pareto front is at least as good in
/// both peak and cost. Of two candidates with the same peak and cost, the one with the lower index is better.
struct IsEntry {
  OutcomesView outcomes;
  std::int64_t first;
  Entry worst;
  const Entry* front;  ///< Pareto front; peaks ascend, and costs descend
  std::int64_t front_size;

  CAIRN_HD bool operator()(std::int64_t c) const {
    if (outcomes.valid[c] == 0) return true;
    const std::int64_t peak = outcomes.peak[c], cost = outcomes.cost[c], index = first + c;
    const bool in_top = peak != worst.peak   ? peak < worst.peak
                        : cost != worst.cost ? cost < worst.cost
                                             : index < worst.index;
    std::int64_t low = 0, high = front_size;  // searches for the first entry with a higher peak
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (front[middle].peak <= peak) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    bool in_front = true;
    if (low > 0) {
      const Entry& best = front[low - 1];
      const bool same = best.peak == peak && best.cost == cost;
      in_front = best.cost > cost || (same && index < best.index);
    }
    return in_top || in_front;
  }
};

/// Writes the outcomes of the selected candidates as entries. The entry of an invalid candidate gets a negative peak.
struct GatherEntries {
  static constexpr int kThreads = 1;
  OutcomesView outcomes;
  const std::int64_t* places;
  Entry* entries;
  std::int64_t first;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t i) const {
    const std::int64_t c = places[i];
    entries[i].peak = outcomes.valid[c] != 0 ? outcomes.peak[c] : -1;
    entries[i].cost = outcomes.cost[c];
    entries[i].index = first + c;
  }
};

}  // namespace cairn::sim::device
