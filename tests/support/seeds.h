#pragma once

#include <cstdint>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

/// body(random) for so many seeds; what fails says which one it was.
template <class Body>
void for_each_seed(std::uint64_t seeds, const Body& body) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    body(random);
  }
}

}  // namespace cairn::tests
