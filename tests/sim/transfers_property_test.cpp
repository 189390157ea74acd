#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/timeline.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/sim/moved_candidates.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::transfers_property_test {
namespace {

using Kind = core::Defect::Kind;

std::vector<core::Schedule> candidates(Random& random, const core::Graph& graph, std::int64_t count) {
  std::vector<core::Schedule> schedules;
  while (std::ssize(schedules) < count) schedules.push_back(moved_candidate(random, graph));
  return schedules;
}

}  // namespace

TEST_CASE("candidates with transfers have the outcomes of the evaluator and the makespan of the timeline") {
  std::map<Kind, std::int64_t> seen;
  for_each_seed(8000, [&](Random& random, std::uint64_t seed) {
    const core::Graph graph = moved_graph(random);
    const std::vector<core::Schedule> schedules = candidates(random, graph, random.between(1, 16));
    const sim::Outcomes expected = moved_by_evaluator(graph, schedules);
    const sim::ScheduleBatch batch = moved_batch(graph, schedules);
    REQUIRE(evaluated(*sim::host_simulator(graph, 1), batch) == expected);
    core::HostMachine host(1);
    OnMachine<core::HostMachine, std::uint16_t> device_path(host, graph, seed % 3 == 0 ? 500 : 0);
    REQUIRE(evaluated(device_path, batch) == expected);
    for (std::size_t c = 0; c < schedules.size(); ++c) {
      if (!expected.defect.empty()) ++seen[expected.defect[c]];
      if (expected.valid[c] == 0) continue;
      REQUIRE(batch.schedule(static_cast<std::int64_t>(c)) == schedules[c]);
      if (!graph.host_memory()) continue;
      REQUIRE(expected.cost[c] == core::makespan(graph, schedules[c], graph.host_memory()->link));
    }
    if (seed % 25 != 0) return;
    REQUIRE(evaluated(*sim::host_simulator(graph, 2), batch) == expected);
    for (const bool reverse : {false, true}) {
      FiberMachine fibers(reverse ? Threads::reverse : Threads::forward, seed % 2 == 0 ? 96 * 1024 : 256);
      REQUIRE(evaluated(*std::make_unique<OnMachine<FiberMachine, std::uint16_t>>(fibers, graph), batch) == expected);
    }
  });
  for (const Kind kind : {Kind::none, Kind::unknown_node, Kind::missing_input, Kind::missing_node, Kind::pinned_again,
                          Kind::bad_evict, Kind::bad_fetch, Kind::input_on_host, Kind::kept_on_host}) {
    INFO("kind " << static_cast<int>(kind));
    CHECK(seen[kind] >= (kind == Kind::none ? 20'000 : 20));
  }
}

TEST_CASE("a candidate with transfers has the same outcome in any batch") {
  Random random(81);
  for (int round = 0; round < 40; ++round) {
    const core::Graph graph = moved_graph(random, {.min_nodes = 20, .max_nodes = 60});
    const std::vector<core::Schedule> schedules = candidates(random, graph, 150);
    const sim::Outcomes expected = moved_by_evaluator(graph, schedules);
    const auto host = sim::host_simulator(graph, 2);
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward, round % 4 < 2 ? 96 * 1024 : 1024);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 3 == 0 ? 5000 : 0);
    for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
      for (std::size_t begin = 0; begin < schedules.size();) {
        const std::size_t end = std::min(schedules.size(), begin + 1 + static_cast<std::size_t>(random.below(70)));
        const std::vector<core::Schedule> part(schedules.begin() + begin, schedules.begin() + end);
        const sim::Outcomes found = evaluated(*simulator, moved_batch(graph, part));
        REQUIRE(found == moved_by_evaluator(graph, part));
        begin = end;
      }
      REQUIRE(evaluated(*simulator, moved_batch(graph, schedules)) == expected);
    }
  }
}

TEST_CASE("every processor family that runs here computes the same for candidates with transfers") {
  Random random(85);
  std::int64_t in_lanes = 0;
  for (int round = 0; round < 160; ++round) {
    const core::Graph graph = moved_graph(random, {.min_nodes = 5, .max_nodes = 60});
    const sim::device::Tables<std::uint16_t> tables(graph);
    const std::vector<sim::device::MovedValue> moved = sim::device::moved_values(graph);
    const sim::device::MovesView moves{moved.data(), graph.value_count(), sim::device::is_duplex(graph)};
    const bool orders = round % 2 == 0;
    std::vector<core::Schedule> schedules;
    while (schedules.size() < 16) {
      core::Schedule candidate = moved_candidate(random, graph);
      const bool known =
          std::ranges::all_of(candidate.steps, [&](core::NodeId v) { return v >= 0 && v < graph.node_count(); });
      const bool fits = orders ? candidate.length() == graph.node_count() : candidate.length() >= graph.node_count();
      if (known && fits) schedules.push_back(std::move(candidate));
    }
    const sim::Outcomes expected = moved_by_evaluator(graph, schedules);
    const sim::ScheduleBatch batch = moved_batch(graph, schedules);
    if (!batch.has_transfers()) continue;
    const auto view = batch.view<std::uint16_t>();
    std::vector<sim::device::MovedRow<std::uint16_t>> rows;
    for (std::int64_t c = 0; c < view.count; ++c) rows.push_back(sim::device::moved_row(view, c));
    for (const sim::ProcessorFamily& family : sim::families()) {
      const auto lockstep = family.lockstep16(tables.view(), orders ? graph.node_count() : 500);
      for (int again = 0; again < 2; ++again) {
        sim::device::MovedOutcome outcomes[16];
        bool done[16];
        lockstep->run_moved(rows.data(), 16, moves, outcomes, done);
        for (std::size_t c = 0; c < 16; ++c) {
          if (!done[c]) continue;
          ++in_lanes;
          REQUIRE(expected.valid[c] == 1);
          REQUIRE(outcomes[c].valid);
          REQUIRE(outcomes[c].peak == expected.peak[c]);
          REQUIRE(outcomes[c].cost == expected.cost[c]);
          REQUIRE(outcomes[c].peak_step == expected.peak_step[c]);
          if (!expected.host_peak.empty()) REQUIRE(outcomes[c].host_peak == expected.host_peak[c]);
        }
        const auto valid = std::ranges::count(expected.valid, 1);
        // A lane, in which one candidate is evaluated, may refuse a valid candidate in which a node runs too often.
        REQUIRE((std::ranges::count(done, true) == valid || !orders));
      }
    }
  }
  CHECK(in_lanes > 1000);
}

TEST_CASE("profiles of candidates with transfers are those of the evaluator") {
  Random random(82);
  for (int round = 0; round < 300; ++round) {
    const core::Graph graph = moved_graph(random);
    const std::vector<core::Schedule> schedules = candidates(random, graph, random.between(1, 12));
    const sim::ScheduleBatch batch = moved_batch(graph, schedules);
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 3 == 0 ? 300 : 0);
    core::Evaluator evaluator(graph);
    for (const sim::Profiles& profiles :
         {sim::host_simulator(graph, 2)->profiles(batch), device_path.profiles(batch)}) {
      REQUIRE(profiles.begin.size() == schedules.size() + 1);
      for (std::size_t c = 0; c < schedules.size(); ++c) {
        const std::vector<std::int64_t> profile(profiles.value.begin() + profiles.begin[c],
                                                profiles.value.begin() + profiles.begin[c + 1]);
        const bool valid = evaluator.evaluate(schedules[c]).valid();
        REQUIRE(profile == (valid ? evaluator.profile(schedules[c]) : std::vector<std::int64_t>()));
      }
    }
  }
}

TEST_CASE("random candidates with transfers are valid, and the same in any batch and on every machine") {
  Random random(83);
  std::int64_t moved = 0;
  for (int round = 0; round < 120; ++round) {
    const core::Graph graph = moved_graph(random, {.min_nodes = 1, .max_nodes = 40});
    const sim::Generator generator{static_cast<std::uint64_t>(random.below(1'000'000)),
                                   static_cast<std::int32_t>(round % 2 == 0 ? 0 : random.between(1, 30)),
                                   static_cast<std::int32_t>(random.between(1, 12))};
    const std::int64_t first = round % 3 == 0 ? (std::int64_t{1} << 40) + random.below(1000) : random.below(1000);
    const std::int64_t count = random.between(1, 40);
    std::vector<core::Schedule> expected;
    for (std::int64_t c = 0; c < count; ++c) {
      expected.push_back(sim::generate(graph, generator, first + c));
      REQUIRE(core::evaluate(graph, expected.back()).valid());
      moved += std::ssize(expected.back().transfers.evicts);
      REQUIRE(std::ssize(expected.back().transfers.evicts) <= generator.transfers);
    }
    sim::Outcomes outcomes = moved_by_evaluator(graph, expected);
    if (outcomes.defect.empty()) outcomes.resize(count, true);
    FiberMachine fibers(round % 2 == 1 ? Threads::reverse : Threads::forward, round % 5 == 0 ? 256 : 96 * 1024);
    OnMachine<FiberMachine, std::uint16_t> device_path(fibers, graph, round % 4 == 0 ? 2000 : 0);
    const auto host = sim::host_simulator(graph, 2);
    for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
      const sim::ScheduleBatch batch = simulator->generate(generator, first, count);
      for (std::int64_t c = 0; c < count; ++c) REQUIRE(batch.schedule(c) == expected[static_cast<std::size_t>(c)]);
      REQUIRE(evaluated(*simulator, batch) == outcomes);
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
  CHECK(moved > 1500);
}

TEST_CASE("a generator has no less than no transfers") {
  Random random(86);
  const core::Graph graph = moved_graph(random);
  core::HostMachine machine(1);
  OnMachine<core::HostMachine, std::uint16_t> device_path(machine, graph);
  const auto host = sim::host_simulator(graph, 1);
  for (sim::Simulator* simulator : {host.get(), static_cast<sim::Simulator*>(&device_path)}) {
    sim::Outcomes outcomes;
    REQUIRE_THROWS_AS(simulator->generate({.transfers = -1}, 0, 1), core::InputError);
    REQUIRE_THROWS_AS(simulator->evaluate(sim::Generator{.transfers = -1}, 0, 1, outcomes), core::InputError);
    REQUIRE(evaluated(*simulator, simulator->generate({.transfers = 3}, 0, 0)).count() == 0);
  }
}

TEST_CASE("makespans saturate, and long candidates and many copies do not matter") {
  Random random(84);
  core::GraphBuilder builder(random_graph(random, {.min_nodes = 300, .max_nodes = 300, .scratch = false}));
  for (core::NodeId v = 0; v < 300; ++v) builder.node(v).size += 1;
  builder.node(0).cost = std::int64_t{1} << 57;
  core::Graph graph = builder.build();
  for (const std::int64_t latency : {std::int64_t{5}, std::int64_t{1} << 61}) {
    graph = graph.with_host_memory(core::HostMemory{.link = {1'000'000, latency, false}});
    const auto host = sim::host_simulator(graph, 1);
    const sim::ScheduleBatch batch = host->generate({.seed = 4, .moves = 500, .transfers = 400}, 0, 60);
    std::vector<core::Schedule> schedules;
    for (std::int64_t c = 0; c < batch.count(); ++c) schedules.push_back(batch.schedule(c));
    const sim::Outcomes expected = moved_by_evaluator(graph, schedules);
    CHECK((std::ranges::max(expected.cost) == INT64_MAX) == (latency > 5));
    REQUIRE(evaluated(*host, batch) == expected);
    core::HostMachine machine(1);
    REQUIRE(evaluated(*std::make_unique<OnMachine<core::HostMachine, std::uint16_t>>(machine, graph), batch) ==
            expected);
  }
}

}  // namespace cairn::tests::transfers_property_test
