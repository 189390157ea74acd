#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

/// Calls body(random) or body(random, seed) for each seed from 0 to seeds - 1. If a check fails, Catch shows the seed.
/// The environment variable CAIRN_SEEDS=FIRST:COUNT selects other seeds instead.
template <class Body>
void for_each_seed(std::uint64_t seeds, const Body& body) {
  std::uint64_t first = 0;
  if (const char* text = std::getenv("CAIRN_SEEDS")) {
    char* end = nullptr;
    first = std::strtoull(text, &end, 10);
    REQUIRE(*end == ':');
    seeds = std::strtoull(end + 1, &end, 10);
    REQUIRE((*end == '\0' && seeds > 0));
  }
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    if constexpr (std::is_invocable_v<const Body&, Random&, std::uint64_t>) {
      body(random, seed);
    } else {
      body(random);
    }
  }
}

}  // namespace cairn::tests
