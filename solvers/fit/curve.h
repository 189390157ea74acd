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

/// Computes the curve of cost over memory: the cheapest schedule known for each of several memory budgets.
namespace cairn::fit {

/// Holds a budget and the cheapest known schedule within it. The budget limits the bytes of the schedule's plan, which
/// assigns an address to each of its tensors. With CurveOptions::peak_only, it limits the schedule's peak instead.
/// `schedule` has no steps if no schedule is known.
struct CurvePoint : PlannedSchedule {
  std::int64_t budget = 0;  ///< bytes
  solvers::Status status = solvers::Status::not_found;
  solvers::Bound cost_bound;  ///< lower bound on the cost of all schedules within the budget

  bool known() const { return status == solvers::Status::optimal || status == solvers::Status::feasible; }
};

/// Returns by how many percent `cost` exceeds `bound`, a lower bound on the cost. So `cost` is at most this percentage
/// above the least possible cost.
double gap_pct(std::int64_t cost, const solvers::Bound& bound);

/// Describes the state of the search for a curve.
struct CurveProgress {
  /// Number of the current pass, from 1. Each pass searches once at every point. 0: the search for the largest and the
  /// smallest budget of the curve.
  int pass = 0;
  std::int64_t budget = 0;            ///< budget of the current point, in bytes; 0 in pass 0
  std::size_t known = 0, points = 0;  ///< number of points with a known schedule, and of all points
  double seconds = 0;
};

struct CurveOptions {
  /// Options of the searches. `fit.search.limit` limits the search for the whole curve. If the schedule
  /// `fit.search.start` is given, it is an answer for every point whose budget it meets.
  FitOptions fit;
  int points = 12;
  /// Whether budgets limit peaks instead of plans. If set, no plans are made, and `fit.plan` is not read.
  bool peak_only = false;
  /// Budgets of the points, in bytes. If empty, the search chooses `points` budgets at equal distances:
  /// - The largest is the least budget for which a schedule is found that costs no more than the baseline (the graph's
  /// input order).
  /// - The smallest is the least budget for which any schedule is found.
  std::vector<std::int64_t> budgets;
  std::function<void(const CurveProgress&)> progress;  ///< called before each search
};

/// Definition of Curve::knee in words, for texts that users read.
inline constexpr std::string_view kKneeDefinition =
    "the point farthest below the straight line from the first point to the last, with memory and cost each scaled "
    "from 0 to 1";

struct Curve {
  std::vector<CurvePoint> points;  ///< points by descending budget; the cost never falls from one point to the next
  /// Index of the knee of the curve; empty if no point has a known schedule. To find the knee, memory and cost are
  /// scaled so that each goes from 0 to 1 between the first and the last known point. The knee is the point farthest
  /// below the straight line between these two points (Satopaa et al. 2011).
  std::optional<std::size_t> knee;
  /// Peaks and costs of the schedules that the searches found, including those that are no point of the curve, by
  /// ascending peak. A schedule is left out if another schedule is at most as large in both peak and cost.
  std::vector<solvers::Tradeoff> met;
  solvers::Bound peak_bound;      ///< lower bound on all peaks in bytes, with sizes rounded up to the alignment
  std::int64_t least_memory = 0;  ///< height of the lowest plan found or, with peak_only, the lowest peak; bytes
  bool peak_only = false;         ///< whether budgets limit peaks, as in the options
  int passes = 0;                 ///< number of passes over the points
  solvers::Stop stop = solvers::Stop::ended;
  double seconds = 0;
};

/// Finds the knee of the points (Curve::knee) and returns its index. Returns nothing if no point is known.
std::optional<std::size_t> find_knee(const std::vector<CurvePoint>& points);

/// Describes a range of neighbouring points of a curve whose answers have the same status, memory, peak and cost.
struct SamePoints {
  std::size_t first = 0, last = 0;  ///< indices of the first and the last point, by descending budget

  bool contains(std::optional<std::size_t> i) const { return i && first <= *i && *i <= last; }
};
/// Divides the points of a curve, which have descending budgets, into the longest ranges of neighbours with the same
/// answer. The first point of a range has its largest budget, so a proof for that point holds for the whole range.
std::vector<SamePoints> same_points(const std::vector<CurvePoint>& points);

/// Finds the curve of cost over memory in several passes. Each pass searches for a schedule at every point (budget).
/// The passes go alternately from the largest budget to the smallest and back. Each search starts from a schedule that
/// is known for this or a larger budget. A schedule within a smaller budget is also used for larger budgets, and a
/// lower bound on the cost for a larger budget is also used for smaller budgets. Ends when every point is proved
/// optimal, when the limit is reached, or when no point has improved during half of the limit. Deterministic under a
/// limit of work. Throws what solve() throws.
Curve pareto_curve(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options);

}  // namespace cairn::fit
