#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

struct TreewidthOptions {
  core::Limit limit;       ///< of everything; the first decomposition is there in any case
  std::uint64_t seed = 0;  ///< of ties in lower bounds and of the local search
};

/// What is known of a graph's treewidth: at least `lower`, at most decomposition.width.
struct Treewidth {
  TreeDecomposition decomposition;
  std::int32_t lower = -1;
  std::string_view by;     ///< "min-fill", "min-degree" or "local search"
  bool timed_out = false;  ///< the limit ended the search; if not, the bounds met or nothing is left to try
};

/// The best of min-fill and min-degree, the best of a few lower bounds, then improve_decomposition() for as long as the
/// limit allows. The same for a seed and a limit of work.
Treewidth find_treewidth(const UndirectedGraph& graph, const TreewidthOptions& options = {});

/// Lowers the width by local search: the bags around a largest one are taken out, and what they hold is decomposed anew
/// by min-fill with random ties and noise. For that the nodes shared with each bag that stays are joined to a clique,
/// so that some new bag holds them all and the rest of the tree can hang there. A part that has no largest bag any more
/// takes the old one's place; one with as many as before does too, which is where the search gets away from local
/// optima. Ends at `lower` or when the watch expires; never wider than `decomposition`, which must be valid.
TreeDecomposition improve_decomposition(const UndirectedGraph& graph, TreeDecomposition decomposition,
                                        std::int32_t lower, core::Random& random, core::Stopwatch& watch);

}  // namespace cairn::solvers
