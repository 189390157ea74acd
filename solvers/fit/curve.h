#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

/// The whole curve of cost over memory.
namespace cairn::fit {

/// A budget and the cheapest known schedule whose plan, or peak, fits into it.
struct CurvePoint : PlannedSchedule {  // no steps: no schedule is known, or the graph has no nodes
  std::int64_t budget = 0;             ///< bytes
  solvers::Status status = solvers::Status::not_found;
  solvers::Bound cost_bound;  ///< lower bound on the cost of all schedules within the budget

  bool known() const { return status == solvers::Status::optimal || status == solvers::Status::feasible; }
};

/// Percent of the least possible cost by which the known cost may exceed it, by the bound.
double gap_pct(std::int64_t cost, const solvers::Bound& bound);

/// State of the search for a curve.
struct CurveProgress {
  int pass = 0;             ///< counted from 1; 0: the ends of the curve are sought
  std::int64_t budget = 0;  ///< budget of the current point, in bytes; 0 in pass 0
  std::size_t known = 0, points = 0;
  double seconds = 0;
};

struct CurveOptions {
  /// Options of the searches; its limit is for all points together, its search.start is a first schedule for all of
  /// them.
  FitOptions fit;
  int points = 12;
  bool peak_only = false;  ///< whether budgets are on peaks: nothing is planned, and fit.plan is not read
  /// Budgets of the points, in bytes. Empty: `points` budgets, evenly from the least that needs no recomputation (with
  /// a solver that always recomputes: the baseline's) to the least that is reached.
  std::vector<std::int64_t> budgets;
  std::function<void(const CurveProgress&)> progress;  ///< called before each search
};

/// Definition of Curve::knee, in words.
inline constexpr std::string_view kKneeDefinition =
    "the point farthest below the straight line from the first point to the last, with memory and cost each scaled "
    "from "
    "0 to 1";

struct Curve {
  std::vector<CurvePoint> points;  ///< points of the curve by descending budget; costs never fall
  /// Index of the knee: the point farthest below the chord from the first known point to the last, in a square that has
  /// both as its corners, memory by cost, each scaled to 0..1 (Satopaa et al. 2011). Empty: no point is known.
  std::optional<std::size_t> knee;
  /// Peaks and costs of other schedules met, none beating another in both; ascending.
  std::vector<solvers::Tradeoff> met;
  solvers::Bound peak_bound;      ///< lower bound of the peak in bytes, with sizes rounded up to the alignment
  std::int64_t least_memory = 0;  ///< bytes of the lowest plan met; with peak_only, of the lowest peak met
  bool peak_only = false;         ///< whether budgets are on peaks, as in the options
  int passes = 0;                 ///< number of passes over the points, down and up in turn
  solvers::Stop stop = solvers::Stop::ended;
  double seconds = 0;
};

/// Finds the index of the knee of the points (Curve::knee).
std::optional<std::size_t> find_knee(const std::vector<CurvePoint>& points);

/// A range of neighbouring points on a curve that share one answer, because it fits into all their budgets, or that all
/// have none.
struct SamePoints {
  std::size_t first = 0, last = 0;  ///< indices of points, by descending budget

  bool contains(std::optional<std::size_t> i) const { return i && first <= *i && *i <= last; }
};
/// Groups neighbouring points that share one answer, so that every point is in one group. A proof for the first point
/// of a group holds for all of it.
std::vector<SamePoints> same_points(const std::vector<CurvePoint>& points);

/// Finds the curve. Points are solved from the largest budget to the smallest and back, as long as there is time, each
/// from the best that its neighbours know. A schedule that fits into a smaller budget serves the larger ones too, and a
/// bound under a larger budget holds under smaller ones. Ends when all is proved, at the limit, or when half of the
/// limit, of time or of work, has improved no point. Deterministic under a limit of work. Throws as solve().
Curve pareto_curve(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options);

}  // namespace cairn::fit
