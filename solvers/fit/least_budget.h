#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Holds the schedule whose plan needs the fewest bytes of all known plans. This number of bytes, memory(), is the
/// least budget known to be sufficient.
struct LeastBudget : PlannedSchedule {
  /// Name (SolverInfo::name) of the solver that found the schedule; `none` for the baseline.
  std::string_view solver = "none";
  core::Schedule lowest;  ///< schedule with the lowest peak found, even if its plan is not the lowest
  solvers::Bound bound;   ///< lower bound in bytes on memory() of all schedules in the bound's scope
  solvers::Stop stop = solvers::Stop::ended;
  std::vector<solvers::Tradeoff> tradeoffs;  ///< peaks and costs of schedules that the solver found
  double seconds = 0;                        ///< time that the search took
  std::int64_t work = 0;                     ///< work of the search, in the unit of core::Limit::work

  /// Returns whether no solver found a schedule that needs less than the baseline.
  bool is_baseline() const { return solver == "none"; }

  bool proved() const { return memory() <= bound.value; }

  /// Replaces the schedule, its evaluation and its plan by those of `one`, which the solver `by` found. Other members
  /// stay.
  void take(PlannedSchedule one, std::string_view by) {
    static_cast<PlannedSchedule&>(*this) = std::move(one);
    solver = by;
  }
};

struct LeastBudgetOptions {
  solvers::SolveOptions search;  ///< options of the solver; budget and max_cost are not read
  solvers::PlanOptions plan;     ///< options of plans; guard bytes do not count towards the budget
  bool peak_only = false;        ///< whether budgets limit peaks instead of plans; if so, no plans are made
  /// If a schedule is known whose memory() is at most `enough`, the search ends, but not before `enough_from` seconds.
  std::int64_t enough = 0;
  double enough_from = 0;
};

/// Makes a known schedule and its plan the start of a search, unless the search has a start already. The object must
/// live as long as the search.
class KnownStart {
 public:
  /// `known` can be nullptr; otherwise it must outlive this object.
  KnownStart(solvers::SolveOptions& search, const PlannedSchedule* known);

 private:
  std::vector<std::int64_t> offsets_;
};

/// Searches for the least budget within which a schedule exists. Returns the schedule of the lowest plan found. Even
/// this plan may need more than the least possible budget. The search repeats the following three steps. Each
/// repetition has at least three times the work of the previous repetition.
/// - It calls the solver without a budget.
/// - It calls the solver under budgets below the lowest peak found, because solvers reach lower peaks under a budget
/// than without one. The difference between the lowest peak and the budget grows after a success and shrinks after a
/// failure.
/// - If the lowest plan is above the lowest peak, it searches for a schedule and its addresses together
/// (solvers::search_placed()), under budgets between this peak and the height of this plan.
///
/// Only the schedules with the lowest peaks are planned. `rounded` is `problem.rounded_up(options.plan.alignment)`.
///
/// A limit decides only after which call the search ends; it does not change the calls before. So the same limit of
/// work gives the same answer, and a larger limit gives an answer that is at least as good. `enough`, too, only ends
/// the search earlier. So if `cairn info` has printed a budget, a search with this budget as `enough` takes no longer
/// than `cairn info` to find a schedule. Throws DefectError if the solver's answer is wrong. Throws InputError if the
/// solver does not accept the graph.
///
/// If the graph has core::Graph::host_memory(), the last part of the time is spent on adding transfers to the schedules
/// found. The bound is then the one that Problem computes (Problem::plan_bound()), because bounds that solvers prove
/// hold only for schedules without transfers.
LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options);

/// Looks for a budget on the host's memory that is large enough: with it, adding transfers to one of the schedules
/// `starts` gives a plan within the problem's budget. First tries without a budget on the host, then with smaller and
/// smaller host budgets. Returns the smallest host budget found, or nothing if it is not above the graph's host budget,
/// or if none was found within the limit of options.search.
std::optional<std::int64_t> sufficient_host_budget(const Problem& problem, const Problem& rounded,
                                                   const std::vector<core::Schedule>& starts,
                                                   const LeastBudgetOptions& options);

/// Returns the baseline if its plan fits into `budget` bytes. Otherwise returns nothing. `rounded` is
/// `problem.rounded_up(options.alignment)`.
std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options);

/// Finds the least budget after a search found nothing within the problem's budget. Takes `known` or, if `known` is
/// empty, calls find_least_budget() with `solver`. If the result exceeds the problem's budget and is not proved to be
/// the least, also calls find_least_budget() with the solver `auto`, and returns the better result. All calls together
/// keep to the limit.
LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options);

/// Fraction of a command's time that find_least_budget() gets when the user asks for the least budget. If the user
/// later asks for a schedule within that budget, find_least_budget() runs again to find it. This second run gets a
/// larger fraction of the time (FitOptions::secure_share), because the computer can be busier then.
constexpr double kLeastBudgetShare = 0.75;

/// Returns the work limit for a call of find_least_budget() that must give the same answer when it is repeated. The
/// result is limit.work or, if work is not limited, the work that a slow computer does in limit.seconds; kAnyWork if
/// neither is limited. On an even slower computer, limit.seconds still ends the search.
std::int64_t least_budget_work(const core::Limit& limit);

}  // namespace cairn::fit
