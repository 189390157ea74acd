#include "cairn/core/plan.h"

#include <limits>

#include "cairn/core/error.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"

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

}  // namespace
}  // namespace cairn::core
