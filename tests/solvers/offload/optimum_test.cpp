// Compares the search for transfers and recomputation with brute force over all schedules of small graphs.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/solvers/offload/support/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"
#include "cairn/tests/support/transfer_instance.h"

namespace cairn::solvers::offload_optimum_test {
namespace {

namespace reference = core::reference;
using tests::Random;

/// Returns the optimum of an instance. Returns nothing if brute force takes too long. The inner value is empty if no
/// schedule fits.
std::optional<std::optional<reference::FastestSchedule>> optimum(const tests::TransferInstance& instance) {
  try {
    constexpr std::int64_t kWork = 200'000;
    return reference::fastest_within(instance.graph, instance.limits, instance.link, kWork);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// Counts the compared instances, and how the answers of the search compare with the optimum.
struct Tally {
  std::int64_t instances = 0, infeasible = 0, missed = 0, above = 0;
};

/// Solves an instance, and checks that the answer is within the limits and not below the optimum. Adds the instance to
/// `tally`.
void compare(const tests::TransferInstance& instance, Tally& tally) {
  const auto best = optimum(instance);
  if (!best) return;
  ++tally.instances;
  CAPTURE(tests::show(instance.graph));
  const OffloadSolution found = solve_with_transfers(instance.graph, find_solver("auto"), {},
                                                     {.link = instance.link,
                                                      .budget = instance.limits.device,
                                                      .host_budget = instance.limits.host,
                                                      .limit = {.work = 100'000}});
  if (!*best) {
    ++tally.infeasible;
    REQUIRE_FALSE(found.fits);
  } else if (!found.fits) {
    ++tally.missed;
  } else {
    REQUIRE(core::evaluate(instance.graph, found.schedule).valid());
    REQUIRE(found.makespan >= (*best)->makespan);
    tally.above += found.makespan > (*best)->makespan ? 1 : 0;
  }
}

void require_mostly_optimal(const Tally& tally, std::int64_t least) {
  CAPTURE(tally.infeasible, tally.missed, tally.above);
  REQUIRE(tally.instances > least);
  CHECK(tally.missed * 20 <= tally.instances);
  CHECK(tally.above * 20 <= tally.instances);
}

/// Returns a training chain of `stages` forward nodes and then `stages` backward nodes. Each backward node reads the
/// gradient of the next stage and the forward output of the stage before. Some also read the output of their own stage.
tests::TransferInstance random_chain(Random& random, core::NodeId stages) {
  core::GraphBuilder builder;
  for (core::NodeId i = 0; i < stages; ++i) {
    core::Node node{.size = random.between(1, 12), .cost = random.between(1, 20)};
    if (i > 0) node.inputs.push_back(i - 1);
    builder.add(node);
  }
  for (core::NodeId i = stages - 1; i >= 0; --i) {
    core::Node node{.size = random.between(1, 8), .cost = random.between(1, 20), .keep = i == 0, .backward = true};
    node.inputs.push_back(builder.node_count() - 1);
    if (i > 0) node.inputs.push_back(i - 1);
    if (i + 1 < stages && random.chance(50)) node.inputs.push_back(i);
    builder.add(node);
  }
  builder.set_cost_unit({.name = "ns", .source = ""});
  core::Graph graph = builder.build();
  const std::int64_t low = core::peak_lower_bound(graph);
  const std::int64_t high = core::evaluate(graph, core::baseline_schedule(graph)).peak;
  const std::int64_t device = random.between(low, std::max(low, high - 1));
  return {.graph = std::move(graph),
          .link = {.bytes_per_second = random.between(1, 8) * 500'000'000,
                   .latency_ns = random.below(3),
                   .duplex = random.chance(50)},
          .limits = {.device = device, .host = random.between(device / 2, 2 * device)}};
}

}  // namespace

TEST_CASE("offload: on small graphs an answer is never below the optimum, and mostly equal to it") {
  Tally tally;
  tests::for_each_seed(1200, [&](Random& random) {
    if (const auto instance = tests::random_transfer_instance(random, 6, 7)) compare(*instance, tally);
  });
  require_mostly_optimal(tally, 50);
}

TEST_CASE("offload: on training chains an answer is never below the optimum, and mostly equal to it") {
  Tally tally;
  tests::for_each_seed(30, [&](Random& random) {
    compare(random_chain(random, static_cast<core::NodeId>(random.between(2, 4))), tally);
  });
  require_mostly_optimal(tally, 12);
}

TEST_CASE("offload: integer programs decide about fetches, too", "[engines]") {
  if (tests::no_engine()) return;
  std::int64_t solved = 0, moving = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    Random random(seed);
    const tests::TransferInstance instance = random_chain(random, 3);
    const auto best = optimum(instance);
    const OffloadSolution found = solve_with_transfers(instance.graph, find_solver("hiremate"), {},
                                                       {.link = instance.link,
                                                        .budget = instance.limits.device,
                                                        .host_budget = instance.limits.host,
                                                        .limit = {.work = 3'000'000}});
    if (!best || !*best || !found.fits) continue;
    ++solved;
    REQUIRE(found.makespan >= (*best)->makespan);
    moving += found.schedule.transfers.empty() ? 0 : 1;
  }
  CHECK(solved >= 2);
  CHECK(moving >= 1);
}

}  // namespace cairn::solvers::offload_optimum_test
