#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// Holds the data with which a verifier proves a lower bound on costs. The proof looks at the values in memory at a few
/// moments. A moment is the first run of a node (remat/bound/cut/moments_program.h).
struct MomentsProof {
  std::int64_t extra = 0;   ///< every schedule within the budget costs at least this much more than running all nodes
  bool infeasible = false;  ///< whether no schedule is within the budget
  std::vector<core::NodeId> moments;  ///< nodes whose first runs are the moments, in the order of these runs
  std::vector<double> prices;         ///< price of a byte at each moment, in units of cost
  /// Limits which inputs of optional runs the proof takes into account. A run is optional if a schedule may contain it
  /// or not. An input counts only if its producer is at most p places before the reader in the input order. p is
  /// reach[0] for readers that can run at or before the first moment, and reach[1] for all other readers.
  std::array<core::NodeId, 2> reach{};
};

/// Holds a lower bound on the cost with a proof that needs no search: tests/reference/check_certificate.py verifies it
/// without any code of Cairn. docs/remat/certificate.md says what the verifier does, and why its check proves the
/// bound.
struct Certificate {
  std::int64_t budget = 0;  ///< in bytes
  OrderRule order = OrderRule::free;
  /// Each schedule within the budget that follows `order` costs at least this much. Absent: there is no such schedule.
  std::optional<std::int64_t> least_cost;
  /// The proof. Without moments, it uses only one of two facts: each node runs at least once, or all kept values
  /// together are larger than the budget.
  MomentsProof proof;
};

}  // namespace cairn::solvers
