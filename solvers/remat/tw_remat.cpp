#include "cairn/solvers/remat/tw_remat.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Algorithm 1 for one graph and its separators, at any recursion limit k.
class TwScheduler {
 public:
  TwScheduler(const core::Graph& graph, const SeparatorTree& separators)
      : graph_(graph), separators_(separators), rank_(input_ranks(graph)), stamp_(graph.node_count(), 0) {}

  /// TWRemat(k), or nothing when it grew beyond `most_steps` or the watch expired.
  std::optional<core::Schedule> schedule(std::int64_t k, std::int64_t most_steps, core::Stopwatch& watch) {
    k_ = k;
    most_steps_ = most_steps;
    watch_ = &watch;
    stopped_ = false;
    steps_.clear();
    std::vector<NodeId> outputs;
    for (NodeId v = 0; v < graph_.node_count(); ++v) {
      if (graph_.required(v)) outputs.push_back(v);
    }
    if (!separators_.parts.empty()) compute(0, outputs);
    if (stopped_) return std::nullopt;
    return core::run_pinned_once(graph_, {std::move(steps_)});
  }

 private:
  using Part = SeparatorTree::Part;

  bool inside(const Part& part, NodeId v) const {
    return separators_.home[v] >= part.begin && separators_.home[v] < part.end;
  }

  /// `outputs` and their ancestors within the part, in topological order. What lies outside the part is in memory.
  std::vector<NodeId> needed(const Part& part, const std::vector<NodeId>& outputs) {
    ++current_;
    std::vector<NodeId> nodes;
    const auto visit = [&](NodeId v) {
      if (stamp_[v] == current_ || !inside(part, v)) return;
      stamp_[v] = current_;
      nodes.push_back(v);
    };
    for (const NodeId v : outputs) visit(v);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const NodeId u : graph_.predecessors(nodes[i])) visit(u);
    }
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
    return nodes;
  }

  /// Computes the nodes among `wanted` that lie in the part's components, component by component.
  template <class Nodes>
  void compute_in_components(const Part& part, const Nodes& wanted) {
    std::map<std::int32_t, std::vector<NodeId>> by_component;
    for (const NodeId u : wanted) {
      if (!inside(part, u) || separators_.home[u] == part.begin) continue;
      const auto child = std::upper_bound(part.children.begin(), part.children.end(), separators_.home[u]) - 1;
      by_component[*child].push_back(u);
    }
    for (const auto& [child, outputs] : by_component) compute(child, outputs);
  }

  void compute(std::int32_t number, const std::vector<NodeId>& outputs) {
    const Part& part = separators_.parts[number];
    const std::vector<NodeId> nodes = needed(part, outputs);
    if (stopped_ || watch_->charge(static_cast<std::int64_t>(nodes.size())).expired() ||
        static_cast<std::int64_t>(steps_.size()) > most_steps_) {
      stopped_ = true;
      return;
    }
    if (part.bags < k_ || part.children.empty()) {
      steps_.insert(steps_.end(), nodes.begin(), nodes.end());
      return;
    }
    for (const NodeId v : nodes) {
      if (separators_.home[v] != number) continue;
      compute_in_components(part, graph_.predecessors(v));
      steps_.push_back(v);
    }
    compute_in_components(part, outputs);
  }

  const core::Graph& graph_;
  const SeparatorTree& separators_;
  std::vector<std::int32_t> rank_;  ///< place in the input order
  std::vector<std::uint64_t> stamp_;
  std::uint64_t current_ = 0;
  std::int64_t k_ = 1, most_steps_ = 0;
  core::Stopwatch* watch_ = nullptr;
  bool stopped_ = false;
  std::vector<NodeId> steps_;
};

/// Tries values of k: first along powers of two from NoRemat down, then between the cheapest that fits and its
/// neighbour above, since cost falls and memory grows with k, if not always.
class KSearch {
 public:
  KSearch(TwScheduler& scheduler, Incumbent& incumbent, core::Stopwatch& watch, std::int64_t most_steps,
          const std::function<void(const core::Schedule&)>& improve)
      : scheduler_(scheduler), incumbent_(incumbent), watch_(watch), most_steps_(most_steps), improve_(improve) {}

  void run(const SeparatorTree& separators, bool has_budget) {
    // Only these values of k differ: one above each part's number of bags.
    std::set<std::int64_t> distinct{1};
    for (const auto& part : separators.parts) distinct.insert(part.bags + 1);
    const std::vector<std::int64_t> ks(distinct.begin(), distinct.end());
    const auto last = static_cast<std::ptrdiff_t>(ks.size()) - 1;

    std::vector<std::ptrdiff_t> grid;
    for (std::int64_t k = ks.back(); k >= 1; k /= 2) {
      const auto at = std::lower_bound(ks.begin(), ks.end(), k) - ks.begin();
      if (grid.empty() || grid.back() != at) grid.push_back(at);
    }
    if (grid.back() != 0) grid.push_back(0);
    std::ptrdiff_t fits = -1;
    for (const std::ptrdiff_t at : grid) {
      const Outcome outcome = attempt(ks[at]);
      if (outcome == Outcome::too_long) break;  // smaller k are longer still
      if (has_budget && fits < 0 && outcome == Outcome::fits) fits = at;
      if (watch_.expired_now() || incumbent_.cannot_improve()) return;
      if (fits >= 0) break;
    }
    if (fits < 0) return;
    // Bisection for the largest k that fits, then its neighbours while the limit allows.
    std::ptrdiff_t low = fits, high = last;
    for (const std::ptrdiff_t at : grid) {
      if (at > fits) high = std::min(high, at);
    }
    while (high - low > 1 && !watch_.expired_now()) {
      const std::ptrdiff_t middle = low + (high - low) / 2;
      (attempt(ks[middle]) == Outcome::fits ? low : high) = middle;
    }
    for (std::ptrdiff_t offset = 1; offset <= 8 && !watch_.expired_now(); ++offset) {
      if (low - offset >= 0) attempt(ks[low - offset]);
      if (high + offset <= last) attempt(ks[high + offset]);
    }
    // Far smaller k need less memory, so more of what they recompute can stay after all.
    for (const std::ptrdiff_t at : grid) {
      if (at < low && (watch_.expired_now() || attempt(ks[at]) == Outcome::too_long)) break;
    }
  }

 private:
  enum class Outcome { fits, exceeds, too_long };

  Outcome attempt(std::int64_t k) {
    if (const auto known = tried_.find(k); known != tried_.end()) return known->second;
    const auto schedule = scheduler_.schedule(k, most_steps_, watch_);
    if (!schedule) return tried_[k] = Outcome::too_long;
    const std::int64_t peak = incumbent_.offer(*schedule).peak;
    if (!incumbent_.fits(peak)) return tried_[k] = Outcome::exceeds;
    improve_(*schedule);
    return tried_[k] = Outcome::fits;
  }

  TwScheduler& scheduler_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  std::int64_t most_steps_;
  std::function<void(const core::Schedule&)> improve_;  ///< of a schedule that fits
  std::map<std::int64_t, Outcome> tried_;
};

}  // namespace

Solution tw_remat(const core::Graph& graph, const TwRematOptions& options) {
  constexpr std::int64_t kMostRepeats = 64;
  constexpr std::int32_t kCoreDegree = 192;
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  if (options.k == 0) incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.proved_infeasible() && options.k == 0) {
    // No k can reach the budget; the least peak is still worth knowing.
    SolveOptions least = options;
    least.budget.reset();
    Solution solution = tw_remat(graph, TwRematOptions{least});
    solution.status = Status::infeasible;
    return solution;
  }
  if (options.k == 0 && incumbent.cannot_improve()) return incumbent.finish(false);

  const SeparatorTree separators = separator_tree(
      options.decomposition != nullptr ? *options.decomposition : min_fill_decomposition(graph, kCoreDegree, &watch),
      graph.node_count());
  TwScheduler scheduler(graph, separators);
  const std::int64_t most_steps = kMostRepeats * graph.node_count() + 4096;
  if (options.k > 0) {
    if (const auto schedule = scheduler.schedule(options.k, most_steps, watch)) incumbent.offer(*schedule);
  } else {
    core::EditableSchedule work(graph);
    const auto improve = [&](const core::Schedule& schedule) {
      if (!options.retain || !options.budget) return;
      work.assign(core::drop_unread(graph, schedule).steps);
      retain_where_it_fits(graph, work, *options.budget);
      incumbent.offer({work.steps()});
    };
    KSearch(scheduler, incumbent, watch, most_steps, improve).run(separators, options.budget.has_value());
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
