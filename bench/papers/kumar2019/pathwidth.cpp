// TWRemat and PWRemat on folded chains: one line of JSON for each graph, as bench/papers/kumar2019/pathwidth.py reads
// it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/internal/path_schedule.h"
#include "cairn/solvers/remat/internal/refine.h"
#include "cairn/tests/support/folded_chain.h"
#include "cairn/tests/support/kumar2019.h"

namespace {

using namespace cairn;
using core::Graph;
using core::NodeId;
using core::Schedule;

constexpr std::int64_t kMostSteps = 400'000'000;  // of a schedule that is written out: 1.6 GB
constexpr std::int64_t kMostCleanSteps = 4'000'000;

/// Algorithm 1 as tw_remat runs it, of any length: of folded chains, numbered in topological order.
class TreeSchedule {
 public:
  explicit TreeSchedule(const Graph& graph)
      : graph_(graph),
        tree_(solvers::separator_tree(solvers::min_fill_decomposition(graph), graph.node_count())),
        stamp_(graph.node_count(), 0) {}

  /// Nothing where it is longer than kMostSteps.
  std::optional<Schedule> schedule(std::int64_t k) {
    k_ = k;
    steps_.clear();
    compute(0, {graph_.node_count() - 1});
    if (static_cast<std::int64_t>(steps_.size()) > kMostSteps) return std::nullopt;
    return Schedule{std::move(steps_)};
  }
  std::int64_t part_bags() const { return tree_.parts.front().bags; }

 private:
  using Part = solvers::SeparatorTree::Part;

  bool inside(const Part& part, NodeId v) const { return tree_.home[v] >= part.begin && tree_.home[v] < part.end; }

  std::vector<NodeId> needed(const Part& part, const std::vector<NodeId>& outputs) {
    ++current_;
    std::vector<NodeId> nodes;
    const auto visit = [&](NodeId v) {
      if (inside(part, v) && std::exchange(stamp_[v], current_) != current_) nodes.push_back(v);
    };
    for (const NodeId v : outputs) visit(v);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const NodeId u : graph_.predecessors(nodes[i])) visit(u);
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  template <class Nodes>
  void compute_below(const Part& part, std::int32_t number, const Nodes& wanted) {
    std::map<std::int32_t, std::vector<NodeId>> by_child;
    for (const NodeId u : wanted) {
      if (!inside(part, u) || tree_.home[u] == number) continue;
      by_child[*(std::upper_bound(part.children.begin(), part.children.end(), tree_.home[u]) - 1)].push_back(u);
    }
    for (const auto& [child, outputs] : by_child) compute(child, outputs);
  }

  void compute(std::int32_t number, const std::vector<NodeId>& outputs) {
    if (static_cast<std::int64_t>(steps_.size()) > kMostSteps) return;
    const Part& part = tree_.parts[number];
    const std::vector<NodeId> nodes = needed(part, outputs);
    if (part.bags < k_ || part.children.empty()) {
      steps_.insert(steps_.end(), nodes.begin(), nodes.end());
      return;
    }
    for (const NodeId v : nodes) {
      if (tree_.home[v] != number) continue;
      compute_below(part, number, graph_.predecessors(v));
      steps_.push_back(v);
    }
    compute_below(part, number, outputs);
  }

  const Graph& graph_;
  solvers::SeparatorTree tree_;
  std::vector<std::uint64_t> stamp_;
  std::uint64_t current_ = 0;
  std::int64_t k_ = 1;
  std::vector<NodeId> steps_;
};

struct Point {
  std::int64_t length = 0, peak = 0;
};
/// By k, the first with k = 1. Lengths with all steps, then without unread ones.
struct Curve {
  std::vector<std::pair<std::int64_t, Point>> points;
  Point read;  ///< of k = 1
  double seconds = 0;
};

/// The shortest of them within `peak`: its k, or 0.
std::int64_t shortest_within(const Curve& curve, std::int64_t peak) {
  const std::pair<std::int64_t, Point>* best = nullptr;
  for (const auto& point : curve.points) {
    if (point.second.peak <= peak && (best == nullptr || point.second.length < best->second.length)) best = &point;
  }
  return best == nullptr ? 0 : best->first;
}

/// With values kept wherever they fit below `peak`; nothing where the schedule is too long for that.
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

/// Algorithm 3 without what PathScheduler leaves out, on the same bags; slow.
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
  TreeSchedule trees(graph);
  Curve tree;
  std::optional<Schedule> whole = trees.schedule(1);
  if (whole) {
    tree.points.emplace_back(1, Point{whole->length(), core::evaluate(graph, *whole).peak});
    tree.seconds = tree_watch.seconds();
    const Schedule read = core::drop_unread(graph, *whole);
    tree.read = {read.length(), core::evaluate(graph, read).peak};
  }
  for (std::int64_t k = 4; k <= 2 * nodes; k *= 2) {
    whole = trees.schedule(k);
    if (whole) tree.points.emplace_back(k, Point{whole->length(), core::evaluate(graph, *whole).peak});
  }

  const std::int64_t peak = std::max(path.points.front().second.peak, tree.points.front().second.peak);
  const std::int64_t path_k = shortest_within(path, peak), tree_k = shortest_within(tree, peak);
  std::vector<NodeId> steps;
  const Point path_equal = of_path(path_k, false, &steps);
  const std::optional<Point> path_clean = cleaned(graph, {std::move(steps)}, peak);
  whole = trees.schedule(tree_k);
  const Point tree_equal{whole->length(), core::evaluate(graph, *whole).peak};
  const std::optional<Point> tree_clean = cleaned(graph, *whole, peak);

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

/// usage: cairn_pathwidth FOLDS NODES PERCENT
int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: {} FOLDS NODES PERCENT\n", argv[0]);
    return 2;
  }
  measure(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
  return 0;
}
