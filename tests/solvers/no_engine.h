#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cairn/solvers/engines/engine.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Returns whether an engine (HiGHS or CP-SAT) is missing. In that case it prints a message from which ctest recognizes
/// that the test was skipped. If CAIRN_REQUIRE_ENGINES is set, it fails the test instead. A test that needs engines
/// begins with `if (no_engine()) return;`.
inline bool no_engine() {
  std::string missing = solvers::highs_missing();
  if (missing.empty()) missing = solvers::cp_sat_missing();
  if (missing.empty()) return false;
  if (std::getenv("CAIRN_REQUIRE_ENGINES") != nullptr) FAIL(missing);
  std::printf("skipped: %s\n", missing.c_str());
  return true;
}

}  // namespace cairn::tests
