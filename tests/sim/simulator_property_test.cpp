#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/host/lockstep/narrow_amounts.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::simulator_property_test {
namespace {

namespace reference = core::reference;

/// Returns a random schedule. A quarter of the schedules is invalid. About half of them do not recompute.
core::Schedule random_candidate(Random& random, const core::Graph& graph) {
  if (random.chance(25)) return random_invalid_schedule(random, graph);
  return random.chance(60) ? random_schedule(random, graph, 0) : random_schedule(random, graph);
}

sim::Outcomes by_reference(const core::Graph& graph, const std::vector<core::Schedule>& schedules) {
  sim::Outcomes outcomes;
  outcomes.resize(static_cast<std::int64_t>(schedules.size()));
  for (std::size_t c = 0; c < schedules.size(); ++c) {
    const bool valid = reference::valid(graph, schedules[c]);
    outcomes.valid[c] = valid ? 1 : 0;
    outcomes.peak[c] = valid ? reference::peak(graph, schedules[c]) : 0;
    outcomes.cost[c] = valid ? reference::cost(graph, schedules[c]) : 0;
    outcomes.peak_step[c] = valid ? static_cast<std::int32_t>(reference::peak_step(graph, schedules[c])) : -1;
  }
  return outcomes;
}

sim::Outcomes by_evaluator(const core::Graph& graph, const std::vector<core::Schedule>& schedules) {
  core::Evaluator evaluator(graph);
  sim::Outcomes outcomes;
  outcomes.resize(static_cast<std::int64_t>(schedules.size()));
  for (std::size_t c = 0; c < schedules.size(); ++c) {
    const core::Evaluation evaluation = evaluator.evaluate(schedules[c]);
    outcomes.valid[c] = evaluation.valid() ? 1 : 0;
    outcomes.peak[c] = evaluation.peak;
    outcomes.cost[c] = evaluation.cost;
    outcomes.peak_step[c] = static_cast<std::int32_t>(evaluation.peak_step);
  }
  return outcomes;
}

sim::ScheduleBatch batch_of(const core::Graph& graph, const std::vector<core::Schedule>& schedules) {
  sim::ScheduleBatch batch(graph.node_count());
  for (const core::Schedule& schedule : schedules) batch.add(schedule);
  return batch;
}

/// Returns the graph with all sizes, scratches and costs multiplied by `factor`, so that sums of bytes need more than
/// 31 bits.
core::Graph enlarged(const core::Graph& graph, std::int64_t factor) {
  core::GraphBuilder builder(graph);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    core::Node& node = builder.node(v);
    const std::int64_t more = v == 0 && node.scratch >= 0 ? 1 : 0;
    node.size = node.size * factor + more;
    for (core::Output& output : node.outputs) output.size = output.size * factor + more;
    node.scratch *= factor;
    node.cost *= factor;
  }
  return builder.build();
}

TEST_CASE("host and device path agree with the reference on many small graphs") {
  for_each_seed(100'000, [](Random& random, std::uint64_t seed) {
    const bool values = seed % 13 > 1;
    core::Graph graph = random_graph(random, {.several_outputs = values, .pinned = values && random.chance(50)});
    if (seed % 3 == 0) graph = enlarged(graph, std::int64_t{1} << 33);
    std::vector<core::Schedule> schedules;
    const std::int64_t count = seed % 20 == 0 ? random.between(1, 150) : random.between(1, 20);
    for (std::int64_t c = 0; c < count; ++c) schedules.push_back(random_candidate(random, graph));
    const sim::Outcomes expected = by_reference(graph, schedules);
    const sim::ScheduleBatch batch = batch_of(graph, schedules);
    REQUIRE(evaluated(*sim::host_simulator(graph, 1), batch) == expected);
    core::HostMachine host(1);
    REQUIRE(evaluated(*std::make_unique<OnMachine<core::HostMachine, std::uint16_t>>(host, graph), batch) == expected);
    if (seed % 50 != 0) return;
    REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch) == expected);
    for (const bool reverse : {false, true}) {
      FiberMachine fibers(reverse ? Threads::reverse : Threads::forward);
      REQUIRE(evaluated(*std::make_unique<OnMachine<FiberMachine, std::uint16_t>>(fibers, graph), batch) == expected);
    }
  });
}

TEST_CASE("every batch size from 1 to 4096 gives each candidate the same outcome") {
  const bool values = GENERATE(false, true);
  Random random(72);
  const core::Graph graph =
      random_graph(random, {.min_nodes = 12, .max_nodes = 12, .several_outputs = values, .pinned = values});
  std::vector<core::Schedule> schedules;
  for (int c = 0; c < 4096; ++c) schedules.push_back(random_candidate(random, graph));
  const sim::Outcomes all = by_reference(graph, schedules);
  const auto simulator = sim::host_simulator(graph, 1);
  core::HostMachine machine(1);
  OnMachine<core::HostMachine, std::uint16_t> device_path(machine, graph);
  sim::ScheduleBatch batch(graph.node_count());
  sim::Outcomes expected;
  for (std::int64_t count = 1; count <= 4096; ++count) {
    batch.add(schedules[static_cast<std::size_t>(count - 1)]);
    expected.resize(count);
    const auto c = static_cast<std::size_t>(count - 1);
    expected.valid[c] = all.valid[c];
    expected.peak[c] = all.peak[c];
    expected.cost[c] = all.cost[c];
    expected.peak_step[c] = all.peak_step[c];
    if (!(evaluated(*simulator, batch) == expected)) FAIL("the host differs in a batch of " << count);
    if (count % 16 < 2 && !(evaluated(device_path, batch) == expected))
      FAIL("the device path differs in a batch of " << count);
  }
}

TEST_CASE("larger graphs agree with the evaluator, in every way that lanes can be filled") {
  Random random(73);
  for (int round = 0; round < 24; ++round) {
    const bool values = round >= 12;
    const core::Graph graph = random_graph(
        random, {.min_nodes = 80, .max_nodes = 200, .several_outputs = values, .pinned = values && round % 2 == 0});
    std::vector<core::Schedule> schedules;
    for (std::int64_t c = random.between(20, 140); c > 0; --c) {
      schedules.push_back(random_candidate(random, graph));
      // The simulator evaluates each schedule in a lane, i.e. at one element position of vector registers. Some
      // schedules contain one node more often than a lane has room for.
      if (random.chance(5))
        schedules.back().steps.insert(schedules.back().steps.end(), 12, schedules.back().steps.back());
    }
    const sim::Outcomes expected = by_evaluator(graph, schedules);
    const sim::ScheduleBatch batch = batch_of(graph, schedules);
    REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch) == expected);
    if (round % 3 != 0) continue;
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward, round % 4 < 2 ? 96 * 1024 : 1024);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 6 == 0 ? 5'000 : 0);
    REQUIRE(evaluated(device_path, batch) == expected);
  }
}

/// Checks that every processor family evaluates the schedules as the evaluator does.
void check_families(const core::Graph& graph, const std::vector<core::Schedule>& schedules, std::int32_t longest) {
  const sim::device::Tables<std::uint16_t> tables(graph);
  const sim::Outcomes expected = by_evaluator(graph, schedules);
  const sim::ScheduleBatch batch = batch_of(graph, schedules);
  const auto view = batch.view<std::uint16_t>();
  std::vector<sim::Row<std::uint16_t>> rows;
  for (std::int64_t c = 0; c < view.count; ++c) rows.push_back({view.steps + view.begin[c], view.length[c]});
  for (const sim::ProcessorFamily& family : sim::families()) {
    const auto lockstep = family.lockstep16(tables.view(), longest);
    for (int again = 0; again < 2; ++again) {
      sim::device::Outcome outcomes[16];
      bool done[16];
      lockstep->run(rows.data(), static_cast<int>(rows.size()), outcomes, done);
      for (std::size_t c = 0; c < rows.size(); ++c) {
        if (!done[c]) continue;
        REQUIRE(outcomes[c].valid == (expected.valid[c] != 0));
        REQUIRE(outcomes[c].peak == expected.peak[c]);
        REQUIRE(outcomes[c].cost == expected.cost[c]);
        REQUIRE(outcomes[c].peak_step == expected.peak_step[c]);
      }
    }
  }
}

TEST_CASE("every processor family that runs here computes the same") {
  Random random(74);
  for (int round = 0; round < 240; ++round) {
    const bool values = round >= 60;
    const core::Graph graph = random_graph(
        random, {.min_nodes = 5, .max_nodes = 60, .several_outputs = values, .pinned = values && round % 2 == 0});
    std::vector<core::Schedule> schedules;
    while (schedules.size() < 16) {
      core::Schedule candidate = random_candidate(random, graph);
      const bool known = std::all_of(candidate.steps.begin(), candidate.steps.end(),
                                     [&](core::NodeId v) { return v >= 0 && v < graph.node_count(); });
      if (known && candidate.length() >= graph.node_count()) schedules.push_back(std::move(candidate));
    }
    check_families(graph, schedules, 500);
  }
}

/// Returns a graph whose memory needs more than 31 bits although each step changes it by less than 2^25 units. Each
/// node reads the node before it and one of the 20 before that. If `several` is set, every third node has two outputs.
core::Graph large_in_small_steps(Random& random, bool several) {
  core::GraphBuilder builder("large in small steps");
  const std::int64_t unit = several ? 2 : 1;
  const auto size = [&] { return unit * random.between(1 << 21, 1 << 22); };
  for (core::NodeId v = 0; v < 1200; ++v) {
    core::Node node{.size = size(), .scratch = random.chance(20) ? size() : 0, .keep = random.chance(60)};
    if (several && v % 3 == 0) node.outputs = {{.size = size()}, {.size = size(), .keep = random.chance(60)}};
    if (v > 0) node.inputs.push_back(v - 1);
    if (v > 21) node.inputs.push_back(static_cast<core::NodeId>(v - random.between(2, 21)));
    builder.add(std::move(node));
  }
  return builder.build();
}

TEST_CASE("memory that needs 64 bits, in steps that need 32") {
  // The lanes then add up 64 or more steps in 31 bits.
  Random random(80);
  for (int round = 0; round < 12; ++round) {
    const core::Graph graph = large_in_small_steps(random, round % 2 == 1);
    const sim::device::Tables<std::uint16_t> tables(graph);
    const sim::NarrowAmounts<std::uint16_t> narrow(tables.view());
    REQUIRE((narrow.fit() && narrow.unit() == 1 + round % 2 && narrow.steps_at_once() < graph.node_count() / 4));
    std::vector<core::Schedule> schedules;
    for (std::int64_t c = 0; c < 8; ++c) schedules.push_back(sim::generate(graph, {.seed = 3}, c));
    for (std::int64_t c = 0; c < 8; ++c) schedules.push_back(sim::generate(graph, {.seed = 3, .moves = 400}, c));
    check_families(graph, schedules, 2000);
    REQUIRE(evaluated(*sim::host_simulator(graph, 1), batch_of(graph, schedules)) == by_evaluator(graph, schedules));
    REQUIRE(std::all_of(schedules.begin(), schedules.end(), [](const auto& s) { return s.length() <= 2000; }));
    schedules.resize(8);
    const sim::Outcomes orders = by_evaluator(graph, schedules);
    REQUIRE(*std::max_element(orders.peak.begin(), orders.peak.end()) > std::numeric_limits<std::int32_t>::max());
    REQUIRE(evaluated(*sim::host_simulator(graph, 1), batch_of(graph, schedules)) == orders);
  }
}

/// Returns the graph with every size replaced by its remainder modulo `below`.
core::Graph with_sizes_below(const core::Graph& graph, std::int64_t below) {
  core::GraphBuilder builder(graph);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    builder.node(v).size %= below;
    for (core::Output& output : builder.node(v).outputs) output.size %= below;
  }
  return builder.build();
}

/// Checks the DrawOrders of one processor family. For each candidate, it draws a random key for each node. Sorting the
/// nodes by their keys must give the orders of generate(), and the outcomes must be those of the evaluator.
void check_drawn(sim::DrawOrders& drawn, const core::Graph& graph, std::uint64_t seed, std::int64_t first, int count) {
  std::vector<core::Schedule> orders;
  for (int lane = 0; lane < count; ++lane) orders.push_back(sim::generate(graph, {.seed = seed}, first + lane));
  const sim::Outcomes expected = by_evaluator(graph, orders);
  drawn.draw(seed, first);
  std::vector<sim::device::Outcome> outcomes(static_cast<std::size_t>(drawn.lanes()));
  drawn.evaluate(count, outcomes.data());
  for (int lane = 0; lane < count; ++lane) {
    const std::uint32_t* key = drawn.keys(lane);
    std::vector<core::NodeId> order = numbers_below(graph.node_count());
    std::stable_sort(order.begin(), order.end(), [&](core::NodeId a, core::NodeId b) { return key[a] < key[b]; });
    REQUIRE(order == orders[lane].steps);
    REQUIRE(outcomes[lane].valid);
    REQUIRE(outcomes[lane].peak == expected.peak[lane]);
    REQUIRE(outcomes[lane].cost == expected.cost[lane]);
    REQUIRE(outcomes[lane].peak_step == expected.peak_step[lane]);
  }
}

TEST_CASE("every processor family that runs here draws and evaluates the same orders") {
  Random random(77);
  for (int round = 0; round < 400; ++round) {
    // With few different sizes (`tied`), many steps reach the peak, of which the first one counts.
    const bool tied = round % 3 == 0;
    core::Graph graph = random_graph(
        random,
        any_graph(random,
                  {.min_nodes = 1, .max_nodes = round % 10 == 0 ? 400 : 40, .scratch = !tied, .in_place = !tied}));
    if (tied) graph = with_sizes_below(graph, 2);
    if (round % 5 == 0) graph = enlarged(graph, std::int64_t{1} << 40);
    const sim::device::Tables<std::uint16_t> narrow(graph);
    const sim::device::Tables<std::uint32_t> wide(graph);
    for (const sim::ProcessorFamily& family : sim::families()) {
      const auto by_narrow = family.draw_orders16(narrow.view());
      const auto by_wide = family.draw_orders32(wide.view());
      for (const int count : {by_narrow->lanes(), 1}) {
        const std::int64_t first = random.between(0, 1) * (std::int64_t{1} << 40) + random.between(0, 1000);
        check_drawn(*by_narrow, graph, static_cast<std::uint64_t>(random.below(1000)), first, count);
        check_drawn(*by_wide, graph, static_cast<std::uint64_t>(random.below(1000)), first, count);
      }
    }
  }
}

TEST_CASE("profiles are those of the reference, and none for invalid candidates") {
  Random random(75);
  for (int round = 0; round < 400; ++round) {
    const core::Graph graph = random_graph(random, any_graph(random));
    std::vector<core::Schedule> schedules;
    for (std::int64_t c = random.between(1, 12); c > 0; --c) schedules.push_back(random_candidate(random, graph));
    const sim::ScheduleBatch batch = batch_of(graph, schedules);
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 3 == 0 ? 300 : 0);
    for (const sim::Profiles& profiles :
         {sim::host_simulator(graph, 2)->profiles(batch), device_path.profiles(batch)}) {
      REQUIRE(profiles.begin.size() == schedules.size() + 1);
      for (std::size_t c = 0; c < schedules.size(); ++c) {
        const std::vector<std::int64_t> profile(profiles.value.begin() + profiles.begin[c],
                                                profiles.value.begin() + profiles.begin[c + 1]);
        if (reference::valid(graph, schedules[c])) {
          REQUIRE(profile == reference::profile(graph, schedules[c]));
        } else {
          REQUIRE(profile.empty());
        }
      }
    }
  }
}

TEST_CASE("segments found while evaluating are those of the profiles") {
  Random random(76);
  std::size_t most = 0;
  for (int round = 0; round < 3000; ++round) {
    const bool tied = round % 3 > 0;  // whether sizes are so few that many entries of profiles are equal
    core::Graph graph = random_graph(
        random,
        any_graph(random,
                  {.min_nodes = 1, .max_nodes = round % 4 == 0 ? 40 : 12, .scratch = !tied, .in_place = !tied}));
    if (tied) graph = with_sizes_below(graph, round % 3 + 1);
    std::vector<core::Schedule> schedules;
    for (std::int64_t c = random.between(1, 12); c > 0; --c) schedules.push_back(random_candidate(random, graph));
    if (round % 7 == 0) schedules.emplace_back();
    sim::InternalProfiles expected;
    for (std::size_t c = 0; c < schedules.size(); ++c) {
      if (schedules[c].steps.empty() || !reference::valid(graph, schedules[c])) continue;
      std::vector<std::int64_t> entries;
      core::append_internal_profile(graph, reference::profile(graph, schedules[c]), schedules[c].steps.back(), entries);
      const core::CanonicalProfile profile = core::canonical(entries);
      most = std::max(most, profile.segments.size());
      expected.candidates.push_back(static_cast<std::int64_t>(c));
      expected.profiles.add(profile);
    }
    const sim::ScheduleBatch batch = batch_of(graph, schedules);
    REQUIRE(sim::host_simulator(graph, 2)->internal_profiles(batch) == expected);
    core::HostMachine host(1);
    REQUIRE(OnMachine<core::HostMachine, std::uint16_t>(host, graph).internal_profiles(batch) == expected);
    if (round % 8 > 0) continue;
    FiberMachine fibers(round % 16 == 0 ? Threads::reverse : Threads::forward);
    OnMachine<FiberMachine, std::uint16_t> in_pieces(fibers, graph, round % 3 == 0 ? 300 : 0);
    REQUIRE(in_pieces.internal_profiles(batch) == expected);
  }
  REQUIRE(most > 4);  // with fewer segments, the cases would be too easy
}

core::Graph wide_graph(core::NodeId nodes, std::int32_t outputs = 1) {
  core::GraphBuilder builder("wide");
  for (core::NodeId v = 0; v < nodes; ++v) {
    core::Node node{.size = 1 + v % 97, .cost = v % 5};
    if (v > 0) node.inputs.push_back(v - 1);
    if (v > 1000) node.inputs.emplace_back(v - 1000 + v % 3, v % outputs);
    for (std::int32_t k = 0; k < outputs && outputs > 1; ++k) node.outputs.push_back({.size = 1 + (v + k) % 97});
    builder.add(std::move(node));
  }
  return builder.build();
}

TEST_CASE("lanes of positions beyond 16 bits") {
  const core::Graph graph = wide_graph(6000);
  const sim::device::Tables<std::uint16_t> tables(graph);
  std::vector<core::Schedule> schedules;
  for (std::int64_t c = 0; c < 20; ++c) {
    core::Schedule schedule = sim::generate(graph, {.seed = 6, .moves = 3000}, c);
    // Nodes that run again at the end make the schedule long enough. Some nodes run more often than the lanes have room
    // for.
    for (int i = 0; schedule.length() < 40'000; ++i) schedule.steps.push_back((i * 7 + static_cast<int>(c)) % 5990);
    if (c % 5 == 4) std::swap(schedule.steps.front(), schedule.steps[5999]);
    schedules.push_back(std::move(schedule));
  }
  REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch_of(graph, schedules)) == by_evaluator(graph, schedules));
}

/// Checks schedules of a large graph. Id is the type in which the simulator stores ids of its nodes.
template <class Id>
void check_large(const core::Graph& graph) {
  std::vector<core::Schedule> schedules{core::baseline_schedule(graph)};
  schedules.push_back(schedules[0]);
  std::swap(schedules[1].steps[5], schedules[1].steps[6]);  // makes the schedule invalid
  schedules.push_back(schedules[0]);
  schedules[2].steps.insert(schedules[2].steps.begin() + 500, 77);
  schedules.push_back(sim::generate(graph, {.seed = 5, .moves = 300}, 9));
  for (std::int64_t c = 0; c < 6; ++c)
    // Adds so many schedules that they fill several lanes.
    schedules.push_back(sim::generate(graph, {.seed = 5}, c));
  const sim::ScheduleBatch batch = batch_of(graph, schedules);
  REQUIRE(batch.narrow() == (sizeof(Id) == 2));
  const sim::Outcomes expected = by_evaluator(graph, schedules);
  REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch) == expected);
  core::HostMachine machine(2);
  REQUIRE(evaluated(*std::make_unique<OnMachine<core::HostMachine, Id>>(machine, graph), batch) == expected);
  // A batch without recomputation takes another path through the code for devices.
  const std::vector<core::Schedule> orders{schedules[0], schedules[1]};
  REQUIRE(evaluated(*std::make_unique<OnMachine<core::HostMachine, Id>>(machine, graph), batch_of(graph, orders)) ==
          by_evaluator(graph, orders));
}

TEST_CASE("graphs of more nodes than 16 bits can number") { check_large<std::uint32_t>(wide_graph(70'000)); }

TEST_CASE("graphs of more values than 16 bits can number, and fewer nodes") {
  check_large<std::uint16_t>(wide_graph(30'000, 3));
}

TEST_CASE("the empty graph and empty batches") {
  const core::Graph graph;
  const std::vector<core::Schedule> schedules{{}, {{0}}, {}};
  const sim::ScheduleBatch batch = batch_of(graph, schedules);
  core::HostMachine machine(1);
  OnMachine<core::HostMachine, std::uint16_t> device_path(machine, graph);
  const auto host = sim::host_simulator(graph, 1);
  for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
    REQUIRE(evaluated(*simulator, batch) == by_reference(graph, schedules));
    REQUIRE(evaluated(*simulator, sim::ScheduleBatch(0)).count() == 0);
    REQUIRE(simulator->generate({}, 0, 3).count() == 3);
  }
}

TEST_CASE("candidates of a generator are the same one by one, in any batch and on every machine") {
  Random random(76);
  for (int round = 0; round < 100; ++round) {
    const bool values = round >= 40;
    const core::Graph graph = random_graph(
        random, {.min_nodes = 1, .max_nodes = 25, .several_outputs = values, .pinned = values && random.chance(50)});
    const sim::Generator generator{static_cast<std::uint64_t>(random.below(1'000'000)),
                                   static_cast<std::int32_t>(round % 2 == 0 ? 0 : random.between(1, 30))};
    const std::int64_t first = round % 3 == 0 ? (std::int64_t{1} << 40) + random.below(1000) : random.below(1000);
    const std::int64_t count = random.between(1, 20);
    std::vector<core::Schedule> expected;
    for (std::int64_t c = 0; c < count; ++c) {
      expected.push_back(sim::generate(graph, generator, first + c));
      REQUIRE(reference::valid(graph, expected.back()));
      REQUIRE(expected.back().length() <= graph.node_count() + generator.moves);
    }
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward, round % 5 == 0 ? 256 : 96 * 1024);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 4 == 0 ? 2000 : 0);
    const auto host = sim::host_simulator(graph, 2);
    const sim::Outcomes outcomes = by_evaluator(graph, expected);
    for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
      const sim::ScheduleBatch batch = simulator->generate(generator, first, count);
      for (std::int64_t c = 0; c < count; ++c) REQUIRE(batch.schedule(c) == expected[static_cast<std::size_t>(c)]);
      sim::Outcomes of_generator;
      simulator->evaluate(generator, first, count, of_generator);
      REQUIRE(of_generator == outcomes);

      sim::Tally expected_tally(sim::tally_options(graph)), tally(sim::tally_options(graph));
      expected_tally.add(first, outcomes);
      const std::int64_t part = random.below(count + 1);
      simulator->sweep(generator, first, part, tally);
      simulator->sweep(generator, first + part, count - part, tally);
      REQUIRE(tally == expected_tally);
    }
  }
}

TEST_CASE("sums of costs and peaks that need more than 64 bits") {
  Random random(79);
  core::GraphBuilder builder(random_graph(random, {.min_nodes = 10, .max_nodes = 10}));
  builder.node(0).cost = std::int64_t{1} << 62;
  builder.node(0).size = std::int64_t{1} << 61;
  const core::Graph graph = builder.build();
  constexpr std::int64_t kCandidates = 600;  // more candidates than a team of CountOutcomes has threads
  std::vector<core::Schedule> orders;
  for (std::int64_t c = 0; c < kCandidates; ++c) orders.push_back(sim::generate(graph, {.seed = 4}, c));
  sim::Tally expected(sim::tally_options(graph));
  expected.add(0, by_evaluator(graph, orders));
  constexpr auto kLeast = static_cast<sim::WideSum>(kCandidates) << 61;
  REQUIRE((expected.counts().cost_sum >= 2 * kLeast && expected.counts().peak_sum >= kLeast));

  FiberMachine fibers;
  OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph);
  const auto host = sim::host_simulator(graph, 2);
  for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
    sim::Tally tally(sim::tally_options(graph));
    simulator->sweep(sim::Generator{.seed = 4}, 0, kCandidates, tally);
    REQUIRE(tally == expected);
  }
}

/// Returns a graph of a chain and of single nodes, all of which are ready at the beginning. The simulator sorts nodes
/// by random times. The chain takes long, and the single nodes run at nearly the same time, soon after the beginning.
core::Graph crowded_graph(Random& random, core::NodeId chain, core::NodeId others, std::int64_t most_size) {
  core::GraphBuilder builder("crowded");
  for (core::NodeId v = 0; v < chain + others; ++v) {
    builder.add(core::Node{.size = random.between(0, most_size), .keep = random.chance(20)});
    if (v > 0 && v < chain) builder.add_input(v, v - 1);
    if (v >= chain && random.chance(50)) builder.add_input(chain - 1 - (v % 2), v);
  }
  return builder.build();
}

TEST_CASE("orders of which most nodes run at nearly the same time") {
  Random random(78);
  for (int round = 0; round < 8; ++round) {
    const core::Graph graph = crowded_graph(random, 200, round % 2 == 0 ? 300 : 60, round % 4 < 2 ? 1000 : 1);
    std::vector<core::Schedule> orders;
    for (std::int64_t c = 0; c < 40; ++c) orders.push_back(sim::generate(graph, {.seed = 3}, c));
    const sim::Outcomes expected = by_evaluator(graph, orders);
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward, round % 3 == 0 ? 1024 : 96 * 1024);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph);
    const auto host = sim::host_simulator(graph, 1);
    for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
      sim::Outcomes outcomes;
      simulator->evaluate(sim::Generator{.seed = 3}, 0, 40, outcomes);
      REQUIRE(outcomes == expected);
    }
  }
}

TEST_CASE("what no simulator can take is refused and leaves it as it was") {
  Random random(77);
  const core::Graph graph = random_graph(random, {.min_nodes = 5, .max_nodes = 5});
  core::HostMachine machine(1);
  OnMachine<core::HostMachine, std::uint16_t> device_path(machine, graph);
  const auto host = sim::host_simulator(graph, 1);
  for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
    sim::Outcomes outcomes;
    REQUIRE_THROWS_AS(simulator->evaluate(sim::ScheduleBatch(4), outcomes), core::InputError);
    REQUIRE_THROWS_AS(simulator->profiles(sim::ScheduleBatch(70'000)), core::InputError);
    REQUIRE_THROWS_AS(simulator->internal_profiles(sim::ScheduleBatch(70'000)), core::InputError);
    const sim::ScheduleBatch moved = simulator->generate({.transfers = 2}, 0, 1);
    REQUIRE_THROWS_AS(simulator->internal_profiles(moved), core::InputError);
    REQUIRE_THROWS_AS(simulator->generate({.moves = -1}, 0, 1), core::InputError);
    // There cannot be more recomputations than edges. So a far larger number of `moves` takes no more memory.
    const sim::ScheduleBatch batch = simulator->generate({.moves = 1'000'000}, 0, 3);
    REQUIRE(batch.total_steps() == 3 * (graph.node_count() + graph.edge_count()));
    for (std::int64_t c = 0; c < 3; ++c) REQUIRE(reference::valid(graph, batch.schedule(c)));
  }
}

TEST_CASE("schedules of millions of steps go by themselves") {
  const core::Graph graph = build_graph({make_node("", 5), make_node("", 6), make_node("", 7, {0, 1})});
  core::Schedule schedule;
  for (int i = 0; i < 1'000'000; ++i) schedule.steps.insert(schedule.steps.end(), {0, 1});
  schedule.steps.push_back(2);
  const std::vector<core::Schedule> schedules(8, schedule);
  REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch_of(graph, schedules)) == by_evaluator(graph, schedules));
}

TEST_CASE("each ready node is about as likely to run next") {
  // The graph has three separate chains of different lengths. The first step must begin each chain with the same
  // chance. The second step must continue or begin each chain with the same chance.
  core::GraphBuilder builder("chains");
  for (const int length : {1, 2, 6}) {
    for (int i = 0; i < length; ++i) {
      core::Node node{.size = 1};
      if (i > 0) node.inputs.push_back(builder.node_count() - 1);
      builder.add(std::move(node));
    }
  }
  const core::Graph graph = builder.build();
  constexpr std::int64_t kCount = 30'000;
  const sim::ScheduleBatch batch = sim::host_simulator(graph, 2)->generate({.seed = 8}, 0, kCount);
  std::vector<std::int64_t> first(9, 0), second_after_long(9, 0);
  for (std::int64_t c = 0; c < kCount; ++c) {
    const core::Schedule schedule = batch.schedule(c);
    ++first[schedule.steps[0]];
    if (schedule.steps[0] == 3) ++second_after_long[schedule.steps[1]];
  }
  for (const int v : {0, 1, 3}) CHECK(std::abs(first[v] - kCount / 3) < 500);
  for (const int v : {0, 1, 4}) CHECK(std::abs(second_after_long[v] - first[3] / 3) < 400);
}

TEST_CASE("Philox gives the published numbers") {
  // These are Random123's published results of philox4x32 with 7 rounds.
  const auto words = [](const sim::Philox& four) { return std::vector<std::uint32_t>(four.word, four.word + 4); };
  CHECK(words(sim::philox({{0, 0, 0, 0}}, 0)) ==
        std::vector<std::uint32_t>{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
  CHECK(words(sim::philox({{~0U, ~0U, ~0U, ~0U}}, ~std::uint64_t{0})) ==
        std::vector<std::uint32_t>{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662});
  CHECK(words(sim::philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822)) ==
        std::vector<std::uint32_t>{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a});
}

}  // namespace

}  // namespace cairn::tests::simulator_property_test
