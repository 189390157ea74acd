// Tests the dynamic program for chains in which values can also move to the host. Compares it with all persistent
// schedules of small chains, and with all choices of the values that are on the host between two accesses. In a
// persistent schedule, a value that is stored for a backward node stays in memory until this node has run.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/block_options.h"
#include "cairn/solvers/remat/rotor/dynamic_program.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/remat/persistent_chains.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::offload_chain_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using core::ValueId;
using tests::Random;

/// The steps between two accesses of a value. During these steps, the value can be on the host.
struct Gap {
  std::int64_t bytes = 0, first = 0, last = 0;  ///< first and last step between the accesses
  double price = 0;
};

/// What a schedule costs and needs if all values stay on the device, and the gaps in which values can be on the host.
struct Measured {
  double cost = 0;
  std::vector<std::int64_t> memory;  ///< bytes during each step
  std::vector<Gap> gaps;
};

Measured measure(const Graph& graph, const BlockChain& chain, const std::vector<double>& price,
                 const Schedule& schedule) {
  const std::int64_t length = schedule.length();
  Measured measured{static_cast<double>(core::reference::cost(graph, schedule)), {}, {}};
  for (const NodeId v : schedule.steps) measured.memory.push_back(graph.scratch(v));
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    std::vector<std::int64_t> accesses;  // accesses of the latest occurrence of the value
    const auto end = [&](bool kept) {
      if (accesses.empty()) return;
      const std::int64_t last = kept ? length - 1 : accesses.back();
      for (std::int64_t i = accesses.front(); i <= last; ++i) measured.memory[i] += graph.value_size(x);
      const bool movable = !graph.backward(graph.producer(x)) && chain.resident[x] == 0 && price[x] != kNoMove;
      // A checkpoint can move to the host after the next stage has read it. A value inside a stage can move after it is
      // made.
      const bool checkpoint = graph.output_ref(x).output == 0;
      for (std::size_t k = checkpoint ? 1 : 0; movable && k + 1 < accesses.size(); ++k) {
        if (accesses[k + 1] > accesses[k] + 1)
          measured.gaps.push_back({graph.value_size(x), accesses[k] + 1, accesses[k + 1] - 1, price[x]});
      }
      accesses.clear();
    };
    for (std::int64_t i = 0; i < length; ++i) {
      const NodeId v = schedule.steps[i];
      if (v == graph.producer(x)) {
        end(false);
        accesses.push_back(i);
      }
      if (std::ranges::find(graph.inputs(v), x) != graph.inputs(v).end()) accesses.push_back(i);
    }
    end(graph.value_kept(x));
  }
  return measured;
}

/// Tries all choices of gaps, from number `gap` on, in which values are on the host. Returns the least cost, including
/// the prices of these moves, with which memory stays within the budget. If that is not below `least`, returns `least`.
double cheapest(Measured measured, std::size_t gap, std::int64_t budget, double least) {
  if (measured.cost >= least) return least;
  if (*std::ranges::max_element(measured.memory) <= budget) return measured.cost;
  if (gap == measured.gaps.size()) return least;
  least = cheapest(measured, gap + 1, budget, least);
  const Gap& away = measured.gaps[gap];
  measured.cost += away.price;
  for (std::int64_t i = away.first; i <= away.last; ++i) measured.memory[i] -= away.bytes;
  return cheapest(std::move(measured), gap + 1, budget, least);
}

/// Returns the result of the dynamic program for a budget. It is exact in bytes, because one level of memory is one
/// byte.
double by_program(const ChainProblem& problem, std::int64_t budget) {
  core::Stopwatch watch({});
  const ChainTable table(problem, budget, 10'000, watch);
  REQUIRE(table.unit() * table.top() <= budget);
  return table.time(table.top());
}

struct Priced {
  BlockChain chain;
  BlockSchedules schedules;
  ChainProblem problem;
  std::vector<double> price;
};

Priced priced(Random& random, const Graph& graph) {
  Priced priced{find_block_chain(graph, graph.node_count(), graph.node_count()), {}, {}, {}};
  core::Stopwatch watch({});
  priced.problem = block_problem(graph, priced.chain, watch, priced.schedules);
  for (ValueId x = 0; x < graph.value_count(); ++x)
    priced.price.push_back(random.chance(20) ? kNoMove : static_cast<double>(random.between(0, 12)));
  price_moves(
      graph, priced.chain, priced.schedules, [&](ValueId x) { return priced.price[x]; }, priced.problem);
  return priced;
}

struct Tally {
  std::int64_t pairs = 0, equal = 0, moving = 0;
};

/// Compares the dynamic program with all persistent schedules of a random chain of n stages, for `budgets` random
/// budgets.
void compare(Random& random, int n, int budgets, Tally& tally) {
  const auto reads = static_cast<std::uint64_t>(random.below(std::int64_t{1} << (2 * n)));
  const tests::ChainShape shape = tests::random_chain_shape(n, reads);
  const tests::PersistentSchedules schedules(shape);
  const Graph graph = tests::random_chain(random, shape);
  const Priced with = priced(random, graph);
  const std::int64_t most = core::evaluate(graph, core::baseline_schedule(graph)).peak;
  for (int k = 0; k < budgets; ++k) {
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), most);
    double least = std::numeric_limits<double>::infinity(), alone = least;
    for (const Schedule& schedule : schedules.all()) {
      Measured one = measure(graph, with.chain, with.price, schedule);
      if (*std::ranges::max_element(one.memory) <= budget) alone = std::min(alone, one.cost);
      least = cheapest(std::move(one), 0, budget, least);
    }
    const double found = by_program(with.problem, budget);
    CAPTURE(n, reads, budget);
    REQUIRE(found >= least);
    ++tally.pairs;
    tally.equal += found == least ? 1 : 0;
    tally.moving += found < alone ? 1 : 0;
  }
}

void require_mostly_equal(const Tally& tally) {
  CAPTURE(tally.pairs, tally.equal, tally.moving);
  CHECK(tally.equal * 1000 >= tally.pairs * 999);
  CHECK(tally.moving * 20 > tally.pairs);
}

TEST_CASE("the program for chains with moves is never below all persistent schedules, and mostly equal to them") {
  Tally tally;
  tests::for_each_seed(1500, [&](Random& random) {
    compare(random, static_cast<int>(random.chance(10) ? 5 : random.between(2, 4)), 3, tally);
  });
  require_mostly_equal(tally);
}

/// This test takes about ten minutes, because a chain of eight stages has up to two million persistent schedules.
TEST_CASE("the same for 2,000 chains of up to eight stages", "[.long]") {
  Tally tally;
  tests::for_each_seed(2000, [&](Random& random) {
    const std::int64_t part = random.below(100);
    compare(random, part < 1 ? 8 : part < 15 ? 7 : part < 40 ? 6 : static_cast<int>(random.between(2, 5)), 1, tally);
  });
  require_mostly_equal(tally);
}

}  // namespace
}  // namespace cairn::solvers::offload_chain_test
