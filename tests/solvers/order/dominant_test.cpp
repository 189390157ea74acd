#include "cairn/solvers/order/internal/chains/dominant.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/solvers/order/internal/search/exact.h"
#include "cairn/solvers/order/internal/search/search.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/order_graphs.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

// Tests step graphs (StepGraph) and the algorithms that work on all step graphs: minimum cuts, bounds, exact search,
// local search, and Algorithms 1 and 2 of Jin et al. In a step graph, each step first raises and then lowers memory,
// and its output is freed after all its successors. The results are compared with brute force over topological cuts. A
// topological cut is a set of nodes that contains all inputs of its nodes, i.e. a set of nodes that can have run.
namespace cairn::solvers::dominant_test {
namespace {

using core::Graph;
using core::reference::Bytes;
using core::reference::CutLattice;
using core::reference::NodeSet;
using core::reference::Order;
using core::reference::OrderModel;
using solvers::NodeSumGraph;
using tests::Random;
namespace reference = core::reference;

Graph small_graph(Random& random) {
  if (random.chance(50)) {
    return tests::random_graph(random, {.min_nodes = 1, .max_nodes = 8});
  }
  return tests::dressed_graph(random, tests::any_shape(random, static_cast<core::NodeId>(random.between(1, 8))));
}

NodeSumGraph small_node_sum_graph(Random& random) {
  const auto n = static_cast<core::NodeId>(random.between(1, 9));
  const std::int64_t most = random.pick(std::vector<std::int64_t>{0, 1, 2, 4, 1000});
  const int density = random.pick(std::vector<int>{10, 30, 60});
  const std::int64_t shift = random.between(-most, most) / 2;
  std::vector<std::int64_t> weights;
  std::vector<NodeSumGraph::Edge> edges;
  for (core::NodeId v = 0; v < n; ++v) weights.push_back(random.between(-most, most) + shift);
  std::vector<core::NodeId> id = tests::numbers_below(n);
  random.shuffle(id);
  for (std::size_t w = 1; w < id.size(); ++w) {
    for (std::size_t v = 0; v < w; ++v) {
      if (random.chance(density)) edges.push_back({id[v], id[w]});
    }
  }
  return NodeSumGraph(weights, edges);
}

/// Turns each node into a step without an output. A positive weight becomes the step's rise, and a negative one its
/// drop.
StepGraph steps_of(const NodeSumGraph& graph) {
  std::vector<StepGraph::Step> steps;
  std::vector<StepGraph::Edge> edges;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const std::int64_t weight = graph.weight(v);
    steps.push_back({std::max<std::int64_t>(weight, 0), std::max<std::int64_t>(-weight, 0), 0});
    for (const core::NodeId w : graph.successors(v)) edges.emplace_back(v, w);
  }
  return StepGraph(steps, edges);
}

/// Returns a random step graph whose rises, drops and outputs are independent of each other. Such steps occur where a
/// part of a graph was replaced by a path.
StepGraph any_step_graph(Random& random) {
  const auto n = static_cast<StepId>(random.between(1, 8));
  const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 2, 4, 1000});
  const int outputs = random.pick(std::vector<int>{0, 40, 90});
  std::vector<StepGraph::Edge> edges;
  std::vector<StepGraph::Step> steps(static_cast<std::size_t>(n));
  const tests::Inputs shape = tests::any_shape(random, n);
  for (StepId s = 0; s < n; ++s) {
    for (const StepId p : shape[static_cast<std::size_t>(s)]) edges.push_back({p, s});
  }
  for (StepGraph::Step& step : steps) step = {random.between(0, most), random.between(0, most), 0};
  for (const auto& [from, to] : edges) {
    if (random.chance(outputs)) steps[static_cast<std::size_t>(from)].output = random.between(0, most);
  }
  return StepGraph(steps, edges);
}

StepGraph small_step_graph(Random& random) {
  switch (random.below(3)) {
    case 0:
      return StepGraph(small_graph(random));
    case 1:
      return steps_of(small_node_sum_graph(random));
    default:
      return any_step_graph(random);
  }
}

Cut cut_of(StepId count, NodeSet set) {
  Cut cut(count);
  for (StepId s = 0; s < count; ++s) {
    if (reference::contains(set, s)) cut.insert(s);
  }
  return cut;
}
NodeSet set_of(StepId count, const Cut& cut) {
  NodeSet set = 0;
  for (StepId s = 0; s < count; ++s) set |= cut.contains(s) ? reference::bit(s) : 0;
  return set;
}

/// Returns two random topological cuts, the first of which is a subset of the second. Often, these are the empty cut
/// and the full cut.
std::pair<NodeSet, NodeSet> random_interval(Random& random, const CutLattice& lattice) {
  if (random.chance(40)) return {lattice.cuts.front(), lattice.cuts.back()};
  const NodeSet a = random.pick(lattice.cuts), b = random.pick(lattice.cuts);
  return {a & b, a | b};
}

/// Returns an oracle that finds a random one of the orders of least peak, by brute force.
PeakOracle brute_force(Random& random) {
  return [&random](const StepGraph& graph, const Cut& from, const Cut& to) -> std::optional<std::vector<StepId>> {
    const OrderModel model(graph);
    const StepId n = graph.step_count();
    return reference::least_peak_order(reference::cut_lattice(model, set_of(n, from), set_of(n, to)), random);
  };
}

TEST_CASE("the dominance oracle agrees with the definition on every order", "[order]") {
  Random random(1);
  int dominant = 0, other = 0;
  for (int i = 0; i < 1500; ++i) {
    const StepGraph graph = small_step_graph(random);
    const OrderModel model(graph);
    if (reference::topological_order_count(model) > 300) continue;
    const std::vector<Order> orders = reference::topological_orders(model);
    const CutLattice lattice = reference::cut_lattice(model);
    REQUIRE(reference::least_peak_over_orders(model) == reference::least_peak(lattice));
    bool exists = false;
    for (std::size_t k = 0; k < orders.size(); k += 1 + orders.size() / 12) {
      const Bytes profile = reference::profile_of(model, orders[k]);
      const bool all = std::all_of(orders.begin(), orders.end(), [&](const Order& order) {
        return reference::dominates_by_pointers(profile, reference::profile_of(model, order));
      });
      if (reference::dominates_all(profile, lattice) != all) FAIL(tests::show(graph) << tests::show(orders[k]));
      exists = exists || all;
      ++(all ? dominant : other);
    }
    // dominates_all() must also be right for a profile that no order has. This profile is slightly better or worse than
    // that of a random order.
    Bytes profile = reference::profile_of(model, random.pick(orders));
    for (std::size_t k = 1; k + 1 < profile.size(); ++k) profile[k] += random.between(-1, 1);
    const bool all = std::all_of(orders.begin(), orders.end(), [&](const Order& order) {
      return reference::dominates_by_pointers(profile, reference::profile_of(model, order));
    });
    if (reference::dominates_all(profile, lattice) != all) FAIL(tests::show(graph) << tests::show(profile));
  }
  CHECK(dominant > 1000);
  CHECK(other > 1000);
}

TEST_CASE("the oracle's memory is that of the reference", "[order]") {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = small_graph(random);
    const OrderModel model(graph);
    const core::Schedule schedule = tests::random_schedule(random, graph, 0);
    REQUIRE(reference::profile_of(model, schedule.steps) == reference::profile(graph, schedule));
    REQUIRE(reference::least_peak(reference::cut_lattice(model)) == reference::least_peak_without_recomputation(graph));
  }
}

TEST_CASE("every small graph has a dominant order: Theorem 3.1", "[order]") {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const StepGraph graph = small_step_graph(random);
    const OrderModel model(graph);
    if (reference::topological_order_count(model) > 2000) continue;
    const std::vector<Order> orders = reference::topological_orders(model);
    const CutLattice lattice = reference::cut_lattice(model);
    const bool exists = std::any_of(orders.begin(), orders.end(), [&](const Order& order) {
      return reference::dominates_all(reference::profile_of(model, order), lattice);
    });
    if (!exists) FAIL(tests::show(graph));
  }
}

TEST_CASE("core dominance agrees with the pointers of Definition 2.3", "[order]") {
  Random random(4);
  int yes = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes a, b;
    const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 2, 4, 9});
    for (std::int64_t k = random.between(1, 8); k > 0; --k) a.push_back(random.between(-most, most));
    for (std::int64_t k = random.between(1, 8); k > 0; --k) b.push_back(random.between(-most, most));
    if (random.chance(70)) {
      a.front() = b.front() = 0;
      a.back() = b.back() = random.between(-1, 1);
    }
    const bool expected = reference::dominates_by_pointers(a, b);
    yes += expected;
    if (core::dominates(a, b) != expected) FAIL(tests::show(a) << tests::show(b));
    if (core::dominates(core::canonical(a), core::canonical(b)) != expected) {
      FAIL("canonical " << tests::show(a) << tests::show(b));
    }
  }
  CHECK(yes > 1000);
}

TEST_CASE("memory and profile and peak of step graphs are those of the graphs behind them", "[order]") {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = small_graph(random);
    const StepGraph steps(graph);
    REQUIRE(steps.step_count() == graph.node_count());
    REQUIRE(steps.edge_count() == graph.edge_count());
    const core::Schedule schedule = tests::random_schedule(random, graph, 0);
    REQUIRE(reference::is_order(steps, schedule.steps));
    REQUIRE(profile(steps, schedule.steps) == reference::profile(graph, schedule));
    REQUIRE(peak(steps, schedule.steps) == reference::peak(graph, schedule));
    REQUIRE(reference::is_order(steps, steps.any_order()));
  }
  for (int i = 0; i < 2000; ++i) {
    const NodeSumGraph graph = small_node_sum_graph(random);
    const StepGraph steps = steps_of(graph);
    const std::vector<StepId> order = steps.any_order();
    REQUIRE(solvers::is_schedule(graph, order));
    REQUIRE(peak(steps, order) == solvers::peak(graph, order));
    const Bytes coarse = solvers::profile(graph, order), fine = profile(steps, order);
    REQUIRE(fine.size() == 2 * order.size() + 1);
    for (std::size_t k = 0; k < coarse.size(); ++k) REQUIRE(fine[2 * k] == coarse[k]);
  }
  for (int i = 0; i < 4000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    const OrderModel model(graph);
    const CutLattice lattice = reference::cut_lattice(model);
    const std::size_t place = random.place(lattice.cuts);
    const NodeSet from = lattice.cuts[place];
    const Cut cut = cut_of(n, from);
    REQUIRE(set_of(n, cut) == from);
    REQUIRE(cut.count() == __builtin_popcountll(from));
    REQUIRE(memory(graph, cut) == lattice.memory[place]);
    const Order order = reference::least_peak_order(reference::cut_lattice(model, from, reference::first(n)), random);
    const Bytes expected = reference::profile_of(model, order, from);
    REQUIRE(profile(graph, order, cut) == expected);
    REQUIRE(peak(graph, order, cut) == *std::max_element(expected.begin(), expected.end()));
  }
  REQUIRE(memory(StepGraph(), Cut()) == 0);
  REQUIRE(profile(StepGraph(), std::vector<StepId>{}) == Bytes{0});
}

TEST_CASE("is_order tells orders from what is none", "[order]") {
  Random random(6);
  for (int i = 0; i < 2000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    std::vector<StepId> order = tests::numbers_below(n);
    random.shuffle(order);
    if (random.chance(20)) order.push_back(static_cast<StepId>(random.between(-1, n)));
    if (random.chance(20))
      order[static_cast<std::size_t>(random.below(n))] = static_cast<StepId>(random.between(-1, n));
    if (random.chance(20)) order.pop_back();
    REQUIRE(reference::is_order(graph, order) ==
            reference::leads(reference::OrderModel(graph), order, 0, reference::first(n)));
  }
}

TEST_CASE("step graphs drop edges that are there twice", "[order]") {
  const StepGraph graph({{1, 0, 0}, {2, 1, 0}, {0, 3, 0}}, {{0, 1}, {0, 1}, {1, 2}});
  CHECK(graph.edge_count() == 2);
}

TEST_CASE("a minimum cut has the least memory and as many steps as possible", "[order]") {
  Random random(7);
  for (int i = 0; i < 8000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    const OrderModel model(graph);
    const auto [from, to] = random_interval(random, reference::cut_lattice(model));
    const CutLattice between = reference::cut_lattice(model, from, to);
    const std::int64_t least = *std::min_element(between.memory.begin(), between.memory.end());
    std::int64_t most_steps = 0;
    for (std::size_t c = 0; c < between.cuts.size(); ++c) {
      if (between.memory[c] == least) most_steps = __builtin_popcountll(between.cuts[c]);
    }
    const Cut cut = min_memory_cut(graph, cut_of(n, from), cut_of(n, to));
    const NodeSet found = set_of(n, cut);
    const bool is_cut = std::find(between.cuts.begin(), between.cuts.end(), found) != between.cuts.end();
    if (!is_cut || model.memory(found) != least || cut.count() != most_steps) {
      FAIL(tests::show(graph) << "from " << from << " to " << to << " found " << found);
    }
  }
  CHECK(min_memory_cut(StepGraph(), Cut(), Cut()) == Cut());
}

TEST_CASE("the bound of cuts is what its comment says and never above the optimum", "[order]") {
  Random random(8);
  int tight = 0;
  for (int i = 0; i < 5000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const CutLattice lattice = reference::cut_lattice(graph);
    std::vector<std::int64_t> least(static_cast<std::size_t>(graph.step_count()),
                                    std::numeric_limits<std::int64_t>::max());
    for (const CutLattice::Move& move : lattice.moves) {
      std::int64_t& during = least[static_cast<std::size_t>(move.element)];
      during = std::min(during, lattice.memory[move.from] + graph[move.element].rise);
    }
    // No order has a peak below the memory at its beginning, which is 0, nor below the memory at its end.
    const std::int64_t expected =
        std::max({*std::max_element(least.begin(), least.end()), lattice.memory.front(), lattice.memory.back()});
    core::Stopwatch watch({});
    const std::int64_t bound = cut_lower_bound(graph, watch);
    if (bound != expected) FAIL(tests::show(graph) << bound << " is not " << expected);
    REQUIRE(bound <= reference::least_peak(lattice));
    tight += bound == reference::least_peak(lattice);
    core::Limit limit{.work = random.below(50)};
    core::Stopwatch short_watch(limit);
    REQUIRE(cut_lower_bound(graph, short_watch) <= expected);
  }
  CHECK(tight > 2000);
}

TEST_CASE("exact search finds the least peak from any cut to any other", "[order]") {
  Random random(9);
  for (int i = 0; i < 30'000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    const OrderModel model(graph);
    const auto [from, to] = random_interval(random, reference::cut_lattice(model));
    const std::int64_t least = reference::least_peak(reference::cut_lattice(model, from, to));
    ExactOptions options;
    if (random.chance(30)) options.upper_bound = least + random.between(-2, 2);
    // This is how callers that know some order set the upper bound: to the peak of the order, or to one byte less.
    if (from == 0 && random.chance(30)) options.upper_bound = peak(graph, graph.any_order()) - random.below(2);
    core::Stopwatch watch({});
    const ExactResult result = exact_order(graph, cut_of(n, from), cut_of(n, to), options, watch);
    const std::string text = fmt::format("{}from {} to {} least {} upper bound {}: peak {} lower bound {} proved {} {}",
                                         tests::show(graph), from, to, least, options.upper_bound, result.peak,
                                         result.lower_bound, result.proved, tests::show(result.order));
    if (!result.proved) FAIL(text);
    if (result.lower_bound > least) FAIL(text);
    if (options.upper_bound < least) {
      if (!result.order.empty()) FAIL(text);
      if (result.lower_bound <= options.upper_bound) FAIL(text);
      continue;
    }
    if (!reference::leads(model, result.order, from, to) || result.peak != least || result.lower_bound != least)
      FAIL(text);
    const Bytes found = reference::profile_of(model, result.order, from);
    if (*std::max_element(found.begin(), found.end()) != least) FAIL(text);
    if (from == 0 && to == reference::first(n)) {
      core::Stopwatch again({});
      REQUIRE(exact_order(graph, options, again).order == result.order);
    }
  }
}

TEST_CASE("exact search proves the same least peak under every upper bound", "[order]") {
  const StepGraph graph({{517086, 1, 0},
                         {225220, 0, 0},
                         {496751, 36963, 0},
                         {464821, 0, 0},
                         {2, 0, 0},
                         {669704, 0, 0},
                         {0, 0, 1},
                         {36961, 1186789, 0}},
                        {{1, 2}, {2, 7}, {3, 7}, {4, 0}, {6, 1}, {6, 3}, {6, 4}});
  const std::int64_t least = reference::least_peak(reference::cut_lattice(graph));
  const std::int64_t any = peak(graph, graph.any_order());
  for (std::int64_t upper_bound = least - 3; upper_bound <= any; upper_bound += 1 + (upper_bound - least + 3) / 4) {
    INFO("upper bound " << upper_bound << " least " << least);
    core::Stopwatch watch({});
    const ExactResult result = exact_order(graph, {.upper_bound = upper_bound}, watch);
    CHECK(result.proved);
    CHECK(result.lower_bound <= least);
    CHECK(result.order.empty() == (upper_bound < least));
    if (upper_bound >= least) CHECK(result.peak == least);
  }
}

TEST_CASE("exact search that is cut short claims nothing that is not so", "[order]") {
  Random random(10);
  int unproved = 0;
  for (int i = 0; i < 2000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const OrderModel model(graph);
    const std::int64_t least = reference::least_peak(reference::cut_lattice(model));
    ExactOptions options;
    core::Limit limit;
    if (random.chance(50)) {
      limit.work = random.below(60);
    } else {
      options.memory_bytes = random.below(2000);
    }
    core::Stopwatch watch(limit), again(limit);
    const ExactResult result = exact_order(graph, options, watch);
    unproved += !result.proved;
    REQUIRE(result.lower_bound <= least);
    if (!result.order.empty()) {
      REQUIRE(reference::is_order(graph, result.order));
      REQUIRE(peak(graph, result.order) == result.peak);
    }
    if (result.proved) REQUIRE(result.peak == least);
    REQUIRE(exact_order(graph, options, again).order == result.order);
  }
  CHECK(unproved > 0);
}

TEST_CASE("Algorithm 2 with any oracle of least peaks gives a dominant order", "[order]") {
  Random random(11);
  for (int i = 0; i < 8000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const OrderModel model(graph);
    const CutLattice lattice = reference::cut_lattice(model);
    core::Stopwatch watch({});
    const bool exact = random.chance(40);
    const auto order = find_schedule_general(graph, exact ? exact_oracle(ExactOptions{}, watch) : brute_force(random));
    REQUIRE(order.has_value());
    REQUIRE(reference::is_order(graph, *order));
    if (!reference::dominates_all(reference::profile_of(model, *order), lattice)) {
      FAIL(tests::show(graph) << tests::show(*order) << (exact ? " exact oracle" : "") << " does not dominate "
                              << tests::show(reference::find_undominated(reference::profile_of(model, *order), model)));
    }
  }
}

TEST_CASE("Algorithm 1 gives a dominant order from a cut that is least among those after it", "[order]") {
  Random random(12);
  for (int i = 0; i < 5000; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    const OrderModel model(graph);
    auto [from, to] = random_interval(random, reference::cut_lattice(model));
    const CutLattice between = reference::cut_lattice(model, from, to);
    from = between.cuts[static_cast<std::size_t>(std::min_element(between.memory.begin(), between.memory.end()) -
                                                 between.memory.begin())];
    const auto order = find_schedule(graph, cut_of(n, from), cut_of(n, to), brute_force(random));
    REQUIRE(order.has_value());
    REQUIRE(reference::leads(model, *order, from, to));
    if (!reference::dominates_all(reference::profile_of(model, *order, from),
                                  reference::cut_lattice(model, from, to))) {
      FAIL(tests::show(graph) << "from " << from << " to " << to << tests::show(*order));
    }
  }
}

TEST_CASE("Algorithms 1 and 2 return nothing where the oracle gives up", "[order]") {
  Random random(13);
  int gave_up = 0;
  for (int i = 0; i < 300; ++i) {
    const StepGraph graph = small_step_graph(random);
    const StepId n = graph.step_count();
    std::int64_t calls_left = random.below(3);
    const PeakOracle full = brute_force(random);
    bool refused = false;
    const PeakOracle oracle = [&](const StepGraph& g, const Cut& from, const Cut& to) {
      refused = refused || calls_left-- <= 0;
      return refused ? std::nullopt : full(g, from, to);
    };
    const auto order = find_schedule_general(graph, oracle);
    REQUIRE(order.has_value() == !refused);
    if (order) REQUIRE(reference::leads(reference::OrderModel(graph), *order, 0, reference::first(n)));
    gave_up += refused;
  }
  CHECK(gave_up > 50);
  const auto nothing = find_schedule_general(StepGraph(), brute_force(random));
  REQUIRE(nothing.has_value());
  CHECK(nothing->empty());
}

TEST_CASE("local search returns an order that is no worse than its start", "[order]") {
  Random random(14);
  int improved = 0;
  for (int i = 0; i < 150; ++i) {
    tests::RandomGraphOptions shape{.min_nodes = 1, .max_nodes = random.chance(50) ? 9 : 50};
    const Graph graph = tests::random_graph(random, shape);
    const StepGraph steps(graph);
    const std::vector<StepId> start = tests::random_schedule(random, graph, 0).steps;
    const std::int64_t before = peak(steps, start);
    const int threads = random.chance(20) ? 2 : 1;
    OrderSearchOptions options{.seed = 5};
    std::vector<std::vector<StepId>> results;
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::int64_t best = std::numeric_limits<std::int64_t>::max();
      bool told_right = true;  // is checked later, because REQUIRE must not be used on other threads
      options.found = [&](const std::vector<StepId>& order, std::int64_t reached) {
        told_right = told_right && reference::is_order(steps, order) && peak(steps, order) == reached && reached < best;
        best = reached;
      };
      core::Stopwatch watch(core::Limit{.work = (i % 5) * 5000});
      results.push_back(search_order(steps, start, options, watch, threads));
      REQUIRE(told_right);
      REQUIRE(reference::is_order(steps, results.back()));
      REQUIRE(peak(steps, results.back()) <= std::min(before, best));
    }
    REQUIRE(results[0] == results[1]);
    improved += peak(steps, results[0]) < before;
  }
  CHECK(improved > 20);
  // A search that knows the lower bound must end as soon as it reaches the bound, long before its limit.
  const Graph graph = small_graph(random);
  const StepGraph steps(graph);
  OrderSearchOptions options{.lower_bound = reference::least_peak(reference::cut_lattice(graph))};
  core::Limit limit{.work = 100'000'000};
  core::Stopwatch watch(limit);
  CHECK(peak(steps, search_order(steps, steps.any_order(), options, watch)) == options.lower_bound);
  CHECK(watch.work() < limit.work / 2);
}

}  // namespace
}  // namespace cairn::solvers::dominant_test
