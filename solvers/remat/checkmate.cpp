#include "cairn/solvers/remat/checkmate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/core/profile.h"
#include "cairn/core/random.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/engines/internal/engine.h"
#include "cairn/solvers/remat/internal/refine.h"
#include "cairn/solvers/remat/internal/stage_model.h"

namespace cairn::solvers {
namespace {

constexpr Scope kStages{OrderRule::stages, 0};
/// Engines take about so many bytes for each term of a program.
constexpr std::int64_t kBytesATerm = 256;

/// What runs between two first runs in the input order, once each: the schedule of the class that is nearest, where
/// first runs are in that order.
core::Schedule in_stages(const core::Graph& graph, std::vector<core::NodeId> steps) {
  const std::vector<std::int32_t> ranks = input_ranks(graph);
  std::int32_t stage = 0;
  auto begin = steps.begin();
  std::vector<core::NodeId> staged;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (ranks[*step] != stage) continue;
    std::sort(begin, step, [&](core::NodeId a, core::NodeId b) { return ranks[a] < ranks[b]; });
    staged.insert(staged.end(), begin, std::unique(begin, step));
    staged.push_back(*step);
    begin = step + 1;
    ++stage;
  }
  return stage == graph.node_count() ? core::Schedule{std::move(staged)} : core::baseline_schedule(graph);
}

/// Evicts, brings what runs again into the order of stages, and retains what then fits, with changing tastes, until
/// `rounds` bring nothing.
void search_stages(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
                   int rounds) {
  core::Random random(options.seed + 1);
  core::EditableSchedule work(graph);
  const core::Schedule baseline = core::baseline_schedule(graph);
  int stagnation = 0;
  while (stagnation < rounds && !incumbent.cannot_improve() && !watch.charge(graph.node_count()).expired()) {
    const std::int64_t cost = incumbent.cost(), peak = incumbent.peak(), floor = incumbent.lower_bound();
    const bool fits = options.budget && incumbent.within_budget();
    const double above_floor = static_cast<double>((fits ? *options.budget : peak) - floor);
    const auto part = [&](double share) { return static_cast<std::int64_t>(above_floor * share * random.uniform()); };
    const std::uint64_t noise = stagnation == 0 ? 0 : random.next() | 1;
    const std::int64_t goal = fits ? *options.budget : std::max(floor, peak - 1 - part(0.1));
    const core::Schedule start = stagnation % 3 == 0 ? baseline : core::drop_unread(graph, incumbent.schedule());
    work.assign(start.steps);
    if (stagnation % 3 == 1) retain_where_it_fits(graph, work, goal + part(0.3), noise);
    evict_until_it_fits(graph, work, goal - (stagnation % 2 == 1 ? part(0.2) : 0), noise, watch);
    const core::Schedule staged = core::drop_unread(graph, in_stages(graph, work.steps()));
    if (kStages.contains(graph, staged)) {
      incumbent.offer(staged);
      work.assign(staged.steps);
      retain_where_it_fits(graph, work, std::max(goal, core::evaluate(graph, staged).peak), noise);
      incumbent.offer({work.steps()});
    }
    const bool better = incumbent.cost() < cost || (!fits && incumbent.peak() < peak);
    stagnation = better ? 0 : stagnation + 1;
  }
}

/// One solver at work.
class Checkmate {
 public:
  Checkmate(const core::Graph& graph, const CheckmateOptions& options)
      : graph_(graph), options_(options), watch_(options.limit), incumbent_(graph, options, watch_, kStages) {
    incumbent_.offer(core::baseline_schedule(graph));
  }

  Solution exactly() {
    constexpr double kFirstPart = 0.1;
    constexpr int kStagnation = 60;
    if (!finished()) {
      core::within(watch_, kFirstPart,
                   [&](core::Stopwatch& first) { search_stages(graph_, options_, incumbent_, first, kStagnation); });
    }
    if (options_.budget && !finished()) find_cheapest(*options_.budget);
    if (!finished() && (!options_.budget || incumbent_.proved_infeasible())) find_least_peak();
    if (!finished() && !options_.budget) find_cheapest(incumbent_.peak());
    return finish();
  }

  Solution by_relaxation() {
    if (!finished()) round_relaxation();
    return finish();
  }

 private:
  /// An engine's work limit counts steps of its search; before the first it may need some for each term.
  bool has_time_for(const StageModel& model) {
    constexpr std::int64_t kLeastWorkATerm = 10;
    const auto terms = static_cast<std::int64_t>(model.program().term_count());
    return model.complete() && !watch_.expired_now() && watch_.rest().work >= kLeastWorkATerm * terms;
  }
  bool finished() { return incumbent_.cannot_improve() || watch_.expired_now(); }
  Solution finish() { return incumbent_.finish(!incumbent_.cannot_improve() && watch_.expired_now()); }

  bool with_highs() const {
    if (options_.engine != 0) return options_.engine == 1;
    return highs_missing().empty();
  }

  StageModel model(const StageAim& aim) {
    return StageModel(graph_, aim, static_cast<std::size_t>(options_.memory_bytes / kBytesATerm), watch_);
  }
  StageAim aim_for(std::optional<std::int64_t> budget) const {
    return {.budget = budget,
            .least_peak = incumbent_.lower_bound(),
            .most_peak = incumbent_.least_peak(),
            .max_occurrences = incumbent_.scope().max_occurrences,
            .full_rows = true};
  }

  EngineOptions engine_options() const {
    EngineOptions engine;
    engine.limit = watch_.rest();
    engine.threads = options_.threads;
    engine.seed = options_.seed;
    return engine;
  }

  static EngineAnswer nothing_fits() {
    EngineAnswer answer;
    answer.status = EngineStatus::infeasible;
    return answer;
  }

  EngineAnswer solve(const StageModel& model) {
    if (model.infeasible()) return nothing_fits();
    EngineOptions engine = engine_options();
    engine.hint = model.values_of(incumbent_.schedule());
    engine.incumbent = [&](const std::vector<double>& values, double) { incumbent_.offer(model.schedule(values)); };
    EngineAnswer answer = with_highs() ? solve_milp(model.program(), engine) : solve_cp(model.program(), engine);
    watch_.charge(answer.work);
    return answer;
  }

  /// Engines that calculate in floating point may exceed the budget by their tolerance. Bounds are those of the first
  /// attempt; those that follow leave out as much as was exceeded, so that they prove nothing.
  void find_cheapest(std::int64_t budget) {
    constexpr int kAttempts = 4;
    for (std::int64_t less = 0, attempt = 0; attempt < kAttempts && !watch_.expired_now(); ++attempt) {
      const StageModel stages = model(aim_for(budget - less));
      if (!has_time_for(stages)) return;
      const EngineAnswer answer = solve(stages);
      if (attempt == 0 && options_.budget) take_bound(stages, answer);
      if (!answer.solved()) return;
      const std::int64_t excess = incumbent_.offer(stages.schedule(answer.values)).peak - budget;
      if (excess <= 0) return;
      less += excess;
    }
  }
  void take_bound(const StageModel& stages, const EngineAnswer& answer) {
    if (answer.status == EngineStatus::infeasible) {
      // A schedule that is known says more than an engine's tolerances.
      if (!incumbent_.within_budget()) incumbent_.raise_lower_bound(*options_.budget + 1);
    } else if (answer.whole_bound() > 0) {
      incumbent_.raise_cost_bound({std::min(stages.objective(answer.whole_bound()), most_cost()), incumbent_.scope()});
    }
  }
  /// A bound that an engine's tolerance has carried above what is known is that.
  std::int64_t most_cost() const {
    return incumbent_.within_budget() ? incumbent_.cost() : std::numeric_limits<std::int64_t>::max();
  }

  void find_least_peak() {
    const StageModel stages = model(aim_for({}));
    if (!has_time_for(stages)) return;
    const EngineAnswer answer = solve(stages);
    if (answer.solved()) incumbent_.offer(stages.schedule(answer.values));
    take_peak_bound(stages, answer);
  }
  void take_peak_bound(const StageModel& stages, const EngineAnswer& answer) {
    if (answer.status == EngineStatus::infeasible) return;  // by a tolerance, since the incumbent's peak is allowed
    if (answer.whole_bound() > 0)
      incumbent_.raise_lower_bound(std::min(stages.objective(answer.whole_bound()), incumbent_.least_peak()));
  }

  void round_relaxation() {
    constexpr double kThresholds[] = {0.5, 0.3, 0.7, 0.1, 0.9, 0.01, 0.99, 0.4, 0.6, 0.2, 0.8, 0.001};
    constexpr int kDraws = 50;
    const StageModel stages = model(aim_for(options_.budget));
    if (!has_time_for(stages)) return;
    const EngineAnswer answer =
        stages.infeasible() ? nothing_fits() : solve_relaxation(stages.program(), engine_options());
    watch_.charge(answer.work);
    if (options_.budget) {
      take_bound(stages, answer);
    } else {
      take_peak_bound(stages, answer);
    }
    if (!answer.solved()) return;
    for (const double threshold : kThresholds) {
      if (finished()) return;
      incumbent_.offer(stages.least_runs(answer.values, [&](double value) { return value >= threshold; }));
    }
    core::Random random(options_.seed);
    for (int draw = 0; draw < kDraws && !finished(); ++draw)
      incumbent_.offer(stages.least_runs(answer.values, [&](double value) { return random.uniform() < value; }));
  }

  const core::Graph& graph_;
  const CheckmateOptions& options_;
  core::Stopwatch watch_;
  Incumbent incumbent_;
};

}  // namespace

Solution checkmate(const core::Graph& graph, const CheckmateOptions& options) {
  return Checkmate(graph, options).exactly();
}

Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options) {
  return Checkmate(graph, options).by_relaxation();
}

}  // namespace cairn::solvers
