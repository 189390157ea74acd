// Drops values greedily where memory exceeds a limit, and computes them again before their next use (greedy_remat() in
// baselines.h).

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/baselines/baselines.h"

namespace cairn::solvers {
namespace {

using core::EditableSchedule;
using core::NodeId;
using Occurrence = EditableSchedule::Occurrence;
constexpr Occurrence kNone = EditableSchedule::kNone;

/// Walks through the input order under a memory limit (see greedy_remat()). An occurrence is one step of the schedule.
class GreedyWalk {
 public:
  GreedyWalk(const core::Graph& graph, core::Stopwatch& watch) : graph_(graph), watch_(watch), schedule_(graph) {}

  /// Makes the schedule that steps() returns. `limit` is in bytes. Returns false if the watch expired.
  bool run(std::int64_t limit) {
    const std::int64_t most_steps = kMostRepeats * graph_.node_count() + 64;
    schedule_.assign(graph_.input_order());
    live_.clear();
    states_.assign(static_cast<std::size_t>(graph_.node_count()), {});
    for (std::size_t i = 0; i < graph_.input_order().size(); ++i) {
      const Occurrence o = graph_.input_order()[i];  // the first occurrence of node v has the number v
      states_[o] = {.age = static_cast<std::int64_t>(i), .next_use = schedule_.first_reader(o)};
    }
    for (Occurrence o = schedule_.first(); o != schedule_.end(); o = schedule_.next(o)) {
      while (schedule_.during(schedule_.place(o)) > limit && schedule_.length() < most_steps) {
        if (watch_.charge(static_cast<std::int64_t>(live_.size())).expired()) return false;
        if (!drop_best(o)) break;
      }
      execute(o);
    }
    return true;
  }
  std::vector<NodeId> steps() const { return schedule_.steps(); }

 private:
  static constexpr std::int64_t kMostRepeats = 8;

  struct State {
    /// Breaks ties between occurrences: the lower number wins. For a step of the input order, this is its index there.
    /// Inserted steps have larger numbers, in the order of their insertion.
    std::int64_t age = 0;
    Occurrence next_use = kNone;  ///< next step that reads the occurrence's outputs
    std::int32_t live_slot = -1;  ///< index in live_; -1: the occurrence's outputs are not in memory
    bool inserted = false, executed = false;
  };

  void enter_memory(Occurrence o) {
    states_[o].live_slot = static_cast<std::int32_t>(live_.size());
    live_.push_back(o);
  }

  void leave_memory(Occurrence o) {
    const Occurrence moved = live_.back();
    live_[states_[o].live_slot] = moved;
    states_[moved].live_slot = states_[o].live_slot;
    live_.pop_back();
    states_[o].live_slot = -1;
  }

  void execute(Occurrence o) {
    for (std::int32_t k = 0; k < input_count(o); ++k) {
      const Occurrence source = schedule_.source(o, k);
      states_[source].next_use = schedule_.next_reader(o, k);
      if (states_[source].live_slot >= 0 && schedule_.last_use(source) == schedule_.place(o)) leave_memory(source);
    }
    states_[o].executed = true;
    if (schedule_.last_use(o) > schedule_.place(o)) enter_memory(o);
  }

  std::int32_t input_count(Occurrence o) const {
    return static_cast<std::int32_t>(graph_.inputs(schedule_.node(o)).size());
  }

  /// Computes how many bytes are freed at step i if the outputs of occurrence o are dropped there and recomputed before
  /// their next use. Returns a number <= 0 if this is not allowed or frees nothing.
  std::int64_t reduction(Occurrence o, Occurrence i) const {
    const Occurrence reader = states_[o].next_use;
    if (reader == kNone || reader == i || graph_.pinned(schedule_.node(o))) return 0;
    // A recomputed value is not dropped before its first use, because the recomputation would have been useless.
    if (states_[o].inserted && reader == schedule_.first_reader(o)) return 0;
    const EditableSchedule::Place now = schedule_.place(i);
    std::int64_t bytes = schedule_.live_bytes(o, now);
    for (const core::ValueId x : graph_.inputs(schedule_.node(o))) {
      const auto [u, output] = graph_.output_ref(x);
      const Occurrence input = schedule_.latest_before(u, schedule_.place(reader));
      // The recomputation would keep this input in memory. Without it, the input would be freed before step i.
      if (states_[input].executed && schedule_.last_use(input, output) < now) bytes -= graph_.value_size(x);
    }
    return bytes;
  }

  bool drop_best(Occurrence i) {
    Occurrence best = kNone;
    std::int64_t best_bytes = 0;
    for (const Occurrence o : live_) {
      const std::int64_t size = graph_.size(schedule_.node(o));
      if (size < best_bytes || size == 0) continue;
      const std::int64_t bytes = reduction(o, i);
      if (bytes <= 0 || bytes < best_bytes) continue;
      const std::int64_t cost = graph_.cost(schedule_.node(o));
      if (bytes > best_bytes ||
          std::pair(cost, states_[o].age) < std::pair(graph_.cost(schedule_.node(best)), states_[best].age)) {
        best = o;
        best_bytes = bytes;
      }
    }
    if (best == kNone) return false;
    recompute_before_next_use(best);
    return true;
  }

  void recompute_before_next_use(Occurrence o) {
    const Occurrence reader = std::exchange(states_[o].next_use, kNone);
    const Occurrence again = schedule_.insert(schedule_.node(o), reader);
    if (static_cast<std::size_t>(again) >= states_.size()) states_.resize(static_cast<std::size_t>(again) + 1);
    states_[again] = {.age = schedule_.length(), .next_use = reader, .inserted = true};
    leave_memory(o);
    for (std::int32_t k = 0; k < input_count(again); ++k) {
      const Occurrence source = schedule_.source(again, k);
      State& state = states_[source];
      if (state.next_use == schedule_.next_reader(again, k)) state.next_use = again;
      if (state.executed && state.live_slot < 0) enter_memory(source);
    }
  }

  const core::Graph& graph_;
  core::Stopwatch& watch_;
  EditableSchedule schedule_;
  std::vector<State> states_;     ///< indexed by occurrence
  std::vector<Occurrence> live_;  ///< occurrences whose outputs are in memory before the current step
};

}  // namespace

Solution greedy_remat(const core::Graph& graph, const SolveOptions& options) {
  constexpr int kLimits = 12;
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  const std::int64_t baseline = incumbent.offer(core::baseline_schedule(graph)).peak;
  const std::int64_t top = std::min(options.budget.value_or(baseline), baseline);
  GreedyWalk walk(graph, watch);
  for (int i = 0; i < kLimits && !incumbent.cannot_improve() && !watch.expired_now(); ++i) {
    if (walk.run(top - top / kLimits * i)) incumbent.offer({walk.steps()});
    // Lower limits would only cause more recomputations.
    if (options.budget && incumbent.within_budget()) break;
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
