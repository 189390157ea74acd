// Implements the solvers checkmate and checkmate-lp (checkmate.h). A stage of a schedule consists of the steps between
// two consecutive first runs of nodes. A memory row is a constraint of the program that limits the bytes in memory
// during one run.

#include "cairn/solvers/remat/stages/checkmate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/input_ranks.h"
#include "cairn/solvers/remat/repair/refine.h"
#include "cairn/solvers/remat/repair/retain.h"
#include "cairn/solvers/remat/stages/stage_model.h"

namespace cairn::solvers {
namespace {

constexpr Scope kStages{OrderRule::stages, 0};
/// Approximate memory that an engine needs for each term of a program.
constexpr std::int64_t kBytesATerm = 256;

/// Searches locally for schedules in stages. Evicts values until memory is within a goal. Next, sorts the repeated runs
/// of each stage by the input order, which the rule for stages demands. Afterwards retains values in memory where they
/// fit.
///
/// Works on a graph that has an additional node behind each node, called its anchor. The anchor reads a value of 0
/// bytes from the node. The anchor makes sure that the node's first run stays at its position, as the rule for stages
/// demands. Without anchors, a first run could be dropped if its value is evicted before another node reads it.
class StageSearch {
 public:
  StageSearch(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent)
      : graph_(graph),
        options_(options),
        incumbent_(incumbent),
        ranks_(input_ranks(graph)),
        anchored_(anchored(graph)),
        work_(anchored_) {}

  /// Improves the schedule `start` and offers the schedules found. Evicts values down to `evict_to` bytes and then
  /// retains values up to `goal` bytes. The first runs of `start` must be in the input order.
  void improve(const core::Schedule& start, std::int64_t goal, std::int64_t evict_to, std::uint64_t noise,
               core::Stopwatch& watch) {
    assign(start.steps);
    evict_until_it_fits(anchored_, work_, evict_to, noise, watch);
    const std::int64_t peak = assign(in_stages(schedule().steps, ranks_));
    retain_where_it_fits(anchored_, work_, std::max(goal, peak), noise);
    incumbent_.offer(schedule());
  }

  /// Calls improve() for the baseline and for the best known schedule, with changing noise. Ends when `rounds`
  /// consecutive calls bring no improvement.
  void run(core::Stopwatch& watch, int rounds) {
    RuinRounds drawn(options_, incumbent_, rounds, true);
    while (const std::optional<RuinRound> round = drawn.next(watch, graph_.node_count())) {
      core::Schedule start = round->from_baseline ? core::baseline_schedule(graph_) : incumbent_.schedule();
      if (round->lifted) {
        assign(start.steps);
        retain_where_it_fits(anchored_, work_, *round->lifted, round->noise);
        start = schedule();
      }
      improve(start, round->goal, round->evict_to, round->noise, watch);
    }
  }

 private:
  static core::Graph anchored(const core::Graph& graph) {
    core::GraphBuilder builder(graph);
    std::vector<core::NodeId> order;
    for (const core::NodeId v : graph.input_order()) {
      builder.node(v).op.reset();    // an op would not have the output that the anchor reads
      builder.node(v).name.clear();  // the name could equal the name that an anchor gets
      order.push_back(v);
      order.push_back(builder.add({.pinned = true}));
      builder.add_control_input(order.back(), v);
    }
    builder.set_order(std::move(order));
    return builder.build();
  }

  /// Makes `steps` the current schedule, with the anchor after each first run and without unneeded steps. Offers this
  /// schedule, and returns its peak.
  std::int64_t assign(const std::vector<core::NodeId>& steps) {
    core::Schedule anchored;
    std::int32_t stage = 0;
    for (const core::NodeId v : steps) {
      anchored.steps.push_back(v);
      if (ranks_[v] != stage) continue;
      anchored.steps.push_back(anchored_.input_order()[2 * static_cast<std::size_t>(stage) + 1]);
      ++stage;
    }
    work_.assign(core::drop_unread(anchored_, anchored).steps);
    incumbent_.offer(schedule());
    return work_.peak();
  }
  core::Schedule schedule() const {
    std::vector<core::NodeId> steps = work_.steps();
    std::erase_if(steps, [&](core::NodeId v) { return v >= graph_.node_count(); });  // these are anchors
    return {std::move(steps)};
  }

  const core::Graph& graph_;
  const SolveOptions& options_;
  Incumbent& incumbent_;
  const std::vector<std::int32_t> ranks_;
  const core::Graph anchored_;
  core::EditableSchedule work_;
};

/// Runs the two solvers. The program is the integer program that StageModel builds; HiGHS or CP-SAT solves it and is
/// called the engine.
class Checkmate {
 public:
  Checkmate(const core::Graph& graph, const CheckmateOptions& options)
      : graph_(graph),
        options_(options),
        watch_(options.limit),
        incumbent_(graph, options, watch_, kStages),
        search_(graph, options, incumbent_) {
    incumbent_.offer(core::baseline_schedule(graph));
  }

  Solution exactly() {
    constexpr double kSearchPart = 0.1;
    const int stagnation = 50 + 10 * graph_.node_count();
    if (!finished()) {
      core::within(watch_, kSearchPart, [&](core::Stopwatch& part) { search_.run(part, stagnation); });
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
  bool finished() { return incumbent_.cannot_improve() || watch_.expired_now(); }
  Solution finish() { return incumbent_.finish(!incumbent_.cannot_improve() && watch_.expired_now()); }

  StageModel model(std::optional<std::int64_t> budget) {
    const StageAim aim{.budget = budget,
                       .least_peak = incumbent_.lower_bound(),
                       .most_peak = incumbent_.least_peak(),
                       .max_occurrences = incumbent_.scope().max_occurrences,
                       .rows = rows_};
    return StageModel(graph_, aim, static_cast<std::size_t>(options_.memory_bytes / kBytesATerm), watch_);
  }
  /// Returns whether there is enough time and work left to solve the program. An engine already does some work for each
  /// term before its search begins.
  bool has_time_for(const StageModel& stages) {
    constexpr std::int64_t kLeastWorkATerm = 10;
    const auto terms = static_cast<std::int64_t>(stages.program().term_count());
    return stages.complete() && !watch_.expired_now() && watch_.rest().work >= kLeastWorkATerm * terms;
  }

  EngineOptions engine_options() const {
    return {.limit = watch_.rest(), .threads = options_.threads, .seed = options_.seed};
  }
  bool with_highs() const { return options_.engine == 0 ? highs_missing().empty() : options_.engine == 1; }

  template <class Solve>
  EngineAnswer answer_of(const StageModel& stages, const EngineOptions& engine, const Solve& solve) {
    EngineAnswer answer{.status = EngineStatus::infeasible};
    if (!stages.program().infeasible()) answer = solve(stages.program(), engine);
    watch_.charge(answer.work);
    return answer;
  }
  EngineAnswer solve(const StageModel& stages, std::int64_t budget, bool with_highs,
                     double seconds = std::numeric_limits<double>::infinity()) {
    EngineOptions engine = engine_options();
    engine.limit.seconds = std::min(engine.limit.seconds, seconds);
    engine.hint = stages.values_of(incumbent_.schedule());
    engine.incumbent = [&](const std::vector<double>& values, double) { offer(stages.schedule(values), budget); };
    return answer_of(stages, engine, [&](const LinearModel& program, const EngineOptions& how) {
      return with_highs ? solve_milp(program, how) : solve_cp(program, how);
    });
  }

  /// Offers the schedule. If it exceeds the budget, also offers schedules within the budget that a local search makes
  /// from it. Returns the peak of the given schedule.
  std::int64_t offer(const core::Schedule& schedule, std::int64_t budget) {
    const std::int64_t peak = incumbent_.offer(schedule).peak;
    if (peak > budget) search_.improve(schedule, budget, budget, 0, watch_);
    return peak;
  }

  /// Finds the nodes that run again in the schedule at a step that needs more than `bytes` and has no memory row.
  /// Requests memory rows for the repeated runs of these nodes in every stage. Returns whether there is such a node.
  bool add_rows(const StageModel& stages, const core::Schedule& schedule, std::int64_t bytes) {
    const std::vector<std::int64_t> whole = stages.values_of(schedule);
    const std::vector<double> values(whole.begin(), whole.end());
    const std::vector<std::size_t> missing = stages.missing_rows(values, static_cast<double>(bytes));
    const auto n = static_cast<std::size_t>(graph_.node_count());
    rows_.resize(n * n, false);
    for (const std::size_t step : missing) {
      for (std::size_t stage = step % n; stage < n; ++stage) rows_[stage * n + step % n] = true;
    }
    return !missing.empty();
  }

  /// Solves the program with few memory rows. If the schedule found violates missing rows, adds these rows and solves
  /// again. With missing rows, the program is a relaxation, so its bounds hold for the schedules in stages. If the
  /// schedule exceeds the budget although no row is missing, the engine's tolerance is the reason. In that case, solves
  /// again with a budget that is lower by the excess. This answer proves nothing.
  void find_cheapest(std::int64_t budget) {
    constexpr int kAttempts = 3;
    std::int64_t less = 0;
    for (int attempt = 0; attempt < kAttempts && !finished();) {
      const StageModel stages = model(budget - less);
      if (!has_time_for(stages)) return;
      const double begin = watch_.seconds();
      const EngineAnswer answer = solve(stages, budget, with_highs());
      if (less == 0 && options_.budget) take_cost_bound(stages, answer);
      if (!answer.solved()) return;
      const core::Schedule found = stages.schedule(answer.values);
      const std::int64_t excess = offer(found, budget) - budget;
      if (excess <= 0) {
        if (options_.budget && answer.status == EngineStatus::optimal) confirm(stages, watch_.seconds() - begin);
        return;
      }
      if (add_rows(stages, found, budget - less)) continue;
      less += excess;
      ++attempt;
    }
  }
  /// Proves the optimum with CP-SAT, which computes exactly. Because of its tolerance, the bound of HiGHS can be
  /// slightly below the cost of an optimum.
  void confirm(const StageModel& stages, double highs_seconds) {
    constexpr double kTimes = 4, kLeastSeconds = 2;
    // CP-SAT is not used under a work limit, because the time that it gets here depends on the clock.
    if (finished() || options_.limit.counts_work() || options_.engine != 0 || !cp_sat_missing().empty() ||
        !has_time_for(stages))
      return;
    const double seconds = std::max(kTimes * highs_seconds, kLeastSeconds);
    try {
      take_cost_bound(stages, solve(stages, *options_.budget, false, seconds));
    } catch (const core::InputError&) {
      // CP-SAT does not accept such large numbers, although HiGHS does. The answer stays as it is.
    }
  }
  void take_cost_bound(const StageModel& stages, const EngineAnswer& answer) {
    if (answer.status == EngineStatus::infeasible) {
      // The engine computes with tolerances, so its answer that no schedule is within the budget can be wrong. The
      // answer is ignored if such a schedule is known.
      if (!incumbent_.within_budget()) incumbent_.raise_lower_bound(*options_.budget + 1);
    } else if (answer.whole_bound() > 0) {
      const std::int64_t bound = stages.objective(answer.whole_bound());
      incumbent_.raise_cost_bound(
          {incumbent_.within_budget() ? std::min(bound, incumbent_.cost()) : bound, incumbent_.scope()});
    }
  }

  void find_least_peak() {
    while (!finished()) {
      const StageModel stages = model({});
      if (!has_time_for(stages)) return;
      const EngineAnswer answer = solve(stages, std::numeric_limits<std::int64_t>::max(), with_highs());
      take_peak_bound(stages, answer);
      if (!answer.solved()) return;
      const core::Schedule found = stages.schedule(answer.values);
      incumbent_.offer(found);
      if (incumbent_.least_peak() == incumbent_.lower_bound()) return;
      if (!add_rows(stages, found, stages.objective(std::llround(answer.objective)))) return;
    }
  }
  void take_peak_bound(const StageModel& stages, const EngineAnswer& answer) {
    // The program allows the incumbent's peak, so it has a solution. If the engine calls it infeasible, a tolerance is
    // the reason, and the answer is ignored.
    if (answer.status == EngineStatus::infeasible || answer.whole_bound() <= 0) return;
    incumbent_.raise_lower_bound(std::min(stages.objective(answer.whole_bound()), incumbent_.least_peak()));
  }

  /// Solves the relaxation and rounds its solution. Adds the memory rows that the solution violates and repeats this,
  /// until no row is violated or half of the time has passed.
  void round_relaxation() {
    constexpr double kThresholds[] = {0.5, 0.3, 0.7, 0.1, 0.9, 0.01, 0.99, 0.4, 0.6, 0.2, 0.8, 0.001};
    constexpr int kDraws = 50;
    core::Stopwatch first_half(watch_.share(0.5));
    do {
      const StageModel stages = model(options_.budget);
      if (!has_time_for(stages)) return;
      const EngineAnswer answer = answer_of(stages, engine_options(), solve_relaxation);
      if (options_.budget) {
        take_cost_bound(stages, answer);
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
      const double bytes = options_.budget ? static_cast<double>(*options_.budget)
                                           : answer.objective * static_cast<double>(stages.objective(1));
      const std::vector<std::size_t> missing = stages.missing_rows(answer.values, bytes);
      if (missing.empty()) return;
      const auto n = static_cast<std::size_t>(graph_.node_count());
      rows_.resize(n * n, false);
      for (const std::size_t step : missing) rows_[step] = true;
    } while (!finished() && !first_half.charge(0).expired_now());
  }

  const core::Graph& graph_;
  const CheckmateOptions& options_;
  core::Stopwatch watch_;
  Incumbent incumbent_;
  StageSearch search_;
  std::vector<bool> rows_;  ///< memory rows of the program (StageAim::rows)
};

}  // namespace

Solution checkmate(const core::Graph& graph, const CheckmateOptions& options) {
  return Checkmate(graph, options).exactly();
}

Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options) {
  return Checkmate(graph, options).by_relaxation();
}

}  // namespace cairn::solvers
