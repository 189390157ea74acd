#include "cairn/solvers/remat/kumar/pw_remat.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/remat/kumar/interleaved.h"
#include "cairn/solvers/remat/kumar/path_schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/kumar2019.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/folded_chain.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::pw_remat_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
namespace paper = tests::kumar2019;
namespace reference = core::reference;

/// The bounds that docs/treewidth.md proves for b bags of at most p nodes each, if all costs are 1. `most_size` (M_max
/// on that page) is the largest size of a node, and `most_inputs` (M_in) is the largest total size of the inputs of a
/// node.
class Bounds {
 public:
  Bounds(std::int64_t most_size, std::int64_t most_inputs) : size_(most_size), inputs_(most_inputs) {}

  std::int64_t length(int p, int b) {
    if (p <= 0 || b <= 0) return 0;
    if (p <= 2) return std::int64_t{p} * b;  // the graph is then a path
    auto [entry, is_new] = lengths_.try_emplace({p, b}, 0);
    if (!is_new) return entry->second;
    std::int64_t most = 0;
    for (int left = 0; left < b; ++left) most = std::max(most, side_length(p, left) + side_length(p, b - 1 - left));
    return lengths_[{p, b}] = std::max<std::int64_t>(most + p, std::int64_t{p} * b);
  }
  std::int64_t peak(int p, int b) {
    if (p <= 0 || b <= 0) return 0;
    if (p <= 2) return p * size_;
    auto [entry, is_new] = peaks_.try_emplace({p, b}, 0);
    if (!is_new) return entry->second;
    std::int64_t most = 0;
    for (int left = 0; left < b; ++left) most = std::max(most, side_peak(p, left) + side_idle(p, b - 1 - left));
    return peaks_[{p, b}] = p * size_ + inputs_ + most;
  }

 private:
  std::int64_t side_length(int p, int b) {
    if (b <= 0) return 0;
    auto [entry, is_new] = side_lengths_.try_emplace({p, b}, 0);
    if (!is_new) return entry->second;
    const std::int64_t most = 2 * p * length(p - 1, b / 2) + 2 * side_length(p, b / 2) + p;
    return side_lengths_[{p, b}] = std::max(most, std::int64_t{p} * b);
  }
  std::int64_t side_idle(int p, int b) const { return b <= 0 ? 0 : p * size_ + side_idle(p, b / 2); }
  std::int64_t side_peak(int p, int b) {
    if (b <= 0) return 0;
    auto [entry, is_new] = side_peaks_.try_emplace({p, b}, 0);
    if (!is_new) return entry->second;
    const std::int64_t deeper = std::max(side_idle(p, b / 2) + peak(p - 1, b / 2), side_peak(p, b / 2));
    return side_peaks_[{p, b}] = p * size_ + inputs_ + deeper;
  }

  std::int64_t size_, inputs_;
  std::map<std::pair<int, int>, std::int64_t> lengths_, side_lengths_, peaks_, side_peaks_;
};

PathDecomposition any_decomposition(tests::Random& random, const Graph& graph) {
  std::vector<NodeId> layout(graph.input_order().begin(), graph.input_order().end());
  switch (random.below(3)) {
    case 0:
      random.shuffle(layout);
      return decomposition_of_layout(graph, layout);
    case 1: {
      // A layout of a path folded once: every second node of the path, and then the remaining nodes in reverse.
      std::vector<NodeId> folded;
      for (std::size_t i = 0; i < layout.size(); i += 2) folded.push_back(layout[i]);
      for (std::size_t i = layout.size(); i-- > 0;) {
        if (i % 2 != 0) folded.push_back(layout[i]);
      }
      return decomposition_of_layout(graph, folded);
    }
    default:
      return path_decomposition(graph);
  }
}

/// Compares the schedules for several values of k with the reference. Also compares the schedule for k = 1 with the
/// bounds.
void check_all(const Graph& graph, const PathDecomposition& decomposition) {
  const Spine spine = add_spine(graph, decomposition);
  PathScheduler scheduler(graph, spine);
  const int bags = static_cast<int>(spine.decomposition.bags.size());
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, std::int64_t{bags + 1}}) {
    core::Stopwatch watch{core::Limit()};
    const double slack = k == 4 ? 0.1 : 0;
    const auto list = scheduler.build(k, slack, 1 << 24, watch);
    REQUIRE(list.has_value());
    Schedule whole, read;
    const PathScheduleMeasures before = scheduler.measure(*list, false, &whole.steps);
    const PathScheduleMeasures after = scheduler.measure(*list, true, &read.steps);
    REQUIRE(reference::valid(graph, whole));
    REQUIRE(reference::valid(graph, read));
    CHECK(read == core::drop_unread(graph, whole));
    CHECK(before.length == whole.length());
    CHECK(before.length == scheduler.program().length(*list));
    CHECK(after.length == read.length());
    CHECK(before.peak == core::evaluate(graph, whole).peak);
    CHECK(after.peak == reference::peak(graph, read));
    CHECK(before.cost == reference::cost(graph, whole));
    CHECK(after.cost == reference::cost(graph, read));
    if (k == bags + 1) CHECK(whole.length() == graph.node_count());
    if (k != 1) continue;
    std::int64_t scratch = 0;
    for (NodeId v = 0; v < graph.node_count(); ++v) scratch = std::max(scratch, graph.scratch(v));
    Bounds bounds(paper::largest_size(graph), paper::largest_inputs(graph));
    const int p = spine.decomposition.width + 1;
    CHECK(whole.length() <= bounds.length(p, bags));
    CHECK(before.peak <= bounds.peak(p, bags) + paper::size_of(graph, paper::outputs(graph)) + scratch);
  }
}

TEST_CASE("PWRemat: valid, measured as the reference does, and within the bounds, on random graphs") {
  tests::for_each_seed(8000, [](tests::Random& random) {
    tests::RandomGraphOptions options = tests::any_graph(random);
    options.pinned = false;
    options.min_nodes = 1;
    const Graph graph = tests::random_graph(random, options);
    check_all(graph, any_decomposition(random, graph));
  });
}

TEST_CASE("PWRemat: the same on folded chains, where much is computed again") {
  std::int64_t again = 0;
  tests::for_each_seed(1500, [&](tests::Random& random) {
    const int folds = static_cast<int>(random.between(2, 5));
    const Graph graph = tests::folded_chain(random, folds, static_cast<int>(random.between(2, 24 / folds)),
                                            static_cast<int>(random.between(20, 100)), random.chance(50));
    check_all(graph, any_decomposition(random, graph));
    const Solution solution = pw_remat(graph, {.k = 1});
    again += solution.schedule.length() - graph.node_count();
  });
  CHECK(again > 1500);
}

TEST_CASE("PWRemat: the solver, with pinned nodes, several outputs, budgets and every k") {
  tests::for_each_seed(1500, [](tests::Random& random) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random));
    const std::int64_t baseline = reference::peak(graph, core::baseline_schedule(graph));
    PwRematOptions options{.k = random.chance(50) ? 0 : random.between(1, 10), .retain = random.chance(70)};
    if (random.chance(50)) options.budget = random.between(core::peak_lower_bound(graph), baseline);
    const Solution solution = pw_remat(graph, options);
    tests::require_measured(graph, solution);
    if (options.k == 0 && !options.budget) CHECK(solution.peak <= baseline);
    if (options.budget && solution.status == Status::feasible) CHECK(solution.peak <= *options.budget);
    CHECK(pw_remat(graph, options).schedule == solution.schedule);
  });
}

TEST_CASE("PWRemat: memory grows with a power of the logarithm where a chain runs there and back") {
  tests::Random random(7);
  for (const int folds : {2, 3}) {
    std::int64_t before = 0;
    for (const int columns : {32, 128, 512}) {
      const Graph graph = tests::folded_chain(random, folds, columns, 100);
      const Solution solution = pw_remat(graph, {.k = 1});
      CHECK(reference::peak_lower_bound(graph) <= solution.peak);
      CHECK(tests::baseline_peak(graph) > columns);
      CHECK(solution.peak <= 60);
      if (before > 0) CHECK(solution.peak <= 2 * before);
      before = solution.peak;
    }
  }
}

TEST_CASE("PWRemat: its length is known before it is written out") {
  // Each of 40 lists calls the previous list twice, so the whole schedule has 2^40 steps.
  CompressedSchedule program;
  std::int32_t list = program.add({0});
  for (int i = 0; i < 40; ++i) list = program.add({CompressedSchedule::call(list), CompressedSchedule::call(list)});
  CHECK(program.length(list) == std::int64_t{1} << 40);
  for (int i = 0; i < 40; ++i) list = program.add({CompressedSchedule::call(list), 1, CompressedSchedule::call(list)});
  CHECK(program.length(list) == std::int64_t{1} << 61);
  std::vector<std::int32_t> steps;
  const std::int32_t inner = program.add({1, 2});
  program.for_each_backwards(program.add({0, CompressedSchedule::call(inner), 3, CompressedSchedule::call(inner)}),
                             [&](std::int32_t step) { steps.push_back(step); });
  CHECK(steps == std::vector<std::int32_t>{2, 1, 3, 2, 1, 0});
}

TEST_CASE("PWRemat: a limit on lists or on work ends a build with nothing") {
  tests::Random random(8);
  const Graph graph = tests::folded_chain(random, 3, 100, 80);
  PathScheduler scheduler(graph, add_spine(graph, path_decomposition(graph)));
  core::Stopwatch watch{core::Limit()};
  CHECK_FALSE(scheduler.build(1, 0, 100, watch).has_value());
  CHECK(scheduler.build(1, 0, 1 << 24, watch).has_value());
  core::Limit limit{.work = 50};
  core::Stopwatch short_watch(limit);
  CHECK_FALSE(scheduler.build(1, 0, 1 << 24, short_watch).has_value());
  PwRematOptions options;
  options.limit = limit;
  CHECK(reference::valid(graph, pw_remat(graph, options).schedule));
  PwRematOptions little = {.k = 1};
  little.memory_bytes = 1000;
  CHECK_THROWS_AS(pw_remat(graph, little), core::InputError);
  little.k = 1000;
  CHECK(pw_remat(graph, little).schedule == core::baseline_schedule(graph));
}

/// These functions convert interleaved schedules between the library's type and the paper's sets of tuples.
paper::Interleaved as_paper(const InterleavedSchedule& schedule) {
  paper::Interleaved tuples;
  for (const InterleavedTuple& tuple : schedule) tuples.insert({tuple.node, tuple.schedule});
  return tuples;
}
InterleavedSchedule as_library(const paper::Interleaved& tuples) {
  InterleavedSchedule schedule;
  for (const auto& [node, steps] : tuples) schedule.push_back({steps, node});
  return schedule;
}

TEST_CASE("Merge, Condense and Flatten are the paper's") {
  tests::for_each_seed(3000, [](tests::Random& random) {
    // Tuples of the same node must be in the order in which the paper's Merge takes them. All other tuples are in any
    // order.
    paper::Interleaved tuples;
    for (std::int64_t count = random.between(0, 8); count > 0; --count) {
      paper::Sequence steps;
      for (std::int64_t length = random.below(4); length > 0; --length) {
        steps.push_back(static_cast<NodeId>(random.below(9)));
      }
      tuples.insert({static_cast<NodeId>(random.below(6)), steps});
    }
    InterleavedSchedule schedule = as_library(tuples);
    if (random.chance(50)) {
      std::stable_sort(schedule.begin(), schedule.end(), [](const auto& a, const auto& b) { return a.node > b.node; });
    }
    CHECK(merge(schedule) == as_library(paper::merge(tuples)));
    CHECK(flatten(schedule) == paper::flatten(tuples));
    paper::Nodes onto;
    for (const NodeId x : paper::on(tuples)) {
      if (random.chance(60)) onto.insert(x);
    }
    const std::vector<std::int32_t> nodes(onto.begin(), onto.end());
    const InterleavedSchedule condensed = condense(nodes, schedule);
    CHECK(as_paper(condensed) == paper::condense(onto, tuples));
    CHECK(condensed == condense(nodes, merge(schedule)));
    if (!onto.empty() && *onto.rbegin() == *paper::on(tuples).rbegin()) {
      CHECK(flatten(condensed) == flatten(schedule));
    }
  });
}

}  // namespace
}  // namespace cairn::solvers::pw_remat_test
