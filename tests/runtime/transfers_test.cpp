// Tests the copies of a program: how compile() makes them from transfers, and how the host executes them under random
// delays.
#include "cairn/tests/support/transfers.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/runtime/overlap.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::transfers_test {
namespace {

using core::Graph;
using core::Schedule;
using runtime::Copy;
using runtime::Program;

constexpr std::int64_t kGuard = 256;

/// A schedule with transfers, and its two memory plans: one without guards and one with guards, i.e. with bytes behind
/// each buffer that must not change.
struct Case {
  Graph graph;
  Schedule schedule;
  core::Plan plan, guarded;

  Case(Graph graph_in, Schedule schedule_in) : graph(std::move(graph_in)), schedule(std::move(schedule_in)) {
    plan = solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}});
    guarded = solvers::plan_memory(graph, schedule, {.alignment = 256, .guard_bytes = kGuard, .limit = {.work = 0}});
  }
  Program program() const { return runtime::compile(graph, schedule, plan); }
  Program program_with_guards() const { return runtime::compile(graph, schedule, guarded, {.guard_bytes = kGuard}); }
};

/// Returns a graph with a random schedule. The graph is the tiny version of `model` or, if `model` is empty, random and
/// without ops.
Case random_case(Random& random, const std::string& model = "") {
  Graph graph = model.empty() ? random_graph(random, any_graph(random)) : tiny_model(model);
  Schedule schedule =
      model.empty() || random.chance(50) ? random_schedule(random, graph) : core::baseline_schedule(graph);
  schedule = with_transfers(random, graph, std::move(schedule), static_cast<int>(random.between(5, 80)));
  REQUIRE(core::evaluate(graph, schedule).valid());
  return {std::move(graph), std::move(schedule)};
}

void check_execution(const Program& program, const core::Plan& plan, const Results& expected,
                     const runtime::ExecuteOptions& options) {
  const auto executor = runtime::host_executor(program, options);
  for (int run = 0; run < 2; ++run) {
    const runtime::StepReport report = executor->run();
    REQUIRE(results_of(*executor) == expected);
    if (!options.sentinels) CHECK(report.live_peak_bytes == plan.lower_bound);
    CHECK(report.host_live_peak_bytes == plan.host_lower_bound);
    CHECK(executor->measured_host_peak_bytes() == plan.host_bytes);
    CHECK(executor->measured_peak_bytes() == plan.bytes);
  }
}

/// Executes a case under random delays of copies in four ways: plain, with poison (the executor overwrites freed
/// memory), with guards, and with one thread that copies in both directions.
void check_case(Random& random, const Case& one) {
  const Results expected = results_of(compiled(one.graph));
  const auto seed = static_cast<std::uint64_t>(random.between(1, 1'000'000));
  check_execution(one.program(), one.plan, expected, {.copy_delay_seed = seed});
  check_execution(one.program(), one.plan, expected, {.poison = true, .copy_delay_seed = seed + 1});
  check_execution(one.program(), one.plan, expected,
                  {.poison = true, .half_duplex = true, .copy_delay_seed = seed + 2});
  check_execution(one.program_with_guards(), one.guarded, expected,
                  {.poison = true, .sentinels = true, .copy_delay_seed = seed + 3});
}

/// Runs the program with 40 seeds of delays. Returns for how many seeds the results differ from those without
/// transfers.
int fails_under_delays(const Program& program, bool poison) {
  const Results expected = results_of(compiled(program.graph));
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    failures += results_of(program, {.poison = poison, .copy_delay_seed = seed}) == expected ? 0 : 1;
  }
  return failures;
}

const std::vector<std::string> kModels = {"resnet18", "gpt2", "unet", "transformer"};

}  // namespace

TEST_CASE("transfers: a program has the copies of its schedule, in the order in which a link serves them") {
  Random random(61);
  std::size_t fetches = 0;
  for (int i = 0; i < 300; ++i) {
    const Case one = random_case(random);
    const core::Transfers& moves = one.schedule.transfers;
    const Program program = one.program();
    fetches += moves.fetches.size();
    REQUIRE(program.copies.size() == moves.evicts.size() + moves.fetches.size());
    CHECK(program.host_arena_bytes == one.plan.host_bytes);
    // `expected` holds the copies that the program must have. The key is a copy's start, its finish, whether it is a
    // fetch, and its index. The value is the node of the tensor, its offsets on the device and on the host, and its
    // bytes.
    using Key = std::tuple<std::int64_t, std::int64_t, bool, std::int32_t>;
    std::map<Key, std::tuple<core::NodeId, std::int64_t, std::int64_t, std::int64_t>> expected;
    for (const core::Buffer& buffer : one.plan.buffers) {
      const auto add = [&](std::int64_t start, std::int64_t finish, bool fetch, std::int32_t index,
                           std::int32_t evict) {
        const std::int64_t bytes = one.graph.value_size(moves.evicts[static_cast<std::size_t>(evict)].value);
        const std::int64_t host = one.plan.host_buffers[static_cast<std::size_t>(evict)].offset;
        expected[{start, finish, fetch, index}] = {buffer.node, buffer.offset, host, bytes};
      };
      if (buffer.evict >= 0) {
        const core::Evict& evict = moves.evicts[static_cast<std::size_t>(buffer.evict)];
        add(evict.start, evict.finish, false, buffer.evict, buffer.evict);
      }
      if (buffer.fetch >= 0) {
        const core::Fetch& fetch = moves.fetches[static_cast<std::size_t>(buffer.fetch)];
        add(fetch.start, fetch.finish, true, buffer.fetch, fetch.evict);
      }
    }
    auto copy = program.copies.begin();
    std::vector<std::int64_t> host_ends(program.copies.size(), -1);
    for (const auto& [key, where] : expected) {
      const auto& [start, finish, is_fetch, index] = key;
      CHECK(std::tuple(copy->start, copy->finish, !copy->is_evict()) == std::tuple(start, finish, is_fetch));
      CHECK(std::tuple(copy->node, copy->device.offset, copy->host.offset, copy->device.bytes) == where);
      CHECK(copy->host.bytes == copy->device.bytes);
      if (is_fetch) {
        REQUIRE(copy->source >= 0);
        REQUIRE(copy->source < copy - program.copies.begin());
        const Copy& source = program.copies[static_cast<std::size_t>(copy->source)];
        CHECK((source.is_evict() && source.host.offset == copy->host.offset && source.node == copy->node));
        if (copy->frees_host) {
          CHECK(host_ends[static_cast<std::size_t>(copy->source)] == -1);
          host_ends[static_cast<std::size_t>(copy->source)] = finish;
        }
      }
      ++copy;
    }
    std::vector<std::int64_t> frees, lasts;
    std::ranges::copy_if(host_ends, std::back_inserter(frees), [](std::int64_t end) { return end >= 0; });
    for (const core::HostCopy& host : core::host_copies(one.graph, one.schedule)) lasts.push_back(host.last + 1);
    std::ranges::sort(frees);
    std::ranges::sort(lasts);
    CHECK(frees == lasts);
  }
  CHECK(fetches > 300);
}

TEST_CASE("transfers: copies due and copies that start are found by step") {
  Random random(62);
  for (int i = 0; i < 100; ++i) {
    const Program program = random_case(random).program();
    std::vector<std::int32_t> due, starting;
    for (std::int64_t step = 0; step <= std::ssize(program.instructions); ++step) {
      for (const std::int32_t copy : program.copies_due(step)) {
        CHECK(program.copies[static_cast<std::size_t>(copy)].finish == step);
        due.push_back(copy);
      }
      for (const Copy& copy : program.copies_after(step)) {
        CHECK(copy.start == step);
        starting.push_back(static_cast<std::int32_t>(&copy - program.copies.data()));
      }
    }
    std::vector<std::int32_t> all(program.copies.size());
    std::iota(all.begin(), all.end(), 0);
    CHECK(starting == all);
    std::ranges::sort(due);
    CHECK(due == all);
  }
}

TEST_CASE("transfers: random graphs have the bits of the baseline under random delays, and the planned bytes") {
  Random random(63);
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    check_case(random, random_case(random));
  }
}

TEST_CASE("transfers: models have the bits of the baseline under random delays, and the planned bytes") {
  Random random(64);
  for (const std::string& model : kModels) {
    for (int i = 0; i < 4; ++i) {
      INFO(model << ", " << i);
      check_case(random, random_case(random, model));
    }
  }
}

TEST_CASE("transfers: 1,000 schedules of models under random delays", "[.long]") {
  Random random(65);
  for (int i = 0; i < 250; ++i) {
    for (const std::string& model : kModels) {
      INFO(model << ", " << i);
      check_case(random, random_case(random, model));
    }
  }
}

TEST_CASE("transfers: a program that lacks an order between steps and copies has other bits under some delays") {
  const Case single{relay(), relay_once()}, touching{relay(), relay_touching()}, twice{relay(), relay_twice()};
  CHECK(fails_under_delays(single.program(), false) == 0);
  CHECK(fails_under_delays(single.program(), true) == 0);
  CHECK(fails_under_delays(touching.program(), true) == 0);
  CHECK(fails_under_delays(twice.program(), true) == 0);
  const auto changed = [](const Case& one, std::size_t copy, const auto& change) {
    Program program = one.program();
    change(program.copies[copy]);
    std::ranges::stable_sort(program.copies_by_finish, {},
                             [&](std::int32_t i) { return program.copies[static_cast<std::size_t>(i)].finish; });
    return program;
  };
  const std::int64_t steps = single.schedule.length();
  // After this change, step 2 writes the bytes of the evicted buffer without waiting for the evict.
  CHECK(fails_under_delays(changed(single, 0, [&](Copy& copy) { copy.finish = steps; }), false) > 0);
  // After this change, step 4 reads the fetched value without waiting for the fetch.
  CHECK(fails_under_delays(changed(single, 1, [&](Copy& copy) { copy.finish = steps; }), false) > 0);
  // After this change, the fetch does not wait for the evict, which may still be running when the fetch starts.
  CHECK(fails_under_delays(changed(touching, 1, [](Copy& copy) { copy.source = -1; }), true) > 0);
  // After this change, the fetch starts so early that it overwrites bytes which step 3 reads.
  CHECK(fails_under_delays(changed(single, 1, [](Copy& copy) { copy.start = 2; }), false) > 0);
  // After this change, the host's copy is freed before the second fetch.
  CHECK(fails_under_delays(changed(twice, 1, [](Copy& copy) { copy.frees_host = true; }), true) > 0);
}

TEST_CASE("transfers: an exception in a step ends its copies, and the next step is whole") {
  Random random(66);
  for (int i = 0; i < 60; ++i) {
    const Case one = random_case(random, i % 2 == 0 ? "" : "unet");
    const Results expected = results_of(compiled(one.graph));
    std::int64_t fails_at = random.below(one.schedule.length());
    if (!one.schedule.transfers.fetches.empty()) {
      const std::int64_t start = random.pick(one.schedule.transfers.fetches).start;
      fails_at = std::min(start + 1, one.schedule.length() - 1);  // the step that runs while the fetch is in flight
    }
    runtime::ExecuteOptions options{.poison = i % 4 < 2, .half_duplex = i % 3 == 0};
    options.copy_delay_seed = static_cast<std::uint64_t>(i + 1);
    options.before_step = [&](const runtime::Instruction& instruction) {
      if (instruction.step != fails_at) return;
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // gives the copies time to begin
      throw std::runtime_error("planted");
    };
    const auto executor = runtime::host_executor(one.program(), options);
    CHECK_THROWS_WITH(executor->run(), "planted");
    // After the exception, no copy may still be running, because the caller may use the memory for something else.
    const runtime::ArenaView arena = executor->arena();
    std::fill(arena.data, arena.data + arena.bytes, std::byte{0x77});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(std::all_of(arena.data, arena.data + arena.bytes, [](std::byte b) { return b == std::byte{0x77}; }));
    fails_at = -1;
    executor->run();
    CHECK(results_of(*executor) == expected);
  }
}

TEST_CASE("transfers: several streams and copies outside the host's arena are refused") {
  Random random(67);
  Case one = random_case(random, "ffn");
  while (one.schedule.transfers.empty()) one = random_case(random, "ffn");
  Program program = one.program();
  CHECK(runtime::overlap(program, 1).streams == 1);
  CHECK(contains(error_of([&] { runtime::overlap(program, 2); }), "transfers cannot run on several streams"));
  program.copies.front().host.offset = program.host_arena_bytes - program.copies.front().host.reserved + 1;
  CHECK(contains(error_of([&] { runtime::host_executor(program); }), "outside its arena of"));
}

}  // namespace cairn::tests::transfers_test
