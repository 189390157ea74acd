#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/remat/baselines.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

/// One walk over the input order under one memory limit.
class GreedyWalk {
 public:
  GreedyWalk(const core::Graph& graph, std::int64_t limit, core::Stopwatch& watch)
      : graph_(graph), limit_(limit), watch_(watch), occurrences_(graph.node_count()) {}

  /// Nothing when the watch expired or the schedule grew without end.
  std::optional<core::Schedule> run() {
    lay_out_baseline();
    const auto most_steps = static_cast<std::size_t>(kMostRepeats * graph_.node_count() + 64);
    for (std::int32_t i = 0; i != kEnd; i = steps_[i].next) {
      const NodeId v = steps_[i].node;
      while (memory_ + graph_.size(v) + graph_.scratch(v) > limit_ && steps_.size() < most_steps) {
        if (watch_.charge(static_cast<std::int64_t>(live_.size())).expired()) return std::nullopt;
        if (!drop_best(i)) break;
      }
      execute(i);
    }
    core::Schedule schedule;
    for (std::int32_t i = 0; i != kEnd; i = steps_[i].next) schedule.steps.push_back(steps_[i].node);
    return schedule;
  }

 private:
  static constexpr std::int32_t kEnd = -1;
  static constexpr std::int64_t kMostRepeats = 8;
  static constexpr std::uint64_t kLabelGap = std::uint64_t{1} << 32;

  /// A step of the list that is being edited, and the occurrence it makes.
  struct Step {
    NodeId node = core::kNoNode;
    std::int32_t previous = kEnd, next = kEnd;
    std::uint64_t label = 0;            ///< ascending along the list
    std::vector<std::int32_t> readers;  ///< in list order
    std::size_t read = 0;               ///< how many of them have run
    std::int32_t live_slot = -1;        ///< place in live_, -1 when not in memory
    bool inserted = false;
    bool executed = false;
  };

  void lay_out_baseline() {
    for (const NodeId v : graph_.input_order()) {
      const auto i = static_cast<std::int32_t>(steps_.size());
      Step step;
      step.node = v;
      step.previous = i - 1;
      step.next = i + 1 < graph_.node_count() ? i + 1 : kEnd;
      step.label = kLabelGap * static_cast<std::uint64_t>(i + 1);
      steps_.push_back(std::move(step));
      occurrences_[v].push_back(i);
      for (const NodeId u : graph_.inputs(v)) steps_[occurrences_[u].front()].readers.push_back(i);
    }
  }

  bool stays(std::int32_t o) const {
    return steps_[o].read < steps_[o].readers.size() ||
           (graph_.keep(steps_[o].node) && occurrences_[steps_[o].node].back() == o);
  }

  void enter_memory(std::int32_t o) {
    memory_ += graph_.size(steps_[o].node);
    steps_[o].live_slot = static_cast<std::int32_t>(live_.size());
    live_.push_back(o);
  }

  void leave_memory(std::int32_t o) {
    memory_ -= graph_.size(steps_[o].node);
    const std::int32_t moved = live_.back();
    live_[steps_[o].live_slot] = moved;
    steps_[moved].live_slot = steps_[o].live_slot;
    live_.pop_back();
    steps_[o].live_slot = -1;
  }

  void execute(std::int32_t i) {
    for (const NodeId u : graph_.inputs(steps_[i].node)) {
      const std::int32_t o = latest_before(u, i);
      ++steps_[o].read;
      if (!stays(o)) leave_memory(o);
    }
    steps_[i].executed = true;
    if (stays(i)) enter_memory(i);
  }

  std::int32_t latest_before(NodeId v, std::int32_t step) const {
    const auto& all = occurrences_[v];
    for (auto o = all.rbegin(); o != all.rend(); ++o) {
      if (steps_[*o].label < steps_[step].label) return *o;
    }
    return kEnd;
  }

  /// Bytes that dropping occurrence o at step i and recomputing it before its next use frees at i; <= 0 if it may not.
  std::int64_t reduction(std::int32_t o, std::int32_t i) const {
    const Step& step = steps_[o];
    if (step.read >= step.readers.size() || step.readers[step.read] == i) return 0;
    if (step.inserted && step.read == 0) return 0;  // a recomputation serves at least one reader
    std::int64_t bytes = graph_.size(step.node);
    for (const NodeId u : graph_.inputs(step.node)) {
      const Step& input = steps_[latest_before(u, step.readers[step.read])];
      if (input.executed && input.live_slot < 0) bytes -= graph_.size(u);  // it must live on instead
    }
    return bytes;
  }

  bool drop_best(std::int32_t i) {
    std::int32_t best = kEnd;
    std::int64_t best_bytes = 0;
    for (const std::int32_t o : live_) {
      if (graph_.size(steps_[o].node) < best_bytes || graph_.size(steps_[o].node) == 0) continue;
      const std::int64_t bytes = reduction(o, i);
      if (bytes <= 0 || bytes < best_bytes) continue;
      const NodeId v = steps_[o].node;
      if (bytes > best_bytes || graph_.cost(v) < graph_.cost(steps_[best].node) ||
          (graph_.cost(v) == graph_.cost(steps_[best].node) && o < best)) {
        best = o;
        best_bytes = bytes;
      }
    }
    if (best == kEnd) return false;
    recompute_before_next_use(best);
    return true;
  }

  void recompute_before_next_use(std::int32_t o) {
    const std::int32_t reader = steps_[o].readers[steps_[o].read];
    const std::int32_t again = insert_before(reader, steps_[o].node);
    auto& readers = steps_[o].readers;
    steps_[again].readers.assign(readers.begin() + static_cast<std::ptrdiff_t>(steps_[o].read), readers.end());
    readers.resize(steps_[o].read);
    leave_memory(o);
    for (const NodeId u : graph_.inputs(steps_[o].node)) {
      const std::int32_t input = latest_before(u, again);
      auto& row = steps_[input].readers;
      row.insert(std::upper_bound(row.begin(), row.end(), again,
                                  [&](std::int32_t a, std::int32_t b) { return steps_[a].label < steps_[b].label; }),
                 again);
      if (steps_[input].executed && steps_[input].live_slot < 0) enter_memory(input);
    }
  }

  std::int32_t insert_before(std::int32_t reader, NodeId v) {
    const auto added = static_cast<std::int32_t>(steps_.size());
    const std::int32_t before = steps_[reader].previous;
    if (steps_[reader].label - steps_[before].label < 2) relabel();
    Step step;
    step.node = v;
    step.previous = before;
    step.next = reader;
    step.label = steps_[before].label + (steps_[reader].label - steps_[before].label) / 2;
    step.inserted = true;
    steps_.push_back(std::move(step));
    steps_[before].next = added;
    steps_[reader].previous = added;
    auto& all = occurrences_[v];
    all.insert(std::upper_bound(all.begin(), all.end(), added,
                                [&](std::int32_t a, std::int32_t b) { return steps_[a].label < steps_[b].label; }),
               added);
    return added;
  }

  void relabel() {
    std::uint64_t label = 0;
    for (std::int32_t i = 0; i != kEnd; i = steps_[i].next) steps_[i].label = label += kLabelGap;
  }

  const core::Graph& graph_;
  std::int64_t limit_;
  core::Stopwatch& watch_;
  std::vector<Step> steps_;                             ///< step 0 is the list's head
  std::vector<std::vector<std::int32_t>> occurrences_;  ///< of each node, in list order
  std::vector<std::int32_t> live_;                      ///< occurrences in memory
  std::int64_t memory_ = 0;
};

}  // namespace

Solution greedy_remat(const core::Graph& graph, const SolveOptions& options) {
  constexpr int kLimits = 12;
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  const std::int64_t baseline = incumbent.offer(core::baseline_schedule(graph)).peak;
  const std::int64_t top = std::min(options.budget.value_or(baseline), baseline);
  for (int i = 0; i < kLimits && !incumbent.cannot_improve() && !watch.expired_now(); ++i) {
    const std::int64_t limit = top - top / kLimits * i;
    if (const auto schedule = GreedyWalk(graph, limit, watch).run()) incumbent.offer(*schedule);
    // The first limit that leads below the budget is the mildest.
    if (options.budget && incumbent.within_budget()) break;
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
