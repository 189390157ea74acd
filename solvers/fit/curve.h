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

/// The curve of cost over memory. It has the cheapest known schedule for each of several budgets.
namespace cairn::fit {

/// A budget and the cheapest known schedule within the budget. The budget limits the schedule's plan. With
/// CurveOptions::peak_only, the budget limits the peak instead. The schedule has no steps if none is known or the graph
/// has no nodes.
struct CurvePoint : PlannedSchedule {
  std::int64_t budget = 0;  ///< bytes
  solvers::Status status = solvers::Status::not_found;
  solvers::Bound cost_bound;  ///< lower bound on the cost of all schedules within the budget

  bool known() const { return status == solvers::Status::optimal || status == solvers::Status::feasible; }
};

/// Returns by how many percent `cost` exceeds the bound. `cost` exceeds the least possible cost by at most this
/// percentage.
double gap_pct(std::int64_t cost, const solvers::Bound& bound);

/// The state of the search for a curve.
struct CurveProgress {
  int pass = 0;             ///< number of the pass, counted from 1; 0: the search for the ends of the curve
  std::int64_t budget = 0;  ///< budget of the current point, in bytes; 0 in pass 0
  std::size_t known = 0, points = 0;
  double seconds = 0;
};

struct CurveOptions {
  /// Options of the searches. `fit.search.limit` is for all points together. `fit.search.start` is the first schedule
  /// of all points.
  FitOptions fit;
  int points = 12;
  /// Whether budgets limit peaks instead of plans. If set, nothing is planned, and `fit.plan` is not read.
  bool peak_only = false;
  /// Budgets of the points, in bytes. Empty: `points` budgets at equal distances. In that case, the largest budget is
  /// the least one that needs no recomputation, or the baseline's memory if the solver always recomputes. The smallest
  /// budget is the least one for which the search finds a schedule.
  std::vector<std::int64_t> budgets;
  std::function<void(const CurveProgress&)> progress;  ///< called before each search
};

/// Defines Curve::knee in words, for texts.
inline constexpr std::string_view kKneeDefinition =
    "the point farthest below the straight line from the first point to the last, with memory and cost each scaled "
    "from 0 to 1";

struct Curve {
  std::vector<CurvePoint> points;  ///< points by descending budget; their costs never fall
  /// Index of the knee of the curve; empty: no point is known. Memory and cost are each scaled to 0..1, so that the
  /// first and the last known point lie in opposite corners of a square. The knee is the point farthest below the
  /// straight line between these two points (Satopaa et al. 2011).
  std::optional<std::size_t> knee;
  /// Peaks and costs of other schedules that the searches found, by ascending peak. No entry dominates another entry.
  std::vector<solvers::Tradeoff> met;
  solvers::Bound peak_bound;      ///< lower bound on the peak in bytes, with sizes rounded up to the alignment
  std::int64_t least_memory = 0;  ///< bytes of the lowest plan found; with peak_only, lowest peak found
  bool peak_only = false;         ///< whether budgets limit peaks, as in the options
  int passes = 0;  ///< number of passes over the points; passes alternate between descending and ascending budgets
  solvers::Stop stop = solvers::Stop::ended;
  double seconds = 0;
};

/// Returns the index of the knee of the points (Curve::knee).
std::optional<std::size_t> find_knee(const std::vector<CurvePoint>& points);

/// A range of neighbouring points of a curve with the same answer. The answer is one schedule that fits into all their
/// budgets, or no schedule for any of them.
struct SamePoints {
  std::size_t first = 0, last = 0;  ///< indices of the first and the last point, by descending budget

  bool contains(std::optional<std::size_t> i) const { return i && first <= *i && *i <= last; }
};
/// Divides the points into groups of neighbours with the same answer; every point is in one group. Because the first
/// point of a group has the largest budget, a proof for that point holds for the whole group.
std::vector<SamePoints> same_points(const std::vector<CurvePoint>& points);

/// Finds the curve. Passes over the points alternate between descending and ascending budgets, as long as there is
/// time. Each search starts from the best schedule known at the neighbouring points. A schedule within a smaller budget
/// is used for larger budgets as well. A cost bound for a larger budget also holds for smaller budgets. The search ends
/// when every point is proved, when the limit is reached, or when no point improved during half of the limit.
/// Deterministic under a limit of work. Throws as solve() does.
Curve pareto_curve(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options);

}  // namespace cairn::fit
