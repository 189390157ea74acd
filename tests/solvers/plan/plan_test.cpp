#include "cairn/core/plan.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <string>

#include "cairn/core/error.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::core::plan_test {
namespace {

using solvers::plan_buffers;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST_CASE("sizes and options that would overflow are refused") {
  CHECK_THROWS_AS(plan_buffers({{"a", 0, 2, kMost}}), InputError);
  CHECK_THROWS_AS(plan_buffers({{"a", 0, 2, kMost / 3}, {"b", 1, 3, kMost / 3}}), InputError);
  CHECK_THROWS_AS(plan_buffers({{"a", 2, 2, 1}}), InputError);
  CHECK_THROWS_AS(plan_buffers({{"a", 0, 1, -1}}), InputError);
  for (const std::int64_t alignment : {std::int64_t{-1}, std::int64_t{0}, kMost}) {
    CHECK_THROWS_AS(plan_buffers({{"a", 0, 1, 1}}, {.alignment = alignment}), InputError);
    CHECK_THROWS_AS(align_sizes(Graph(), alignment), InputError);
  }
  CHECK_THROWS_AS(plan_buffers({{"a", 0, 1, 1}}, {.guard_bytes = kMost}), InputError);
}

TEST_CASE("MiniMalloc's example fits its capacity of 12") {
  const std::vector<BufferSpec> specs{
      {"b1", 0, 3, 4}, {"b2", 3, 9, 4}, {"b3", 0, 9, 4}, {"b4", 9, 21, 4}, {"b5", 0, 21, 4}};
  const Plan plan = plan_buffers(specs);
  CHECK(plan.bytes == 12);
  CHECK(plan.lower_bound == 12);
  CHECK(check_overlaps(plan) == "");
}

TEST_CASE("guards keep buffers apart and count in the bound") {
  const Plan plan = plan_buffers({{"a", 0, 2, 10}, {"b", 1, 3, 10}}, {.alignment = 8, .guard_bytes = 5});
  CHECK(plan.bytes == 48);
  CHECK(plan.lower_bound == 48);
  CHECK(plan.buffers[0].size == 16);
  CHECK(std::abs(plan.buffers[0].offset - plan.buffers[1].offset) == 24);
}

Buffer random_buffer(tests::Random& random) {
  Buffer buffer{.first = random.between(0, 12)};
  buffer.last = buffer.first + random.between(0, 8);
  buffer.size = random.between(0, 30);
  return buffer;
}

/// Returns buffers with random lifetimes. Some of them overwrite another buffer in place.
solvers::PlanProblem random_problem(tests::Random& random) {
  solvers::PlanProblem problem;
  for (std::int64_t i = random.between(1, 14); i > 0; --i) {
    const Buffer buffer = random_buffer(random);
    std::int32_t before = static_cast<std::int32_t>(problem.buffers.size());
    while (--before >= 0) {
      const Buffer& other = problem.buffers[before];
      const bool taken = std::count(problem.takes_over.begin(), problem.takes_over.end(), before) > 0;
      if (!taken && other.last == buffer.first && other.first < other.last) break;
    }
    problem.buffers.push_back(buffer);
    problem.takes_over.push_back(before);
    if (before < 0) continue;
    problem.buffers[before].node = before;
    problem.buffers.back().alias_of = before;
  }
  return problem;
}

TEST_CASE("a planner's status, bound and plan agree, whatever the capacity") {
  using solvers::Status;
  tests::Random random(31);
  std::map<Status, int> met;
  for (int i = 0; i < 2000; ++i) {
    const solvers::PlanProblem problem = random_problem(random);
    const solvers::PlanSolution lowest = solvers::greedy_plan(problem, {.limit = {.work = 20'000}});
    const std::int64_t bound = lowest.plan.lower_bound;
    CHECK(lowest.status == (lowest.plan.bytes == bound ? Status::optimal : Status::feasible));
    for (const std::int64_t capacity : {bound - 1, bound, lowest.plan.bytes, 2 * lowest.plan.bytes}) {
      if (capacity < 0) continue;
      const auto found = solvers::greedy_plan(problem, {.capacity = capacity, .limit = {.work = 20'000}});
      ++met[found.status];
      REQUIRE(check_overlaps(found.plan) == "");
      REQUIRE(found.plan.buffers.size() == problem.buffers.size());
      REQUIRE(found.plan.lower_bound == bound);
      REQUIRE(found.plan.bytes >= bound);
      REQUIRE((found.status == Status::infeasible) == (capacity < bound));
      if (found.status == Status::optimal) REQUIRE(found.plan.bytes == bound);
      if (capacity >= bound) REQUIRE((found.status == Status::not_found) == (found.plan.bytes > capacity));
      // A capacity does not change the course of the search, but can end the search earlier.
      if (capacity >= lowest.plan.bytes) REQUIRE(found.plan.bytes <= capacity);
      REQUIRE(found.work <= lowest.work);
    }
  }
  for (const Status status : {Status::optimal, Status::feasible, Status::infeasible, Status::not_found}) {
    CHECK(met[status] > 0);
  }
}

TEST_CASE("a step of 22000 buffers is planned at max-live") {
  const Graph graph = models::build_model("gpt2", {.values = {{"layers", 24}}, .granularity = models::Granularity::op});
  const solvers::PlanSolution found = solvers::find_plan(graph, baseline_schedule(graph));
  CHECK(found.plan.buffers.size() > 20'000);
  CHECK(found.status == solvers::Status::optimal);
  CHECK_FALSE(found.timed_out);
}

TEST_CASE("a raised stop flag leaves the planner's first plan") {
  std::atomic<bool> stop = true;
  tests::Random random(32);
  int stopped = 0;
  for (int i = 0; i < 200; ++i) {
    const solvers::PlanProblem problem = random_problem(random);
    const auto found = solvers::greedy_plan(problem, {.limit = {.stop = &stop}});
    REQUIRE(check_overlaps(found.plan) == "");
    REQUIRE(found.plan.buffers == solvers::greedy_plan(problem, {.limit = {.work = 0}}).plan.buffers);
    REQUIRE(found.timed_out == (found.status != solvers::Status::optimal));
    stopped += found.timed_out;
  }
  CHECK(stopped > 0);
}

TEST_CASE("malformed planning problems are refused") {
  Buffer early, late;
  early.last = 3, early.size = 8;
  late.first = 3, late.last = 5, late.size = 8;
  CHECK(solvers::greedy_plan({{early, late}, {-1, 0}}).plan.bytes == 8);
  CHECK(solvers::greedy_plan({{early, late}, {}}).plan.bytes == 16);
  for (const std::vector<std::int32_t>& takes_over :
       {std::vector<std::int32_t>{-1}, {-1, 1}, {-1, 2}, {-1, -2}, {1, -1}}) {
    CHECK_THROWS_AS(solvers::greedy_plan({{early, late}, takes_over}), InputError);
  }
  CHECK_THROWS_AS(solvers::greedy_plan({{early, late, late}, {-1, 0, 0}}), InputError);
  CHECK_THROWS_AS(solvers::greedy_plan({{early}, {}}, {.capacity = -1}), InputError);
  late.last = 2;
  CHECK_THROWS_AS(solvers::greedy_plan({{late}, {}}), InputError);
}

/// Returns which rule the places of the buffers break, or an empty text if they break none. Checks the definitions for
/// each buffer and each pair of buffers.
std::string broken_rule(const solvers::PlanProblem& problem, const Plan& plan) {
  const auto live = [&](std::size_t b, std::int64_t step) {
    if (step < plan.buffers[b].first || step > plan.buffers[b].last) return false;
    const auto& gaps = problem.rules[b].gaps;
    return std::none_of(gaps.begin(), gaps.end(), [&](auto gap) { return gap.first <= step && step <= gap.last; });
  };
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& x = plan.buffers[b];
    const solvers::PlacementRules& rules = problem.rules[b];
    if (x.offset < 0 || x.offset + x.size > plan.bytes) return "outside";
    if (x.offset % rules.alignment != 0) return "not aligned";
    if (rules.offset && x.offset != *rules.offset) return "not where it is fixed";
    for (const AddressRange& range : problem.forbidden) {
      if (x.size > 0 && x.offset < range.upper && x.offset + x.size > range.lower) return "on forbidden addresses";
    }
    for (std::size_t c = 0; c < b; ++c) {
      const Buffer& y = plan.buffers[c];
      if (x.size == 0 || y.size == 0 || x.offset >= y.offset + y.size || y.offset >= x.offset + x.size) continue;
      for (std::int64_t step = x.first; step <= x.last; ++step) {
        if (live(b, step) && live(c, step)) return "overlap";
      }
    }
  }
  return "";
}

/// Returns a random problem with all kinds of rules: alignments, gaps, fixed offsets, hints and forbidden addresses.
/// Some plan keeps all of these rules.
solvers::PlanProblem problem_with_rules(tests::Random& random) {
  solvers::PlanProblem problem;
  for (std::int64_t i = random.between(1, 14); i > 0; --i) {
    const Buffer buffer = random_buffer(random);
    solvers::PlacementRules rules{.alignment = random.chance(50) ? 1 : random.between(2, 8)};
    if (buffer.last - buffer.first >= 2 && random.chance(40)) {
      const std::int64_t first = random.between(buffer.first + 1, buffer.last - 1);
      rules.gaps.push_back({first, random.between(first, buffer.last - 1)});
    }
    problem.buffers.push_back(buffer);
    problem.rules.push_back(rules);
  }
  for (std::int64_t i = random.below(3); i > 0; --i) {
    const std::int64_t lower = random.below(100);
    problem.forbidden.push_back({lower, lower + random.below(10)});
  }
  // Fixed offsets are taken from a plan that was made without them, so that they do not contradict each other. Hints
  // are also taken from that plan, or are random.
  const Plan plan = solvers::greedy_plan(problem, {.limit = {.work = 0}}).plan;
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    if (random.chance(25)) problem.rules[b].offset = plan.buffers[b].offset;
    if (random.chance(25)) problem.rules[b].hint = random.chance(50) ? plan.buffers[b].offset : random.between(-5, 100);
  }
  return problem;
}

TEST_CASE("alignments, fixed offsets, gaps and forbidden addresses are kept") {
  tests::Random random(33);
  for (int i = 0; i < 3000; ++i) {
    CAPTURE(i);
    const solvers::PlanProblem problem = problem_with_rules(random);
    const std::int64_t work = i % 3 == 0 ? 0 : 20'000;
    const auto found = solvers::greedy_plan(problem, {.limit = {.work = work}});
    REQUIRE(broken_rule(problem, found.plan) == "");
    REQUIRE(found.lower_bound >= found.plan.lower_bound);
    REQUIRE(found.plan.bytes >= found.lower_bound);
    REQUIRE((found.status == solvers::Status::optimal) == (found.plan.bytes == found.lower_bound));
  }
}

TEST_CASE("a hint that is free is taken") {
  const solvers::PlanProblem problem{
      {{.first = 0, .last = 2, .size = 8}, {.first = 1, .last = 3, .size = 8}, {.first = 4, .last = 5, .size = 16}},
      {},
      {{.hint = 8}, {.hint = 0}, {}},
      {}};
  const Plan plan = solvers::greedy_plan(problem).plan;
  CHECK(plan.bytes == 16);
  CHECK(plan.buffers[0].offset == 8);
  CHECK(plan.buffers[1].offset == 0);
}

TEST_CASE("rules hold among thousands of buffers that live at once") {
  constexpr std::int64_t kDepth = 20'000;
  tests::Random random(34);
  solvers::PlanProblem problem;
  for (std::int64_t i = 0; i < kDepth; ++i) {
    problem.buffers.push_back({.first = i, .last = 2 * kDepth - i, .size = random.between(1, 100)});
  }
  problem.rules.resize(kDepth);
  problem.rules[7].offset = 500;
  problem.rules[8].hint = 1000;
  problem.rules[9].hint = 510;  // this offset is already in use
  problem.forbidden = {{200, 300}, {2000, 2000}};
  const auto found = solvers::greedy_plan(problem, {.limit = {.work = 0}});
  CHECK(check_overlaps(found.plan) == "");
  CHECK(found.plan.buffers[7].offset == 500);
  CHECK(found.plan.buffers[8].offset == 1000);
  CHECK(found.plan.bytes <= found.lower_bound + 400);
  for (const Buffer& buffer : found.plan.buffers) {
    for (const AddressRange& range : problem.forbidden) {
      if (buffer.offset < range.upper) REQUIRE(buffer.offset + buffer.size <= range.lower);
    }
  }
}

TEST_CASE("buffers lie in banks, never across the wall between them") {
  solvers::PlanProblem problem{
      {{.first = 0, .last = 1, .size = 6}, {.first = 0, .last = 1, .size = 6}, {.first = 0, .last = 1, .size = 4}},
      {},
      {},
      {{10, 10}}};
  CHECK(solvers::greedy_plan(problem).plan.bytes == 16);
  problem.forbidden = {{10, 20}};
  const auto found = solvers::greedy_plan(problem);
  CHECK(found.plan.bytes == 26);
  CHECK(found.lower_bound == 26);
  CHECK(found.plan.lower_bound == 16);
}

TEST_CASE("a block fixed above the capacity makes the problem infeasible") {
  const solvers::PlanProblem problem{{{.first = 0, .last = 1, .size = 6}}, {}, {{.offset = 8}}, {}};
  const auto found = solvers::greedy_plan(problem, {.capacity = 13});
  CHECK(found.status == solvers::Status::infeasible);
  CHECK(found.plan.bytes == 14);
  CHECK(solvers::greedy_plan(problem, {.capacity = 14}).status == solvers::Status::optimal);
}

TEST_CASE("fixed buffers that overlap, or lie on forbidden addresses, are refused by name") {
  solvers::PlanProblem problem;
  problem.buffers = {{.first = 0, .last = 9, .size = 4},
                     {.first = 0, .last = 3, .size = 8},
                     {.first = 4, .last = 5, .size = 8},
                     {.first = 3, .last = 3, .size = 8}};
  problem.rules.resize(4);
  problem.rules[1].offset = 8;
  problem.rules[2].offset = 12;  // overlaps buffer 1 in addresses, but not in time
  CHECK(solvers::greedy_plan(problem).plan.bytes == 24);
  problem.rules[3].offset = 16;  // overlaps buffer 1 in time, but not in addresses
  CHECK(solvers::greedy_plan(problem).plan.bytes == 24);
  problem.rules[3].offset = 15;
  CHECK_THROWS_WITH(solvers::greedy_plan(problem), "buffers 1 and 3 are fixed at offsets that overlap");
  problem.rules[3].offset = 1;
  CHECK_THROWS_WITH(solvers::greedy_plan(problem), "buffers 1 and 3 are fixed at offsets that overlap");
  problem.rules[3].offset.reset();
  problem.forbidden = {{3, 8}};
  CHECK(solvers::greedy_plan(problem).plan.bytes == 28);
  problem.forbidden = {{19, 19}};
  CHECK_THROWS_WITH(solvers::greedy_plan(problem), "buffer 2 is fixed at bytes 12 to 20, but 19 to 19 are forbidden");
  // The second buffer overwrites the first one in place. So it also has the first one's fixed offset. The third buffer
  // overlaps only the second buffer, which must be reported.
  problem = {
      {{.first = 0, .last = 2, .size = 4}, {.first = 2, .last = 4, .size = 8}, {.first = 3, .last = 3, .size = 4}},
      {-1, 0, -1},
      {{.offset = 0}, {}, {.offset = 4}},
      {}};
  CHECK_THROWS_WITH(solvers::greedy_plan(problem), "buffers 1 and 2 are fixed at offsets that overlap");
}

}  // namespace
}  // namespace cairn::core::plan_test
