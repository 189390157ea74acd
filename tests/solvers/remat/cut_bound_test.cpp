// Compares the bound from one moment with the literal relaxation and with the true optimum of small random graphs.

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
#include "cairn/solvers/remat/bound/cut/moment_program.h"
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

/// Returns the capacity of a minimum cut, by trying every set of nodes on the source's side.
std::int64_t least_cut(const std::vector<std::vector<std::int64_t>>& capacity) {
  const std::size_t n = capacity.size();
  std::int64_t least = std::int64_t{1} << 60;
  for (std::uint32_t side = 0; side < (1U << n); ++side) {
    if ((side & 1) == 0 || (side >> 1 & 1) != 0) continue;  // node 0 is the source, node 1 the sink
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

/// One way to run nodes again after a moment: what it costs, and what must be in memory at the moment.
struct Way {
  std::int64_t cost = 0, bytes = 0;
};

/// Lists all ways for the moment, by the words of the theorem in moment_cut.h: all sets of nodes that run again. What
/// is held follows from such a set.
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

/// Returns the largest dual bound: the lowest point above `room` of the lower hull of all ways. Nothing if no way fits.
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
    // A relaxation without a solution is only found out if the room does not suffice for anything that is held.
    if (!least) return;
    REQUIRE(static_cast<double>(bound.extra()) <= std::ceil(*least + 1e-6));
    REQUIRE(static_cast<double>(bound.extra()) >= *least - 1e-3);
    above += bound.extra() > 0 ? 1 : 0;
  });
  REQUIRE(above > 20);
  REQUIRE(infeasible > 5);
}

/// Checks that a choice at a moment is one of all ways, and costs `extra`.
void require_way(const Graph& graph, const Moment& moment, const MomentCut& cut, std::int64_t extra) {
  std::int64_t cost = 0, bytes = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (cut.again[v] == 0) continue;
    REQUIRE_FALSE(moment.is_after(v));
    REQUIRE_FALSE((moment.is_before(v) && graph.pinned(v)));
    if (moment.is_before(v)) cost += graph.cost(v);
  }
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const NodeId v = graph.producer(x);
    const auto reads = [&](NodeId w) { return w != moment.node && (moment.is_after(w) || cut.again[w] != 0); };
    const bool read = std::ranges::find(graph.inputs(moment.node), x) != graph.inputs(moment.node).end();
    const bool needed = graph.value_kept(x) || std::ranges::any_of(graph.readers(x), reads);
    if (cut.held[x] != 0) bytes += graph.value_size(x);
    if (needed && !moment.is_after(v) && !read && graph.value_size(x) > 0)
      REQUIRE((cut.held[x] != 0 || cut.again[v] != 0));
  }
  REQUIRE(cost == extra);
  REQUIRE(bytes == cut.bytes);
  REQUIRE(bytes <= moment.room);
}

TEST_CASE("The integer program of one moment is solved exactly", "[cut_bound]") {
  std::int64_t above_relaxation = 0, found = 0, beyond = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const Graph graph = small_graph(random, 9);
    const OrderRule order = random.chance(70) ? OrderRule::free : OrderRule::input;
    const MomentCutOptions options{
        .budget = random_budget(random, graph), .order = order, .link = {}, .host_budget = {}};
    // In half of the cases, the moment is the one that needs the most memory in the input order.
    const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(graph.input_order());
    const auto highest = std::ranges::max_element(profile) - profile.begin();
    const NodeId node = random.chance(50) ? static_cast<NodeId>(random.below(graph.node_count()))
                                          : graph.input_order()[static_cast<std::size_t>(highest) / 2];
    MomentBound bound(graph, node, options);
    core::Stopwatch watch(core::Limit{});
    bound.maximize(watch);
    if (bound.infeasible()) return;
    std::optional<std::int64_t> least;
    for (const Way& way : all_ways(graph, node, order)) {
      if (way.bytes <= bound.moment().room && (!least || way.cost < *least)) least = way.cost;
    }
    const std::int64_t known = random.chance(50) ? 0 : random.between(0, 2 * bound.extra() + 1);
    const std::int64_t most = std::max(known, bound.extra()) + random.between(0, 20);
    CAPTURE(node, options.budget, bound.moment().room, least.value_or(-1), known, most);
    const MomentOptimum optimum = moment_optimum(graph, bound, known, most, watch);
    REQUIRE(optimum.infeasible == !least.has_value());
    if (!least) return;
    if (*least > most) {
      REQUIRE(optimum.extra == most + 1);
      REQUIRE_FALSE(optimum.cut);
      ++beyond;
      return;
    }
    REQUIRE(optimum.extra == std::max(*least, known));
    REQUIRE(optimum.cut.has_value() == (*least >= known));
    if (optimum.cut) require_way(graph, bound.moment(), *optimum.cut, *least);
    above_relaxation += *least > bound.extra() ? 1 : 0;
    found += optimum.cut ? 1 : 0;
  });
  REQUIRE(above_relaxation > 20);
  REQUIRE(found > 500);
  REQUIRE(beyond > 20);
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
      const MomentOptimum optimum = moment_optimum(graph, bound, 0, best.cost, watch);
      REQUIRE_FALSE(optimum.infeasible);
      REQUIRE(base + optimum.extra <= best.cost);
      highest = std::max(highest, base + optimum.extra);
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
    REQUIRE(chosen.value <= highest);
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
        cut_peak_bound(graph, {.budget = 0, .order = {}, .link = {}, .host_budget = {}}, most, peak, watch);
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
    // The search for the least peak within a cost knows the bound, and may reach it.
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
  // Node 0 makes what node 2 reads once node 1 has run. Node 3 takes over its storage, so that it cannot be moved.
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
  // There is room for 5 of the 10 bytes of node 0 beside those of node 1.
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

/// A chain of `blocks` forward nodes and their backward nodes. Each backward node reads the output of its forward node.
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
  // At the first backward node, the outputs of ten forward nodes are needed. Five fit, so that five nodes run again.
  const Graph graph = blocks(10);
  MomentCutOptions options{.budget = 50, .order = {}, .link = {}, .host_budget = {}};
  core::Stopwatch watch(core::Limit{});
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 500);
  // When the last forward node begins, five of the outputs before it must have left, too. At 10 bytes in 200 ns, the
  // link has moved 4.5 of them in 900 ns.
  options.link = core::Link{50'000'000, 0, true};
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 50);
  // At 10 bytes in 500 ns, it has moved 1.8 of them.
  options.link = core::Link{20'000'000, 0, true};
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 320);
  // On the host, there is room for one of them.
  options.host_budget = 10;
  CHECK(cut_bound(graph, options, 1 << 20, {}, watch).value == 3000 + 400);
}

}  // namespace
}  // namespace cairn::solvers::cut_bound_test
