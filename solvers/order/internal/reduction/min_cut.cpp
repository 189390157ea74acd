// Finds cuts of least memory (min_cut.h). A cut is a set of steps that contains all predecessors of its steps. The
// memory of a cut is the bytes in use when exactly its steps have run. A step first raises memory by its `rise`.

#include "cairn/solvers/order/internal/reduction/min_cut.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cairn/solvers/common/support/flow_network.h"

namespace cairn::solvers {
namespace {

std::vector<std::uint8_t> least_closure(FlowNetwork& network, std::span<const std::int64_t> weights,
                                        std::span<const Need> needs) {
  const auto count = static_cast<std::int32_t>(weights.size());
  const std::int32_t source = count, sink = count + 1;
  network.reset(count + 2);
  for (std::int32_t v = 0; v < count; ++v) {
    if (weights[v] < 0) network.add_arc(source, v, -weights[v]);
    if (weights[v] > 0) network.add_arc(v, sink, weights[v]);
  }
  for (const auto& [holder, needed] : needs) network.add_arc(holder, needed, FlowNetwork::kUnlimited);
  network.solve(source, sink);
  std::vector<std::uint8_t> closure = network.source_side();
  closure.resize(weights.size());
  return closure;
}

/// Finds cuts of least memory in one graph. Its arrays are allocated once for all calls.
class CutFinder {
 public:
  explicit CutFinder(const StepGraph& graph) : graph_(graph), local_(static_cast<std::size_t>(graph.step_count())) {}

  Cut least(const Cut& from, const Cut& to) {
    number(from, to);
    weights_.clear();
    needs_.clear();
    for (const StepId s : steps_) weights_.push_back(graph_[s].rise - graph_[s].drop);
    for (const StepId s : steps_) {
      for (const StepId p : graph_.predecessors(s)) {
        if (local_[p] >= 0) needs_.emplace_back(local_[s], local_[p]);
      }
    }
    for (StepId s = 0; s < graph_.step_count(); ++s) {
      if (to.contains(s) && graph_[s].output > 0) add_release(s, from, to);
    }
    const auto closure = least_closure(network_, weights_, needs_);
    Cut cut = from;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (closure[i] != 0) cut.insert(steps_[i]);
    }
    return cut;
  }

 private:
  void number(const Cut& from, const Cut& to) {
    steps_.clear();
    for (StepId s = 0; s < graph_.step_count(); ++s) {
      local_[s] = -1;
      if (!to.contains(s) || from.contains(s)) continue;
      local_[s] = static_cast<std::int32_t>(steps_.size());
      steps_.push_back(s);
    }
  }

  /// Models that the output of s is freed after all its readers. Adds an element to the problem that least_closure()
  /// solves. The weight of the element is the negative size of the output. A set may contain the element only if it
  /// contains all readers that have not run at `from`. If there is only one such reader, lowers the weight of this
  /// reader instead. Does nothing if all readers have run at `from`, because the output is already freed, or if a
  /// reader is outside `to`, because the output is not freed.
  void add_release(StepId s, const Cut& from, const Cut& to) {
    std::int32_t waiting = 0, last = -1;
    for (const StepId successor : graph_.successors(s)) {
      if (!to.contains(successor)) return;
      if (from.contains(successor)) continue;
      ++waiting;
      last = local_[successor];
    }
    if (waiting == 0) return;
    if (waiting == 1) {
      weights_[last] -= graph_[s].output;
      return;
    }
    const auto release = static_cast<std::int32_t>(weights_.size());
    weights_.push_back(-graph_[s].output);
    for (const StepId successor : graph_.successors(s)) {
      if (local_[successor] >= 0) needs_.emplace_back(release, local_[successor]);
    }
  }

  const StepGraph& graph_;
  FlowNetwork network_;
  std::vector<StepId> steps_;
  std::vector<std::int32_t> local_;
  std::vector<std::int64_t> weights_;
  std::vector<Need> needs_;
};

/// Computes cut_lower_bound(). Each step gives a bound: its rise plus the least memory of all cuts after which it can
/// run. Computing this bound takes a maximum flow. So for each step, at_most_ first has a number that is quick to
/// compute and at least as high as the bound: the step's rise plus the memory of any one of these cuts. The step with
/// the highest at_most_ is examined next. The search ends when the best bound so far is at least at_most_ of every
/// step.
class BoundSearch {
 public:
  BoundSearch(const StepGraph& graph, const Cut& from, const Cut& to)
      : graph_(graph),
        from_(from),
        to_(to),
        finder_(graph),
        at_most_(static_cast<std::size_t>(graph.step_count()), std::numeric_limits<std::int64_t>::min()),
        looked_behind_(graph.step_count()) {
    for (const StepId s : graph.any_order()) {
      if (!to.contains(s) || from.contains(s)) continue;
      order_.push_back(s);
      at_most_[s] = std::numeric_limits<std::int64_t>::max();
    }
    lower_to(order_);
  }

  std::int64_t run(core::Stopwatch& watch) {
    std::int64_t bound = std::max(memory(graph_, from_), memory(graph_, to_));
    while (!order_.empty()) {
      const auto s = static_cast<StepId>(std::max_element(at_most_.begin(), at_most_.end()) - at_most_.begin());
      if (at_most_[s] <= bound || watch.charge(graph_.step_count() + graph_.edge_count()).expired()) break;
      if (!looked_behind_.contains(s)) {
        look_behind_ancestors(s);
      } else {
        bound = std::max(bound, find_least(s));
      }
    }
    return bound;
  }

 private:
  /// Lowers at_most_ of each step to the memory during the step in the given order, if that memory is less.
  void lower_to(std::span<const StepId> order) {
    const auto bytes = profile(graph_, order, from_);
    for (std::size_t i = 0; i < order.size(); ++i) at_most_[order[i]] = std::min(at_most_[order[i]], bytes[2 * i + 1]);
  }

  /// Lowers at_most_ of s by a cut that is found without a maximum flow and often has the least memory. The cut
  /// contains the ancestors of s, and repeatedly grows by a step that can run and leaves memory no higher.
  void look_behind_ancestors(StepId s) {
    looked_behind_.insert(s);
    Cut cut = from_;
    mark(s, cut, [&](StepId t) { return graph_.predecessors(t); });
    cut.erase(s);
    std::int64_t bytes = memory(graph_, cut);
    std::vector<std::int32_t> waiting(static_cast<std::size_t>(graph_.step_count()));
    std::vector<StepId> ready;
    const auto is_ready = [&](StepId t) {
      const auto before = graph_.predecessors(t);
      return t != s && to_.contains(t) && !cut.contains(t) &&
             std::all_of(before.begin(), before.end(), [&](StepId p) { return cut.contains(p); });
    };
    for (StepId t = 0; t < graph_.step_count(); ++t) {
      for (const StepId reader : graph_.successors(t)) waiting[t] += cut.contains(reader) ? 0 : 1;
      if (is_ready(t)) ready.push_back(t);
    }
    while (!ready.empty()) {
      const StepId t = ready.back();
      ready.pop_back();
      if (cut.contains(t)) continue;
      std::int64_t change = graph_[t].rise - graph_[t].drop;
      for (const StepId p : graph_.predecessors(t)) change -= waiting[p] == 1 ? graph_[p].output : 0;
      if (change > 0) continue;
      cut.insert(t);
      bytes += change;
      for (const StepId p : graph_.predecessors(t)) {
        if (--waiting[p] != 1 || graph_[p].output == 0) continue;
        for (const StepId reader : graph_.successors(p)) {
          if (is_ready(reader)) ready.push_back(reader);
        }
      }
      for (const StepId next : graph_.successors(t)) {
        if (is_ready(next)) ready.push_back(next);
      }
    }
    at_most_[s] = std::min(at_most_[s], bytes + graph_[s].rise);
  }

  std::int64_t find_least(StepId s) {
    Cut low = from_, behind(graph_.step_count()), high = to_;
    mark(s, low, [&](StepId t) { return graph_.predecessors(t); });
    low.erase(s);
    mark(s, behind, [&](StepId t) { return graph_.successors(t); });
    for (const StepId t : order_) {
      if (behind.contains(t)) high.erase(t);
    }
    const Cut cut = finder_.least(low, high);
    // If the steps of this cut run first, memory is low during many other steps, too, so at_most_ of those steps falls
    // as well.
    std::stable_partition(order_.begin(), order_.end(), [&](StepId t) { return cut.contains(t); });
    lower_to(order_);
    return at_most_[s] = memory(graph_, cut) + graph_[s].rise;
  }

  /// Adds s and all steps that can be reached from s along `next`. Does not go beyond steps that are already in
  /// `marked`.
  template <class Next>
  static void mark(StepId s, Cut& marked, const Next& next) {
    std::vector<StepId> stack{s};
    marked.insert(s);
    while (!stack.empty()) {
      const StepId top = stack.back();
      stack.pop_back();
      for (const StepId t : next(top)) {
        if (marked.contains(t)) continue;
        marked.insert(t);
        stack.push_back(t);
      }
    }
  }

  const StepGraph& graph_;
  const Cut& from_;
  const Cut& to_;
  CutFinder finder_;
  std::vector<StepId> order_;
  std::vector<std::int64_t> at_most_;
  Cut looked_behind_;
};

}  // namespace

std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs) {
  FlowNetwork network;
  return least_closure(network, weights, needs);
}

Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to) { return CutFinder(graph).least(from, to); }

std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch) {
  return BoundSearch(graph, from, to).run(watch);
}

std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch) {
  return cut_lower_bound(graph, Cut(graph.step_count()), Cut(graph.step_count(), true), watch);
}

}  // namespace cairn::solvers
