// Computes a lower bound on the cost of schedules (cost_bound.h).

#include "cairn/solvers/remat/bound/cost_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"
#include "cairn/solvers/remat/bound/stage_prices.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/solvers/remat/bound/stage_search.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {
namespace {

// Bytes that an engine (HiGHS) and StagePrices need for each pair that FirstRunStages::size() counts.
constexpr std::int64_t kEngineBytesAPair = 16384, kPriceBytesAPair = 64;
/// Largest FirstRunStages::size() for which subgradient steps are made. With more pairs, a step takes too long to be
/// useful.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 20;

constexpr int kRounds = 300;

/// Computes the bound of cost_bound(). The relaxation is a simpler problem whose constraints every schedule meets
/// (cost_bound.h), so its optimum is a lower bound. An engine is an external solver, here HiGHS.
class CostBounding {
 public:
  CostBounding(const core::Graph& graph, const CostBoundOptions& options)
      : graph_(graph), options_(options), watch_(options.limit), evaluator_(graph) {}

  CostBound run() {
    watch_.charge(graph_.node_count());
    raise(cost_of(graph_, graph_.input_order()));
    answer_.infeasible = core::peak_lower_bound(graph_) > options_.budget;
    if (!finished()) raise_by_cuts();
    const bool with_engine = options_.engine && highs_missing().empty();
    bool again = true;
    while (again && !finished()) {
      const std::int64_t known = known_cost();
      raise_by_prices(known, with_engine);
      if (!finished() && with_engine && !solve_with_engine()) break;
      // With a lower known cost, the relaxation can be smaller and its bound higher. So everything is tried again.
      again = known_cost() < known;
    }
    answer_.work = watch_.work();
    return answer_;
  }

 private:
  std::int64_t known_cost() const {
    return options_.known_cost == nullptr ? kUnknownCost : options_.known_cost->load(std::memory_order_relaxed);
  }
  void raise(std::int64_t bound) {
    bound = std::min(bound, known_cost());
    if (bound <= answer_.value) return;
    answer_.value = bound;
    if (options_.raised) options_.raised(bound);
  }
  bool finished() {
    return answer_.infeasible || answer_.exhausted || answer_.value >= known_cost() || watch_.expired_now();
  }

  /// Raises the bound to the bound of cut_bound() (cut/cut_bound.h), which considers what is in memory during the first
  /// runs of up to three nodes.
  void raise_by_cuts() {
    const MomentCutOptions at{.budget = options_.budget, .order = options_.order, .link = {}, .host_budget = {}};
    constexpr double kPart = 0.3;  // fraction of the limit
    const CutBound bound = core::within(watch_, kPart, [&](core::Stopwatch& part) {
      return cut_bound(
          graph_, at, known_cost(), [&](std::int64_t value) { raise(value); }, part);
    });
    if (bound.infeasible) answer_.infeasible = answer_.exhausted = true;
  }

  /// Builds the stages for the known cost, with at most `allowed` pairs (see FirstRunStages::size()). Returns nothing
  /// if the watch expired, or if the stages prove that no schedule is cheaper.
  std::optional<FirstRunStages> stages(std::int64_t known, std::int64_t allowed) {
    std::optional<FirstRunStages> stages =
        stages_of_size(graph_, chain_for(graph_, options_.order), options_.budget, known, allowed, watch_);
    if (!stages || stages->fits()) return stages;
    prove(known);
    return std::nullopt;
  }

  double seconds_of_round(const FirstRunStages& relaxation) const {
    // Seconds that a subgradient step takes for each pair of FirstRunStages::size(), if nodes have no inputs. The time
    // is proportional to 1 plus the mean number of inputs of a node.
    constexpr double kSecondsOfPair = 6e-9;
    const double inputs = static_cast<double>(graph_.edge_count()) / std::max(1, graph_.node_count());
    return kSecondsOfPair * static_cast<double>(relaxation.size()) * (1 + inputs);
  }

  /// Records that no schedule within the budget costs less than `known`, which has been proved.
  void prove(std::int64_t known) {
    answer_.exhausted = true;
    answer_.infeasible = known == kUnknownCost;
    raise(known);
  }

  /// Finds good prices for memory (stage_prices.h), and raises the bound to the lower bound that these prices prove.
  /// Afterwards, raises the bound by a search of the relaxation (stage_search.h), which the prices guide.
  void raise_by_prices(std::int64_t known, bool with_engine) {
    constexpr core::NodeId kMostSearched = 5000;
    // The prices are computed only if there is time for this many subgradient steps. This is enough for one step, and
    // for StagePrices::fix(), which takes longer than a step.
    constexpr double kLeastRounds = 4;
    // Work units after which the search stops if an engine is installed, because the engine would be faster.
    constexpr std::int64_t kEngineBetterAfter = 20'000'000;
    const std::optional<FirstRunStages> found =
        stages(known, std::min(options_.memory_bytes / kPriceBytesAPair, kMostPairs));
    if (!found) return;
    const FirstRunStages& relaxation = *found;
    if (finished() || watch_.rest().seconds < kLeastRounds * seconds_of_round(relaxation)) return;
    StagePrices prices(relaxation);
    const std::int64_t unit = relaxation.cost_unit(), base = relaxation.base_cost();
    double target = static_cast<double>(base) / static_cast<double>(unit) / 50 + 1;
    if (known != kUnknownCost) {
      const std::int64_t units = (known - base) / unit;
      target = static_cast<double>(units);
    }
    constexpr int kMostTargets = 20;
    for (int k = 0; k < kMostTargets; ++k, target *= 2) {
      if (prices.ascend(target, kRounds, watch_) < target || known != kUnknownCost || watch_.expired_now()) break;
    }
    prices.fix();
    // Lower bound on the extra cost, i.e. on the cost above the cost of running each node once, in units of cost.
    std::int64_t least = std::max<std::int64_t>((prices.bound() + prices.one() - 1) / prices.one(), 0);
    raise(base + least * unit);
    if (graph_.node_count() > kMostSearched) return;
    core::Limit limit = watch_.rest();
    if (with_engine) limit.work = std::min(limit.work, kEngineBetterAfter);
    core::Stopwatch part(limit);
    // Repeat the search with a rising limit on the cost, because a search with a low limit keeps few states and is
    // fast. If a search with some limit finds nothing, the cost is proved to be above the limit.
    const std::int64_t open = known == kUnknownCost ? (std::int64_t{1} << 58) / prices.one() - least
                                                    : (known - base + unit - 1) / unit - 1 - least;
    const std::int64_t first = std::max<std::int64_t>(known == kUnknownCost ? least / 64 : open / 16, 0);
    const std::int64_t start = least;
    for (std::int64_t more = first; !finished(); more = std::min(open, 2 * more + 1)) {
      const StageSearchAnswer answer =
          search_relaxation(relaxation, prices, start + more, options_.memory_bytes / 8, part);
      if (answer.extra) {
        answer_.exhausted = true;
        raise(base + *answer.extra * unit);
        offer(answer.schedule);
      } else if (answer.complete && (more == open || !answer.left_out)) {
        prove(known);
      } else if (answer.complete) {
        raise(base + (start + more + 1) * unit);
      }
      if (!answer.complete || answer.extra || more == open) break;
    }
    watch_.charge(part.work());
  }

  /// Solves the relaxation as an integer program. Returns whether it should be solved again, because the known cost has
  /// fallen.
  bool solve_with_engine() {
    const std::int64_t known = known_cost();
    const std::optional<FirstRunStages> found = stages(known, options_.memory_bytes / kEngineBytesAPair);
    if (!found) return false;
    const FirstRunStages& relaxation = *found;
    std::optional<StagePrices> prices;
    std::int64_t most_extra = 0;
    if (known != kUnknownCost) {
      most_extra = (known - relaxation.base_cost() + relaxation.cost_unit() - 1) / relaxation.cost_unit() - 1;
      prices.emplace(relaxation);
      prices->ascend(static_cast<double>(most_extra + 1), kRounds, watch_);
      prices->fix();
    }
    if (finished()) return false;
    const StageProgram program(relaxation, prices ? &*prices : nullptr, most_extra);
    if (program.model().infeasible()) {
      prove(known);
      return false;
    }
    if (finished()) return false;
    // The engine checks the time rarely, so its limit is less than the remaining time.
    EngineOptions engine{.limit = watch_.share(0.93), .threads = 1};
    bool again = false;
    engine.incumbent = [&](const std::vector<double>& values, double) { offer(program.schedule(values)); };
    engine.progress = [&](std::int64_t whole_bound) {
      if (whole_bound > 0) raise(std::min(program.cost(whole_bound), known));
      const std::int64_t now = known_cost();
      if (now == known) return answer_.value < now;
      again = FirstRunStages(graph_, relaxation.chain(), options_.budget, now).size() < relaxation.size() / 4 * 3;
      return !again && answer_.value < now;
    };
    const EngineAnswer answer = solve_milp(program.model(), engine);
    watch_.charge(answer.work);
    if (answer.status == EngineStatus::infeasible) {
      prove(known);
      return false;
    }
    if (const std::int64_t least = answer.whole_bound(); least > std::numeric_limits<std::int64_t>::min())
      raise(std::min(program.cost(least), known));
    if (answer.status == EngineStatus::optimal) {
      // The engine computes with tolerances. So its optimum is proved by a search in integers.
      const std::int64_t optimum = std::min(program.cost(std::llround(answer.objective)), known_cost());
      if (answer_.value < optimum) raise_by_prices(optimum, true);
      answer_.exhausted = true;
    }
    return again;
  }

  /// Reports a schedule to CostBoundOptions::found. If the schedule exceeds the budget, first brings it within the
  /// budget by evictions. Does nothing if evictions do not suffice.
  void offer(const core::Schedule& schedule) {
    if (!options_.found) return;
    core::Schedule needed = core::drop_unread(graph_, core::run_pinned_once(graph_, schedule));
    if (evaluator_.evaluate(needed).peak > options_.budget) {
      constexpr double kPart = 0.05;
      core::Stopwatch part(watch_.share(kPart));
      core::EditableSchedule work(graph_);
      work.assign(needed.steps);
      const bool fits = evict_until_it_fits(graph_, work, options_.budget, 0, part);
      watch_.charge(part.work());
      if (!fits) return;
      retain_where_it_fits(graph_, work, options_.budget, 0, &part);
      needed.steps = work.steps();
      if (const core::Evaluation e = evaluator_.evaluate(needed); !e.valid() || e.peak > options_.budget) return;
    }
    options_.found(needed);
  }

  const core::Graph& graph_;
  const CostBoundOptions& options_;
  core::Stopwatch watch_;
  core::Evaluator evaluator_;
  CostBound answer_;
};

}  // namespace

CostBound cost_bound(const core::Graph& graph, const CostBoundOptions& options) {
  return CostBounding(graph, options).run();
}

}  // namespace cairn::solvers
