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

/// The whole curve from memory to cost.
namespace cairn::fit {

/// A budget, and the cheapest schedule known whose plan, or peak, fits into it.
struct CurvePoint : PlannedSchedule {  // no steps: none is known, or the graph has no nodes
  std::int64_t budget = 0;             ///< bytes
  solvers::Status status = solvers::Status::not_found;
  solvers::Bound cost_bound;  ///< of every schedule within the budget

  bool known() const { return status == solvers::Status::optimal || status == solvers::Status::feasible; }
};

/// By how much the cost of what is known may exceed the least, in percent of that.
double gap_pct(std::int64_t cost, const solvers::Bound& bound);

/// Where the search for a curve is.
struct CurveProgress {
  int pass = 0;             ///< from 1; 0: the ends of the curve are sought
  std::int64_t budget = 0;  ///< bytes, of the point; 0 in pass 0
  std::size_t known = 0, points = 0;
  double seconds = 0;
};

struct CurveOptions {
  FitOptions fit;  ///< its limit is for all points together; search.start warms them
  int points = 12;
  bool peak_only = false;  ///< budgets are on peaks, and nothing is planned; fit.plan is not read
  /// Bytes, of the points; empty: `points` of them, evenly from the least that needs no recomputation (or that of the
  /// baseline, with a solver that always recomputes) to the least that is reached.
  std::vector<std::int64_t> budgets;
  std::function<void(const CurveProgress&)> progress;  ///< called before each search
};

/// What Curve::knee is, in words.
inline constexpr std::string_view kKneeDefinition =
    "the point farthest below the straight line from the first point to the last, with memory and cost each scaled "
    "from "
    "0 to 1";

struct Curve {
  std::vector<CurvePoint> points;  ///< by descending budget; the costs never fall
  /// The point farthest below the chord from the first of the known points to the last, in a square that has both as
  /// its corners: memory by cost, each from 0 to 1 (Satopaa et al. 2011). None: no point is known.
  std::optional<std::size_t> knee;
  std::vector<solvers::Tradeoff>
      met;                        ///< of other schedules on the way; none beats another in peak and cost; ascending
  solvers::Bound peak_bound;      ///< bytes, with sizes rounded up to the alignment
  std::int64_t least_memory = 0;  ///< bytes: of the lowest plan, or peak, met
  bool peak_only = false;         ///< as asked for
  int passes = 0;                 ///< over the points, down and up in turn
  solvers::Stop stop = solvers::Stop::ended;
  double seconds = 0;
};

/// Where the knee of these points is.
std::optional<std::size_t> find_knee(const std::vector<CurvePoint>& points);

/// Neighbours on a curve that have one answer, as it fits into all of their budgets, or have none alike.
struct SamePoints {
  std::size_t first = 0, last = 0;  ///< points, by descending budget

  bool contains(std::optional<std::size_t> i) const { return i && first <= *i && *i <= last; }
};
/// All points, so that none but neighbours are together. What is proved of the first holds for all of them.
std::vector<SamePoints> same_points(const std::vector<CurvePoint>& points);

/// Finds the curve. Points are solved from the largest budget to the smallest and back, as long as there is time, each
/// from the best that its neighbours know; what fits into a smaller budget serves the larger ones too, and a bound
/// under a larger one holds under the smaller. It ends when all is proved, at the limit, or when half of the limit, of
/// time or of work, brought nothing to any point. Deterministic under a limit of work. Throws as solve().
Curve pareto_curve(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options);

}  // namespace cairn::fit
