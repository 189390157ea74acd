// Searches for the largest batch (number of samples in one training step) that fits into a budget (largest_batch.h).

#include "cairn/solvers/fit/largest_batch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "cairn/core/limit.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::fit {
namespace {

enum class Verdict : std::uint8_t { as_it_is, fits, proved_not, not_found };

/// Doubles the batch until it does not fit, and then bisects.
class BatchSearch {
 public:
  BatchSearch(const std::function<core::Graph(std::int64_t)>& build, const solvers::SolverInfo& solver,
              const LargestBatchOptions& options)
      : build_(build), solver_(solver), options_(options), watch_(options.search.limit) {}

  LargestBatch run() {
    constexpr std::int64_t kMost = 1 << 20;
    std::int64_t low = 0, high = 1;
    while (high <= kMost && try_batch(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1 && !found_.timed_out) {
      const std::int64_t middle = low + (high - low) / 2;
      (try_batch(middle) ? low : high) = middle;
    }
    search_as_it_is();
    found_.timed_out = found_.timed_out || watch_.expired_now();
    return std::move(found_);
  }

 private:
  /// Tries a batch and records the result in found_. Returns whether a schedule that fits is known for this batch.
  bool try_batch(std::int64_t batch) {
    if (watch_.expired_now()) {
      found_.timed_out = true;
      return false;
    }
    if (options_.progress) options_.progress(batch);
    found_.tried.push_back(batch);
    const Verdict answer = ask(batch);
    if (answer == Verdict::as_it_is) {
      found_.as_it_is = std::max(found_.as_it_is, batch);
    } else if (above_as_it_is_ == 0 || batch < above_as_it_is_) {
      above_as_it_is_ = batch;
    }
    if (answer == Verdict::as_it_is || answer == Verdict::fits) {
      found_.batch = std::max(found_.batch, batch);
      return true;
    }
    if (found_.refused == 0 || batch < found_.refused) {
      found_.refused = batch;
      found_.refusal_proved = answer == Verdict::proved_not;
    }
    return false;
  }

  void search_as_it_is() {
    std::int64_t low = found_.as_it_is, high = above_as_it_is_;
    while (high - low > 1 && !watch_.passed()) {
      const std::int64_t middle = low + (high - low) / 2;
      const core::Graph graph = build_(middle);
      const std::int64_t budget = options_.budget(graph);
      const Problem problem(graph);
      (budget > 0 && baseline_fits(problem, problem.rounded_up(alignment_of(graph)), budget) ? low : high) = middle;
    }
    found_.as_it_is = low;
  }

  std::int64_t alignment_of(const core::Graph& graph) const {
    return options_.alignment > 0 ? options_.alignment : default_alignment(graph);
  }

  solvers::PlanOptions planning_of(const core::Graph& graph) const {
    return {.alignment = alignment_of(graph), .overlap_steps = options_.overlap_steps};
  }

  bool baseline_fits(const Problem& problem, const Problem& rounded, std::int64_t budget) const {
    return baseline_within(problem, rounded, budget, planning_of(problem.graph)).has_value();
  }

  Verdict ask(std::int64_t batch) {
    core::Graph graph = build_(batch);
    const std::int64_t budget = options_.budget(graph);
    if (budget <= 0) return Verdict::proved_not;
    const Problem problem(std::move(graph), std::to_string(budget), "graph");
    const Problem rounded = problem.rounded_up(alignment_of(problem.graph));
    if (rounded.plan_bound() > budget) return Verdict::proved_not;
    const std::int64_t most = options_.max_cost ? options_.max_cost(problem) : std::numeric_limits<std::int64_t>::max();
    if (problem.baseline.cost > most) return Verdict::proved_not;
    if (baseline_fits(problem, rounded, budget)) return Verdict::as_it_is;
    // About ten batches are tried, but about half of their searches end at once. So each search may take a quarter of
    // the remaining limit.
    LeastBudgetOptions least{.search = options_.search, .plan = planning_of(problem.graph), .enough = budget};
    least.search.limit = watch_.share(0.25);
    const LeastBudget found = find_least_budget(problem, rounded, solver_, least);
    if (found.memory() <= budget) return found.evaluation.cost <= most ? Verdict::fits : ask_cost(problem, found, most);
    return found.bound.value > budget && found.bound.scope == solvers::kAnySchedule ? Verdict::proved_not
                                                                                    : Verdict::not_found;
  }

  /// Searches for a schedule within the budget that costs at most `most`. The schedule `known` costs more.
  Verdict ask_cost(const Problem& problem, const LeastBudget& known, std::int64_t most) {
    const Task task{problem, Objective::within_budget, alignment_of(problem.graph), {}, options_.overlap_steps};
    solvers::SolveOptions cheaper = options_.search;
    cheaper.limit = watch_.share(0.25);
    const solvers::Solution found = search(task, solver_, cheaper, {}, {.just_found = &known}).found.solution;
    const bool met = found.status == solvers::Status::optimal || found.status == solvers::Status::feasible;
    if (met && found.cost <= most) return Verdict::fits;
    return found.cost_bound.value > most && found.cost_bound.scope == solvers::kAnySchedule ? Verdict::proved_not
                                                                                            : Verdict::not_found;
  }

  const std::function<core::Graph(std::int64_t)>& build_;
  const solvers::SolverInfo& solver_;
  const LargestBatchOptions& options_;
  core::Stopwatch watch_;
  LargestBatch found_;
  std::int64_t above_as_it_is_ = 0;  ///< smallest batch tried whose baseline does not fit; 0: none
};

}  // namespace

LargestBatch find_largest_batch(const std::function<core::Graph(std::int64_t)>& build,
                                const solvers::SolverInfo& solver, const LargestBatchOptions& options) {
  return BatchSearch(build, solver, options).run();
}

}  // namespace cairn::fit
