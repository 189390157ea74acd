#include "cairn/core/limit.h"

#include "cairn/tests/catch.h"

namespace cairn::core::limit_test {
namespace {

TEST_CASE("what is left of any amount of work is any amount, and of some is less") {
  Stopwatch any{Limit{}};
  any.charge(1000);
  CHECK_FALSE(any.rest().counts_work());
  CHECK_FALSE(any.share(0.5).counts_work());

  Limit some{.work = 3000};
  CHECK(some.counts_work());
  Stopwatch watch(some);
  watch.charge(1000);
  CHECK(watch.rest().work == 2000);
  CHECK(watch.share(0.5).work == 1000);
  CHECK_FALSE(watch.expired_now());
  CHECK(watch.charge(2001).expired_now());
}

}  // namespace
}  // namespace cairn::core::limit_test
