#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

struct TreewidthOptions {
  core::Limit limit;       ///< limit for everything together; the first decomposition is always completed
  std::uint64_t seed = 0;  ///< seed for breaking ties in lower bounds, and for the local search
};

/// A tree decomposition with bounds on the graph's treewidth. The treewidth is at least `lower` and at most
/// decomposition.width.
struct Treewidth {
  TreeDecomposition decomposition;
  std::int32_t lower = -1;
  /// Name of the method that found the decomposition: "min-fill", "min-degree" or "local search".
  std::string_view by;
  bool timed_out = false;  ///< whether the limit ended the search; false if the bounds met or nothing was left to try
};

/// Computes a lower and an upper bound on the treewidth. Takes the better of min-fill and min-degree and the best of a
/// few lower bounds. Afterwards runs improve_decomposition() as long as the limit allows. Deterministic for a seed and
/// a limit of work.
Treewidth find_treewidth(const UndirectedGraph& graph, const TreewidthOptions& options = {});

/// Lowers the width by local search. A step removes a largest bag and the bags around it, and decomposes their nodes
/// anew by min-fill, with random ties and noise. Before that, the step joins the nodes shared with each remaining
/// neighbouring bag to a clique. Each clique is therefore contained in some new bag, so that the rest of the tree can
/// be attached there. The new part replaces the old one unless the new part has more bags of the largest size. A new
/// part that has equally many of them is accepted, so that the search can leave local optima. The search ends when the
/// width is `lower` or `watch` expires. The result is never wider than `decomposition`, which must be valid.
TreeDecomposition improve_decomposition(const UndirectedGraph& graph, TreeDecomposition decomposition,
                                        std::int32_t lower, core::Random& random, core::Stopwatch& watch);

}  // namespace cairn::solvers
