// Runs Algorithms 1 and 2 of Jin et al. on step graphs (dominant.h). A cut is a set of steps that contains all
// predecessors of its steps. A step first raises memory by its `rise` and afterwards lowers it by its `drop`.

#include "cairn/solvers/order/internal/chains/dominant.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/solvers/order/device/dominant_schedule.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"

namespace cairn::solvers {
namespace {

/// Holds the step graph of a cut, read backwards: all edges are reversed, and the rise and the drop of each step are
/// exchanged. If the cut contains all readers of an output, the output is freed within the cut. Backwards, a separate
/// step adds the bytes of such an output before any of its readers runs.
struct Reversed {
  StepGraph graph;
  /// For each step that stands for a step of the cut, that step. The steps that add outputs come last and have no
  /// entry.
  std::vector<StepId> original;
};

Reversed reverse(const StepGraph& graph, const Cut& cut) {
  Reversed reversed;
  std::vector<StepId> local(static_cast<std::size_t>(graph.step_count()), -1);
  std::vector<StepGraph::Step> steps;
  std::vector<StepGraph::Edge> edges;
  for (StepId s = 0; s < graph.step_count(); ++s) {
    if (!cut.contains(s)) continue;
    local[s] = static_cast<StepId>(steps.size());
    steps.push_back({graph[s].drop, graph[s].rise, 0});
    reversed.original.push_back(s);
    for (const StepId p : graph.predecessors(s)) edges.emplace_back(s, p);
  }
  for (auto& [from, to] : edges) {
    from = local[from];
    to = local[to];
  }
  for (const StepId s : reversed.original) {
    const auto successors = graph.successors(s);
    const bool released = graph[s].output > 0 &&
                          std::all_of(successors.begin(), successors.end(), [&](StepId t) { return local[t] >= 0; });
    if (!released) continue;
    const auto back = static_cast<StepId>(steps.size());
    steps.push_back({graph[s].output, 0, 0});
    for (const StepId t : successors) edges.emplace_back(back, local[t]);
  }
  reversed.graph = StepGraph(std::move(steps), std::move(edges));
  return reversed;
}

/// Provides the cuts of a step graph to Algorithms 1 and 2 (device/dominant_schedule.h).
class StepCuts {
 public:
  StepCuts(const StepGraph& graph, const Cut& from, const Cut& to, const PeakOracle& oracle)
      : graph_(&graph), at_(from), to_(to), oracle_(oracle) {}

  bool done() const { return at_ == to_; }
  bool find_optimal() {
    auto order = oracle_(*graph_, at_, to_);
    if (order) found_ = std::move(*order);
    return order.has_value();
  }
  bool pass_peak() {
    const auto bytes = profile(*graph_, found_, at_);
    const auto highest = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
    // If memory is highest during a step and not between two steps, the step itself is added to the cut, too. The next
    // cut of least memory contains this step anyway, because memory after the step is no higher than during it.
    for (std::ptrdiff_t i = 0; i < (highest + 1) / 2; ++i) at_.insert(found_[i]);
    return highest > 0;
  }
  void move_to_least_cut() { at_ = min_memory_cut(*graph_, at_, to_); }
  void append_found() { order_.insert(order_.end(), found_.begin(), found_.end()); }
  void append_passed() {
    std::copy_if(found_.begin(), found_.end(), std::back_inserter(order_), [&](StepId s) { return at_.contains(s); });
  }

  StepCuts reversed() {
    before_ = std::make_unique<Reversed>(reverse(*graph_, at_));
    const StepId count = before_->graph.step_count();
    return {before_->graph, Cut(count), Cut(count, true), oracle_};
  }
  void append_reversed(const StepCuts& backwards) {
    for (auto s = backwards.order_.rbegin(); s != backwards.order_.rend(); ++s) {
      if (static_cast<std::size_t>(*s) < before_->original.size()) order_.push_back(before_->original[*s]);
    }
  }
  std::vector<StepId> order() { return std::move(order_); }

 private:
  const StepGraph* graph_;
  Cut at_, to_;
  const PeakOracle& oracle_;
  std::vector<StepId> found_, order_;
  std::unique_ptr<Reversed> before_;
};

}  // namespace

std::optional<std::vector<StepId>> find_schedule(const StepGraph& graph, const Cut& from, const Cut& to,
                                                 const PeakOracle& oracle) {
  StepCuts cuts(graph, from, to, oracle);
  return find_schedule(cuts) ? std::optional(cuts.order()) : std::nullopt;
}

std::optional<std::vector<StepId>> find_schedule_general(const StepGraph& graph, const PeakOracle& oracle) {
  StepCuts cuts(graph, Cut(graph.step_count()), Cut(graph.step_count(), true), oracle);
  return find_schedule_general(cuts) ? std::optional(cuts.order()) : std::nullopt;
}

}  // namespace cairn::solvers
