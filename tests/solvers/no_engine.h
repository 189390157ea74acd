#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cairn/solvers/engines/engine.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// First line of a test case that needs engines: `if (no_engine()) return;`. Prints a message that ctest counts as a
/// skip. Where they are required (CAIRN_REQUIRE_ENGINES is set), their absence is a failure.
inline bool no_engine() {
  std::string missing = solvers::highs_missing();
  if (missing.empty()) missing = solvers::cp_sat_missing();
  if (missing.empty()) return false;
  if (std::getenv("CAIRN_REQUIRE_ENGINES") != nullptr) FAIL(missing);
  std::printf("skipped: %s\n", missing.c_str());
  return true;
}

}  // namespace cairn::tests
