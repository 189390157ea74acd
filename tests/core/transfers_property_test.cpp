#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/error.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfers.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/random_transfers.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

namespace cairn::core::transfers_property_test {
namespace {

using tests::build_graph;
using tests::make_node;
using tests::Random;
using tests::random_graph;
using tests::random_link;
using tests::random_schedule;
using tests::with_changed_transfers;
using tests::with_random_transfers;
using Kind = Defect::Kind;
using Reason = Defect::Reason;

/// Returns a random graph of any kind. Its costs have a random unit.
Graph any_random_graph(Random& random) {
  const Graph graph = random_graph(random, tests::any_graph(random));
  std::vector<std::int64_t> costs;
  for (NodeId v = 0; v < graph.node_count(); ++v) costs.push_back(graph.cost(v));
  return graph.with_costs(
      costs, CostUnit{.name = random.pick(std::vector<std::string>{"", "ns", "us", "ms", "s", "steps"}), .source = ""});
}

void check_memory(const Graph& graph, Evaluator& evaluator, const Schedule& schedule) {
  const std::vector<std::int64_t> profile = reference::profile_with_transfers(graph, schedule);
  const Evaluation evaluation = evaluator.evaluate(schedule);
  REQUIRE(evaluation.defect == Defect{});
  REQUIRE(evaluator.profile(schedule) == profile);
  REQUIRE(evaluation.peak == reference::peak_with_transfers(graph, schedule));
  REQUIRE(evaluation.peak_step == reference::peak_step_with_transfers(graph, schedule));
  REQUIRE(evaluation.cost == reference::cost(graph, schedule));
  REQUIRE(evaluation.recomputed == reference::recomputed(schedule));
  REQUIRE(lifetimes(graph, schedule) == reference::lifetimes_with_transfers(graph, schedule));
  REQUIRE(host_profile(graph, schedule) == reference::host_profile(graph, schedule));
  REQUIRE(host_peak(graph, schedule) == reference::host_peak(graph, schedule));
}

void check_copies(const Graph& graph, const Schedule& schedule) {
  const auto& [evicts, fetches] = schedule.transfers;
  const std::vector<HostCopy> copies = host_copies(graph, schedule);
  REQUIRE(copies.size() == evicts.size());
  for (std::size_t k = 0; k < evicts.size(); ++k) {
    const std::int64_t bytes = graph.value_size(evicts[k].value);
    std::int64_t last = -1;
    for (const Fetch& fetch : fetches) {
      if (fetch.evict != static_cast<std::int64_t>(k)) continue;
      last = std::max(last, fetch.finish - 1);
    }
    REQUIRE(copies[k] == HostCopy{static_cast<std::int32_t>(k), evicts[k].start, last, bytes});
  }
}

void check_times(const Graph& graph, const Schedule& schedule, const Link& link) {
  const Timeline expected = reference::simulate(graph, schedule, link);
  const Timeline found = timeline(graph, schedule, link);
  REQUIRE(found.steps == expected.steps);
  REQUIRE(found.evicts == expected.evicts);
  REQUIRE(found.fetches == expected.fetches);
  REQUIRE(found.makespan == expected.makespan);
  REQUIRE(found.compute == expected.compute);
  REQUIRE(found.waiting == expected.waiting);
  REQUIRE(makespan(graph, schedule, link) == expected.makespan);
  if (schedule.transfers.empty()) REQUIRE(found.makespan == reference::cost(graph, schedule));
}

TEST_CASE("schedules with transfers agree with the definitions") {
  std::int64_t evicts = 0, refetches = 0, waits = 0, gap_peaks = 0, schedules = 0;
  tests::for_each_seed(4000, [&](Random& random) {
    const Graph graph = any_random_graph(random);
    Evaluator evaluator(graph);
    const Schedule steps = random_schedule(random, graph);
    // One evaluator evaluates several schedules. No call may affect later calls.
    for (int k = 0; k < 3; ++k) {
      const Schedule schedule = with_random_transfers(random, graph, k < 2 ? steps : random_schedule(random, graph));
      const Link link = random_link(random);
      CAPTURE(tests::show(graph), tests::show(schedule.steps), tests::show(schedule.transfers), to_string(link));
      check_memory(graph, evaluator, schedule);
      check_copies(graph, schedule);
      check_times(graph, schedule, link);
      const auto count = std::ssize(schedule.transfers.evicts);
      ++schedules;
      evicts += count;
      refetches += std::ssize(schedule.transfers.fetches) - count;
      waits += makespan(graph, schedule, link) > reference::cost(graph, schedule);
      const std::vector<std::int64_t> profile = reference::profile_with_transfers(graph, schedule);
      const auto highest = std::max_element(profile.begin(), profile.end()) - profile.begin();
      gap_peaks += count > 0 && highest > 0 && highest % 2 == 0;
    }
  });
  INFO(fmt::format("{} schedules, {} evicts, {} further fetches, {} wait, {} peaks in gaps", schedules, evicts,
                   refetches, waits, gap_peaks));
  CHECK(evicts > schedules / 2);
  CHECK(refetches > schedules / 20);
  CHECK(waits > schedules / 10);
  CHECK(gap_peaks > schedules / 50);
}

using Counts = std::map<std::pair<Kind, Reason>, std::int64_t>;

TEST_CASE("defects of transfers agree with the definitions") {
  Counts counts;
  tests::for_each_seed(12000, [&](Random& random) {
    const Graph graph = any_random_graph(random);
    Evaluator evaluator(graph);
    const Schedule good = with_random_transfers(random, graph, random_schedule(random, graph));
    Schedule schedule = with_changed_transfers(random, graph, good);
    if (random.chance(20)) schedule = with_changed_transfers(random, graph, schedule);
    CAPTURE(tests::show(graph), tests::show(schedule.steps), tests::show(schedule.transfers));
    const std::vector<Defect> expected = reference::find_defects(graph, schedule);
    const Evaluation evaluation = evaluator.evaluate(schedule);
    const Defect found = evaluation.defect;
    CAPTURE(describe(graph, found), static_cast<int>(found.kind), static_cast<int>(found.reason), found.step,
            found.node, found.input, found.transfer);
    ++counts[{found.kind, found.reason}];
    if (expected.empty()) {
      check_memory(graph, evaluator, schedule);
      return;
    }
    if (schedule.transfers.empty() && (found.kind == Kind::missing_input || found.kind == Kind::missing_node)) {
      // If several inputs or nodes are missing, the evaluator may name any one of them.
      REQUIRE(found.kind == expected.front().kind);
      REQUIRE(found.step == expected.front().step);
    } else {
      REQUIRE(std::find(expected.begin(), expected.end(), found) != expected.end());
    }
    const std::string message = describe(graph, found);
    REQUIRE_FALSE(message.empty());
    REQUIRE(message.find('\n') == std::string::npos);
    REQUIRE_THROWS_AS(evaluator.profile(schedule), InputError);
    REQUIRE_THROWS_AS(lifetimes(graph, schedule), InputError);
    check_memory(graph, evaluator, good);
  });
  std::string text;
  for (const auto& [what, count] : counts) {
    text += fmt::format("kind {} reason {}: {}\n", static_cast<int>(what.first), static_cast<int>(what.second), count);
  }
  INFO(text);
  for (const Reason reason :
       {Reason::unknown_value, Reason::pinned, Reason::in_place, Reason::no_bytes, Reason::not_made,
        Reason::starts_early, Reason::finishes_early, Reason::finishes_late, Reason::twice, Reason::unread}) {
    CHECK(counts[{Kind::bad_evict, reason}] > 5);
  }
  for (const Reason reason :
       {Reason::unknown_value, Reason::starts_early, Reason::finishes_early, Reason::finishes_late, Reason::unread}) {
    CHECK(counts[{Kind::bad_fetch, reason}] > 5);
  }
  for (const Kind kind : {Kind::none, Kind::unknown_node, Kind::missing_input, Kind::missing_node, Kind::pinned_again,
                          Kind::input_on_host, Kind::kept_on_host}) {
    CHECK(counts[{kind, Reason::none}] > 5);
  }
}

TEST_CASE("the time of a copy agrees with the definition") {
  tests::for_each_seed(8000, [&](Random& random) {
    const auto any = [&] {
      return random.pick(std::vector<std::int64_t>{0, 1, 2, 3, 999, 1000, 1001, 999'999'999, 1'000'000'000, INT64_MAX,
                                                   random.between(0, 5000), random.between(0, INT64_MAX - 1)});
    };
    const Link link{.bytes_per_second = std::max<std::int64_t>(1, any()), .latency_ns = any(), .duplex = true};
    const std::int64_t bytes = any();
    const CostUnit unit{.name = random.pick(std::vector<std::string>{"", "ns", "us", "ms", "s", "flops"}),
                        .source = ""};
    CAPTURE(link.bytes_per_second, link.latency_ns, bytes, unit.name);
    REQUIRE(copy_cost(link, bytes, unit) == reference::copy_cost(link, bytes, unit));
  });
}

struct Worked {
  std::vector<Node> nodes;  ///< the nodes run in this order if `steps` is empty
  std::vector<NodeId> steps;
  Transfers transfers;
  Link link;
  std::vector<std::int64_t> profile, host;
  std::vector<Span> step_times, evict_times, fetch_times;
  std::int64_t makespan = 0;
};

void check_worked(const Worked& worked) {
  const Graph graph = build_graph(worked.nodes);
  Schedule schedule{worked.steps, worked.transfers};
  if (schedule.steps.empty()) schedule.steps = tests::numbers_below(graph.node_count());
  REQUIRE(evaluate(graph, schedule).defect == Defect{});
  CHECK(Evaluator(graph).profile(schedule) == worked.profile);
  CHECK(host_profile(graph, schedule) == worked.host);
  const Timeline times = timeline(graph, schedule, worked.link);
  CHECK(times.steps == worked.step_times);
  CHECK(times.evicts == worked.evict_times);
  CHECK(times.fetches == worked.fetch_times);
  CHECK(times.makespan == worked.makespan);
}

Node kept(Node node) {
  node.keep = true;
  return node;
}

/// Returns the nodes of the graph a -> b -> c -> d with a further edge a -> d. The output of `a` has 10 bytes, and
/// nothing reads it between `b` and `d`.
std::vector<Node> skip_chain() {
  return {make_node("a", 10, {}, 2), make_node("b", 4, {0}, 3), make_node("c", 6, {1}, 5),
          kept(make_node("d", 1, {2, 0}, 1))};
}
constexpr Link kFourNs{.bytes_per_second = 2'500'000'000};  // copies 10 bytes in 4 ns
constexpr Link kByteNs{.bytes_per_second = 1'000'000'000};  // copies 1 byte in 1 ns

TEST_CASE("worked: a value is away while a step runs") {
  // The evict holds the device's bytes of `a` until step 2 begins. The fetch holds them from the end of step 2 on.
  // While step 2 runs, only b and c are on the device: 10 bytes. Step 2 waits from 5 to 6 ns for the evict, and step 3
  // from 11 to 15 ns for the fetch.
  check_worked({.nodes = skip_chain(),
                .transfers = {{{0, 0, 0, 2}}, {{0, 2, 3}}},
                .link = kFourNs,
                .profile = {0, 10, 10, 14, 14, 10, 16, 17, 1},
                .host = {10, 10, 10, 0},
                .step_times = {{0, 2}, {2, 5}, {6, 11}, {15, 16}},
                .evict_times = {{2, 6}},
                .fetch_times = {{11, 15}},
                .makespan = 16});
}

TEST_CASE("worked: an early fetch makes a gap the peak") {
  // The fetch may start after step 1, because its evict must be complete before step 2. Between steps 1 and 2, the
  // evict and the fetch both hold 10 bytes, and b has 4: these 24 bytes exceed the memory during every step. Both the
  // fetch and step 2 wait for the end of the evict at 6 ns.
  const std::vector<Node> nodes = skip_chain();
  const Schedule schedule{{0, 1, 2, 3}, {{{0, 0, 0, 2}}, {{0, 1, 3}}}};
  check_worked({.nodes = nodes,
                .transfers = schedule.transfers,
                .link = kFourNs,
                .profile = {0, 10, 10, 14, 24, 20, 16, 17, 1},
                .host = {10, 10, 10, 0},
                .step_times = {{0, 2}, {2, 5}, {6, 11}, {11, 12}},
                .evict_times = {{2, 6}},
                .fetch_times = {{6, 10}},
                .makespan = 12});
  const Evaluation evaluation = evaluate(build_graph(nodes), schedule);
  CHECK(evaluation.peak == 24);
  CHECK(evaluation.peak_step == 1);
}

/// Returns a graph in which `d` reads `a` (10 bytes) and `b` (20 bytes). Node `c` reads nothing and takes 10 ns.
std::vector<Node> two_values() {
  return {make_node("a", 10, {}, 1), make_node("b", 20, {}, 1), kept(make_node("c", 1, {}, 10)),
          kept(make_node("d", 1, {0, 1}, 1))};
}
// Both evicts may start after step 1. The link copies `b` first, because the evict of `b` has the earlier `finish`,
// i.e. the earlier step before which it must be complete. The fetch of `b` may also start after step 1. The fetch of
// `a`, which comes first in the list, may start after step 2.
const Transfers kTwoValues{{{0, 0, 1, 3}, {1, 1, 1, 2}}, {{0, 2, 3}, {1, 1, 3}}};

TEST_CASE("worked: both directions at once, in the order of service") {
  // The fetch of `b` begins when the evict of `b` is complete, at 22 ns. At that time, the evict of `a` begins in the
  // other direction. Between steps 1 and 2, the device holds `a` (10 bytes), `b` (20 bytes) and the bytes of b's fetch
  // (20).
  check_worked({.nodes = two_values(),
                .transfers = kTwoValues,
                .link = kByteNs,
                .profile = {0, 10, 10, 30, 50, 31, 41, 32, 2},
                .host = {0, 30, 30, 0},
                .step_times = {{0, 1}, {1, 2}, {22, 32}, {52, 53}},
                .evict_times = {{22, 32}, {2, 22}},
                .fetch_times = {{42, 52}, {22, 42}},
                .makespan = 53});
}

TEST_CASE("worked: one direction at a time") {
  // The evict of `a` and the fetch of `b` may both start after step 1 and have the same `finish`, 3. In such a tie, the
  // evict is copied first. Memory is the same as if both directions can copy at once.
  check_worked({.nodes = two_values(),
                .transfers = kTwoValues,
                .link = {.bytes_per_second = 1'000'000'000, .latency_ns = 0, .duplex = false},
                .profile = {0, 10, 10, 30, 50, 31, 41, 32, 2},
                .host = {0, 30, 30, 0},
                .step_times = {{0, 1}, {1, 2}, {22, 32}, {62, 63}},
                .evict_times = {{22, 32}, {2, 22}},
                .fetch_times = {{52, 62}, {32, 52}},
                .makespan = 63});
}

TEST_CASE("worked: a kept value comes back at the end") {
  // The fetch need not be complete before the end of the schedule (`finish` is 3, the number of steps), and the
  // makespan includes the fetch. A copy takes 1 + 8 / 4 = 3 ns.
  check_worked({.nodes = {kept(make_node("a", 8, {}, 1)), make_node("b", 8, {0}, 2), make_node("c", 9, {1}, 1)},
                .transfers = {{{0, 0, 0, 2}}, {{0, 2, 3}}},
                .link = {.bytes_per_second = 4'000'000'000, .latency_ns = 1},
                .profile = {0, 8, 8, 16, 16, 17, 8},
                .host = {8, 8, 8},
                .step_times = {{0, 1}, {1, 3}, {4, 5}},
                .evict_times = {{1, 4}},
                .fetch_times = {{5, 8}},
                .makespan = 8});
}

TEST_CASE("worked: a fetched value is later than one computed in the step before") {
  // Steps 0 and 2 compute `a`. Step 3 could read the result of step 2 or the fetched value. The fetch counts as the
  // later one, so step 3 reads the fetched value, and the result of step 2 is freed at once.
  const std::vector<Node> nodes{make_node("a", 5), make_node("b", 1, {0}), make_node("c", 1, {0})};
  check_worked({.nodes = nodes,
                .steps = {0, 1, 0, 2},
                .transfers = {{{0, 0, 0, 2}}, {{0, 1, 3}}},
                .link = kByteNs,
                .profile = {0, 5, 5, 6, 10, 10, 5, 6, 0},
                .host = {5, 5, 5, 0},
                .step_times = {{0, 1}, {1, 2}, {6, 7}, {11, 12}},
                .evict_times = {{1, 6}},
                .fetch_times = {{6, 11}},
                .makespan = 12});
  // If the fetch is complete before step 2, the result of step 2 is the later one. So nothing reads the fetched value.
  const Schedule early{{0, 1, 0, 2}, {{{0, 0, 0, 2}}, {{0, 1, 2}}}};
  const Defect defect = evaluate(build_graph(nodes), early).defect;
  CHECK(defect.kind == Kind::bad_fetch);
  CHECK(defect.reason == Reason::unread);
}

TEST_CASE("worked: one evict serves two fetches") {
  // The host holds the 10 bytes of `a` from the end of step 0 to the beginning of step 4. The device holds them during
  // steps 0, 2 and 4, and also between steps 0 and 1, between 1 and 2, and between 3 and 4.
  const std::vector<Node> nodes{make_node("a", 10), make_node("b", 2), make_node("c", 3, {0}), make_node("d", 4),
                                kept(make_node("e", 1, {0}))};
  const Transfers transfers{{{0, 0, 0, 1}}, {{0, 1, 2}, {0, 3, 4}}};
  check_worked({.nodes = nodes,
                .transfers = transfers,
                .link = kByteNs,
                .profile = {0, 10, 10, 2, 10, 13, 0, 4, 10, 11, 1},
                .host = {10, 10, 10, 10, 0},
                .step_times = {{0, 1}, {11, 12}, {22, 23}, {23, 24}, {34, 35}},
                .evict_times = {{1, 11}},
                .fetch_times = {{12, 22}, {24, 34}},
                .makespan = 35});
}

TEST_CASE("worked: the time of a copy") {
  const Link link{.bytes_per_second = 3'000'000'000, .latency_ns = 500};
  CHECK(copy_cost(link, 1500, {.name = "ns", .source = ""}) == 1000);
  CHECK(copy_cost(link, 1501, {.name = "ns", .source = ""}) == 1001);
  CHECK(copy_cost(link, 1500, {.name = "us", .source = ""}) == 1);
  CHECK(copy_cost(link, 1501, {.name = "us", .source = ""}) == 2);
  CHECK(copy_cost(link, 1500, {.name = "steps", .source = ""}) == 1000);
  CHECK(copy_cost({.bytes_per_second = 1}, INT64_MAX, {}) == INT64_MAX);
}

}  // namespace
}  // namespace cairn::core::transfers_property_test
