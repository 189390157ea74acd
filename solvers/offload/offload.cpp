// Searches for transfers that bring schedules within a memory budget (offload.h). The schedules from which the search
// starts are called starts.

#include "cairn/solvers/offload/support/offload.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/random.h"
#include "cairn/core/support/timeline.h"
#include "cairn/solvers/offload/internal/construct.h"
#include "cairn/solvers/offload/internal/improve.h"
#include "cairn/solvers/offload/internal/steps.h"

namespace cairn::solvers {
namespace offloading {
namespace {

/// Holds a schedule with transfers, and the numbers by which schedules are compared: bytes above the budgets, makespan,
/// and time of all copies.
struct Candidate {
  core::Schedule schedule;
  std::int64_t excess = 0, makespan = 0, copies = 0;

  auto measure() const { return std::tuple(excess, makespan, copies); }
  bool fits() const { return excess == 0; }
};

/// Adds transfers to the starts, improves the transfers by annealing, and changes the steps of the best schedules.
class OffloadSearch {
 public:
  OffloadSearch(const core::Graph& graph, const OffloadOptions& options)
      : graph_(graph),
        options_(options),
        watch_(options.limit),
        random_(options.seed),
        may_change_(options.change_steps && options.scope.order != OrderRule::stages),
        limits_{options.link, options.budget, options.host_budget.value_or(std::numeric_limits<std::int64_t>::max())} {}

  OffloadSolution run(std::span<const core::Schedule> starts) {
    constexpr double kOfStarts = 0.4, kOfAnnealing = 0.5;
    start_from(starts, kOfStarts);
    if (!found_.empty() && found_.front().fits()) {
      anneal(found_.front(), may_change_ ? kOfAnnealing : 1.0);
      if (may_change_) change_steps();
    }
    return finish();
  }

  /// Adds transfers to each of the given schedules (starts), without improving the transfers. Returns the best result.
  OffloadSolution construct(std::span<const core::Schedule> starts) {
    start_from(starts, 0);
    return finish();
  }

 private:
  bool done() const { return !found_.empty() && found_.front().fits() && found_.front().makespan <= options_.enough; }

  void start_from(std::span<const core::Schedule> starts, double share) {
    if (starts.empty()) throw core::InputError("offloading needs a schedule to start from");
    const core::Stopwatch all(watch_.share(share));
    for (const core::Schedule& start : starts) {
      if (!found_.empty() && watch_.expired_now()) return;
      keep(built(start));
    }
    if (share == 0) return;
    // Each start that fits is annealed for a while, the best start first.
    const std::vector<Candidate> candidates = found_;
    double left = static_cast<double>(candidates.size());
    for (const Candidate& candidate : candidates) {
      if (done() || all.passed() || watch_.expired_now()) return;
      if (candidate.fits()) anneal(candidate, share / left);
      left -= 1;
    }
  }

  /// Adds transfers to a schedule until it fits into the budgets, if that is possible.
  Candidate built(const core::Schedule& start) {
    State state(graph_, start.steps, limits_);
    state.assign(start.transfers);
    build(state);
    return candidate(state);
  }

  void build(State& state) {
    if (!state.fits()) offloading::construct(state, watch_);
    if (state.fits()) offloading::relax(state, watch_);
  }

  static Candidate candidate(State& state) {
    return {state.schedule(), state.excess(), state.makespan(), state.copy_time()};
  }

  void anneal(const Candidate& from, double share) {
    State state(graph_, from.schedule.steps, limits_);
    state.assign(from.schedule.transfers);
    core::within(watch_, share, [&](core::Stopwatch& watch) {
      offloading::improve(state, watch, random_, std::max(options_.enough, state.compute()));
      return 0;
    });
    keep(candidate(state));
  }

  /// Adds a candidate to found_, which holds the best kMost candidates with different steps.
  void keep(Candidate candidate) {
    constexpr std::size_t kMost = 8;
    const bool better = found_.empty() || candidate.measure() < found_.front().measure();
    if (better && candidate.fits() && options_.progress) options_.progress(candidate.makespan, watch_.seconds());
    const auto same = std::ranges::find_if(
        found_, [&](const Candidate& other) { return other.schedule.steps == candidate.schedule.steps; });
    if (same != found_.end()) {
      if (same->measure() <= candidate.measure()) return;
      found_.erase(same);
    }
    const auto at = std::ranges::upper_bound(found_, candidate.measure(), {}, &Candidate::measure);
    found_.insert(at, std::move(candidate));
    if (found_.size() > kMost) found_.pop_back();
  }

  /// Makes random changes to the steps of good candidates: turns recomputations into transfers and back, or moves
  /// steps. Ends when time is up, or after kMostFailures changes in succession without a better result.
  void change_steps() {
    constexpr double kShareOfTrial = 0.01;
    constexpr int kMostFailures = 3000;
    int failures = 0;
    while (!done() && !watch_.expired_now() && failures < kMostFailures) {
      const std::size_t from = random_.next() % 4 == 0 ? random_.next() % found_.size() : 0;
      const Candidate& base = found_[from];
      ++failures;
      std::optional<core::Schedule> changed = offloading::change_steps(
          graph_, base.schedule, random_, {options_.scope.max_occurrences, options_.scope.order == OrderRule::free});
      watch_.charge(base.schedule.length());
      // A recomputation may have become the first run of its node, and the scope may forbid a first run at this place.
      if (!changed || !options_.scope.contains(graph_, *changed)) continue;
      State state(graph_, changed->steps, limits_);
      state.assign(changed->transfers);
      build(state);
      if (!state.fits()) continue;
      const std::int64_t best = found_.front().makespan;
      if (state.makespan() > best + (best - std::min(best, state.compute())) / 2) continue;
      core::within(watch_, kShareOfTrial, [&](core::Stopwatch& watch) {
        offloading::improve(state, watch, random_, std::max(options_.enough, state.compute()));
        return 0;
      });
      Candidate next = candidate(state);
      if (next.measure() < found_.front().measure()) failures = 0;
      keep(std::move(next));
    }
  }

  OffloadSolution finish() {
    OffloadSolution solution;
    solution.schedule = found_.front().schedule;
    for (std::size_t k = 1; k < found_.size() && found_[k].fits(); ++k) solution.others.push_back(found_[k].schedule);
    const core::Evaluation evaluation = core::evaluate(graph_, solution.schedule);
    if (!evaluation.valid()) {
      throw core::DefectError("offloading made an invalid schedule: " + core::describe(graph_, evaluation.defect));
    }
    solution.peak = evaluation.peak;
    solution.host_peak = evaluation.host_peak;
    // If the graph knows its link, evaluation.cost is the makespan. So cost and makespan are both taken from the
    // timeline.
    const core::Timeline times = core::timeline(graph_, solution.schedule, options_.link);
    solution.cost = times.compute;
    solution.makespan = times.makespan;
    solution.fits = solution.peak <= limits_.budget && solution.host_peak <= limits_.host_budget;
    if (solution.fits != found_.front().fits() || solution.makespan != found_.front().makespan) {
      throw core::DefectError("offloading measured a schedule wrongly; please report this");
    }
    solution.work = watch_.work();
    solution.stop = done()                 ? Stop::proved
                    : watch_.interrupted() ? Stop::interrupted
                    : watch_.expired_now() ? Stop::limit
                                           : Stop::stagnated;
    return solution;
  }

  const core::Graph& graph_;
  const OffloadOptions& options_;
  core::Stopwatch watch_;
  core::Random random_;
  bool may_change_;
  offloading::Limits limits_;
  std::vector<Candidate> found_;  ///< candidates, the best first
};

}  // namespace
}  // namespace offloading

OffloadSolution offload(const core::Graph& graph, std::span<const core::Schedule> starts,
                        const OffloadOptions& options) {
  return offloading::OffloadSearch(graph, options).run(starts);
}

OffloadSolution add_transfers(const core::Graph& graph, const core::Schedule& start, const OffloadOptions& options) {
  return offloading::OffloadSearch(graph, options).construct(std::span(&start, 1));
}

OffloadSolution least_peak_with_transfers(const core::Graph& graph, std::span<const core::Schedule> starts,
                                          const OffloadOptions& options) {
  core::Stopwatch watch(options.limit);
  OffloadOptions one = options;
  one.progress = {};
  one.budget = std::numeric_limits<std::int64_t>::max() / 2;
  OffloadSolution best = offloading::OffloadSearch(graph, one).construct(starts);
  std::int64_t low = std::max(core::peak_lower_bound(graph), options.budget);
  while (low < best.peak && !watch.expired_now()) {
    one.budget = low + (best.peak - low) / 2;
    one.limit = watch.rest();
    OffloadSolution solution = offloading::OffloadSearch(graph, one).construct(starts);
    watch.charge(solution.work);
    if (solution.fits) {
      best = std::move(solution);
    } else {
      low = one.budget + 1;
    }
  }
  return best;
}

}  // namespace cairn::solvers
