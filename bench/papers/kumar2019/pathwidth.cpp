// Runs the solvers TWRemat and PWRemat on a folded chain, i.e. a chain that runs back and forth over a row of columns.
// Prints a line of JSON for bench/papers/kumar2019/pathwidth.py.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/kumar/path_schedule.h"
#include "cairn/solvers/remat/kumar/tw_program.h"
#include "cairn/solvers/remat/repair/retain.h"
#include "cairn/tests/reference/kumar2019.h"
#include "cairn/tests/support/folded_chain.h"

namespace {

using namespace cairn;
using core::Graph;
using core::NodeId;
using core::Schedule;

constexpr std::int64_t kMostCleanSteps = 4'000'000;

struct Point {
  std::int64_t length = 0, peak = 0;
};
/// Lengths and peaks of the schedules of an algorithm that has a parameter k. `points` has a pair of k and the length
/// and peak of the schedule for this k, for each tried k, beginning with k = 1. These schedules contain all steps.
/// `read` is the length and peak of the schedule for k = 1 without the steps whose results are never read.
struct Curve {
  std::vector<std::pair<std::int64_t, Point>> points;
  Point read;  ///< only for k = 1
  double seconds = 0;
};

std::int64_t shortest_within(const Curve& curve, std::int64_t peak) {
  const std::pair<std::int64_t, Point>* best = nullptr;
  for (const auto& point : curve.points) {
    if (point.second.peak <= peak && (best == nullptr || point.second.length < best->second.length)) best = &point;
  }
  return best == nullptr ? 0 : best->first;
}

/// Shortens a schedule by keeping values in memory instead of recomputing them, where this leaves the peak at most
/// `peak`. Returns the new length and peak, or nullopt if the schedule has more than kMostCleanSteps steps.
std::optional<Point> cleaned(const Graph& graph, const Schedule& schedule, std::int64_t peak) {
  if (schedule.length() > kMostCleanSteps) return std::nullopt;
  core::EditableSchedule work(graph);
  work.assign(core::drop_unread(graph, schedule).steps);
  solvers::retain_where_it_fits(graph, work, peak);
  return Point{work.length(), work.peak()};
}

std::string json(const std::optional<Point>& point) {
  return point ? fmt::format("[{}, {}]", point->length, point->peak) : "null";
}

/// Runs Algorithm 3 of Kumar et al. 2019 literally on the bags of the path decomposition, including steps that Cairn's
/// PathScheduler leaves out. Returns nullopt for graphs of more than 1000 nodes, because the algorithm is slow.
std::optional<Point> literal(const Graph& graph, const solvers::PathDecomposition& decomposition) {
  if (graph.node_count() > 1000) return std::nullopt;
  tests::kumar2019::Bags bags;
  for (const auto& bag : decomposition.bags) bags.emplace_back(bag.begin(), bag.end());
  const Schedule schedule{tests::kumar2019::Algorithm3(graph).schedule(bags)};
  return Point{schedule.length(), core::evaluate(graph, schedule).peak};
}

void measure(int folds, int nodes, int percent) {
  tests::Random random(1);
  const Graph graph = tests::folded_chain(random, folds, nodes / folds, percent);
  const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));

  core::Stopwatch path_watch{core::Limit()};
  const solvers::PathDecomposition decomposition = solvers::path_decomposition(graph);
  const solvers::Spine spine = solvers::add_spine(graph, decomposition);
  solvers::PathScheduler scheduler(graph, spine);
  const auto of_path = [&](std::int64_t k, bool drop, std::vector<NodeId>* steps) {
    const auto list = scheduler.build(k, 0, std::int64_t{1} << 30, path_watch);
    const solvers::PathScheduleMeasures found = scheduler.measure(*list, drop, steps);
    return Point{found.length, found.peak};
  };
  Curve path;
  path.points.emplace_back(1, of_path(1, false, nullptr));
  path.seconds = path_watch.seconds();
  path.read = of_path(1, true, nullptr);
  for (std::int64_t k = 4; k <= 2 * nodes; k *= 2) path.points.emplace_back(k, of_path(k, false, nullptr));

  core::Stopwatch tree_watch{core::Limit()};
  const solvers::SeparatorTree separators =
      solvers::separator_tree(solvers::min_fill_decomposition(graph), graph.node_count());
  solvers::TwProgram program(graph, separators);
  Curve tree;
  for (std::int64_t k = 1; k <= 2 * nodes; k *= k == 1 ? 4 : 2) {
    const auto trimmed = program.trim(k, tree_watch);
    tree.points.emplace_back(k, Point{trimmed->length, trimmed->peak});
    if (k > 1) continue;
    tree.seconds = tree_watch.seconds();
    tree.read = {trimmed->steps, trimmed->peak};
  }

  const std::int64_t peak = std::max(path.points.front().second.peak, tree.points.front().second.peak);
  const std::int64_t path_k = shortest_within(path, peak), tree_k = shortest_within(tree, peak);
  std::vector<NodeId> steps;
  const Point path_equal = of_path(path_k, false, &steps);
  const std::optional<Point> path_clean = cleaned(graph, {std::move(steps)}, peak);
  // Also tries TWRemat with a recursion that ends earlier: as soon as the memory that is left suffices for all nodes of
  // the recursive call (TwProgram::steps_within).
  Schedule tree_schedule;
  program.for_each_step(*program.trim(tree_k, tree_watch), [&](NodeId v) {
    tree_schedule.steps.push_back(v);
    return true;
  });
  if (const auto by_bytes = program.steps_within(peak, tree_schedule.length(), tree_watch)) {
    if (by_bytes->size() < tree_schedule.steps.size() && core::evaluate(graph, {*by_bytes}).peak <= peak) {
      tree_schedule.steps = *by_bytes;
    }
  }
  const Point tree_equal{tree_schedule.length(), core::evaluate(graph, tree_schedule).peak};
  const std::optional<Point> tree_clean = cleaned(graph, tree_schedule, peak);

  fmt::print(
      "{{\"folds\": {}, \"nodes\": {}, \"edges\": {}, \"pathwidth\": {}, \"bag\": {}, \"baseline_peak\": {}, "
      "\"peak\": {}, \"pw\": {}, \"pw_read\": {}, \"pw_equal\": {}, \"pw_clean\": {}, \"pw_k\": {}, \"pw_seconds\": "
      "{:.2f}, \"pw_entries\": {}, \"literal\": {}, \"tw\": {}, \"tw_read\": {}, \"tw_equal\": {}, \"tw_clean\": {}, "
      "\"tw_k\": {}, \"tw_seconds\": {:.2f}}}\n",
      folds, graph.node_count(), graph.edge_count(), decomposition.width, spine.decomposition.width + 1, baseline.peak,
      peak, json(path.points.front().second), json(path.read), json(path_equal), json(path_clean), path_k, path.seconds,
      scheduler.program().entry_count(), json(literal(graph, spine.decomposition)), json(tree.points.front().second),
      json(tree.read), json(tree_equal), json(tree_clean), tree_k, tree.seconds);
  std::fflush(stdout);
}

}  // namespace

/// Usage: cairn_pathwidth FOLDS NODES PERCENT. Measures one folded chain (tests/support/folded_chain.h):
/// - FOLDS: number of times that the chain runs over the columns, alternately in one direction and in the other;
/// - NODES: number of nodes, rounded down to a multiple of FOLDS; there are NODES / FOLDS columns;
/// - PERCENT: probability in percent that a node reads the node of its column in an earlier fold.
int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: {} FOLDS NODES PERCENT\n", argv[0]);
    return 2;
  }
  measure(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
  return 0;
}
