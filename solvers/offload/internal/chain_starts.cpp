#include "cairn/solvers/offload/internal/chain_starts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/transferable.h"
#include "cairn/solvers/remat/rotor/rotor.h"

namespace cairn::solvers::offloading {

ChainStarts::ChainStarts(const core::Graph& graph, const core::Link& link, core::Stopwatch& watch) : graph_(graph) {
  constexpr std::int32_t kBlocks = 100;  // largest number of blocks; the time of a table grows with its cube
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    const auto copy = static_cast<double>(core::copy_cost(link, graph.value_size(x), graph.cost_unit()));
    copies_.push_back(transferable(graph, x) ? 2 * copy : kNoMove);
  }
  try {
    for (BlockChain& blocks : find_block_chains(graph, kBlocks)) {
      if (watch.expired_now()) return;
      Chain chain{std::move(blocks), {}, {}};
      chain.problem = block_problem(graph, chain.blocks, watch, chain.schedules);
      chains_.push_back(std::move(chain));
    }
  } catch (const core::InputError&) {
    chains_.clear();
  }
}

std::optional<core::Schedule> ChainStarts::cheapest(std::int64_t budget, double price, core::Stopwatch& watch) {
  std::optional<core::Schedule> best;
  double least = std::numeric_limits<double>::infinity();
  for (Chain& chain : chains_) {
    double time = least;
    std::optional<core::Schedule> found = cheapest(chain, budget, price, time, watch);
    if (!found || time >= least) continue;
    least = time;
    best = std::move(found);
  }
  return best;
}

std::optional<core::Schedule> ChainStarts::cheapest(Chain& chain, std::int64_t budget, double price, double& time,
                                                    core::Stopwatch& watch) const {
  constexpr std::int64_t kWork = 20'000'000;  // iterations of the innermost loop of a table, about 0.02 s
  constexpr std::int64_t kLeast = 50, kMost = 1000;
  const auto price_of = [&](core::ValueId x) { return copies_[x] == kNoMove ? kNoMove : price * copies_[x]; };
  price_moves(graph_, chain.blocks, chain.schedules, price_of, chain.problem);
  const std::int64_t levels = std::clamp(kWork / chain_choices(chain.problem), kLeast, kMost);
  const ChainTable table(chain.problem, std::max<std::int64_t>(budget, 1), levels, watch);
  if (!table.complete()) return std::nullopt;
  const std::vector<ChainStep> steps = table.steps(table.top());
  if (steps.empty()) return std::nullopt;
  time = table.time(table.top());
  const core::Schedule schedule = flat_schedule(graph_, chain.schedules, steps);
  watch.charge(schedule.length());
  return core::drop_unread(graph_, core::run_pinned_once(graph_, schedule));
}

}  // namespace cairn::solvers::offloading
