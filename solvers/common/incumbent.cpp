#include "cairn/solvers/common/support/incumbent.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace cairn::solvers {

bool can_be_planned(const core::Graph& graph, const core::Schedule& schedule) {
  // Planners accept sizes that add up to at most 2^62 bytes. Planners also round sizes up to an alignment; 2^58 bytes
  // are reserved for this.
  constexpr std::int64_t kMost = (std::int64_t{1} << 62) - (std::int64_t{1} << 58);
  if (schedule.length() <= graph.node_count()) return true;
  std::int64_t made = 0;
  for (const core::NodeId v : schedule.steps) {
    const std::int64_t bytes = graph.size(v) + std::max<std::int64_t>(0, graph.scratch(v));
    if (bytes > kMost - made) return false;
    made += bytes;
  }
  return true;
}

Incumbent::Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch,
                     const Scope& own)
    : graph_(graph),
      options_(options),
      scope_(intersection(options.scope, own)),
      watch_(watch),
      evaluator_(graph),
      peak_bound_{core::peak_lower_bound(graph), kAnySchedule} {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) cost_bound_.value += graph.cost(v);
  // The baseline is the only schedule that keeps the input order and recomputes nothing. So its peak is a lower bound
  // on the peak in this scope.
  if (scope_.order != OrderRule::free && scope_.max_occurrences == 1)
    raise_lower_bound(evaluator_.evaluate(core::baseline_schedule(graph)).peak);
  if (options.start != nullptr && scope_.contains(graph, *options.start)) offer(*options.start);
}

bool Incumbent::fits(std::int64_t peak) const { return !options_.budget || peak <= *options_.budget; }
bool Incumbent::affordable(std::int64_t cost) const {
  return options_.budget || !options_.max_cost || cost <= *options_.max_cost;
}
bool Incumbent::within_budget() const { return any_ && fits(peak_) && affordable(cost_); }
bool Incumbent::optimal() const {
  return within_budget() && (options_.budget ? cost_ == cost_bound_.value : peak_ == peak_bound_.value);
}
bool Incumbent::cannot_improve() const {
  if (proved_infeasible()) return any_ && least_peak() == peak_bound_.value;
  return optimal() && cost_ == cost_bound_.value;
}
bool Incumbent::done() const {
  if (cannot_improve()) return true;
  return options_.peak_alone && (options_.budget ? within_budget() : optimal());
}
bool Incumbent::proved_infeasible() const { return options_.budget && *options_.budget < peak_bound_.value; }

void Incumbent::raise(Bound& known, const Bound& bound) const {
  if (bound.value > known.value && bound.scope.contains(scope_)) known = bound;
}

bool Incumbent::better(std::int64_t peak, std::int64_t cost) const {
  if (!any_) return true;
  const bool by_cost = options_.budget && fits(peak) && fits(peak_);
  if (by_cost) return std::pair(cost, peak) < std::pair(cost_, peak_);
  if (affordable(cost) != affordable(cost_)) return affordable(cost);
  return std::pair(peak, cost) < std::pair(peak_, cost_);
}

core::Evaluation Incumbent::offer(const core::Schedule& with_pinned_repeats) {
  const core::Schedule offered = core::run_pinned_once(graph_, with_pinned_repeats);
  core::Schedule schedule = core::drop_unread(graph_, offered);
  // A scope, i.e. a set of allowed schedules, can prescribe the order of the nodes' first runs. If drop_unread()
  // removes a node's first run, its second run becomes the first, so the schedule may no longer be in the scope. In
  // that case, all steps are kept.
  const bool keeps_all = !scope_.contains(graph_, schedule);
  if (keeps_all) schedule = offered;
  const core::Evaluation measures = evaluator_.evaluate(schedule);
  if (!measures.valid())
    throw std::logic_error("a solver made an invalid schedule: " + describe(graph_, measures.defect));
  if (keeps_all && !scope_.contains(graph_, schedule)) return measures;
  if (!can_be_planned(graph_, schedule)) return measures;
  note({measures.peak, measures.cost});
  if (better(measures.peak, measures.cost)) {
    any_ = true;
    schedule_ = std::move(schedule);
    peak_ = measures.peak;
    cost_ = measures.cost;
    best_seconds_ = watch_.seconds();
  }
  if (options_.progress) options_.progress({peak_, cost_, watch_.seconds()});
  return measures;
}

std::int64_t Incumbent::least_peak() const {
  return tradeoffs_.items().empty() ? 0 : tradeoffs_.items().begin()->first;
}

void Incumbent::note(const Tradeoff& tradeoff) { tradeoffs_.add(tradeoff.peak, tradeoff.cost); }

Solution Incumbent::finish(bool timed_out) const {
  Solution solution;
  solution.scope = scope_;
  solution.schedule = schedule_;
  solution.peak = peak_;
  solution.cost = cost_;
  solution.peak_bound = peak_bound_;
  solution.cost_bound = cost_bound_;
  solution.least_peak = least_peak();
  for (const auto& [peak, item] : tradeoffs_.items()) solution.tradeoffs.push_back({peak, item.second});
  solution.best_seconds = best_seconds_;
  solution.work = watch_.work();
  solution.timed_out = timed_out;
  solution.stop = cannot_improve()       ? Stop::proved
                  : watch_.interrupted() ? Stop::interrupted
                  : timed_out            ? Stop::limit
                                         : Stop::ended;
  if (proved_infeasible()) {
    solution.status = Status::infeasible;
    solution.stop = Stop::proved;
  } else if (!within_budget()) {
    solution.status = Status::not_found;
  } else {
    solution.status = optimal() ? Status::optimal : Status::feasible;
  }
  return solution;
}

}  // namespace cairn::solvers
