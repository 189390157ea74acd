#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// What a program needs to prove a bound on costs from a few moments (remat/bound/cut/moments_program.h).
struct MomentsProof {
  std::int64_t extra = 0;   ///< every schedule within the budget costs at least this much more than running all nodes
  bool infeasible = false;  ///< whether no schedule is within the budget
  std::vector<core::NodeId> moments;  ///< nodes, in the order of their first runs
  std::vector<double> prices;         ///< of a byte at each moment, in units of cost
  /// Inputs of runs that may or may not be count only if their producers are at most this far away in the input order:
  /// those of nodes that can run before the first moment, and those of all others.
  std::array<core::NodeId, 2> reach{};
};

/// A bound on the cost with a proof that needs no search: tests/reference/check_certificate.py verifies it without any
/// code of Cairn. docs/remat/certificate.md says what the verifier does and why that is a proof.
struct Certificate {
  std::int64_t budget = 0;  ///< in bytes
  OrderRule order = OrderRule::free;
  /// No schedule within the budget that follows the order rule costs less. Nothing: no such schedule exists.
  std::optional<std::int64_t> least_cost;
  /// Without moments, the bound is the cost of running each node once, or the size of all kept values.
  MomentsProof proof;
};

}  // namespace cairn::solvers
