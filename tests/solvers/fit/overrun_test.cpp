#include "cairn/solvers/fit/internal/overrun.h"

#include <limits>

#include "cairn/tests/catch.h"

namespace cairn::overrun_test {

TEST_CASE("what calls take beyond their limit is kept for the next ones, the most that was seen") {
  fit::Overrun overrun;
  CHECK(overrun.before({.seconds = 3}).seconds == 3);
  overrun.learn({.seconds = 1}, 1.5);
  overrun.learn({.seconds = 2}, 2.25);
  overrun.learn({.seconds = 2}, 1);
  CHECK(overrun.seconds() == 0.5);
  CHECK(overrun.before({.seconds = 3}).seconds == 2.5);
  CHECK(overrun.before({.seconds = 0.25}).seconds == 0);
  overrun.add(0.25);
  CHECK(overrun.before({.seconds = 3, .work = 7}).seconds == 2.25);
  CHECK(overrun.before({.seconds = 3, .work = 7}).work == 7);
}

TEST_CASE("without a limit of time there is nothing to exceed") {
  fit::Overrun overrun;
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  overrun.learn({.seconds = kEndless, .work = 10}, 5);
  CHECK(overrun.seconds() == 0);
  CHECK(overrun.before({.seconds = kEndless, .work = 10}).seconds == kEndless);
}

}  // namespace cairn::overrun_test
