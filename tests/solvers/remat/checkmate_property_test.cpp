// Compares checkmate, and its relaxation checkmate-lp, with a brute-force search of the same class of schedules.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/stages/checkmate.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::checkmate_property_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using core::ValueId;
using tests::baseline_peak;
using tests::no_engine;
using tests::Random;
namespace reference = core::reference;

constexpr std::int64_t kNever = std::int64_t{1} << 62;
constexpr Scope kStages{OrderRule::stages, 0};

/// Returns the least amount that a schedule of checkmate's class pays, by a search over sets of values in memory. In
/// stage t of such a schedule, some of the first t nodes of the input order run again, in this order. Then the next
/// node runs for the first time. Values may be dropped between two steps. A node cannot run while its outputs are in
/// memory. Kept values must be in memory at the end. `pay(so far, node, during)` returns what a schedule has paid after
/// a step that runs `node` with `during` bytes in memory, or kNever if the step is not permitted.
template <class Pay>
std::int64_t least_paid(const Graph& graph, const Pay& pay) {
  const auto values = static_cast<std::uint32_t>(graph.value_count());
  std::vector<std::int64_t> bytes(std::size_t{1} << values, 0);
  for (std::uint32_t set = 0; set < bytes.size(); ++set) {
    for (std::uint32_t x = 0; x < values; ++x) {
      if ((set >> x & 1) != 0) bytes[set] += graph.value_size(static_cast<ValueId>(x));
    }
  }
  const auto set_of = [](const auto& members) {
    std::uint32_t set = 0;
    for (const ValueId x : members) set |= 1U << x;
    return set;
  };
  std::vector<std::int64_t> paid(bytes.size(), kNever);
  paid[0] = 0;
  const auto order = graph.input_order();
  for (NodeId stage = 0; stage < graph.node_count(); ++stage) {
    for (NodeId place = 0; place <= stage; ++place) {
      const NodeId v = order[static_cast<std::size_t>(place)];
      for (std::uint32_t x = 0; x < values; ++x) {
        for (std::uint32_t set = 0; set < paid.size(); ++set) {
          if ((set >> x & 1) != 0) paid[set ^ 1U << x] = std::min(paid[set ^ 1U << x], paid[set]);
        }
      }
      const bool first = place == stage;
      std::vector<std::int64_t> then = first ? std::vector<std::int64_t>(paid.size(), kNever) : paid;
      const std::uint32_t reads = set_of(graph.inputs(v)), makes = set_of(graph.outputs(v));
      for (std::uint32_t set = 0; set < paid.size(); ++set) {
        if (paid[set] == kNever || (set & reads) != reads || (set & makes) != 0) continue;
        if (!first && graph.pinned(v)) continue;
        const std::int64_t now = pay(paid[set], v, bytes[set] + bytes[makes] + graph.scratch(v));
        then[set | makes] = std::min(then[set | makes], now);
      }
      paid = std::move(then);
    }
  }
  std::uint32_t kept = 0;
  for (ValueId x = 0; x < graph.value_count(); ++x) kept |= graph.value_kept(x) ? 1U << x : 0;
  std::int64_t least = kNever;
  for (std::uint32_t set = 0; set < paid.size(); ++set) {
    if ((set & kept) == kept) least = std::min(least, paid[set]);
  }
  return least;
}

std::optional<std::int64_t> least_cost(const Graph& graph, std::int64_t budget) {
  const std::int64_t least = least_paid(graph, [&](std::int64_t paid, NodeId v, std::int64_t during) {
    return during <= budget ? paid + graph.cost(v) : kNever;
  });
  return least == kNever ? std::nullopt : std::optional(least);
}

std::int64_t least_peak(const Graph& graph) {
  return least_paid(graph, [](std::int64_t paid, NodeId, std::int64_t during) { return std::max(paid, during); });
}

/// Calls visit(schedule) for every valid schedule of checkmate's class. It tries 2^(n (n - 1) / 2) schedules for n
/// nodes.
template <class Visit>
void for_each_staged(const Graph& graph, const Visit& visit) {
  const auto n = static_cast<std::uint32_t>(graph.node_count());
  const std::uint32_t pairs = n * (n - 1) / 2;
  for (std::uint32_t choice = 0; choice < 1U << pairs; ++choice) {
    Schedule schedule;
    std::uint32_t pair = 0;
    for (std::uint32_t stage = 0; stage < n; ++stage) {
      for (std::uint32_t place = 0; place < stage; ++place, ++pair) {
        if ((choice >> pair & 1) != 0) schedule.steps.push_back(graph.input_order()[place]);
      }
      schedule.steps.push_back(graph.input_order()[stage]);
    }
    if (reference::valid(graph, schedule)) visit(schedule);
  }
}

/// Returns a random graph. For most of these graphs, some schedule needs less memory than the baseline.
Graph small_graph(Random& random, NodeId most_nodes) {
  while (true) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    kind.min_nodes = random.chance(80) ? most_nodes - 1 : 2;
    kind.max_nodes = most_nodes;
    Graph graph = tests::random_graph(random, kind);
    if (graph.value_count() > 9) continue;
    if (random.chance(10) || least_peak(graph) < baseline_peak(graph)) return graph;
  }
}

/// Returns a random budget. In most cases, it is below the baseline's peak, and at most one byte below the least peak.
std::int64_t random_budget(Random& random, const Graph& graph) {
  const std::int64_t least = least_peak(graph), most = baseline_peak(graph);
  return random.chance(80) ? random.between(std::max<std::int64_t>(least - 1, 0), std::max(most - 1, least))
                           : random.between(core::peak_lower_bound(graph), most);
}

CheckmateOptions options_for(std::optional<std::int64_t> budget, int engine = 0) {
  CheckmateOptions options;
  options.budget = budget;
  options.engine = engine;
  options.threads = 1;
  return options;
}

/// Checks the claims of an answer that must hold for every graph and every option.
void check_answer(const Graph& graph, const CheckmateOptions& options, const Solution& solution) {
  REQUIRE(solution.scope == intersection(kStages, options.scope));
  tests::require_measured(graph, solution);
  REQUIRE(solution.scope.contains(graph, solution.schedule));
  const bool fits = !options.budget || solution.peak <= *options.budget;
  REQUIRE(fits == (solution.status == Status::optimal || solution.status == Status::feasible));
}

/// Returns a chain of `forward` nodes with a backward pass. Each backward node reads the input of its forward node, and
/// the previous node of the order.
Graph training_chain(NodeId forward) {
  core::GraphBuilder builder;
  builder.add(tests::make_node("", 3));
  for (NodeId v = 1; v < forward; ++v) builder.add(tests::make_node("", 3 + v % 4, {v - 1}, 1 + v % 3));
  for (NodeId v = forward; v-- > 1;)
    builder.add(tests::make_node("", 2, {v - 1, static_cast<NodeId>(builder.node_count() - 1)}, 5));
  return builder.build();
}

Graph layered(NodeId nodes) {
  Random random(1);
  tests::RandomShape shape;
  shape.inputs.resize(static_cast<std::size_t>(nodes));
  shape = tests::layered_shape(random, shape, nodes);
  core::GraphBuilder builder;
  for (const std::vector<NodeId>& inputs : shape.inputs) {
    // Two statements, because compilers draw the arguments of one call in different orders.
    const std::int64_t cost = random.between(1, 100);
    builder.add(tests::make_node("", random.between(1, 1000), inputs, cost));
  }
  return builder.build();
}

TEST_CASE("the brute force of the class of checkmate finds what trying every schedule finds", "[checkmate]") {
  tests::for_each_seed(150, [&](Random& random) {
    const Graph graph = small_graph(random, 4);
    const std::int64_t budget = random_budget(random, graph);
    std::int64_t peak = kNever;
    std::optional<std::int64_t> cost;
    for_each_staged(graph, [&](const Schedule& schedule) {
      REQUIRE(kStages.contains(graph, schedule));
      const std::int64_t reached = reference::peak(graph, schedule), paid = reference::cost(graph, schedule);
      peak = std::min(peak, reached);
      if (reached <= budget && (!cost || paid < *cost)) cost = paid;
    });
    REQUIRE(least_peak(graph) == peak);
    REQUIRE(least_cost(graph, budget) == cost);
  });
}

TEST_CASE("checkmate: the cheapest of its class within the budget, or that there is none", "[checkmate][engines]") {
  if (no_engine()) return;
  std::int64_t infeasible = 0, recomputing = 0;
  tests::for_each_seed(2000, [&](Random& random) {
    const Graph graph = small_graph(random, 6);
    const std::int64_t budget = random_budget(random, graph);
    const std::optional<std::int64_t> cost = least_cost(graph, budget);
    for (const int engine : {1, 2}) {
      const CheckmateOptions options = options_for(budget, engine);
      const Solution solution = checkmate(graph, options);
      CAPTURE(engine, budget);
      check_answer(graph, options, solution);
      REQUIRE(solution.status == (cost ? Status::optimal : Status::infeasible));
      if (cost) {
        REQUIRE(solution.cost == *cost);
        REQUIRE(solution.cost_bound.value == *cost);
        recomputing += solution.schedule.length() > graph.node_count() ? 1 : 0;
      } else {
        REQUIRE(solution.least_peak == least_peak(graph));
        REQUIRE(solution.peak_bound.value == solution.least_peak);
        ++infeasible;
      }
    }
  });
  CHECK(infeasible > 100);
  CHECK(recomputing > 200);
}

TEST_CASE("checkmate-lp: its bound is below the optimum, and it says where the budget is broken",
          "[checkmate][engines]") {
  if (no_engine()) return;
  std::int64_t broken = 0, met = 0;
  tests::for_each_seed(2000, [&](Random& random) {
    const Graph graph = small_graph(random, 6);
    const std::int64_t budget = random_budget(random, graph);
    const std::optional<std::int64_t> cost = least_cost(graph, budget);
    const CheckmateOptions options = options_for(budget);
    const Solution solution = checkmate_lp(graph, options);
    CAPTURE(budget);
    check_answer(graph, options, solution);
    if (cost) REQUIRE(solution.cost_bound.value <= *cost);
    if (solution.peak <= budget) REQUIRE(solution.cost >= cost.value());
    if (solution.status == Status::optimal) REQUIRE(solution.cost == *cost);
    REQUIRE(solution.peak_bound.value <= least_peak(graph));
    broken += solution.status == Status::not_found ? 1 : 0;
    met += solution.schedule.length() > graph.node_count() && solution.peak <= budget ? 1 : 0;
  });
  CHECK(broken > 10);
  CHECK(met > 100);
}

TEST_CASE("checkmate without a budget: the least peak of its class, and the least cost there", "[checkmate][engines]") {
  if (no_engine()) return;
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = small_graph(random, 6);
    for (const int engine : {1, 2}) {
      const CheckmateOptions options = options_for({}, engine);
      const Solution solution = checkmate(graph, options);
      check_answer(graph, options, solution);
      REQUIRE(solution.status == Status::optimal);
      REQUIRE(solution.peak == least_peak(graph));
      REQUIRE(solution.cost == least_cost(graph, solution.peak));
    }
    const Solution relaxed = checkmate_lp(graph, options_for({}));
    check_answer(graph, options_for({}), relaxed);
    REQUIRE(relaxed.peak_bound.value <= least_peak(graph));
    REQUIRE(relaxed.peak >= least_peak(graph));
  });
}

TEST_CASE("checkmate keeps to a number of occurrences", "[checkmate][engines]") {
  if (no_engine()) return;
  tests::for_each_seed(150, [&](Random& random) {
    const Graph graph = small_graph(random, 5);
    const std::int64_t budget = random.between(least_peak(graph), baseline_peak(graph));
    for (const std::int32_t most : {1, 2, 3}) {
      CheckmateOptions options = options_for(budget, static_cast<int>(1 + random.below(2)));
      options.scope.max_occurrences = most;
      const Scope scope = intersection(kStages, options.scope);
      std::optional<std::int64_t> cost;
      for_each_staged(graph, [&](const Schedule& schedule) {
        if (!scope.contains(graph, schedule)) return;
        const core::Evaluation measures = core::evaluate(graph, schedule);
        if (measures.peak <= budget && (!cost || measures.cost < *cost)) cost = measures.cost;
      });
      const Solution solution = checkmate(graph, options);
      check_answer(graph, options, solution);
      REQUIRE(solution.status == (cost ? Status::optimal : Status::infeasible));
      if (cost) REQUIRE(solution.cost == *cost);
      const Solution relaxed = checkmate_lp(graph, options);
      check_answer(graph, options, relaxed);
      if (cost) REQUIRE(relaxed.cost_bound.value <= *cost);
    }
  });
}

TEST_CASE("checkmate: a value that must make room twice is made three times", "[checkmate][engines]") {
  if (no_engine()) return;
  // `a` is read before, between and after two nodes, `large` and `large_too`. While one of them runs, `a` does not fit
  // into memory, so `a` must be computed three times.
  core::GraphBuilder builder;
  const NodeId a = builder.add(tests::make_node("a", 2));
  const NodeId before = builder.add(tests::make_node("before", 1, {a}));
  const NodeId large = builder.add(tests::make_node("large", 1, {before}));
  const NodeId between = builder.add(tests::make_node("between", 1, {a, large}));
  const NodeId large_too = builder.add(tests::make_node("large_too", 1, {between}));
  builder.add(tests::make_node("after", 1, {a, large_too}));
  for (const NodeId v : {large, large_too}) builder.node(v).scratch = 3;
  const Graph graph = builder.build();
  for (const int engine : {1, 2}) {
    CheckmateOptions options = options_for(5, engine);
    const Solution solution = checkmate(graph, options);
    CHECK(solution.status == Status::optimal);
    CHECK(solution.schedule.steps == std::vector<NodeId>{0, 1, 2, 0, 3, 4, 0, 5});
    options.scope.max_occurrences = 2;
    const Solution twice = checkmate(graph, options);
    CHECK(twice.status == Status::infeasible);
    CHECK(twice.least_peak == 7);
    CHECK(twice.peak_bound.value == 7);
    CHECK(twice.peak_bound.scope == Scope{OrderRule::stages, 2});
  }
}

TEST_CASE("checkmate and checkmate-lp end at once where they must, and say what is too large", "[checkmate][engines]") {
  if (no_engine()) return;
  const Graph graph = training_chain(100);
  const std::int64_t budget = baseline_peak(graph) * 6 / 10;
  const std::atomic<bool> stop = true;
  for (const auto* name : {"checkmate", "checkmate-lp"}) {
    INFO(name);
    const SolverInfo& solver = find_solver(name);
    for (const bool by_flag : {false, true}) {
      SolveOptions options{.budget = budget};
      if (by_flag) {
        options.limit.stop = &stop;
      } else {
        options.limit.seconds = 0;
      }
      const Solution solution = solver.solve(graph, options);
      CHECK(solution.status == Status::not_found);
      CHECK(solution.timed_out);
      CHECK(solution.schedule == core::baseline_schedule(graph));
    }
    SolveOptions options{.budget = budget, .limit = {.work = 1'000'000}, .memory_bytes = 1 << 20};
    CHECK(tests::contains(tests::error_of([&] { solver.solve(graph, options); }), "greedy"));
  }
}

TEST_CASE("checkmate and checkmate-lp on a random layered graph and on a training chain", "[checkmate][engines]") {
  if (no_engine()) return;
  for (const Graph& graph : {layered(40), training_chain(12)}) {
    const std::int64_t budget = baseline_peak(graph) * 85 / 100;
    const Solution relaxed = checkmate_lp(graph, options_for(budget));
    check_answer(graph, options_for(budget), relaxed);
    for (const int engine : {1, 2}) {
      const CheckmateOptions options = options_for(budget, engine);
      const Solution solution = checkmate(graph, options);
      check_answer(graph, options, solution);
      CHECK(solution.status == Status::optimal);
      CHECK(relaxed.cost_bound.value <= solution.cost);
    }
  }
}

}  // namespace
}  // namespace cairn::solvers::checkmate_property_test
