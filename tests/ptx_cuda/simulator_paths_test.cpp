// Runs the simulator's kernels with every number of lanes (schedules that a kernel evaluates at once), in shared and in
// global memory, and with 32-bit and 64-bit sums. The size of the graph and the shared memory of a block, which the
// tests vary, decide which of these kernels run.
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/cuda/device.h"
#include "cairn/cuda/support/simulator.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/sim/moved_candidates.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::simulator_paths_test {
namespace {

/// Sets the shared memory of a block, in bytes. The destructor restores the previous size.
class SharedMemory {
 public:
  explicit SharedMemory(int bytes) : before_(fake::shared_of_block()) { fake::shared_of_block() = bytes; }
  ~SharedMemory() { fake::shared_of_block() = before_; }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

 private:
  int before_;
};

/// Returns the graph with outputs that are 2^40 bytes larger, so that sums of sizes need 64 bits.
core::Graph with_large_outputs(const core::Graph& graph) {
  core::GraphBuilder builder(graph);
  constexpr std::int64_t kMore = std::int64_t{1} << 40;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    core::Node& node = builder.node(v);
    node.size += kMore;
    for (core::Output& output : node.outputs) output.size += kMore;
  }
  return builder.build();
}

/// Compares evaluations, profiles, random schedules and tallies of the device with those of the host.
void compare(Random& random, const core::Graph& graph) {
  constexpr int kSchedules = 34;  // more schedules than the 32 lanes of a warp
  const auto host = sim::host_simulator(graph, 1);
  const auto device = cuda::device_simulator(graph);
  for (const bool again : {false, true}) {
    sim::ScheduleBatch batch(graph.node_count());
    while (batch.count() < kSchedules) {
      core::Schedule schedule = random_schedule(random, graph, again ? 10 : 0);
      if (random.chance(30)) schedule = invalidated(random, graph, std::move(schedule));
      // With `again`, schedules may run nodes more than once. Without it, only schedules in which every node runs once
      // are added, for which the device has other kernels.
      if (again || schedule.length() == graph.node_count()) batch.add(schedule);
    }
    REQUIRE(evaluated(*device, batch) == evaluated(*host, batch));
    REQUIRE(device->profiles(batch).value == host->profiles(batch).value);
    REQUIRE(device->internal_profiles(batch) == host->internal_profiles(batch));
    const sim::Generator generator{7, again ? 10 : 0};
    sim::Outcomes drawn, of_host;
    device->evaluate(generator, 5, kSchedules, drawn);
    host->evaluate(generator, 5, kSchedules, of_host);
    REQUIRE(drawn == of_host);
    const sim::ScheduleBatch schedules = device->generate(generator, 5, kSchedules);
    REQUIRE(evaluated(*host, schedules) == of_host);
    sim::Tally tally(sim::tally_options(graph)), tally_of_host(sim::tally_options(graph));
    device->sweep(generator, 5, kSchedules, tally);
    host->sweep(generator, 5, kSchedules, tally_of_host);
    REQUIRE(tally == tally_of_host);
  }
}

TEST_CASE("PTX: the simulator computes the same with any number of lanes, in shared and in global memory", "[ptx]") {
  if (no_device()) return;
  Random random(7);
  bool several = false;
  // The sizes descend, because the limit of a kernel is set only once, to the first value. Later launches must not
  // exceed this limit.
  for (const int kib : {227, 100, 48, 28, 20, 14, 5}) {
    const SharedMemory shared(kib << 10);
    for (const bool large : {false, true}) {
      INFO(kib << " KiB" << (large ? ", large outputs" : ""));
      const core::Graph graph =
          random_graph(random, {.min_nodes = 120, .max_nodes = 120, .several_outputs = several, .pinned = several});
      compare(random, large ? with_large_outputs(graph) : graph);
      several = !several;
    }
  }
}

TEST_CASE("PTX: candidates with transfers have the same outcomes in shared and in global memory", "[ptx]") {
  if (no_device()) return;
  Random random(9);
  const core::Graph graph = moved_graph(random, {.min_nodes = 10, .max_nodes = 10});
  std::vector<core::Schedule> schedules;
  while (schedules.size() < 34) schedules.push_back(moved_candidate(random, graph));
  const sim::ScheduleBatch batch = moved_batch(graph, schedules);
  const auto host = sim::host_simulator(graph, 1);
  const sim::Generator generator{.seed = 3, .moves = 5, .transfers = 4};
  // The sizes descend, because the limit of a kernel is set only once, to the first value. Later launches must not
  // exceed this limit.
  for (const int kib : {227, 5}) {
    const SharedMemory shared(kib << 10);
    INFO(kib << " KiB");
    const auto device = cuda::device_simulator(graph);
    REQUIRE(evaluated(*device, batch) == evaluated(*host, batch));
    REQUIRE(device->profiles(batch).value == host->profiles(batch).value);
    sim::Outcomes drawn, of_host;
    device->evaluate(generator, 5, 34, drawn);
    host->evaluate(generator, 5, 34, of_host);
    REQUIRE(drawn == of_host);
  }
}

TEST_CASE("PTX: the simulator takes the empty graph, and graphs of one node", "[ptx]") {
  if (no_device()) return;
  const core::Graph none;
  const auto device = cuda::device_simulator(none);
  const auto host = sim::host_simulator(none, 1);
  sim::ScheduleBatch batch(0);
  CHECK(evaluated(*device, batch) == evaluated(*host, batch));
  batch.add(core::Schedule{});
  CHECK(evaluated(*device, batch) == evaluated(*host, batch));
  CHECK(device->profiles(batch).value == host->profiles(batch).value);
  CHECK(device->internal_profiles(batch) == host->internal_profiles(batch));
  Random random(8);
  compare(random, build_graph({make_node("one", 5)}));
}

}  // namespace
}  // namespace cairn::tests::simulator_paths_test
