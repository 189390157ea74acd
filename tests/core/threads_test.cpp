#include "cairn/core/threads.h"

#include <sched.h>

#include "cairn/tests/catch.h"

namespace cairn::tests::threads_test {
TEST_CASE("available cores are those that the process is bound to") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  CHECK(core::available_cores() >= 1);
  CHECK(core::available_cores() <= CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(core::available_cores() == 1);
  REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
}

}  // namespace cairn::tests::threads_test
