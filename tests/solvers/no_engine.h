#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cairn/solvers/engines/engine.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Returns whether an engine (HiGHS or CP-SAT) is missing. Test cases that need engines begin with `if (no_engine())
/// return;`. If one is missing, prints a message that ctest counts as a skip or, if CAIRN_REQUIRE_ENGINES is set,
/// fails.
inline bool no_engine() {
  std::string missing = solvers::highs_missing();
  if (missing.empty()) missing = solvers::cp_sat_missing();
  if (missing.empty()) return false;
  if (std::getenv("CAIRN_REQUIRE_ENGINES") != nullptr) FAIL(missing);
  std::printf("skipped: %s\n", missing.c_str());
  return true;
}

}  // namespace cairn::tests
