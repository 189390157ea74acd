#pragma once

#include <cstdint>

#include "core/random.h"
#include "sim/pumpkin.h"

namespace cairn::bench {

/// Branches that are chains of nodes with outputs of 1 to 2^20 bytes.
inline sim::PumpkinProblem chains(std::int64_t branches, std::int64_t nodes, std::uint64_t seed) {
  core::Random random(seed);
  const auto size = [&] { return static_cast<std::int64_t>(random.next() % (std::uint64_t{1} << 20)) + 1; };
  sim::PumpkinProblem problem;
  problem.released = size();
  for (std::int64_t b = 0; b < branches; ++b) {
    sim::PumpkinKind kind;
    std::int64_t output = size();
    kind.key = {output, 0};
    for (std::int64_t v = 1; v < nodes; ++v) {
      const std::int64_t next = size();
      core::append_segment(kind.rest, {next, output});
      output = next;
    }
    problem.kinds.push_back(kind);
  }
  return problem;
}

}  // namespace cairn::bench
