// Compares the search for transfers and recomputation with brute force over all schedules of small graphs.

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "cairn/core/profile.h"
#include "cairn/solvers/offload/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"
#include "cairn/tests/support/transfer_instance.h"

namespace cairn::solvers::offload_optimum_test {
namespace {

namespace reference = core::reference;
using tests::Random;

/// Returns the optimum, or nothing if the search for it takes too long.
std::optional<std::optional<reference::FastestSchedule>> optimum(const tests::TransferInstance& instance) {
  try {
    return reference::fastest_within(instance.graph, instance.limits, instance.link);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("offload: on small graphs an answer is never below the optimum, and mostly equal to it") {
  std::int64_t instances = 0, infeasible = 0, missed = 0, above = 0;
  tests::for_each_seed(1200, [&](Random& random) {
    const auto instance = tests::random_transfer_instance(random, 6, 7);
    if (!instance) return;
    const auto best = optimum(*instance);
    if (!best) return;
    ++instances;
    CAPTURE(tests::show(instance->graph));
    const OffloadSolution found = solve_with_transfers(instance->graph, find_solver("auto"), {},
                                                       {.link = instance->link,
                                                        .budget = instance->limits.device,
                                                        .host_budget = instance->limits.host,
                                                        .limit = {.work = 100'000}});
    if (!*best) {
      ++infeasible;
      REQUIRE_FALSE(found.fits);
      return;
    }
    missed += found.fits ? 0 : 1;
    if (!found.fits) return;
    REQUIRE(found.makespan >= (*best)->makespan);
    above += found.makespan > (*best)->makespan ? 1 : 0;
  });
  WARN(instances << " instances, " << infeasible << " infeasible, " << missed << " not solved, " << above
                 << " above the optimum");
  REQUIRE(instances > 50);
  CHECK(missed * 20 <= instances);
  CHECK(above * 10 <= instances);
}

}  // namespace cairn::solvers::offload_optimum_test
