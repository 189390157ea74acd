#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

struct PumpkinShape {
  std::int64_t kinds = 3;
  std::int64_t copies = 1;  ///< largest number of equal branches of a kind
  /// Largest number of steps after the first step (key) of a branch; if `full`, exactly this number.
  std::int64_t length = 2;
  std::int64_t bytes = 3;  ///< largest rise or drop of a step, in bytes
  bool full = false;
};

/// Returns a random problem of parallel branches. Each step of a branch first takes memory and then frees some. Steps
/// of a branch are merged into canonical segments.
inline solvers::PumpkinProblem random_pumpkin(Random& random, const PumpkinShape& shape) {
  const auto bytes = [&] { return random.between(0, shape.bytes); };
  solvers::PumpkinProblem problem{.released = bytes()};
  for (std::int64_t k = 0; k < shape.kinds; ++k) {
    solvers::PumpkinKind kind{.key = {bytes(), bytes()}};
    kind.copies = static_cast<std::int32_t>(random.between(1, shape.copies));
    for (std::int64_t step = shape.full ? 0 : random.below(shape.length + 1); step < shape.length; ++step) {
      core::append_segment(kind.rest, {bytes(), bytes()});
    }
    problem.kinds.push_back(kind);
  }
  return problem;
}

/// Returns a problem whose branches are chains of `nodes` nodes. size() returns the bytes of the next output. When a
/// node runs, it reads the output of the previous node, which is then freed.
template <class Size>
solvers::PumpkinProblem pumpkin_of_sizes(const Size& size, std::int64_t branches, std::int64_t nodes) {
  solvers::PumpkinProblem problem{.released = size()};
  for (std::int64_t b = 0; b < branches; ++b) {
    solvers::PumpkinKind kind;
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

inline solvers::PumpkinProblem pumpkin_of_chains(Random& random, std::int64_t branches, std::int64_t nodes) {
  return pumpkin_of_sizes([&] { return random.between(1, std::int64_t{1} << 20); }, branches, nodes);
}

/// Returns the memory profile of a sequence of segments. It contains only their valleys and peaks, and begins at 0
/// bytes.
inline std::vector<std::int64_t> profile_of(const std::vector<core::Segment>& segments) {
  std::vector<std::int64_t> profile{0};
  for (const core::Segment& segment : segments) {
    const std::int64_t valley = profile.back();
    profile.push_back(valley + segment.rise);
    profile.push_back(valley + segment.change());
  }
  return profile;
}

}  // namespace cairn::tests
