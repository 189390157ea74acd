#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/order_graphs.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/graph_classes.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

// Compares the order solvers with brute force over topological cuts, on about a hundred thousand small graphs. A
// topological cut is a set of nodes that contains all inputs of its nodes, i.e. a set of nodes that can have run.
namespace cairn::solvers::order_property_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using core::reference::CutLattice;
using tests::Inputs;
using tests::Random;
namespace reference = core::reference;

struct OrderSolver {
  std::string name;
  Solution (*solve)(const Graph&, const OrderOptions&);
  /// Returns the nodes because of which a graph is not in the solver's class. Returns no node if the graph is in the
  /// class.
  std::function<std::vector<NodeId>(const Graph&)> culprits;
  bool dominant;
};

std::vector<NodeId> none(const Graph&) { return {}; }

const std::vector<OrderSolver>& order_solvers() {
  static const std::vector<OrderSolver> solvers{
      {"order", order, none, false},
      {"exact", exact, none, false},
      {"series_parallel", series_parallel, tests::not_series_parallel, true},
      {"pumpkin", pumpkin, tests::not_of_pumpkin, true},
      {"in_tree", in_tree, tests::read_twice, true},
      {"out_tree", out_tree, tests::reading_twice, false},
  };
  return solvers;
}

/// Returns the solvers that accept the graph, because it is in their class.
std::vector<OrderSolver> solvers_of(const Graph& graph) {
  std::vector<OrderSolver> solvers = order_solvers();
  std::erase_if(solvers, [&](const OrderSolver& solver) { return !solver.culprits(graph).empty(); });
  return solvers;
}

/// Returns the options with one thread, because starting threads takes longer than solving the small graphs of these
/// tests.
OrderOptions one_thread(OrderOptions options = {}) {
  options.threads = 1;
  return options;
}

/// Returns what is wrong with a schedule and its claimed measures, or an empty text. Checks only what must hold under
/// every limit.
std::string measures_defect(const Graph& graph, const Solution& solution, std::int64_t optimum) {
  const Schedule& schedule = solution.schedule;
  if (!reference::valid(graph, schedule)) return "the schedule is not valid";
  if (schedule.length() != graph.node_count()) return "some node does not stand there just once";
  if (reference::peak(graph, schedule) != solution.peak) return "the peak is not that of the schedule";
  if (reference::cost(graph, schedule) != solution.cost) return "the cost is not that of the schedule";
  if (solution.peak_bound.value > optimum) return fmt::format("lower bound {}", solution.peak_bound.value);
  if (solution.least_peak > solution.peak || solution.least_peak < optimum) {
    return fmt::format("least peak {}", solution.least_peak);
  }
  const bool on_curve = std::any_of(
      solution.tradeoffs.begin(), solution.tradeoffs.end(),
      [&](const Tradeoff& tradeoff) { return tradeoff.peak <= solution.peak && tradeoff.cost <= solution.cost; });
  return on_curve ? "" : "the schedule is not among the tradeoffs";
}

/// Returns what is wrong with an answer that no limit has cut short, or an empty text.
std::string answer_defect(const OrderSolver& solver, const Graph& graph, const Solution& solution,
                          const CutLattice& lattice) {
  const std::int64_t optimum = reference::least_peak(lattice);
  std::string defect = measures_defect(graph, solution, optimum);
  if (!defect.empty()) return defect;
  if (solution.peak != optimum) return fmt::format("peak {}", solution.peak);
  if (solution.status != Status::optimal) return fmt::format("status {}", to_string(solution.status));
  if (solution.peak_bound.value != optimum) return fmt::format("lower bound {}", solution.peak_bound.value);
  if (solution.timed_out) return "timed out";
  if (!solver.dominant) return "";
  if (!reference::dominates_all(reference::profile(graph, solution.schedule), lattice)) return "not dominant";
  // If the graph has one source and one sink, the order also has an internal profile (Definition 5.2 of Jin et al.).
  // For this profile, dominance is a stronger condition.
  if (graph.node_count() < 2 || tests::sources(graph).size() != 1 || tests::sinks(graph).size() != 1) return "";
  const reference::Bytes internal = reference::internal_profile(graph, solution.schedule.steps);
  return reference::dominates_all(internal, reference::internal_lattice(graph)) ? "" : "not internally dominant";
}

/// Checks all solvers that accept the graph. Returns the number of these solvers.
int examine(const Graph& graph) {
  const CutLattice lattice = reference::cut_lattice(graph);
  int solved = 0;
  for (const OrderSolver& solver : solvers_of(graph)) {
    const Solution solution = solver.solve(graph, one_thread());
    const std::string defect = answer_defect(solver, graph, solution, lattice);
    if (!defect.empty()) {
      FAIL(solver.name << ": " << defect << "; least peak " << reference::least_peak(lattice) << " order "
                       << tests::show(solution.schedule.steps) << tests::show(graph));
    }
    ++solved;
  }
  return solved;
}

NodeId few(Random& random, NodeId least, NodeId most) { return static_cast<NodeId>(random.between(least, most)); }

TEST_CASE("order solvers on every graph of up to four nodes with sizes from zero to two", "[order]") {
  for (NodeId n = 1; n <= 4; ++n) {
    const int pairs = n * (n - 1) / 2;
    int sizes = 1;
    for (NodeId v = 0; v < n; ++v) sizes *= 3;
    for (int edges = 0; edges < 1 << pairs; ++edges) {
      for (int digits = 0; digits < sizes; ++digits) {
        std::vector<core::Node> nodes;
        for (int v = 0, pair = 0, rest = digits; v < n; ++v, rest /= 3) {
          nodes.push_back(tests::make_node(fmt::format("<{:03}>", v), rest % 3));
          for (NodeId u = 0; u < v; ++u, ++pair) {
            if ((edges >> pair & 1) != 0) nodes.back().inputs.push_back(u);
          }
        }
        examine(tests::build_graph(nodes));
      }
    }
  }
}

/// Checks the solvers on `count` graphs that make(random, number) returns. Each graph must be in the class that
/// `is_member` tests, and at least `least_solved` solvers must accept it.
template <class Make>
void examine_class(std::uint64_t seed, int count, int least_solved, bool (*is_member)(const Graph&), const Make& make) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    const Graph graph = make(random, i);
    REQUIRE(is_member(graph));
    const int solved = examine(graph);
    REQUIRE(solved >= least_solved);
  }
}

TEST_CASE("order solvers on small pumpkins", "[order]") {
  examine_class(1, 12'000, 4, tests::is_pumpkin,
                [](Random& random, int) { return tests::dressed_graph(random, tests::pumpkin_shape(random)); });
}

TEST_CASE("order solvers on pumpkins of equal branches", "[order]") {
  examine_class(2, 2000, 4, tests::is_pumpkin, [](Random& random, int) {
    const std::int64_t length = random.between(1, 3);
    return tests::equal_branches(random, random.between(1, length == 1 ? 7 : 7 - length), length);
  });
}

TEST_CASE("order solvers on small trees and forests towards a root", "[order]") {
  examine_class(3, 12'000, 3, tests::is_in_forest, [](Random& random, int i) {
    const NodeId nodes = few(random, 1, i < 3000 ? 5 : 9);
    return tests::dressed_graph(random, tests::in_tree_shape(random, nodes, random.chance(30)));
  });
}

TEST_CASE("order solvers on small trees and forests from a root", "[order]") {
  examine_class(4, 12'000, 3, tests::is_out_forest, [](Random& random, int i) {
    const NodeId nodes = few(random, 1, i < 3000 ? 5 : 9);
    return tests::dressed_graph(random, tests::out_tree_shape(random, nodes, random.chance(30)));
  });
}

TEST_CASE("order solvers on small series-parallel graphs", "[order]") {
  examine_class(5, 18'000, 3, tests::is_series_parallel, [](Random& random, int i) {
    const NodeId nodes = few(random, 2, i < 4000 ? 6 : 10);
    return tests::dressed_graph(random, tests::series_parallel_shape(random, nodes, random.chance(40)));
  });
}

TEST_CASE("order solvers on small starborescences", "[order]") {
  const auto is_member = [](const Graph& graph) {
    return tests::is_starborescence(graph) && tests::is_series_parallel(graph);
  };
  examine_class(6, 18'000, 3, is_member, [](Random& random, int i) {
    return tests::dressed_graph(random, tests::starborescence_shape(random, few(random, 2, i < 4000 ? 6 : 10)));
  });
}

TEST_CASE("order solvers on small graphs of any shape", "[order]") {
  Random random(7);
  for (int i = 0; i < 12'000; ++i) {
    examine(tests::dressed_graph(random, tests::any_shape(random, few(random, 1, i < 3000 ? 6 : 9))));
  }
  for (int i = 0; i < 6000; ++i) examine(tests::random_graph(random, {.min_nodes = 1, .max_nodes = 12}));
}

TEST_CASE("order solvers on small graphs side by side and one after the other", "[order]") {
  Random random(8);
  for (int i = 0; i < 4000; ++i) {
    // The graph has two parts of random classes. Either they are separate, or the sources of the second part read the
    // last node of the first part.
    Inputs shape;
    const bool in_series = random.chance(50);
    for (int part = 0; part < 2; ++part) {
      const auto offset = static_cast<NodeId>(shape.size());
      const NodeId n = few(random, 2, 5);
      const Inputs next = random.chance(30)   ? tests::any_shape(random, n)
                          : random.chance(50) ? tests::starborescence_shape(random, n)
                                              : tests::series_parallel_shape(random, n, true);
      for (std::vector<NodeId> inputs : next) {
        for (NodeId& u : inputs) u += offset;
        if (in_series && offset > 0 && inputs.empty()) inputs.push_back(offset - 1);
        shape.push_back(inputs);
      }
    }
    examine(tests::dressed_graph(random, shape));
  }
}

TEST_CASE("order solvers on no node at all and on one", "[order]") {
  for (const OrderSolver& solver : order_solvers()) {
    if (solver.name == "pumpkin") continue;  // a pumpkin has at least two nodes
    INFO(solver.name);
    const Solution nothing = solver.solve(Graph(), one_thread());
    CHECK(nothing.status == Status::optimal);
    CHECK(nothing.schedule.steps.empty());
    CHECK(nothing.peak == 0);
    CHECK(nothing.peak_bound.value == 0);
    for (const bool keep : {false, true}) {
      core::Node node = tests::make_node("alone", 7);
      node.scratch = 2;
      node.keep = keep;
      const Solution one = solver.solve(tests::build_graph({node}), one_thread());
      CHECK(one.status == Status::optimal);
      CHECK(one.schedule.steps == std::vector<NodeId>{0});
      CHECK(one.peak == 9);
    }
  }
}

TEST_CASE("order solvers prove budgets below the least peak infeasible and meet the others", "[order]") {
  Random random(9);
  for (int i = 0; i < 1500; ++i) {
    const Inputs shape = i % 3 == 0   ? tests::pumpkin_shape(random)
                         : i % 3 == 1 ? tests::in_tree_shape(random, few(random, 1, 8), true)
                                      : tests::any_shape(random, few(random, 1, 8));
    const Graph graph = tests::dressed_graph(random, shape);
    const std::int64_t least = reference::least_peak_without_recomputation(graph);
    for (const OrderSolver& solver : solvers_of(graph)) {
      for (const std::int64_t budget : {least - 1, least, least + random.between(1, 9)}) {
        INFO(solver.name << " budget " << budget << " least peak " << least << tests::show(graph));
        const Solution solution = solver.solve(graph, one_thread({{.budget = budget}}));
        REQUIRE(solution.peak_bound.value <= least);
        if (budget < least) {
          REQUIRE(solution.status == Status::infeasible);
          REQUIRE(solution.peak_bound.value > budget);
        } else {
          REQUIRE(solution.status == Status::optimal);
          REQUIRE(solution.peak <= budget);
        }
        if (!solution.schedule.steps.empty()) REQUIRE(measures_defect(graph, solution, least) == "");
      }
    }
  }
}

TEST_CASE("order solvers name a node that breaks their class", "[order]") {
  Random random(10);
  std::vector<int> refused(order_solvers().size(), 0);
  for (int i = 0; i < 3000; ++i) {
    const NodeId n = few(random, 2, 9);
    Inputs shape = i % 5 == 0   ? tests::any_shape(random, n)
                   : i % 5 == 1 ? tests::pumpkin_shape(random)
                   : i % 5 == 2 ? tests::in_tree_shape(random, n, random.chance(50))
                   : i % 5 == 3 ? tests::out_tree_shape(random, n, random.chance(50))
                                : tests::series_parallel_shape(random, n, random.chance(50));
    // In most cases, adds only one edge, so that the graph is almost in the class.
    const auto last = static_cast<NodeId>(shape.size()) - 1;
    if (random.chance(70) && last > 0) {
      const NodeId to = few(random, 1, last);
      tests::link(shape, few(random, 0, to - 1), to);
    }
    const Graph graph = tests::dressed_graph(random, shape);
    for (std::size_t s = 0; s < order_solvers().size(); ++s) {
      const OrderSolver& solver = order_solvers()[s];
      const std::vector<NodeId> culprits = solver.culprits(graph);
      if (culprits.empty() || graph.node_count() < 2) continue;
      const std::string message = tests::error_of([&] { solver.solve(graph, one_thread()); });
      const bool names_one = std::any_of(culprits.begin(), culprits.end(),
                                         [&](NodeId v) { return message.find(graph.name(v)) != std::string::npos; });
      if (!names_one) {
        FAIL(solver.name << " says '" << message << "', the nodes to name are " << tests::show(culprits)
                         << tests::show(graph));
      }
      if (message.find('\n') != std::string::npos) FAIL(message);
      ++refused[s];
    }
  }
  for (std::size_t s = 2; s < refused.size(); ++s) CHECK(refused[s] > 300);
}

/// Returns graphs of at most 128 nodes: of each class for which there is a solver, and of no such class. Some are too
/// hard to be solved within the limits of these tests.
std::vector<Graph> larger_graphs(Random& random) {
  std::vector<std::int64_t> lengths;
  for (int branch = 0; branch < 10; ++branch) lengths.push_back(random.between(1, 8));
  const auto seed = static_cast<std::uint64_t>(random.below(1000));
  return {tests::dressed_graph(random, tests::pumpkin_shape(lengths)),
          tests::dressed_graph(random, tests::in_tree_shape(random, 80, false)),
          tests::dressed_graph(random, tests::out_tree_shape(random, 60, false)),
          tests::dressed_graph(random, tests::series_parallel_shape(random, 60, false)),
          tests::dressed_graph(random, tests::starborescence_shape(random, 40)),
          tests::dressed_graph(random, tests::any_shape(random, 60)),
          tests::random_graph(random, {.min_nodes = 40, .max_nodes = 80}),
          models::generate_valley_pumpkin(18, 7, seed),
          models::generate_starborescence(60, 14, models::GeneratedSizes{}, seed),
          models::generate_series_parallel(90, 10, models::GeneratedSizes{}, seed)};
}

/// Checks an answer that a limit may have cut short. The order must be valid, and its peak, bound and status must be
/// right. Solver `order` must also be no worse than the input order.
void check_limited(const Graph& graph, const OrderSolver& solver, const Solution& solution) {
  INFO(solver.name << " on " << graph.node_count() << " nodes");
  const core::Evaluation evaluation = core::evaluate(graph, solution.schedule);
  REQUIRE(evaluation.valid());
  REQUIRE(solution.schedule.length() == graph.node_count());
  REQUIRE(evaluation.peak == solution.peak);
  REQUIRE(solution.peak_bound.value <= solution.peak);
  const bool answered = solution.status == Status::optimal || solution.status == Status::feasible;
  REQUIRE(answered);
  if (solution.status == Status::optimal) REQUIRE(solution.peak_bound.value == solution.peak);
  const std::int64_t before = core::evaluate(graph, core::baseline_schedule(graph)).peak;
  if (solver.name == "order") REQUIRE(solution.peak <= before);
}

TEST_CASE("order solvers end at any limit with a valid order that is the same each time", "[order]") {
  Random random(11);
  for (int round = 0; round < 4; ++round) {
    for (const Graph& graph : larger_graphs(random)) {
      for (const OrderSolver& solver : solvers_of(graph)) {
        for (const std::int64_t work : {0, 1, 100, 3000}) {
          OrderOptions options = one_thread({{.limit = {.work = work}, .seed = 3}});
          if (work == 3000 && solver.name == "order") options.threads = 2;
          const Solution solution = solver.solve(graph, options);
          check_limited(graph, solver, solution);
          REQUIRE(solver.solve(graph, options).schedule == solution.schedule);
        }
      }
    }
  }
}

TEST_CASE("order is never worse than the input order, however short the time", "[order]") {
  Random random(17);
  for (int i = 0; i < 300; ++i) {
    const Graph plain = tests::dressed_graph(random, tests::any_shape(random, few(random, 1, 9)));
    const CutLattice lattice = reference::cut_lattice(plain);
    core::GraphBuilder builder(plain);
    builder.set_order(reference::least_peak_order(lattice, random));
    const Graph graph = builder.build();
    const Solution solution = order(graph, one_thread({{.limit = {.work = random.below(20)}}}));
    REQUIRE(solution.peak == reference::least_peak(lattice));
    REQUIRE(measures_defect(graph, solution, solution.peak) == "");
  }
}

TEST_CASE("order solvers end at a stop flag and when time is up with a valid order", "[order]") {
  Random random(12);
  const std::atomic<bool> stop = true;
  for (int round = 0; round < 4; ++round) {
    for (const Graph& graph : larger_graphs(random)) {
      for (const OrderSolver& solver : solvers_of(graph)) {
        for (const core::Limit& limit : {core::Limit{.stop = &stop}, core::Limit{.seconds = 0}})
          check_limited(graph, solver, solver.solve(graph, one_thread({{.limit = limit}})));
      }
    }
  }
}

TEST_CASE("order solvers that may use little memory find an order or say so", "[order]") {
  Random random(13);
  for (const Graph& graph : larger_graphs(random)) {
    for (const OrderSolver& solver : solvers_of(graph)) {
      for (const std::int64_t memory : {0, 1000}) {
        try {
          check_limited(graph, solver,
                        solver.solve(graph, one_thread({{.limit = {.work = 20'000}, .memory_bytes = memory}})));
        } catch (const core::Error& error) {
          CHECK_FALSE(std::string(error.what()).empty());
        }
      }
    }
  }
}

TEST_CASE("exact methods for one class agree with those for a larger one", "[order]") {
  Random random(14);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t branches = random.between(2, 6); branches > 0; --branches)
      lengths.push_back(random.between(1, 6));
    const Graph graph = tests::dressed_graph(random, tests::pumpkin_shape(lengths));
    const std::int64_t least = pumpkin(graph, one_thread()).peak;
    CHECK(series_parallel(graph, one_thread()).peak == least);
    CHECK(order(graph, one_thread()).peak == least);
  }
  for (int i = 0; i < 300; ++i) {
    const Graph graph = tests::dressed_graph(random, tests::in_tree_shape(random, 40, false));
    const std::int64_t least = in_tree(graph, one_thread()).peak;
    CHECK(order(graph, one_thread()).peak == least);
    CHECK(exact(graph, one_thread()).peak >= least);
  }
}

/// Returns the graph for these numbers in the hardness proof of Jin et al. (section 9), built from the formulas there.
/// With `tree`, returns the tree of Corollary 9.6 instead.
Graph three_partition_graph(const std::vector<std::int64_t>& numbers, bool tree) {
  const auto n = static_cast<std::int64_t>(numbers.size()), m = n / 3;
  const std::int64_t group = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}) / m;
  const std::int64_t source_size = m * (m + 1) * n * group / 2 + m * group;
  std::vector<core::Node> nodes{tests::make_node("source", source_size)};
  std::vector<NodeId> tips;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    NodeId tip = 0;
    for (std::int64_t k = 2 * m - 1; k >= 1; --k) {
      const bool valley = k % 2 == 1;
      const std::int64_t size =
          valley ? (k + 1) / 2 * numbers[i] : (m - k / 2) * (m + k / 2 + 1) * group / 2 - numbers[i];
      nodes.push_back(tests::make_node(fmt::format("{} of {}", k, i), size, {tip}));
      tip = static_cast<NodeId>(nodes.size()) - 1;
    }
    tips.push_back(tip);
    if (tree) nodes.push_back(tests::make_node(fmt::format("leaf {}", i), source_size, {tip}));
  }
  if (!tree) nodes.push_back(tests::make_node("sink", 0, tips));
  return tests::build_graph(nodes);
}
std::int64_t feasible_peak(const std::vector<std::int64_t>& numbers) {
  const auto n = static_cast<std::int64_t>(numbers.size()), m = n / 3;
  const std::int64_t group = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}) / m;
  return m * (m + 1) * n * group / 2 + m * group + m * (m + 1) * group / 2;
}

/// Returns whether the numbers can be divided into groups of three with this sum, by trying all divisions.
bool can_be_split(const std::vector<std::int64_t>& numbers, std::int64_t sum) {
  std::vector<std::int64_t> groups(numbers.size() / 3, 0);
  const std::function<bool(std::size_t)> place = [&](std::size_t next) {
    if (next == numbers.size()) return true;
    for (std::int64_t& group : groups) {
      if (group + numbers[next] > sum) continue;
      group += numbers[next];
      const bool done = place(next + 1);
      group -= numbers[next];
      if (done) return true;
      if (group == 0) break;  // all empty groups are alike, so only the first one needs to be tried
    }
    return false;
  };
  return place(0);
}

/// Returns 3m random positive numbers for m = `groups`. They add up to m * sum, but cannot be divided into m groups of
/// three with this sum. No number exceeds `sum`.
std::vector<std::int64_t> infeasible_numbers(Random& random, int groups, std::int64_t sum) {
  while (true) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(3 * groups), 1);
    for (std::int64_t left = groups * (sum - 3); left > 0;) {
      const auto place = static_cast<std::size_t>(random.below(3 * groups));
      const std::int64_t more = std::min(left, random.between(1, std::max<std::int64_t>(1, sum / 4)));
      if (numbers[place] + more > sum) continue;
      numbers[place] += more;
      left -= more;
    }
    if (!can_be_split(numbers, sum)) return numbers;
  }
}

TEST_CASE("3-Partition with six numbers has the peak of brute force", "[order]") {
  Random random(15);
  for (int i = 0; i < 12; ++i) {
    const bool feasible = i % 2 == 0;
    const std::vector<std::int64_t> numbers =
        feasible ? models::feasible_three_partition(2, 12 + i, static_cast<std::uint64_t>(i))
                 : infeasible_numbers(random, 2, 15);
    REQUIRE(can_be_split(numbers, std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}) / 2) == feasible);
    for (const bool tree : {false, true}) {
      const Graph graph = three_partition_graph(numbers, tree);
      const std::int64_t least = reference::least_peak(reference::cut_lattice(graph));
      REQUIRE((least == feasible_peak(numbers)) == feasible);
      REQUIRE(least >= feasible_peak(numbers));
      for (const OrderSolver& solver : solvers_of(graph)) {
        INFO(solver.name << tests::show(numbers));
        CHECK(solver.solve(graph, one_thread()).peak == least);
      }
    }
  }
}

TEST_CASE("3-Partition: the peak says whether the numbers can be split", "[order]") {
  Random random(16);
  for (const int groups : {3, 4}) {
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::int64_t> good =
          models::feasible_three_partition(groups, 30 + 10 * i, static_cast<std::uint64_t>(100 * groups + i));
      CHECK(pumpkin(models::three_partition_pumpkin(good).graph, one_thread()).peak == feasible_peak(good));
      CHECK(pumpkin(three_partition_graph(good, false), one_thread()).peak == feasible_peak(good));
      CHECK(out_tree(three_partition_graph(good, true), one_thread()).peak == feasible_peak(good));
      const std::vector<std::int64_t> bad = infeasible_numbers(random, groups, 20 + 7 * i);
      const Solution above = pumpkin(three_partition_graph(bad, false), one_thread());
      CHECK(above.peak > feasible_peak(bad));
      CHECK(above.status == Status::optimal);
      CHECK(out_tree(three_partition_graph(bad, true), one_thread()).peak > feasible_peak(bad));
      if (groups == 3) {
        CHECK(series_parallel(three_partition_graph(good, false), one_thread()).peak == feasible_peak(good));
        CHECK(series_parallel(three_partition_graph(bad, false), one_thread()).peak == above.peak);
        CHECK(order(three_partition_graph(bad, false), one_thread()).peak == above.peak);
      }
    }
  }
}

TEST_CASE("3-Partition with fifteen and eighteen numbers", "[order]") {
  const std::vector<std::int64_t> fifteen = models::feasible_three_partition(5, 40, 1);
  CHECK(pumpkin(three_partition_graph(fifteen, false), one_thread()).peak == feasible_peak(fifteen));
  // In the solver's table, equal chains are copies of one kind. These numbers give three kinds of six copies each.
  std::vector<std::int64_t> eighteen;
  for (int i = 0; i < 6; ++i) eighteen.insert(eighteen.end(), {3, 5, 12});
  CHECK(pumpkin(three_partition_graph(eighteen, false), one_thread()).peak == feasible_peak(eighteen));
  CHECK(order(three_partition_graph(eighteen, false), one_thread()).peak == feasible_peak(eighteen));
  eighteen = models::feasible_three_partition(6, 60, 2);
  CHECK(pumpkin(three_partition_graph(eighteen, false), one_thread()).peak == feasible_peak(eighteen));
  CHECK(out_tree(three_partition_graph(eighteen, true), one_thread()).peak == feasible_peak(eighteen));
}

TEST_CASE("3-Partition with fifteen and eighteen numbers that parity keeps from being split", "[order]") {
  // Every group must add up to 41, so it must contain an odd number of odd numbers. But there are fewer odd numbers
  // than groups. So no such division exists, and the least peak must be higher than with a division.
  const std::vector<std::int64_t> fifteen = {10, 10, 12, 12, 14, 14, 16, 16, 18, 18, 14, 14, 13, 13, 11};
  const std::vector<std::int64_t> eighteen = {10, 18, 12, 16, 14, 14, 8, 20, 6, 22, 10, 18, 12, 16, 12, 12, 13, 13};
  CHECK(pumpkin(three_partition_graph(fifteen, false), one_thread()).peak > feasible_peak(fifteen));
  CHECK(pumpkin(three_partition_graph(eighteen, false), one_thread()).peak > feasible_peak(eighteen));
  CHECK(order(three_partition_graph(eighteen, false), one_thread()).peak > feasible_peak(eighteen));
}

}  // namespace
}  // namespace cairn::solvers::order_property_test
