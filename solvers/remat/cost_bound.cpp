#include "cairn/solvers/remat/cost_bound.h"

#include <algorithm>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/engines/internal/engine.h"
#include "cairn/solvers/remat/internal/chain_program.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

/// An engine takes about so many bytes for each pair of a stage with a node or a value.
constexpr std::int64_t kBytesAPair = 2048;

/// Raises a bound until it meets the known cost or the limit is reached.
class CostBounding {
 public:
  CostBounding(const core::Graph& graph, const CostBoundOptions& options)
      : graph_(graph), options_(options), watch_(options.limit), evaluator_(graph) {}

  CostBound run() {
    std::int64_t once = 0;
    for (core::NodeId v = 0; v < graph_.node_count(); ++v) once += graph_.cost(v);
    watch_.charge(graph_.node_count());
    raise(once);
    answer_.infeasible = core::peak_lower_bound(graph_) > options_.budget;
    if (options_.engine && highs_missing().empty()) {
      while (!finished() && solve_with_engine()) {
      }
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

  std::vector<core::NodeId> chain() const {
    if (options_.order == OrderRule::free) return longest_chain(graph_);
    return {graph_.input_order().begin(), graph_.input_order().end()};
  }
  /// With as much of the chain as memory allows.
  ChainStages stages(std::int64_t known) const {
    std::vector<core::NodeId> nodes = chain();
    while (true) {
      ChainStages stages(graph_, nodes, options_.budget, known);
      const std::int64_t allowed = options_.memory_bytes / kBytesAPair, size = stages.size();
      if (size <= allowed || nodes.empty()) return stages;
      const auto part = static_cast<double>(allowed) / static_cast<double>(size);
      nodes = thin_chain(graph_, nodes, static_cast<std::size_t>(static_cast<double>(nodes.size()) * part * 0.9));
    }
  }

  /// No schedule is cheaper than `known` within the budget.
  void prove(std::int64_t known) {
    answer_.exhausted = true;
    answer_.infeasible = known == kUnknownCost;
    raise(known);
  }

  /// False where there is nothing left that it could do.
  bool solve_with_engine() {
    const std::int64_t known = known_cost();
    const ChainStages relaxation = stages(known);
    watch_.charge(graph_.node_count() + relaxation.size());
    const ChainProgram program(relaxation);
    if (program.infeasible()) {
      prove(known);
      return false;
    }
    if (finished()) return false;
    EngineOptions engine;
    engine.limit = watch_.rest();
    engine.threads = 1;
    bool again = false;  // with what the known cost now says
    engine.incumbent = [&](const std::vector<double>& values, double) { offer(program.schedule(values)); };
    engine.progress = [&](std::int64_t whole_bound) {
      raise(std::min(program.cost(whole_bound), known));
      const std::int64_t now = known_cost();
      if (now == known) return answer_.value < now;
      again = ChainStages(graph_, relaxation.chain(), options_.budget, now).size() < relaxation.size() / 4 * 3;
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
    answer_.exhausted = answer.status == EngineStatus::optimal;
    return again;
  }

  /// Brings it within the budget, and hands it out if that succeeds.
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
