#include "cairn/cuda/support/simulator.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/device.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/sim/moved_candidates.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::simulator_test {
namespace {

core::Graph graph_of(Random& random, bool large) {
  return random_graph(random, any_graph(random, {.min_nodes = 1, .max_nodes = large ? 600 : 60}));
}

/// Compares the outcomes of the device simulator with those of the host simulator, on random graphs. Every tenth graph
/// is large, unless `few` asks for a short test.
void check_outcomes(int rounds, bool few) {
  for_each_seed(static_cast<std::uint64_t>(rounds), [&](Random& random, std::uint64_t seed) {
    const core::Graph graph = graph_of(random, seed % 10 == 0 && !few);
    sim::ScheduleBatch batch(graph.node_count());
    const bool orders_alone = random.chance(40);
    for (std::int64_t c = random.between(1, seed % 7 == 0 && !few ? 4096 : 64); c > 0; --c) {
      if (random.chance(20)) {
        batch.add(random_invalid_schedule(random, graph));
      } else {
        batch.add(orders_alone ? random_schedule(random, graph, 0) : random_schedule(random, graph));
      }
    }
    const auto host = sim::host_simulator(graph);
    const auto device = cuda::device_simulator(graph);
    REQUIRE(evaluated(*device, batch) == evaluated(*host, batch));
    if (batch.total_steps() > 100'000) return;
    const sim::Profiles profiles = device->profiles(batch), of_host = host->profiles(batch);
    REQUIRE(profiles.begin == of_host.begin);
    REQUIRE(profiles.value == of_host.value);
    REQUIRE(device->internal_profiles(batch) == host->internal_profiles(batch));
  });
}

void check_tallies(int rounds, bool few) {
  Random random(82);
  for (int round = 0; round < rounds; ++round) {
    const core::Graph graph = graph_of(random, round % 10 == 0 && !few);
    const sim::Generator generator{static_cast<std::uint64_t>(round),
                                   static_cast<std::int32_t>(round % 2 == 0 ? 0 : random.between(1, 100))};
    const std::int64_t first = random.below(1'000'000), count = random.between(1, few ? 100 : 3000);
    const auto host = sim::host_simulator(graph);
    const auto device = cuda::device_simulator(graph);
    const sim::ScheduleBatch expected = host->generate(generator, first, count);
    const sim::ScheduleBatch batch = device->generate(generator, first, count);
    for (std::int64_t c = 0; c < count; ++c) REQUIRE(batch.schedule(c) == expected.schedule(c));
    sim::Tally tally(sim::tally_options(graph)), of_host(sim::tally_options(graph));
    host->sweep(generator, first, count, of_host);
    device->sweep(generator, first, count / 3, tally);
    device->sweep(generator, first + count / 3, count - count / 3, tally);
    REQUIRE(tally == of_host);
  }
}

TEST_CASE("the device simulator gives the host's outcomes and profiles, and draws its candidates, on a few graphs",
          "[sanitize]") {
  if (no_device()) return;
  check_outcomes(10, true);
  check_tallies(10, true);
}

TEST_CASE("the device simulator gives the host's outcomes and profiles") {
  if (no_device()) return;
  check_outcomes(300, false);
}

TEST_CASE("the device draws and tallies the host's candidates") {
  if (no_device()) return;
  check_tallies(100, false);
}

/// Compares the device's outcomes and profiles of the schedules in `batch` with the host's.
void check_moved(const core::Graph& graph, const sim::ScheduleBatch& batch) {
  const auto host = sim::host_simulator(graph, 1);
  const auto device = cuda::device_simulator(graph);
  REQUIRE(evaluated(*device, batch) == evaluated(*host, batch));
  REQUIRE(device->profiles(batch).value == host->profiles(batch).value);
}

/// Returns a graph in which each node reads one of the three nodes before it. Each output has `bytes` bytes or slightly
/// more.
core::Graph narrow_graph(core::NodeId nodes, std::int64_t bytes) {
  core::GraphBuilder builder("narrow");
  for (core::NodeId v = 0; v < nodes; ++v) {
    std::vector<core::OutputRef> inputs;
    if (v > 0) inputs.push_back(std::max<core::NodeId>(0, v - 1 - v % 3));
    builder.add({.name = "", .size = bytes + v % 17, .cost = 1, .inputs = std::move(inputs)});
  }
  return builder.build();
}
constexpr core::NodeId kWide = 66'000;  // so many nodes that ids need more than 16 bits

TEST_CASE("the device simulator gives the host's outcomes where ids need more than 16 bits", "[sanitize]") {
  if (no_device()) return;
  const core::Graph graph = narrow_graph(kWide, 1);
  const auto host = sim::host_simulator(graph);
  const auto device = cuda::device_simulator(graph);
  const sim::Generator generator{1, 0};
  const sim::ScheduleBatch batch = host->generate(generator, 0, 3);
  CHECK(evaluated(*device, batch) == evaluated(*host, batch));
  const sim::ScheduleBatch drawn = device->generate(generator, 0, 3);
  for (std::int64_t c = 0; c < 3; ++c) CHECK(drawn.schedule(c) == batch.schedule(c));
}

/// Compares device and host on a graph with outputs of 2^40 bytes, so that sums of sizes need more than 31 bits.
void check_large_sizes(core::NodeId nodes) {
  const core::Graph graph = narrow_graph(nodes, std::int64_t{1} << 40);
  const auto host = sim::host_simulator(graph);
  const auto device = cuda::device_simulator(graph);
  for (const std::int32_t moves : {0, 20}) {
    INFO(moves << " moves");
    const sim::ScheduleBatch batch = host->generate({1, moves}, 0, 2);
    CHECK(evaluated(*device, batch) == evaluated(*host, batch));
    CHECK(device->profiles(batch).value == host->profiles(batch).value);
  }
}

TEST_CASE("the device simulator gives the host's outcomes where sums of sizes need more than 31 bits", "[ptx]") {
  if (no_device()) return;
  check_large_sizes(300);
}

TEST_CASE("the device simulator gives the host's outcomes where ids and sums of sizes need more bits", "[ptx]") {
  if (no_device()) return;
  check_large_sizes(kWide);
}

TEST_CASE("the device simulator gives the host's outcomes and profiles for candidates with transfers", "[sanitize]") {
  if (no_device()) return;
  for_each_seed(6, [&](Random& random) {
    const core::Graph graph = moved_graph(random, {.min_nodes = 5, .max_nodes = 60});
    std::vector<core::Schedule> schedules;
    while (schedules.size() < 40) schedules.push_back(moved_candidate(random, graph));
    check_moved(graph, moved_batch(graph, schedules));
  });
}

TEST_CASE("the device draws the host's transfers, with ids of 16 bits and of more", "[ptx]") {
  if (no_device()) return;
  for (const core::NodeId nodes : {core::NodeId{300}, kWide}) {
    const core::Graph graph =
        narrow_graph(nodes, 1).with_host_memory(core::HostMemory{{.bytes_per_second = 1'000'000'000}});
    const sim::Generator generator{.seed = 3, .moves = 5, .transfers = 4};
    const auto host = sim::host_simulator(graph, 1);
    const auto device = cuda::device_simulator(graph);
    const std::int64_t count = nodes == kWide ? 2 : 40;
    const sim::ScheduleBatch batch = host->generate(generator, 5, count);
    const sim::ScheduleBatch drawn = device->generate(generator, 5, count);
    for (std::int64_t c = 0; c < count; ++c) REQUIRE(drawn.schedule(c) == batch.schedule(c));
    check_moved(graph, batch);
    sim::Outcomes of_device, of_host;
    device->evaluate(generator, 5, count, of_device);
    host->evaluate(generator, 5, count, of_host);
    REQUIRE(of_device == of_host);
  }
}

TEST_CASE("without a device the device simulator says why") {
  if (cuda::probe().available) return;
  CHECK_THROWS_AS(cuda::device_simulator(core::Graph()), core::DeviceError);
}

}  // namespace

}  // namespace cairn::tests::simulator_test
