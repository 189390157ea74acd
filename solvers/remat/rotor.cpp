#include "cairn/solvers/remat/rotor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/remat/internal/block_options.h"
#include "cairn/solvers/remat/internal/chain.h"
#include "cairn/solvers/remat/internal/chain_blocks.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

/// The levels of a table for a chain of n blocks: what takes a second or two, and half of the memory.
std::int64_t rotor_levels(std::int64_t asked, std::int64_t n, std::int64_t memory_bytes) {
  constexpr std::int64_t kMost = 4000, kLeast = 200, kWork = std::int64_t{3} << 30;
  const std::int64_t fitting = memory_bytes / 2 / (16 * n * n + 1);
  if (asked > 0) return std::max<std::int64_t>(1, std::min(asked, fitting));
  return std::max<std::int64_t>(1, std::min(std::clamp(kWork / (n * n * n), kLeast, kMost), fitting));
}

/// The search on one chain of blocks.
class ChainSearch {
 public:
  ChainSearch(const core::Graph& graph, const RotorOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
              const BlockChain& chain)
      : graph_(graph), options_(options), incumbent_(incumbent), watch_(watch), work_(graph) {
    problem_ = block_problem(graph, chain, schedules_);
    levels_ = rotor_levels(options.slots, static_cast<std::int64_t>(chain.blocks.size()), options.memory_bytes);
  }

  void run(std::int64_t baseline_peak) {
    const LeastMemory least = least_chain_memory(problem_);
    const std::int64_t least_peak = offer(least.steps);
    watch_.charge(graph_.node_count());
    if (!options_.budget) {
      // What fits into the least memory, and is cheaper there.
      const ChainTable table(problem_, std::max(least.bytes, least_peak), levels_, watch_);
      if (!table.complete()) return;
      if (const std::vector<ChainStep> steps = table.steps(table.top()); !steps.empty()) offer(steps);
      return;
    }
    if (watch_.expired_now()) return;
    // What blocks are taken to need is at times more than they do: levels beyond the budget are tried as well.
    const std::int64_t budget = *options_.budget;
    const std::int64_t most = std::max(std::min(baseline_peak, budget + budget / 4), budget);
    const ChainTable table(problem_, most, levels_ * most / budget, watch_);
    if (!table.complete()) return;
    std::int64_t low = -1, high = table.top() + 1;
    for (std::int64_t level = std::min(table.top(), budget / table.unit()); low + 1 < high && !watch_.expired_now();
         level = low + (high - low) / 2) {
      const std::vector<ChainStep> steps = table.steps(level);
      const bool fits = steps.empty() || offer(steps) <= budget;
      (fits ? low : high) = level;
    }
    for (std::int64_t part = 0; part < kTries && options_.retain && !watch_.expired_now(); ++part) {
      const std::int64_t level = low - low * part / kTries / 4;
      const std::vector<ChainStep> steps = level < 0 ? least.steps : table.steps(level);
      if (!steps.empty()) retain(steps);
    }
  }

 private:
  static constexpr std::int64_t kTries = 16;

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
  std::int64_t levels_ = 1;
};

}  // namespace

Solution rotor(const core::Graph& graph, const RotorOptions& options) {
  core::Stopwatch watch(options.limit);
  const auto blocks = static_cast<std::int32_t>(std::min<std::int64_t>(options.blocks, graph.node_count() + 1));
  // Values that cross a large part of the graph may be held rather than stand in the way of every cut.
  std::vector<BlockChain> chains{find_block_chain(graph, graph.node_count(), blocks)};
  chains.push_back(find_block_chain(graph, std::max(16, graph.node_count() / 24), blocks));
  if (chains[1].blocks.size() < chains[0].blocks.size() * 9 / 8) chains.pop_back();
  if (chains.back().blocks.size() < 2)
    throw core::InputError("the graph is no chain of blocks: nowhere does a single value cross its forward part");

  Incumbent incumbent(graph, options, watch);
  const std::int64_t baseline_peak = incumbent.offer(core::baseline_schedule(graph)).peak;
  for (const BlockChain& chain : chains) {
    if (incumbent.cannot_improve() || watch.expired_now()) break;
    ChainSearch(graph, options, incumbent, watch, chain).run(baseline_peak);
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
