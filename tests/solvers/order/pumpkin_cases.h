#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

struct PumpkinShape {
  std::int64_t kinds = 3;
  std::int64_t copies = 1;  ///< most copies of a kind
  std::int64_t length = 2;  ///< most steps behind a key; that many in every branch where `full`
  std::int64_t bytes = 3;   ///< most bytes of a step
  bool full = false;
};

/// Chains of steps, each of which takes memory and then gives some back, as canonical segments.
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

/// The problem as a walk: between two steps of a branch lies one output of size() bytes.
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

/// Valleys and peaks of segments that begin at 0 bytes.
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
