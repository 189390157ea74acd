// Computes the curve of cost over memory (curve.h). A point of the curve is a budget, with the cheapest known schedule
// within it. A pass searches for a better schedule at each point. The two ends of the curve are the schedule of least
// memory and a schedule without recomputation.

#include "cairn/solvers/fit/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/admissible.h"
#include "cairn/solvers/common/support/front.h"
#include "cairn/solvers/fit/internal/fit_with_transfers.h"
#include "cairn/solvers/fit/internal/overrun.h"
#include "cairn/solvers/fit/internal/placed_plan.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::fit {
namespace {

/// Searches for the points of the curve. Keeps the best schedules found in front_.
class CurveSearch {
 public:
  CurveSearch(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options)
      : problem_(problem),
        rounded_(problem.rounded_up(options.peak_only ? 1 : options.fit.plan.alignment)),
        solver_(solver),
        options_(options),
        watch_(searched(options.fit.search.limit, problem.graph)) {
    for (core::NodeId v = 0; v < problem.graph.node_count(); ++v) least_cost_ += problem.graph.cost(v);
    curve_.peak_bound.value = rounded_.lower_bound;
    curve_.peak_only = options.peak_only;
    const double begun = watch_.seconds();
    offer(core::baseline_schedule(problem.graph));
    ending_.add(std::min(kPlansOfEnd * (watch_.seconds() - begun), kMostOfEnd * options.fit.search.limit.seconds));
    if (options.fit.search.start != nullptr) {
      std::optional<core::Plan> plan;
      if (!options.peak_only) plan = plan_of_start(problem.graph, options.fit.search, options.fit.plan);
      if (plan) offer(*options.fit.search.start, std::move(plan));
      offer(*options.fit.search.start);
    }
  }

  Curve run() {
    std::vector<std::int64_t> budgets = options_.budgets;
    if (budgets.empty()) budgets = spread_budgets();
    std::sort(budgets.begin(), budgets.end(), std::greater<>());
    budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
    for (const std::int64_t budget : budgets) {
      CurvePoint point;
      point.budget = budget;
      point.cost_bound.value = least_cost_;
      curve_.points.push_back(std::move(point));
    }
    proved_infeasible_.assign(budgets.size(), false);
    passes();
    return finish();
  }

 private:
  using Front = solvers::Front<PlannedSchedule>;

  /// On a large graph, a search exceeds its limit by about the time in which kPlansOfEnd schedules can be planned. So
  /// this time, but at most the fraction kMostOfEnd of the whole limit, is kept free at the end.
  static constexpr double kPlansOfEnd = 3, kMostOfEnd = 0.2;

  /// Returns the limit of all searches together. The result is less than `limit`, because searches and plans on large
  /// graphs exceed their limits.
  static core::Limit searched(core::Limit limit, const core::Graph& graph) {
    constexpr double kSecondsOfNode = 2e-5, kMost = 0.1;
    limit.seconds -= std::min(kMost * limit.seconds, kSecondsOfNode * graph.node_count());
    return limit;
  }

  const PlannedSchedule* best_within(std::int64_t budget) const {
    const Front::Item* const best = front_.within(budget);
    return best == nullptr ? nullptr : &best->entry;
  }

  /// Plans a schedule, unless its plan is given in `plan`, and adds it to front_. front_ keeps each schedule found so
  /// far, unless another one is at most as large in both memory and cost. Returns whether the schedule is cheaper than
  /// all schedules in front_ that need at most as many bytes.
  bool offer(core::Schedule schedule, std::optional<core::Plan> plan = std::nullopt) {
    PlannedSchedule one(problem_.graph, std::move(schedule), std::nullopt);
    const core::Evaluation& evaluation = one.evaluation;
    if (!evaluation.valid())
      throw core::DefectError(fmt::format("solver '{}' returned an invalid schedule: {}; please report this",
                                          solver_.name, core::describe(problem_.graph, evaluation.defect)));
    if (!solvers::admissible(problem_.graph, options_.fit.search.scope, one.schedule)) return false;
    if (!options_.peak_only) {
      one.plan = plan ? std::move(plan) : solvers::plan_memory(problem_.graph, one.schedule, planning());
      require_right(core::check_plan(problem_.graph, one.schedule, *one.plan));
    }
    if (one.plan && problem_.graph.host_memory() && one.plan->host_bytes > problem_.graph.host_memory()->budget)
      return false;
    const std::int64_t bytes = one.memory(), cost = evaluation.cost;
    return front_.add(bytes, cost, std::move(one));
  }

  solvers::PlanOptions planning() const {
    // Work limit for planning one schedule, about 0.1 s. The limit is low because many schedules are planned.
    constexpr std::int64_t kWork = 60'000'000;
    solvers::PlanOptions plan = options_.fit.plan;
    plan.guard_bytes = 0;
    plan.limit.work = std::min(plan.limit.work, kWork);
    plan.limit.stop = options_.fit.search.limit.stop;
    return plan;
  }

  void show(int pass, std::int64_t budget) const {
    if (!options_.progress) return;
    const auto known = std::count_if(curve_.points.begin(), curve_.points.end(),
                                     [&](const CurvePoint& point) { return best_within(point.budget) != nullptr; });
    options_.progress({pass, budget, static_cast<std::size_t>(known), curve_.points.size(), watch_.seconds()});
  }

  bool over() { return watch_.expired_now() || watch_.rest().seconds < ending_.seconds(); }
  core::Limit part_of_rest(double share) const { return core::Stopwatch(ending_.before(watch_.rest())).share(share); }

  /// Searches in search.scope for the schedule of least peak, which can be one end of the curve. The search gets the
  /// fraction `share` of the remaining limit.
  void search_end(solvers::SolveOptions search, double share) {
    if (over()) return;
    show(0, 0);
    search.limit = part_of_rest(share);
    solvers::Solution found = solver_.solve(rounded_.graph, search);
    watch_.charge(found.work);
    note(found.tradeoffs, found.peak_bound);
    end_stop_ = found.stop;
    if (!found.schedule.steps.empty()) offer(std::move(found.schedule));
  }

  /// Searches for the schedule of least memory, which is one end of the curve. The search gets the fraction `share` of
  /// the remaining limit.
  void search_least(solvers::SolveOptions search, double share) {
    if (over()) return;
    show(0, 0);
    search.limit = part_of_rest(share);
    LeastBudget found =
        find_least_budget(problem_, rounded_, solver_,
                          {.search = std::move(search), .plan = planning(), .peak_only = options_.peak_only});
    watch_.charge(found.work);
    note(found.tradeoffs, found.bound);
    end_stop_ = found.stop;
    offer(std::move(found.schedule), std::move(found.plan));
  }

  std::vector<std::int64_t> spread_budgets() {
    const solvers::SolveOptions search = options_.fit.search;
    solvers::SolveOptions once = search;
    once.scope.max_occurrences = 1;
    if (solver_.honours(once.scope) && search.scope.max_occurrences != 1) search_end(once, 0.1);
    const std::size_t known = front_.items().size();
    search_least(search, 0.15);
    // If find_least_budget() found nothing new and was ended by its limit, the graph is so large that this search had
    // hardly begun. So a longer search for the least peak follows.
    if (front_.items().size() == known && end_stop_ == solvers::Stop::limit) search_end(search, 0.5);
    const std::int64_t least = front_.items().begin()->first;
    std::int64_t most = front_.items().rbegin()->first;
    // Nodes of cost 0 can run again for free, so a schedule of least cost can need less memory than a schedule without
    // recomputation. If such a schedule was found, the curve begins at its peak.
    std::int64_t free_peak = most;
    for (const solvers::Tradeoff& met : curve_.met) {
      if (met.cost == least_cost_) free_peak = std::min(free_peak, std::max(met.peak, least));
    }
    if (free_peak < most && !over()) {
      fit_within(free_peak, &front_.items().rbegin()->second.entry.schedule, 0.05);
      most = front_.items().rbegin()->first;
    }
    std::vector<std::int64_t> budgets{most};
    const std::int64_t alignment = options_.peak_only ? 1 : options_.fit.plan.alignment;
    for (int i = 1; i < options_.points && most > least; ++i) {
      const double part = static_cast<double>(i) / (options_.points - 1);
      const auto below = static_cast<std::int64_t>(std::llround(static_cast<double>(most - least) * part));
      budgets.push_back(std::max(least, (most - below) / alignment * alignment));
    }
    return budgets;
  }

  bool is_about_all(const solvers::Bound& bound) const {
    return bound.scope.contains(solvers::intersection(options_.fit.search.scope, solver_.scope));
  }

  void note(const std::vector<solvers::Tradeoff>& met, const solvers::Bound& peak_bound) {
    curve_.met.insert(curve_.met.end(), met.begin(), met.end());
    // Bounds that solvers prove hold only for schedules without transfers. So if the graph allows transfers, such
    // bounds are ignored.
    if (problem_.graph.host_memory()) return;
    if (peak_bound.value > curve_.peak_bound.value && is_about_all(peak_bound)) curve_.peak_bound = peak_bound;
  }

  bool closed(std::size_t i) const {
    const CurvePoint& point = curve_.points[i];
    const PlannedSchedule* best = best_within(point.budget);
    return proved_infeasible_[i] || (best != nullptr && best->evaluation.cost <= point.cost_bound.value);
  }

  /// Searches for the cheapest schedule within a budget, from the schedule `start` on, in the fraction `share` of the
  /// remaining limit. Returns the solver's answer, and whether its schedule improved the curve.
  std::pair<solvers::Solution, bool> fit_within(std::int64_t budget, const core::Schedule* start, double share) {
    FitOptions options = options_.fit;
    options.search.limit = part_of_rest(share);
    options.search.start = start;
    options.search.start_offsets = nullptr;
    options.search.seed += static_cast<std::uint64_t>(std::max(0, curve_.passes - 1));
    options.plan = planning();
    options.share = options.later_share = 0.8;
    options.max_rounds = 4;
    problem_.budget = budget;
    if (options_.peak_only) {
      options.search.budget = budget;
      solvers::Solution found = solve_for_peak(problem_, solver_, options.search).solution;
      watch_.charge(found.work);
      note(found.tradeoffs, found.peak_bound);
      const bool better = meets(found, budget) && offer(found.schedule);
      return {std::move(found), better};
    }
    Fit found = fit_to_budget(problem_, rounded_, solver_, options);
    watch_.charge(found.solution.work);
    note(found.solution.tradeoffs, found.solution.peak_bound);
    const bool better = found.plan && offer(found.solution.schedule, found.plan);
    return {std::move(found.solution), better};
  }

  struct Searched {
    bool better = false;
    solvers::Stop stop = solvers::Stop::ended;
  };
  Searched search_point(std::size_t i, const core::Schedule* start, double share) {
    CurvePoint& point = curve_.points[i];
    auto [found, better] = fit_within(point.budget, start, share);
    if (found.cost_bound.value > point.cost_bound.value && is_about_all(found.cost_bound)) {
      point.cost_bound = found.cost_bound;
      better = true;
    }
    for (std::size_t below = i + 1; below < curve_.points.size(); ++below) {
      if (curve_.points[below].cost_bound.value < point.cost_bound.value)
        curve_.points[below].cost_bound = point.cost_bound;
    }
    if (found.status == solvers::Status::infeasible)
      std::fill(proved_infeasible_.begin() + static_cast<std::ptrdiff_t>(i), proved_infeasible_.end(), true);
    return {better, found.stop};
  }

  /// Returns into how many passes the remaining time is divided. A pass searches once at each of the `open` points,
  /// whose answers can still improve. If time is left after these passes, further passes follow.
  int planned_passes(std::size_t open) const {
    // A useful search at one point takes about kSecondsOfOne plus kSecondsOfNode for each node, in seconds. On large
    // graphs, a search spends much time on its first schedules.
    constexpr double kSecondsOfOne = 0.3, kSecondsOfNode = 1e-3;
    const double seconds = kSecondsOfOne + kSecondsOfNode * problem_.graph.node_count();
    constexpr int kMost = 6;
    const core::Limit rest = watch_.rest();
    if (!std::isfinite(rest.seconds)) return 2;
    return std::clamp(static_cast<int>(rest.seconds / (seconds * static_cast<double>(open))), 1, kMost);
  }

  std::size_t count_open() const {
    std::size_t open = 0;
    for (std::size_t i = 0; i < curve_.points.size(); ++i) open += closed(i) ? 0 : 1;
    return open;
  }

  /// Chooses the schedule from which the search for point i starts. If the pass goes to smaller budgets, this is the
  /// schedule of the next larger budget, which is cheap but needs too much memory. Otherwise, or if an earlier search
  /// has started from that schedule, this is the best known schedule within the budget of point i.
  const core::Schedule* start_of(std::size_t i, bool down) {
    const PlannedSchedule* best = best_within(curve_.points[i].budget);
    if (down && i > 0) {
      const PlannedSchedule* above = best_within(curve_.points[i - 1].budget);
      if (above != nullptr && above != best && above->evaluation.cost != started_from_[i]) {
        started_from_[i] = above->evaluation.cost;
        return &above->schedule;
      }
    }
    return best != nullptr ? &best->schedule : options_.fit.search.start;
  }

  double progress_now() const {
    const core::Limit& limit = options_.fit.search.limit;
    return limit.counts_work()
               ? static_cast<double>(watch_.work()) / static_cast<double>(std::max<std::int64_t>(limit.work, 1))
               : watch_.seconds() / limit.seconds;
  }
  bool stagnated() const { return progress_now() - last_gain_ > 0.5; }

  /// Returns the least fraction of the remaining limit with which a search can find something new.
  double least_share() const {
    constexpr double kSeconds = 0.3, kPart = 0.01;
    const core::Limit& limit = options_.fit.search.limit;
    const core::Limit rest = watch_.rest();
    const double share = limit.counts_work()
                             ? kPart * static_cast<double>(limit.work) / std::max(1.0, static_cast<double>(rest.work))
                             : std::max(kSeconds, kPart * limit.seconds) / std::max(kSeconds, rest.seconds);
    return std::min(1.0, share);
  }

  void passes() {
    const std::size_t count = curve_.points.size();
    started_from_.assign(count, -1);
    std::size_t open = count_open();
    const int planned = planned_passes(std::max<std::size_t>(open, 1));
    curve_.stop = solvers::Stop::proved;
    const bool limited = std::isfinite(watch_.rest().seconds) || watch_.rest().counts_work();
    last_gain_ = progress_now();
    bool more = true;
    while (more && open > 0 && (limited || curve_.passes < planned) && !over()) {
      const bool down = curve_.passes % 2 == 0;
      const std::int64_t work_before = watch_.work();
      ++curve_.passes;
      bool better = false, all_ended = true;
      const double later = static_cast<double>(open) * std::max(0, planned - curve_.passes);
      for (std::size_t k = 0, left = open; k < count && left > 0 && !over(); ++k) {
        const std::size_t i = down ? k : count - 1 - k;
        if (closed(i)) continue;
        show(curve_.passes, curve_.points[i].budget);
        const double share = std::max(1 / (static_cast<double>(left) + later), least_share());
        const Searched searched = search_point(i, start_of(i, down), share);
        if (searched.better) last_gain_ = progress_now();
        better = better || searched.better;
        all_ended = all_ended && (searched.stop == solvers::Stop::ended || searched.stop == solvers::Stop::proved);
        if (!closed(i)) curve_.stop = searched.stop;
        --left;
      }
      open = count_open();
      const bool idle = watch_.rest().counts_work() && watch_.work() == work_before;
      more = better || !(all_ended || idle || (curve_.passes >= planned && stagnated()));
    }
    // All points can be proved while the curve is incomplete: if the search itself chose the budgets, a smaller budget
    // may be possible. So the curve then ends for the same reason as the search for the least memory (end_stop_).
    if (count_open() == 0) {
      curve_.stop = options_.budgets.empty() ? end_stop_ : solvers::Stop::proved;
    } else if (over()) {
      curve_.stop = solvers::Stop::limit;
    } else if (curve_.stop == solvers::Stop::limit) {
      curve_.stop = solvers::Stop::stagnated;  // a single search reached its limit, but the curve did not
    }
    if (watch_.interrupted()) curve_.stop = solvers::Stop::interrupted;
  }

  Curve finish() {
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      CurvePoint& point = curve_.points[i];
      const PlannedSchedule* best = best_within(point.budget);
      if (best != nullptr) {
        static_cast<PlannedSchedule&>(point) = *best;
        point.status = closed(i) && !proved_infeasible_[i] ? solvers::Status::optimal : solvers::Status::feasible;
      } else {
        point.status = proved_infeasible_[i] ? solvers::Status::infeasible : solvers::Status::not_found;
      }
    }
    curve_.least_memory = front_.items().begin()->first;
    curve_.met = solvers::undominated(curve_.met);
    curve_.knee = find_knee(curve_.points);
    curve_.seconds = watch_.seconds();
    return std::move(curve_);
  }

  Problem problem_;
  const Problem rounded_;
  const solvers::SolverInfo& solver_;
  const CurveOptions& options_;
  core::Stopwatch watch_;
  Overrun ending_;
  std::int64_t least_cost_ = 0;
  solvers::Stop end_stop_ = solvers::Stop::ended;
  Front front_;
  std::vector<bool> proved_infeasible_;
  double last_gain_ = 0;  ///< fraction of the limit that was used up when a point last improved
  /// A search for a point may start from the schedule of the next larger budget. For each point, the cost of the last
  /// schedule from which a search started in this way; -1: no search has done so.
  std::vector<std::int64_t> started_from_;
  Curve curve_;
};

}  // namespace

double gap_pct(std::int64_t cost, const solvers::Bound& bound) {
  if (bound.value <= 0) return 0;
  return 100.0 * static_cast<double>(cost - bound.value) / static_cast<double>(bound.value);
}

std::optional<std::size_t> find_knee(const std::vector<CurvePoint>& points) {
  std::optional<std::size_t> first, last;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].known()) continue;
    if (!first) first = i;
    last = i;
  }
  if (!first) return std::nullopt;
  const CurvePoint &low = points[*last], &high = points[*first];
  const auto part = [](std::int64_t value, std::int64_t from, std::int64_t to) {
    return to == from ? 0.0 : static_cast<double>(value - from) / static_cast<double>(to - from);
  };
  std::size_t knee = *first;
  double farthest = -1;
  for (std::size_t i = *first; i <= *last; ++i) {
    if (!points[i].known()) continue;
    const double below = 1 - part(points[i].memory(), low.memory(), high.memory()) -
                         part(points[i].evaluation.cost, high.evaluation.cost, low.evaluation.cost);
    if (below > farthest + 1e-12) {
      farthest = below;
      knee = i;
    }
  }
  return knee;
}

std::vector<SamePoints> same_points(const std::vector<CurvePoint>& points) {
  const auto answer = [&](std::size_t i) {
    const CurvePoint& point = points[i];
    return std::tuple(point.status, point.memory(), point.evaluation.peak, point.evaluation.cost);
  };
  std::vector<SamePoints> same;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (same.empty() || answer(same.back().first) != answer(i)) same.push_back({i, i});
    same.back().last = i;
  }
  return same;
}

Curve pareto_curve(const Problem& problem, const solvers::SolverInfo& solver, const CurveOptions& options) {
  return CurveSearch(problem, solver, options).run();
}

}  // namespace cairn::fit
