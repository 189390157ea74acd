#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/random_transfers.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"
#include "cairn/tests/support/transfer_instance.h"

// Tests the reference's search for the fastest schedule with transfers: neither random schedules nor plain enumeration
// may find a better one.
namespace cairn::core::transfer_search_property_test {
namespace {

using reference::FastestSchedule;
using reference::TransferLimits;
using tests::Random;
using tests::random_schedule;
using tests::TransferInstance;

std::optional<FastestSchedule> search(const TransferInstance& instance) {
  return reference::fastest_within(instance.graph, instance.limits, instance.link);
}

/// Checks that the found schedule is valid, within the limits, and has the claimed makespan. It does so by the
/// definitions and by the fast functions, which have tests of their own.
void check_result(const TransferInstance& instance, const FastestSchedule& found) {
  const auto& [graph, link, limits] = instance;
  const Schedule& schedule = found.schedule;
  CAPTURE(tests::show(schedule.steps), tests::show(schedule.transfers));
  REQUIRE(reference::valid_with_transfers(graph, schedule));
  REQUIRE(reference::peak_with_transfers(graph, schedule) <= limits.device);
  REQUIRE(reference::host_peak(graph, schedule) <= limits.host);
  REQUIRE(reference::simulate(graph, schedule, link).makespan == found.makespan);
  REQUIRE(evaluate(graph, schedule).peak == reference::peak_with_transfers(graph, schedule));
  REQUIRE(makespan(graph, schedule, link) == found.makespan);
}

/// Calls visit(schedule) for all schedules with the steps of `steps` and with one evict that serves one or two fetches.
/// If `pairs` is set, also visits all schedules with two evicts that each serve one fetch.
template <class Visit>
void for_each_transfers(const Graph& graph, const Schedule& steps, bool pairs, const Visit& visit) {
  const std::int64_t length = steps.length();
  std::vector<Transfers> singles;
  for (std::int64_t made = 0; made < length; ++made) {
    for (const ValueId value : graph.outputs(steps.steps[static_cast<std::size_t>(made)])) {
      if (!reference::movable(graph, value)) continue;
      for (std::int64_t start = made; start < length; ++start) {
        for (std::int64_t finish = start + 1; finish <= length; ++finish) {
          for (std::int64_t begin = finish - 1; begin < length; ++begin) {
            for (std::int64_t end = begin + 1; end <= length; ++end) {
              singles.push_back({{{value, made, start, finish}}, {{0, begin, end}}});
            }
          }
        }
      }
    }
  }
  for (const Transfers& one : singles) {
    Schedule schedule{steps.steps, one};
    visit(schedule);
    // Adds a second fetch from the same copy on the host.
    const Fetch first = one.fetches[0];
    for (std::int64_t begin = first.start; begin < length; ++begin) {
      for (std::int64_t end = std::max(begin, first.finish) + 1; end <= length; ++end) {
        schedule.transfers.fetches = {first, {0, begin, end}};
        visit(schedule);
      }
    }
    for (std::size_t k = 0; pairs && k < singles.size(); ++k) {
      const Transfers& other = singles[k];
      if (other.evicts[0] == one.evicts[0]) continue;
      Fetch second = other.fetches[0];
      second.evict = 1;
      schedule.transfers = {{one.evicts[0], other.evicts[0]}, {first, second}};
      visit(schedule);
    }
  }
}

/// Calls visit(steps) for all valid schedules of at most `length` steps that begin with `steps`.
template <class Visit>
void for_each_steps(const Graph& graph, std::int64_t length, Schedule& steps, const Visit& visit) {
  if (reference::valid(graph, steps)) visit(steps);
  if (steps.length() == length) return;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    steps.steps.push_back(node);
    const Defect::Kind kind = reference::find_defect(graph, steps).kind;
    if (kind == Defect::Kind::none || kind == Defect::Kind::missing_node) for_each_steps(graph, length, steps, visit);
    steps.steps.pop_back();
  }
}

TEST_CASE("no random schedule with transfers is faster than the search's") {
  int with_transfers = 0, faster = 0, left_out = 0, infeasible = 0;
  tests::for_each_seed(5000, [&](Random& random) {
    std::optional<TransferInstance> instance = tests::random_transfer_instance(random, 5, 7);
    if (!instance) return;
    const Graph& graph = instance->graph;
    Schedule schedule = random_schedule(random, graph, random.below(3));
    for (std::int64_t k = random.below(8); k > 0; --k) tests::add_transfers(random, graph, schedule);
    const bool limits_of_schedule = random.chance(50);
    if (limits_of_schedule) {
      instance->limits = {reference::peak_with_transfers(graph, schedule), reference::host_peak(graph, schedule)};
    }
    CAPTURE(tests::show(graph), tests::show(schedule.steps), tests::show(schedule.transfers), to_string(instance->link),
            instance->limits.device, instance->limits.host);
    std::optional<FastestSchedule> found;
    try {
      found = search(*instance);
    } catch (const std::runtime_error&) {
      ++left_out;
      return;
    }
    if (found) check_result(*instance, *found);
    infeasible += !found;
    with_transfers += found && !found->schedule.transfers.empty();
    if (!limits_of_schedule) return;
    REQUIRE(found);
    const std::int64_t time = reference::simulate(graph, schedule, instance->link).makespan;
    REQUIRE(found->makespan <= time);
    faster += found->makespan < time;
  });
  CAPTURE(with_transfers, faster, left_out, infeasible);
  CHECK(with_transfers > 10);
  CHECK(faster > 50);
  CHECK(left_out < 20);
}

TEST_CASE("the search finds the fastest of all schedules that are enumerated") {
  constexpr std::int64_t kLength = 5;
  int equal = 0, with_transfers = 0;
  tests::for_each_seed(8000, [&](Random& random) {
    const std::optional<TransferInstance> instance = tests::random_transfer_instance(random, 4, 5);
    if (!instance || instance->graph.node_count() < 3 || random.chance(70)) return;
    const auto& [graph, link, limits] = *instance;
    CAPTURE(tests::show(graph), to_string(link), limits.device, limits.host);
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::int64_t least = kNever, least_peak = kNever;
    Schedule steps;
    const auto visit = [&](const Schedule& schedule) {
      if (!evaluate(graph, schedule).valid() || host_peak(graph, schedule) > limits.host) return;
      const std::int64_t peak = evaluate(graph, schedule).peak;
      least_peak = std::min(least_peak, peak);
      if (peak <= limits.device) least = std::min(least, makespan(graph, schedule, link));
    };
    for_each_steps(graph, kLength, steps, [&](const Schedule& all) {
      visit(all);
      for_each_transfers(graph, all, all.length() <= graph.node_count(), visit);
    });
    const std::optional<FastestSchedule> found = search(*instance);
    REQUIRE(reference::least_peak_with_transfers(graph, limits.host) <= least_peak);
    if (!found) {
      REQUIRE(least == kNever);
      return;
    }
    check_result(*instance, *found);
    REQUIRE(found->makespan <= least);
    equal += found->makespan == least;
    with_transfers += !found->schedule.transfers.empty();
  });
  CAPTURE(equal, with_transfers);
  CHECK(equal > 20);
  CHECK(with_transfers > 5);
}

}  // namespace
}  // namespace cairn::core::transfer_search_property_test
