#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

struct TreewidthOptions {
  core::Limit limit;       ///< limit for everything; the first decomposition is made in any case
  std::uint64_t seed = 0;  ///< seed for ties in lower bounds and for the local search
};

/// A graph with bounds of its treewidth: at least `lower`, at most decomposition.width.
struct Treewidth {
  TreeDecomposition decomposition;
  std::int32_t lower = -1;
  /// Name of the method that found the decomposition: "min-fill", "min-degree" or "local search".
  std::string_view by;
  bool timed_out = false;  ///< whether the limit ended the search; if false, the bounds met or nothing is left to try
};

/// Bounds the treewidth: takes the best of min-fill and min-degree, the best of a few lower bounds, then runs
/// improve_decomposition() as long as the limit allows. Deterministic for a seed and a limit of work.
Treewidth find_treewidth(const UndirectedGraph& graph, const TreewidthOptions& options = {});

/// Lowers the width by local search: the bags around a largest one are removed, and their nodes are decomposed anew by
/// min-fill with random ties and noise. Beforehand, the nodes shared with each remaining neighbour bag are joined to a
/// clique, so that some new bag contains them all and the rest of the tree can be attached there. The new part replaces
/// the old one if it has no more bags of the largest size than the old one; accepting equally many lets the search
/// leave local optima. Ends at `lower` or when the watch expires; never wider than `decomposition`, which must be
/// valid.
TreeDecomposition improve_decomposition(const UndirectedGraph& graph, TreeDecomposition decomposition,
                                        std::int32_t lower, core::Random& random, core::Stopwatch& watch);

}  // namespace cairn::solvers
