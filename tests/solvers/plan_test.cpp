#include "cairn/core/plan.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>

#include "cairn/core/error.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::core {
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

/// Buffers that live at random times, with some that take over another's storage.
solvers::PlanProblem random_problem(tests::Random& random) {
  solvers::PlanProblem problem;
  for (std::int64_t i = random.between(1, 14); i > 0; --i) {
    Buffer buffer;
    buffer.first = random.between(0, 12);
    buffer.last = buffer.first + random.between(0, 8);
    buffer.size = random.between(0, 30);
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
      // The search is the same up to where it stops.
      if (capacity >= lowest.plan.bytes) REQUIRE(found.plan.bytes <= capacity);
      REQUIRE(found.work <= lowest.work);
    }
  }
  for (const Status status : {Status::optimal, Status::feasible, Status::infeasible, Status::not_found}) {
    CHECK(met[status] > 0);
  }
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

}  // namespace
}  // namespace cairn::core
