// Solves one level of a hierarchy of subgraphs by an integer program. level.h explains levels and compute nodes. A
// memory row is a constraint of this program that limits the bytes in memory while one compute node runs.

#include "cairn/solvers/remat/hiremate/level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/remat/hiremate/internal/level_model.h"
#include "cairn/solvers/remat/hiremate/internal/level_program.h"

namespace cairn::solvers {

using core::Graph;
using core::NodeId;
using core::ValueId;

OptionNeeds needs_of(const Graph& graph, const Layer& layer, const LayerOption& option) {
  std::unordered_map<NodeId, char> inside;
  for (const auto* nodes : {&layer.forward, &layer.backward}) {
    for (const NodeId v : *nodes) inside.emplace(v, 0);
  }
  const auto leaves = [&](ValueId x) {
    return graph.value_kept(x) ||
           std::any_of(graph.readers(x).begin(), graph.readers(x).end(), [&](NodeId v) { return !inside.contains(v); });
  };
  std::vector<ValueId> saved;
  for (const auto& [x, last] : level::external_reads(graph, option.backward)) {
    if (inside.contains(graph.producer(x)) && !graph.backward(graph.producer(x))) saved.push_back(x);
  }
  std::sort(saved.begin(), saved.end());
  OptionNeeds needs;
  needs.cost = cost_of(graph, option.forward) + cost_of(graph, option.backward);
  for (const ValueId x : saved) needs.between += graph.value_size(x);
  const auto stays = [&](ValueId x) { return leaves(x) || std::binary_search(saved.begin(), saved.end(), x); };
  for (const std::int64_t bytes : level::profile(graph, option.forward, {}, stays))
    needs.peak = std::max(needs.peak, bytes);
  const auto stays_after = [&](ValueId x) { return graph.backward(graph.producer(x)) && leaves(x); };
  for (const std::int64_t bytes : level::profile(graph, option.backward, saved, stays_after))
    needs.peak = std::max(needs.peak, bytes);
  return needs;
}

Level::Level(const Graph& graph, LevelProblem problem)
    : model_(std::make_unique<const level::Model>(graph, std::move(problem))) {}
Level::~Level() = default;

LayerOption Level::cheapest() const {
  std::vector<const LayerOption*> options;
  for (const LevelProblem::Part& part : model_->problem.parts) options.push_back(&part.options.front());
  return join(options);
}

LayerOption Level::again() const {
  LayerOption all = cheapest();
  if (std::any_of(all.forward.begin(), all.forward.end(), [&](NodeId v) { return model_->graph.pinned(v); }))
    return all;
  all.backward.insert(all.backward.begin(), all.forward.begin(), all.forward.end());
  all.forward = model_->needed_outside(all.forward, true);
  return all;
}

LevelAnswer Level::solve(const LevelBudget& budget, const LevelSearch& search) const {
  constexpr std::size_t kFewRows = 400;
  constexpr double kSomeOfTheTime = 0.6;
  level::Program program(*model_, budget, search);
  if (!program.complete()) return {};
  core::Stopwatch watch(search.limit);
  EngineOptions options{.threads = search.threads, .seed = search.seed};
  if (search.hint != nullptr) options.hint = program.values_of(*search.hint);
  EngineAnswer engine;
  double bound = -std::numeric_limits<double>::infinity();
  const auto run = [&](const core::Limit& limit) {
    options.limit = limit;
    engine = search.highs ? solve_milp(program.linear, options) : solve_cp(program.linear, options);
    watch.charge(engine.work);
    bound = std::max(bound, engine.bound);
  };

  // A memory row limits the bytes in memory during one run of a compute node. In most solutions, few of these rows are
  // tight. So the program is first solved with only the rows of the first run of each node. If the answer violates a
  // row that was left out, all rows of the same compute node are added, and the program is solved again.
  std::optional<EngineAnswer> known;  // an answer that violates no row
  bool done = false;
  if (program.memory_rows() > kFewRows) {
    program.add_memory_rows([](std::int32_t phase, std::int32_t node) { return phase == node; });
    while (!done && !known && watch.seconds() < kSomeOfTheTime * search.limit.seconds && !watch.expired_now()) {
      core::Limit limit = watch.share(kSomeOfTheTime);
      if (std::isfinite(limit.seconds)) limit.seconds = kSomeOfTheTime * search.limit.seconds - watch.seconds();
      run(limit);
      done = engine.status == EngineStatus::infeasible;
      if (!engine.solved()) break;
      const std::vector<bool> broken = program.broken_by(engine);
      options.hint = program.values_of(program.read(engine).runs);
      if (program.add_memory_rows([&](std::int32_t, std::int32_t node) { return broken[node]; }) > 0) continue;
      known = engine;
      done = engine.status == EngineStatus::optimal;
    }
  }
  if (!done) {
    if (!known && search.hint != nullptr) options.hint = program.values_of(*search.hint);
    program.add_memory_rows([](std::int32_t, std::int32_t) { return true; });
    run(watch.rest());
    if (known && (!engine.solved() || engine.objective > known->objective)) engine = *known;
  }

  LevelAnswer answer;
  if (engine.solved()) answer = program.read(engine);
  answer.status = engine.status;
  engine.bound = bound;
  answer.bound = engine.status == EngineStatus::infeasible ? 0 : engine.whole_bound();
  answer.work = watch.work();
  return answer;
}

}  // namespace cairn::solvers
