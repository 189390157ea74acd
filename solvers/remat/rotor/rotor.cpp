// Implements the solver rotor (rotor.h). A level is an amount of memory for which the dynamic program computes the
// least time (ChainTable). A resident is a value that is never recomputed.

#include "cairn/solvers/remat/rotor/rotor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/repair/retain.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/block_options.h"
#include "cairn/solvers/remat/rotor/dynamic_program.h"

namespace cairn::solvers {
namespace {

/// Chooses the number of levels of a ChainTable, which are the amounts of memory that it distinguishes. This is
/// options.slots or, if that is 0, a number with which the innermost loop of the table runs about `work` times. The
/// table never takes more than half of SolveOptions::memory_bytes.
std::int64_t affordable_levels(const ChainProblem& problem, std::int64_t work, const RotorOptions& options) {
  constexpr std::int64_t kMost = 4000, kLeast = 100;
  const auto n = static_cast<std::int64_t>(problem.stages.size());
  const std::int64_t wanted =
      options.slots > 0 ? options.slots : std::clamp(work / chain_choices(problem), kLeast, kMost);
  return std::max<std::int64_t>(1, std::min(wanted, options.memory_bytes / 2 / (8 * n * (n + 1))));
}

/// Searches for schedules of one division of the graph into a chain of blocks.
class BlockChainSearch {
 public:
  BlockChainSearch(const core::Graph& graph, const RotorOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
                   const BlockChain& chain)
      : graph_(graph), options_(options), incumbent_(incumbent), watch_(watch), work_(graph) {
    core::within(watch, kShareOfOptions,
                 [&](core::Stopwatch& part) { problem_ = block_problem(graph, chain, part, schedules_); });
  }

  void run(std::int64_t baseline_peak) {
    least_ = least_chain_memory(problem_);
    watch_.charge(graph_.node_count());
    const std::int64_t least_peak = offer(least_.steps);
    if (options_.budget && options_.retain && least_peak <= *options_.budget) retain(least_.steps);
    // Compute a coarse table before the fine one, so that good schedules are known early.
    std::int64_t before = 0;
    for (const std::int64_t work : {kCoarse, kFine}) {
      const std::int64_t levels = affordable_levels(problem_, work, options_);
      if (levels == before || watch_.expired_now()) return;
      before = levels;
      if (options_.budget) {
        search(baseline_peak, levels);
      } else {
        cheapest_within(std::max(least_.bytes, least_peak), levels);
      }
    }
  }

 private:
  // Numbers of iterations of the innermost loop. A coarse table takes about a second, a fine table a few seconds.
  static constexpr std::int64_t kCoarse = 1'000'000'000, kFine = 6'000'000'000;
  static constexpr std::int64_t kTries = 16;
  static constexpr double kShareOfOptions = 0.25;

  void cheapest_within(std::int64_t bytes, std::int64_t levels) {
    const ChainTable table(problem_, bytes, levels, watch_);
    if (!table.complete()) return;
    if (const std::vector<ChainStep> steps = table.steps(table.top()); !steps.empty()) offer(steps);
  }

  void search(std::int64_t baseline_peak, std::int64_t levels) {
    // The bytes of a block are sometimes overestimated, for example because of rounding. So a schedule that the table
    // makes for slightly more memory than the budget can be within the budget. The bisection below finds the largest
    // amount of memory (`level`, in units of the table) for which the table's schedule is within the budget.
    const std::int64_t budget = std::max<std::int64_t>(*options_.budget, 1);
    const std::int64_t most = std::max(std::min(baseline_peak, budget + budget / 4), budget);
    const ChainTable table(problem_, most, levels, watch_);
    if (!table.complete()) return;
    std::int64_t low = -1, high = table.top() + 1;
    for (std::int64_t level = budget / table.unit(); low + 1 < high && !watch_.expired_now();
         level = low + (high - low) / 2) {
      const std::vector<ChainStep> steps = table.steps(level);
      const bool fits = steps.empty() || offer(steps) <= budget;
      (fits ? low : high) = level;
    }
    for (std::int64_t part = 0; part < kTries && options_.retain && !watch_.expired_now(); ++part) {
      const std::int64_t level = low - low * part / kTries / 4;
      if (level < 0) break;
      if (const std::vector<ChainStep> steps = table.steps(level); !steps.empty()) retain(steps);
    }
  }

  std::int64_t offer(const std::vector<ChainStep>& steps) {
    return incumbent_.offer(flat_schedule(graph_, schedules_, steps)).peak;
  }
  void retain(const std::vector<ChainStep>& steps) {
    const core::Schedule schedule = core::run_pinned_once(graph_, flat_schedule(graph_, schedules_, steps));
    watch_.charge(schedule.length());
    work_.assign(core::drop_unread(graph_, schedule).steps);
    retain_where_it_fits(graph_, work_, *options_.budget);
    incumbent_.offer({work_.steps()});
  }

  const core::Graph& graph_;
  const RotorOptions& options_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  core::EditableSchedule work_;
  BlockSchedules schedules_;
  ChainProblem problem_;
  LeastMemory least_;
};

}  // namespace

Solution rotor(const core::Graph& graph, const RotorOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  if (graph.node_count() == 0) {
    incumbent.offer({});
    return incumbent.finish(false);
  }
  const auto blocks = static_cast<std::int32_t>(std::min<std::int64_t>(options.blocks, graph.node_count() + 1));
  const std::vector<BlockChain> chains = find_block_chains(graph, blocks);

  const std::int64_t baseline_peak = incumbent.offer(core::baseline_schedule(graph)).peak;
  for (const BlockChain& chain : chains) {
    if (incumbent.cannot_improve() || watch.expired_now()) break;
    BlockChainSearch(graph, options, incumbent, watch, chain).run(baseline_peak);
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
