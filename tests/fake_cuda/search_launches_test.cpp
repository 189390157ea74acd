// Tests, for random sizes, that all launches of the simulator, of the dominance tests and of the solvers' searches are
// valid on every card.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/core/machine/support/machine.h"
#include "cairn/models/random_graphs.h"
#include "cairn/sim/device/dominance/canonical_batch.h"
#include "cairn/sim/device/dominance/dominance.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/tally.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"
#include "cairn/solvers/order/device/pumpkin_kernel.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/launch_checker.h"
#include "cairn/tests/solvers/order/key_trees.h"
#include "cairn/tests/solvers/order/pumpkin_cases.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::search_launches_test {
namespace {

namespace device = sim::device;

/// A machine that runs kernels on the host, but has the limits of a card. It checks each launch before it runs the
/// kernel.
class CardOnHost : public core::HostMachine {
 public:
  explicit CardOnHost(const Card& card) : core::HostMachine(1), card_(card) {}

  std::int64_t shared_limit() const { return cuda::dynamic_shared_limit(card_.shared); }
  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) const {
    if (teams == 0) return;
    shared_bytes > 0 ? ++shared_launches_ : ++other_launches_;
    check_launch(card_, F::kThreads, teams, shared_bytes);
    core::HostMachine::launch(functor, teams, shared_bytes);
  }
  std::int64_t shared_launches() const { return shared_launches_; }
  std::int64_t other_launches() const { return other_launches_; }

 private:
  const Card& card_;
  mutable std::int64_t shared_launches_ = 0, other_launches_ = 0;
};

/// Makes the simulator generate, evaluate and tally `count` random schedules of the graph, once with recomputation and
/// once without. Checks that all ways to evaluate the schedules give the same results.
template <class Id>
void simulate(CardOnHost& machine, const core::Graph& graph, std::int64_t count) {
  OnMachine<CardOnHost, Id> simulator(machine, graph);
  for (const std::int32_t moves : {0, 3}) {
    const sim::Generator generator{.seed = 1, .moves = moves};
    const sim::ScheduleBatch batch = simulator.generate(generator, 0, count);
    sim::Outcomes again;
    simulator.evaluate(generator, 0, count, again);
    CHECK(evaluated(simulator, batch) == again);
    CHECK(std::ssize(simulator.profiles(batch).begin) == count + 1);
    CHECK(simulator.internal_profiles(batch).profiles.size() == count);
    sim::Tally tally;
    simulator.sweep(generator, 0, count, tally);
    CHECK(tally.candidates() == count);
  }
}

/// Returns a random graph. If `wide` is true, all sizes are 2^40 or 2^40 + 1 bytes, so sums of sizes need 64 bits. If
/// not, 32 bits suffice.
core::Graph graph_of(core::NodeId nodes, bool wide) {
  const std::int64_t least = wide ? std::int64_t{1} << 40 : 1;
  return models::generate_random(nodes, nodes == 1 ? 0 : nodes - 1, {.least = least, .most = least + 1}, 1);
}

/// Makes the simulator launch every kernel that it can launch for a graph. `kept` is the number of candidates whose
/// steps are stored on the host. `many` is the number of further candidates, of which only the outcomes are stored.
template <class Id>
void launch_simulator(LaunchChecker& checker, const core::Graph& graph, std::int64_t kept, std::int64_t many) {
  OnMachine<LaunchChecker, Id> simulator(checker, graph);
  for (const std::int32_t moves : {0, 3}) {
    const sim::Generator generator{.seed = 1, .moves = moves};
    const sim::ScheduleBatch batch = simulator.generate(generator, 0, kept);
    simulator.profiles(batch);
    simulator.internal_profiles(batch);
    sim::Outcomes outcomes;
    simulator.evaluate(generator, 0, many, outcomes);
    sim::Tally tally(sim::tally_options(graph));
    simulator.sweep(generator, 0, many, tally);
  }
  sim::ScheduleBatch orders(graph.node_count());
  orders.resize_padded(kept, graph.node_count());
  std::fill_n(orders.lengths(), kept, graph.node_count());
  evaluated(simulator, orders);
}

/// Checks that the functors which handle kLanes orders at once were launched with their arrays in Space, i.e. in shared
/// or in global memory. If the arrays of EvaluateKeys would take more than half of the card's shared memory even for a
/// graph of one node, checks instead that EvaluateKeys and RankKeys were not launched with arrays in shared memory.
template <class Sum, int kLanes, class Space>
void check_lanes(const LaunchChecker& checker) {
  using Id = std::uint16_t;
  constexpr bool kShared = std::is_same_v<Space, device::SharedSpace>;
  INFO(kLanes << " lanes, sums of " << sizeof(Sum) << " bytes, arrays in shared memory: " << kShared);
  CHECK(checker.has_launched<device::DrawKeys<Id, kLanes>>());
  CHECK(checker.has_launched<device::EvaluateOrders<Id, Sum, kLanes, Space>>());
  const bool possible =
      !kShared || device::EvaluateKeys<Id, Sum, kLanes, Space>::bytes(1, 1) <= checker.shared_limit() / 2;
  CHECK(checker.has_launched<device::EvaluateKeys<Id, Sum, kLanes, Space>>() == possible);
  CHECK(checker.has_launched<device::RankKeys<Id, Sum, kLanes, Space>>() == possible);
}

/// Checks that the functors whose arrays can be in shared or in global memory were launched with arrays in Space.
template <class Id, class Space>
void check_space(const LaunchChecker& checker) {
  CHECK(checker.has_launched<device::DrawSchedules<Id, Space>>());
  CHECK(checker.has_launched<device::EvaluateAny<Id, Space>>());
  CHECK(checker.has_launched<device::WriteProfiles<Id, Space>>());
}

template <class Sum>
void check_all_lanes(const LaunchChecker& checker) {
  check_lanes<Sum, 32, device::SharedSpace>(checker);
  check_lanes<Sum, 16, device::SharedSpace>(checker);
  check_lanes<Sum, 8, device::SharedSpace>(checker);
  check_lanes<Sum, 8, device::GlobalSpace>(checker);
  CHECK(checker.has_launched<device::EvaluateOrders<std::uint32_t, Sum, 8, device::GlobalSpace>>());
}

}  // namespace

TEST_CASE("the simulator runs with the limits of every card") {
  for (const Card& card : kCards) {
    INFO(card.name);
    CardOnHost machine(card);
    // The arrays of a team (a group of threads that work together) fit into shared memory only for the small graphs of
    // this list. For the others, the arrays are in global memory.
    for (const core::NodeId nodes : {3, 60, 500, 2'000, 6'000, 20'000}) {
      const core::Graph graph = models::generate_layered({.nodes = nodes, .edge_density = 0.01, .seed = 1});
      simulate<std::uint16_t>(machine, graph, nodes <= 60 ? 700 : nodes <= 2'000 ? 40 : 3);
    }
    simulate<std::uint16_t>(machine, graph_of(700, true), 40);
    simulate<std::uint32_t>(machine, models::generate_random(70'000, 70'000, {}, 1), 2);
    CHECK(machine.shared_launches() > 10);
    CHECK(machine.other_launches() > 10);
  }
}

TEST_CASE("no card refuses a launch of the simulator, whatever the size of the graph") {
  constexpr int kRounds = 60;
  constexpr core::NodeId kMostNarrow = 65'534;
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 18;  // number of steps that are stored on the host
  std::vector<std::unique_ptr<LaunchChecker>> checkers;
  for (const Card& card : kCards) checkers.push_back(std::make_unique<LaunchChecker>(card));
  Sizes sizes;
  const auto launch = [&](core::NodeId nodes, bool wide, std::int64_t many) {
    INFO(nodes << " nodes");
    const core::Graph graph = graph_of(nodes, wide);
    const std::int64_t kept = sizes.up_to(kMostSteps / nodes);
    for (const auto& checker : checkers) {
      if (nodes <= kMostNarrow) {
        launch_simulator<std::uint16_t>(*checker, graph, kept, many);
      } else {
        launch_simulator<std::uint32_t>(*checker, graph, kept, many);
      }
    }
  };
  for (const bool wide : {false, true}) {
    for (int round = 0; round < kRounds; ++round) {
      // Half of the graphs have so few nodes that the arrays of several lanes, i.e. of several orders that a kernel
      // handles at once, fit into shared memory together.
      const core::NodeId most = round % 2 == 0 ? 6'000 : kMostNarrow;
      const std::int64_t nodes = round % 4 < 2 ? 1 + sizes.below(most) : sizes.up_to(most);
      launch(static_cast<core::NodeId>(nodes), wide, sizes.up_to(1 << 14));
    }
    for (const core::NodeId nodes : {core::NodeId{1}, kMostNarrow, kMostNarrow + 1, 70'000}) launch(nodes, wide, 100);
    launch(100, wide, std::int64_t{1} << 21);  // more candidates than the simulator evaluates at once
  }
  for (const auto& checker : checkers) {
    check_all_lanes<std::int32_t>(*checker);
    check_all_lanes<std::int64_t>(*checker);
    check_space<std::uint16_t, device::SharedSpace>(*checker);
    check_space<std::uint16_t, device::GlobalSpace>(*checker);
    check_space<std::uint32_t, device::GlobalSpace>(*checker);
    CHECK(checker->has_launched<device::PlaceOrders>());
    CHECK(checker->has_launched<device::CountOutcomes>());
    CHECK(checker->has_launched<device::Mark<device::IsEntry>>());
    CHECK(checker->has_launched<device::GatherEntries>());
  }
}

TEST_CASE("no card refuses a launch of dominance in bulk, whatever the number of profiles") {
  constexpr std::int64_t kBytesOfProfile = 128;  // a profile takes fewer bytes than this on the card
  constexpr std::int64_t kBandBytes = std::int64_t{1} << 20;
  const core::Segment segments[] = {{5, 3}};
  Sizes sizes;
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    for (int round = 0; round < 50; ++round) {
      const std::int64_t count = sizes.up_to((card.memory << 30) / kBytesOfProfile);
      const auto all = device::canonical(checker, nullptr, count + sizes.up_to(count), nullptr, count);
      device::merge_segments(checker, all, nullptr, sizes.up_to(count));

      const std::int64_t fewer = sizes.up_to(1 << 15);  // a small number, because the answers are stored on the host
      const auto batch = device::canonical(checker, nullptr, fewer, nullptr, fewer);
      const device::DominanceSet<LaunchChecker> set(checker, batch);
      set.non_dominated();
      CHECK(std::ssize(set.dominated_by({0, segments})) == fewer);
      CHECK(std::ssize(set.dominators_of({0, segments})) == fewer);
      std::int64_t rows = 0;
      set.for_each_band(kBandBytes, [&](const sim::DominanceBand& band) { rows += band.rows; });
      CHECK(rows == fewer);
    }
    CHECK(checker.has_launched<device::MatrixTile>());
    CHECK(checker.has_launched<device::Filter>());
    CHECK(checker.has_launched<device::CompactChains>());
    CHECK(checker.free_bytes() == card.memory << 30);
  }
}

TEST_CASE("no card refuses a launch of the pumpkin's table, whatever the number of branches") {
  using End = solvers::PumpkinAnswer::End;
  constexpr std::int64_t kMostChunk = std::int64_t{1} << 40;
  Random random(1);
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    bool has_solved = false, was_too_large = false;
    for (int round = 0; round < 60; ++round) {
      const bool all_differ = random.chance(50);
      const PumpkinShape shape{.kinds = random.between(1, all_differ ? 40 : 14),
                               .copies = all_differ ? 1 : random.between(1, 12),
                               .length = random.between(0, 12),
                               .bytes = round % 2 == 0 ? 1000 : std::int64_t{1} << 40};
      const solvers::PumpkinProblem problem = random_pumpkin(random, shape);
      if (solvers::count_states(problem).empty()) continue;  // solve_pumpkin() would refuse the problem
      solvers::PumpkinOptions options{.memory_bytes = checker.free_bytes()};
      if (random.chance(50)) options.chunk = kMostChunk;
      const End end = solvers::solve_pumpkin(checker, problem, options).end;
      has_solved = has_solved || end == End::solved;
      was_too_large = was_too_large || end == End::too_large;
    }
    CHECK(has_solved);
    CHECK(was_too_large);
    CHECK(checker.has_launched<solvers::WriteSegments<solvers::NarrowTable>>());
    CHECK(checker.has_launched<solvers::WriteSegments<solvers::WideTable>>());
    CHECK(checker.has_launched<solvers::WalkBack>());
  }
}

TEST_CASE("no card refuses a launch of the search over orders of key nodes, whatever the tree") {
  // kMostSlots limits the number of entries in the answers, because the host stores them.
  constexpr std::int64_t kMostSlots = std::int64_t{1} << 18;
  Random random(2);
  Sizes sizes;
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    for (int round = 0; round < 100; ++round) {
      const auto readers = static_cast<int>(sizes.up_to(200));
      const solvers::KeyTree tree = random_key_tree(random, readers, readers / 2, random.between(0, 8));
      const solvers::PackedKeyTree packed(tree);
      solvers::KeyOrdersOn<LaunchChecker> batches(packed, checker);
      const auto keys = std::ssize(tree.keys);
      const auto length = static_cast<std::int32_t>(random.below(keys));
      solvers::KeyOrderChildren children;
      batches.children({nullptr, sizes.up_to(kMostSlots / keys), length}, children);
      solvers::KeyOrderProfiles profiles;
      batches.profiles({nullptr, sizes.up_to(kMostSlots / (packed.size.segments + 1)), length}, profiles);
    }
    CHECK(checker.has_launched<device::Mark<solvers::IsChild>>());
    CHECK(checker.has_launched<solvers::FindPeaks<32>>());
    CHECK(checker.has_launched<solvers::FindProfiles<32>>());
  }
}

}  // namespace cairn::tests::search_launches_test
