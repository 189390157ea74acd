#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

struct TreewidthOptions {
  core::Limit limit;       ///< the first decomposition is completed even if it takes longer
  std::uint64_t seed = 0;  ///< seed for breaking ties in lower bounds, and for the local search
};

/// Holds a tree decomposition and bounds on the graph's treewidth, which is at least `lower` and at most
/// decomposition.width.
struct Treewidth {
  TreeDecomposition decomposition;
  std::int32_t lower = -1;
  /// "min-fill", "min-degree" or "local search": the method that found the decomposition.
  std::string_view by;
  bool timed_out = false;
};

/// Computes a lower and an upper bound on the treewidth. The upper bound is the better of min-fill and min-degree. The
/// lower bound is the highest of several calls of treewidth_lower_bound() with different random numbers. Afterwards
/// improves the upper bound by improve_decomposition() within the limit. With a limit of work, the result depends only
/// on the graph and the seed.
Treewidth find_treewidth(const UndirectedGraph& graph, const TreewidthOptions& options = {});

/// Lowers the width by local search. Each step chooses a largest bag and some bags around it, called the region, and
/// decomposes the region's nodes anew by an elimination order with random ties and noise. Before that, it connects all
/// pairs of nodes that the region shares with the same neighbouring bag. Any decomposition has a bag that contains such
/// a clique, so the neighbouring bag can be attached to that bag. The new bags replace the region unless they include
/// more bags of the largest size than the region does. Equally many bags of the largest size are accepted, so that the
/// search can leave local optima. The search ends when the width is `lower`, after many steps without success, or when
/// `watch` expires. The result is never wider than `decomposition`, which must be valid.
TreeDecomposition improve_decomposition(const UndirectedGraph& graph, TreeDecomposition decomposition,
                                        std::int32_t lower, core::Random& random, core::Stopwatch& watch);

}  // namespace cairn::solvers
