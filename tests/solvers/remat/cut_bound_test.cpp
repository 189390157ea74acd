// Compares the bounds from moments, i.e. from the times at which chosen nodes run, with relaxations that are computed
// literally and with the true optimum of small random graphs.

#include "cairn/solvers/remat/bound/cut/cut_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/flow_network.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/bound/cut/moments_program.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::cut_bound_test {
namespace {

using core::Graph;
using core::NodeId;
using core::ValueId;
using tests::baseline_peak;
using tests::Random;
namespace reference = core::reference;

/// Returns the capacity of a minimum cut, by trying every set of nodes that can be on the source's side.
std::int64_t least_cut(const std::vector<std::vector<std::int64_t>>& capacity) {
  const std::size_t n = capacity.size();
  std::int64_t least = std::int64_t{1} << 60;
  for (std::uint32_t side = 0; side < (1U << n); ++side) {
    if ((side & 1) == 0 || (side >> 1 & 1) != 0)
      // Node 0 must be on the source's side, and node 1 on the sink's side.
      continue;
    std::int64_t sum = 0;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if ((side >> a & 1) != 0 && (side >> b & 1) == 0) sum += capacity[a][b];
      }
    }
    least = std::min(least, sum);
  }
  return least;
}

/// One way to run nodes again after a moment, i.e. after the first run of a node p: the cost of these runs, and the
/// bytes in memory at the moment besides the inputs and outputs of p.
struct Way {
  std::int64_t cost = 0, bytes = 0;
};

/// Lists all ways to run nodes again after the first run of the node `moment`, as in the theorem in moment_cut.h. A way
/// is a set of nodes that run again. This set determines which values must be in memory at the moment.
std::vector<Way> all_ways(const Graph& graph, NodeId moment, OrderRule order) {
  const NodeId n = graph.node_count();
  std::vector<bool> before(n, false), after(n, false);
  const auto place = [&](NodeId v) { return std::ranges::find(graph.input_order(), v) - graph.input_order().begin(); };
  for (NodeId v = 0; v < n; ++v) {
    if (order != OrderRule::free) {
      before[v] = place(v) < place(moment);
      after[v] = !before[v];
      continue;
    }
    const auto reaches = [&](NodeId from, NodeId to) {
      std::vector<NodeId> open{from};
      std::vector<bool> seen(n, false);
      while (!open.empty()) {
        const NodeId u = open.back();
        open.pop_back();
        if (u == to) return true;
        if (seen[u]) continue;
        seen[u] = true;
        for (const NodeId s : graph.successors(u)) open.push_back(s);
      }
      return false;
    };
    before[v] = v != moment && reaches(v, moment);
    after[v] = reaches(moment, v);
  }
  std::vector<Way> ways;
  for (std::uint32_t again = 0; again < (1U << n); ++again) {
    const auto runs = [&](NodeId v) { return (again >> v & 1) != 0; };
    bool allowed = true;
    Way way;
    std::vector<bool> needed(graph.value_count(), false);
    for (NodeId v = 0; v < n; ++v) {
      if (runs(v) && (after[v] || (before[v] && graph.pinned(v)))) allowed = false;
      if (runs(v) && before[v]) way.cost += graph.cost(v);
      for (const ValueId x : graph.outputs(v)) needed[x] = needed[x] || graph.value_kept(x);
      if (v == moment || (!runs(v) && !after[v])) continue;
      for (const ValueId x : graph.inputs(v)) needed[x] = true;
    }
    if (!allowed) continue;
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      const NodeId v = graph.producer(x);
      const bool read = std::ranges::find(graph.inputs(moment), x) != graph.inputs(moment).end();
      if (needed[x] && !after[v] && !runs(v) && !read) way.bytes += graph.value_size(x);
    }
    ways.push_back(way);
  }
  return ways;
}

/// Returns the least cost of a mixture of two ways, i.e. of a linear interpolation between their costs and their bytes,
/// that needs at most `room` bytes. By duality, this is the largest bound that any price per byte gives. Returns
/// nothing if no way fits.
std::optional<double> least_of_hull(const std::vector<Way>& ways, std::int64_t room) {
  std::optional<double> least;
  for (const Way& a : ways) {
    if (a.bytes > room) continue;
    if (!least || static_cast<double>(a.cost) < *least) least = static_cast<double>(a.cost);
    for (const Way& b : ways) {
      if (b.bytes <= room) continue;
      const double part = static_cast<double>(room - a.bytes) / static_cast<double>(b.bytes - a.bytes);
      least = std::min(*least, static_cast<double>(a.cost) + part * static_cast<double>(b.cost - a.cost));
    }
  }
  return least;
}

Graph small_graph(Random& random, NodeId most_nodes) {
  while (true) {
    Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = most_nodes}));
    if (graph.value_count() <= 12) return graph;
  }
}

std::int64_t random_budget(Random& random, const Graph& graph) {
  return random.between(core::peak_lower_bound(graph), baseline_peak(graph));
}

TEST_CASE("A maximum flow is the capacity of the least of all cuts", "[cut_bound]") {
  tests::for_each_seed(2000, [&](Random& random) {
    const auto n = static_cast<std::size_t>(random.between(2, 7));
    std::vector capacity(n, std::vector<std::int64_t>(n, 0));
    FlowNetwork network;
    network.reset(static_cast<std::int32_t>(n));
    std::vector<std::pair<std::int32_t, std::int64_t*>> arcs;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b || random.chance(50)) continue;
        arcs.emplace_back(network.add_arc(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), 0),
                          &capacity[a][b]);
      }
    }
    for (int round = 0; round < 3; ++round) {
      for (const auto& [arc, number] : arcs) network.set_capacity(arc, *number = random.between(0, 9));
      REQUIRE(network.solve(0, 1) == least_cut(capacity));
      std::int64_t across = 0;
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
          if (network.source_side()[a] != 0 && network.source_side()[b] == 0) across += capacity[a][b];
        }
      }
      REQUIRE(across == least_cut(capacity));
    }
  });
}

TEST_CASE("The bound from one moment is the optimum of its linear relaxation", "[cut_bound]") {
  std::int64_t above = 0, infeasible = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    const Graph graph = small_graph(random, 8);
    const OrderRule order = random.chance(70) ? OrderRule::free : OrderRule::input;
    const MomentCutOptions options{
        .budget = random_budget(random, graph), .order = order, .link = {}, .host_budget = {}};
    const auto moment = static_cast<NodeId>(random.below(graph.node_count()));
    MomentBound bound(graph, moment, options);
    core::Stopwatch watch(core::Limit{});
    bound.maximize(watch);
    std::int64_t room = options.budget - graph.size(moment) - graph.scratch(moment);
    for (const ValueId x : graph.inputs(moment)) room -= graph.value_size(x);
    const std::optional<double> least = least_of_hull(all_ways(graph, moment, order), room);
    CAPTURE(moment, options.budget, room, least.value_or(-1));
    if (bound.infeasible()) {
      REQUIRE_FALSE(least.has_value());
      ++infeasible;
      return;
    }
    // MomentBound proves that the linear relaxation has no solution only in clear cases. In other cases, nothing can be
    // compared.
    if (!least) return;
    REQUIRE(static_cast<double>(bound.extra()) <= std::ceil(*least + 1e-6));
    REQUIRE(static_cast<double>(bound.extra()) >= *least - 1e-3);
    above += bound.extra() > 0 ? 1 : 0;
  });
  REQUIRE(above > 20);
  REQUIRE(infeasible > 5);
}

/// Checks what the theorem in moments_program.h states about every schedule at several moments, literally as stated
/// there.
class Literal {
 public:
  Literal(const Graph& graph, const Moments& moments) : graph_(graph), moments_(moments) {
    const int count = moments.count();
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      earliest_.push_back(0);
      latest_.push_back(count);
      for (int t = count; t-- > 0;) {
        const NodeId p = moments[t].node;
        if (v == p || moments[t].is_before(v)) latest_.back() = t;
        if (v != p && moments[t].is_after(v)) earliest_.back() = std::max(earliest_.back(), t + 1);
      }
    }
  }

  /// Returns the sum over all nodes v of cost(v) * (number of stages in which v runs - 1). Returns nothing if the runs
  /// break a rule, or need more memory than there is.
  std::optional<std::int64_t> cost(const std::vector<StageSet>& runs) const {
    const int last = moments_.count();
    std::int64_t cost = 0;
    for (NodeId v = 0; v < graph_.node_count(); ++v) {
      int times = 0, in_time = 0;
      for (int t = 0; t <= last; ++t) {
        if (!runs_in(runs, v, t)) continue;
        if (t < earliest_[v]) return std::nullopt;
        ++times;
        in_time += t <= latest_[v] ? 1 : 0;
      }
      if (in_time == 0 || (graph_.pinned(v) && times > 1)) return std::nullopt;
      cost += graph_.cost(v) * (times - 1);
    }
    for (int t = 0; t < last; ++t) {
      std::int64_t bytes = 0;
      for (ValueId x = 0; x < graph_.value_count(); ++x) {
        if (!held(runs, x, t)) continue;
        if (!can_be_held(runs, x, t)) return std::nullopt;
        if (!counted(x, t)) bytes += graph_.value_size(x);
      }
      if (bytes > moments_[t].room) return std::nullopt;
    }
    return cost;
  }

 private:
  static bool runs_in(const std::vector<StageSet>& runs, NodeId v, int t) { return (runs[v] >> t & 1) != 0; }
  /// Returns whether the node of moment t reads or makes the value x. If so, x is already subtracted from Moment::room.
  bool counted(ValueId x, int t) const {
    const NodeId p = moments_[t].node;
    return graph_.producer(x) == p || std::ranges::find(graph_.inputs(p), x) != graph_.inputs(p).end();
  }
  /// Returns whether the value must be in memory in stage t: a node that runs in the stage reads it, or it is held at
  /// the end of the stage.
  bool needed(const std::vector<StageSet>& runs, ValueId x, int t) const {
    for (const NodeId w : graph_.readers(x)) {
      if (runs_in(runs, w, t)) return true;
    }
    return t == moments_.count() ? graph_.value_kept(x) : held(runs, x, t);
  }
  bool held(const std::vector<StageSet>& runs, ValueId x, int t) const {
    return counted(x, t) || (needed(runs, x, t + 1) && !runs_in(runs, graph_.producer(x), t + 1));
  }
  bool can_be_held(const std::vector<StageSet>& runs, ValueId x, int t) const {
    return t > 0 || runs_in(runs, graph_.producer(x), 0);
  }

  const Graph& graph_;
  const Moments& moments_;
  std::vector<int> earliest_, latest_;
};

/// Returns the least cost of all choices of the stages in which each node runs.
std::optional<std::int64_t> least_of_stages(const Graph& graph, const Moments& moments) {
  const Literal literal(graph, moments);
  const auto most = static_cast<StageSet>((1 << (moments.count() + 1)) - 1);
  std::vector<StageSet> runs(static_cast<std::size_t>(graph.node_count()), 1);
  std::optional<std::int64_t> least;
  while (true) {
    if (const auto cost = literal.cost(runs); cost && (!least || *cost < *least)) least = cost;
    std::size_t v = 0;
    while (v < runs.size() && runs[v] == most) runs[v++] = 1;
    if (v == runs.size()) return least;
    ++runs[v];
  }
}

struct MomentsCase {
  Graph graph;
  MomentCutOptions options;
  std::vector<Moment> chosen;
};

/// Returns a graph of at most `most_nodes` nodes, a budget, and `count` moments. Which of two moments comes first need
/// not be determined by the graph.
MomentsCase moments_case(Random& random, NodeId most_nodes, int count) {
  MomentsCase made{small_graph(random, most_nodes), {}, {}};
  made.options.order = random.chance(70) ? OrderRule::free : OrderRule::input;
  made.options.budget = random_budget(random, made.graph);
  // In half of the cases, the first moment is the step that needs the most memory in the input order.
  const std::vector<std::int64_t> profile = core::Evaluator(made.graph).profile(made.graph.input_order());
  const auto highest = static_cast<std::size_t>(std::ranges::max_element(profile) - profile.begin()) / 2;
  for (int k = 0; k < count; ++k) {
    const NodeId node = k == 0 && random.chance(50) ? made.graph.input_order()[highest]
                                                    : static_cast<NodeId>(random.below(made.graph.node_count()));
    made.chosen.emplace_back(made.graph, node, made.options.budget, made.options.order);
  }
  return made;
}

TEST_CASE("The integer program of one moment is that of all ways", "[cut_bound]") {
  std::int64_t above_relaxation = 0, found = 0, beyond = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const auto [graph, options, chosen] = moments_case(random, 9, 1);
    const NodeId node = chosen.front().node;
    MomentBound bound(graph, node, options);
    core::Stopwatch watch(core::Limit{});
    bound.maximize(watch);
    if (bound.infeasible()) return;
    std::optional<std::int64_t> least;
    for (const Way& way : all_ways(graph, node, options.order)) {
      if (way.bytes <= bound.moment().room && (!least || way.cost < *least)) least = way.cost;
    }
    const std::int64_t known =
        std::max(bound.extra(), random.chance(50) ? 0 : random.between(0, 2 * bound.extra() + 1));
    const std::int64_t most = known + random.between(0, 20);
    CAPTURE(node, options.budget, bound.moment().room, least.value_or(-1), known, most);
    const Moments moments(graph, bound.moment());
    const MomentsOptimum optimum = moments_optimum(graph, moments, known, most, {bound.price()}, watch);
    REQUIRE(optimum.infeasible == !least.has_value());
    if (!least) return;
    REQUIRE(optimum.exact == (*least >= known && *least <= most));
    REQUIRE(optimum.extra == (*least > most ? most + 1 : std::max(*least, known)));
    above_relaxation += *least > bound.extra() ? 1 : 0;
    found += optimum.exact ? 1 : 0;
    beyond += *least > most ? 1 : 0;
  });
  REQUIRE(above_relaxation > 20);
  REQUIRE(found > 500);
  REQUIRE(beyond > 20);
}

TEST_CASE("The integer program of several moments is that of all runs in stages", "[cut_bound]") {
  std::int64_t several = 0, costly = 0, above_one = 0;
  tests::for_each_seed(2500, [&](Random& random) {
    const auto [graph, options, chosen] = moments_case(random, random.chance(50) ? 5 : 4, 3);
    Moments moments(graph, chosen[0]);
    const std::optional<std::int64_t> of_one = least_of_stages(graph, moments);
    for (const Moment& moment : {chosen[1], chosen[2]}) {
      if (graph.node_count() == 5 && moments.count() == 2) break;
      if (std::optional<Moments> more = moments.with(moment)) moments = std::move(*more);
    }
    const std::optional<std::int64_t> least = least_of_stages(graph, moments);
    std::vector<double> prices;
    for (int t = 0; t < moments.count(); ++t)
      prices.push_back(random.chance(50) ? 0.0 : 0.1 * static_cast<double>(random.between(0, 20)));
    core::Stopwatch watch(core::Limit{});
    const bool room = std::ranges::all_of(chosen, [](const Moment& m) { return m.room >= 0; });
    if (!room) return;
    const MomentsOptimum optimum = moments_optimum(graph, moments, 0, 1'000'000, prices, watch);
    bool positive = true;
    for (ValueId x = 0; x < graph.value_count(); ++x) positive = positive && graph.value_size(x) > 0;
    CAPTURE(options.budget, moments.count(), least.value_or(-1), positive);
    if (least) REQUIRE_FALSE(optimum.infeasible);
    if (least) REQUIRE(optimum.extra <= *least);
    if (!positive)
      // If a value has no bytes, the program lets nodes read it before it is made. So only positive sizes are compared.
      return;
    REQUIRE(optimum.infeasible == !least.has_value());
    if (!least) return;
    REQUIRE(optimum.exact);
    REQUIRE(optimum.extra == *least);
    REQUIRE(Literal(graph, moments).cost(optimum.choice.runs) == *least);
    several += moments.count() > 1 ? 1 : 0;
    costly += *least > 0 ? 1 : 0;
    above_one += moments.count() > 1 && *least > *of_one ? 1 : 0;
  });
  REQUIRE(several > 200);
  REQUIRE(costly > 20);
  REQUIRE(above_one > 5);
}

TEST_CASE("The bound from several moments is never above the optimum, and its schedule is valid", "[cut_bound]") {
  std::int64_t above = 0, tight = 0;
  tests::for_each_seed(1000, [&](Random& random) {
    const auto [graph, options, chosen] = moments_case(random, 8, 4);
    const Solution best = exact_remat(graph, {.budget = options.budget});
    Moments moments(graph, chosen[0]);
    for (const Moment& moment : chosen) {
      if (std::optional<Moments> more = moments.with(moment)) moments = std::move(*more);
    }
    core::Stopwatch watch(core::Limit{});
    const std::int64_t base = core::evaluate(graph, core::baseline_schedule(graph)).cost;
    const std::vector<double> prices(static_cast<std::size_t>(moments.count()), 0.5);
    CAPTURE(options.budget, moments.count());
    const MomentsOptimum optimum = moments_optimum(graph, moments, 0, 1'000'000, prices, watch);
    if (options.order == OrderRule::free && best.status == Status::optimal) {
      REQUIRE_FALSE(optimum.infeasible);
      REQUIRE(base + optimum.extra <= best.cost);
    }
    if (optimum.infeasible) return;
    const core::Schedule schedule = follow_choice(graph, optimum.choice);
    REQUIRE(reference::valid(graph, schedule));
    REQUIRE(Scope{options.order, 0}.contains(graph, schedule));
    above += optimum.extra > 0 ? 1 : 0;
    tight += optimum.extra > 0 && base + optimum.extra == best.cost ? 1 : 0;
  });
  REQUIRE(above > 20);
  REQUIRE(tight > 5);
}

TEST_CASE("Bounds that a limit cuts short are never above the optimum", "[cut_bound]") {
  std::int64_t without_choice = 0, above = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    const Graph graph = small_graph(random, 10);
    const MomentCutOptions options{.budget = random_budget(random, graph), .order = {}, .link = {}, .host_budget = {}};
    const Solution best = exact_remat(graph, {.budget = options.budget});
    core::Limit limit;
    limit.work = random.chance(50) ? random.between(1, 300) : random.between(300, 5000);
    core::Stopwatch watch(limit);
    const std::int64_t base = core::evaluate(graph, core::baseline_schedule(graph)).cost;
    const CutBound bound = cut_bound(graph, options, std::int64_t{1} << 60, {}, watch);
    CAPTURE(options.budget, limit.work);
    if (best.status != Status::optimal) return;
    REQUIRE_FALSE(bound.infeasible);
    REQUIRE(bound.value <= best.cost);
    if (bound.choice) REQUIRE(reference::valid(graph, follow_choice(graph, *bound.choice)));
    without_choice += bound.value > base && !bound.choice ? 1 : 0;
    above += bound.value > base ? 1 : 0;
  });
  REQUIRE(without_choice > 5);
  REQUIRE(above > 50);
}

TEST_CASE("The bound from one moment is never above the optimum", "[cut_bound]") {
  std::int64_t above = 0, tight = 0;
  tests::for_each_seed(600, [&](Random& random) {
    const Graph graph = small_graph(random, 8);
    const MomentCutOptions options{.budget = random_budget(random, graph), .order = {}, .link = {}, .host_budget = {}};
    const Solution best = exact_remat(graph, {.budget = options.budget});
    core::Stopwatch watch(core::Limit{});
    std::int64_t highest = 0;
    const std::int64_t base = core::evaluate(graph, core::baseline_schedule(graph)).cost;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      MomentBound bound(graph, v, options);
      bound.maximize(watch);
      CAPTURE(v, options.budget);
      if (best.status == Status::infeasible) continue;
      REQUIRE_FALSE(bound.infeasible());
      REQUIRE(base + bound.extra() <= best.cost);
      highest = std::max(highest, base + bound.extra());
      const std::optional<MomentCut> cut = bound.cut(watch);
      if (!cut) continue;
      const core::Schedule schedule = follow_cut(graph, v, *cut, OrderRule::free);
      REQUIRE(reference::valid(graph, schedule));
    }
    std::int64_t raised = base;
    const CutBound chosen = cut_bound(
        graph, options, best.cost,
        [&](std::int64_t value) {
          REQUIRE(value > raised);
          raised = value;
        },
        watch);
    if (best.status == Status::infeasible) return;
    REQUIRE(chosen.value <= best.cost);
    REQUIRE((chosen.value == raised && chosen.moment != core::kNoNode) == (chosen.value > base));
    above += highest > base ? 1 : 0;
    tight += highest > base && highest == best.cost ? 1 : 0;
  });
  REQUIRE(above > 20);
  REQUIRE(tight > 5);
}

TEST_CASE("No schedule that costs at most as much has a peak below the bound", "[cut_bound]") {
  std::int64_t raised = 0, equal = 0;
  tests::for_each_seed(400, [&](Random& random) {
    const Graph graph = small_graph(random, 8);
    const std::int64_t base = core::evaluate(graph, core::baseline_schedule(graph)).cost;
    const std::int64_t most = base + random.between(0, base / 2), peak = baseline_peak(graph);
    core::Stopwatch watch(core::Limit{});
    const std::int64_t bound =
        cut_peak_bound(graph, {.budget = 0, .order = {}, .link = {}, .host_budget = {}, .solved = 1, .together = 1},
                       most, peak, watch);
    CAPTURE(most, bound, peak);
    REQUIRE(bound <= peak);
    REQUIRE(bound >= core::peak_lower_bound(graph));
    const auto affordable = [&](std::int64_t budget) {
      const Solution best = exact_remat(graph, {.budget = budget});
      return best.status != Status::infeasible && best.cost <= most;
    };
    REQUIRE_FALSE(affordable(bound - 1));
    if (bound == core::peak_lower_bound(graph)) return;
    ++raised;
    equal += affordable(bound) ? 1 : 0;
    // The search for the least peak within a cost uses this bound. So the bound that the search returns must be at
    // least as high, and the peak that it finds must not be below the bound that it returns.
    SolveOptions options{.limit = {.work = 20'000}};
    options.max_cost = most;
    const Solution found = find_solver("auto").solve(graph, options);
    tests::require_measured(graph, found);
    REQUIRE(found.cost <= most);
    REQUIRE(found.peak >= found.peak_bound.value);
    REQUIRE(found.peak_bound.value >= bound);
    if (found.status == Status::optimal) REQUIRE_FALSE(affordable(found.peak - 1));
  });
  REQUIRE(raised > 20);
  REQUIRE(equal > 5);
}

TEST_CASE("A schedule that follows a cut keeps the order rule", "[cut_bound]") {
  std::int64_t again = 0;
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = small_graph(random, 10);
    core::Stopwatch watch(core::Limit{});
    for (const OrderRule order : {OrderRule::free, OrderRule::input}) {
      MomentCutOptions options{.budget = random_budget(random, graph), .order = order, .link = {}, .host_budget = {}};
      if (random.chance(50)) options.link = core::Link{random.between(1, 9) * 100'000'000, 0, true};
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        const std::optional<CutSchedule> cut = cut_schedule(graph, options, v, watch);
        if (!cut) continue;
        REQUIRE(reference::valid(graph, cut->schedule));
        REQUIRE(Scope{order, 0}.contains(graph, cut->schedule));
        again += cut->schedule.length() > graph.node_count() ? 1 : 0;
      }
    }
  });
  REQUIRE(again > 100);
}

TEST_CASE("Values that cannot leave count in the bound, however fast the link is", "[cut_bound]") {
  // Node 2 reads the output of node 0 after node 1 has run. Node 2 overwrites this output in place, so transfers cannot
  // move it. So the output must stay in memory, or node 0 must run again.
  core::GraphBuilder builder;
  builder.add(tests::make_node("made", 10, {}, 100));
  builder.add(tests::make_node("large", 20, {}, 1));
  core::Node last = tests::make_node("over", 10, {0, 1}, 1);
  last.inplace = 0;
  last.scratch = -10;
  last.keep = true;
  builder.add(std::move(last));
  const Graph graph = builder.build();
  MomentCutOptions options{.budget = 25, .order = OrderRule::input, .link = {}, .host_budget = {}};
  options.link = core::Link{std::int64_t{1} << 40, 0, true};
  core::Stopwatch watch(core::Limit{});
  MomentBound bound(graph, 1, options);
  bound.maximize(watch);
  // While node 1 runs, 5 of the 10 bytes of node 0 fit into memory. The bound may count fractions of nodes, so half of
  // node 0 runs again, at half of its cost of 100.
  CHECK(bound.extra() == 50);
}

TEST_CASE("The bound from one moment is never above the least makespan with transfers", "[cut_bound]") {
  std::int64_t above = 0, decided = 0;
  tests::for_each_seed(1200, [&](Random& random) {
    const Graph graph = small_graph(random, 6);
    MomentCutOptions options{.budget = random_budget(random, graph), .order = {}, .link = {}, .host_budget = {}};
    options.link = core::Link{random.between(1, 4) * 250'000'000, random.between(0, 3), random.chance(50)};
    if (random.chance(40)) options.host_budget = random.between(0, 2 * options.budget);
    constexpr std::int64_t kAnyBytes = std::int64_t{1} << 40, kWork = 20'000;
    std::optional<reference::FastestSchedule> best;
    try {
      best = reference::fastest_within(graph, {options.budget, options.host_budget.value_or(kAnyBytes)}, *options.link,
                                       kWork);
    } catch (const std::runtime_error&) {
      return;
    }
    ++decided;
    if (!best) return;
    core::Stopwatch watch(core::Limit{});
    const std::int64_t base = core::evaluate(graph, core::baseline_schedule(graph)).cost;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      MomentBound bound(graph, v, options);
      bound.maximize(watch);
      CAPTURE(v, options.budget, best->makespan);
      REQUIRE_FALSE(bound.infeasible());
      REQUIRE(base + bound.extra() <= best->makespan);
      above += bound.extra() > 0 ? 1 : 0;
    }
  });
  REQUIRE(decided > 800);
  REQUIRE(above > 12);
}

/// Returns a chain of `blocks` forward nodes and their backward nodes. Each backward node reads the output of its
/// forward node.
Graph blocks(NodeId blocks) {
  core::GraphBuilder builder;
  for (NodeId v = 0; v < blocks; ++v) {
    core::Node node = tests::make_node("", 10, {}, 100);
    if (v > 0) node.inputs.push_back(v - 1);
    builder.add(std::move(node));
  }
  for (NodeId v = blocks; v-- > 0;) {
    core::Node node = tests::make_node("", 0, {v}, 200);
    if (builder.node_count() > blocks) node.inputs.push_back(builder.node_count() - 1);
    builder.add(std::move(node));
  }
  return builder.build();
}

TEST_CASE("Half of the memory of a chain costs half of the forward pass at least", "[cut_bound]") {
  // When the first backward node runs, the outputs of all ten forward nodes are needed. Five of them fit into memory,
  // so the other five nodes must run again, for 100 ns each.
  const Graph graph = blocks(10);
  MomentCutOptions options{.budget = 50, .order = {}, .link = {}, .host_budget = {}};
  core::Stopwatch watch(core::Limit{});
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 500);
  // When the last forward node begins, five earlier outputs must have been evicted to the host. If 10 bytes take 200
  // ns, the link has copied 4.5 outputs within the 900 ns before that. So half of an output is computed again, for 50
  // ns.
  options.link = core::Link{50'000'000, 0, true};
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 50);
  // If 10 bytes take 500 ns, the link has copied 1.8 outputs by then. So 3.2 outputs are computed again.
  options.link = core::Link{20'000'000, 0, true};
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 320);
  // The host has room for only one of the outputs. So four outputs are computed again.
  options.host_budget = 10;
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 400);
}

}  // namespace
}  // namespace cairn::solvers::cut_bound_test
