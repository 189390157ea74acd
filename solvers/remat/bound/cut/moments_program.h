#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/certificate.h"
#include "cairn/solvers/remat/bound/cut/moments.h"

namespace cairn::solvers {

struct MomentsOptimum {
  /// Every schedule within the budget costs at least this much more than running each node once.
  std::int64_t extra = 0;
  bool infeasible = false;  ///< whether it is proved that no choice fits, so that no schedule is within the budget
  bool exact = false;       ///< whether `choice` fits and costs `extra`, so that no choice costs less
  MomentsChoice choice;     ///< a cheap choice; if it is not exact, it can need more memory than there is
  /// Prices of a byte at each moment, in units of cost, that give the best bound. Empty if there was too little time or
  /// memory for the dynamic program; there is no choice then, and `extra` is `known`.
  std::vector<double> prices;
  MomentsProof proof;  ///< its `extra` is 0 if there are no prices
};

/// Bounds the cost of schedules from below by what is in memory at several moments (moments.h).
///
/// Theorem. For a schedule within the budget, let runs[t][v] be 1 if v runs in stage t, and held[t][x] be 1 if x is in
/// memory at moment t. For each stage t > 0 and each input y of a node v,
///
///     held[t-1][y] + runs[t][producer of y] >= runs[t][v]
///     held[t-1][y] + runs[t][producer of y] >= held[t][y]          held[0][y] <= runs[0][producer of y]
///     sum of size(x) held[t][x] <= room of moment t, over all x that are not free at it
///
/// Each node runs in at least one of the stages earliest(v) to latest(v), and in none before them. A kept value y is in
/// memory at the end: held[last moment][y] + runs[last stage][producer of y] >= 1. The schedule costs at least the sum
/// of cost(v) (number of stages in which v runs - 1) more than running each node once. So the least such sum is a lower
/// bound.
///
/// A dynamic program over the nodes, from the last to the first, finds it. Its state says for some values in which
/// stages nodes read them that may or may not run there. Stages in which a node reads a value for certain are not part
/// of the state. In training graphs, few values are in a state. If there are too many states, some inputs of repeated
/// runs are left out, which can only lower the bound. With a price for the memory of each moment, the cheapest choice
/// takes one pass over the states; subgradient steps find good prices. Then, labels (choices so far) are extended
/// through the states. Labels that another label dominates are dropped, and those whose cost exceeds a threshold with
/// the cheapest completion. The threshold begins slightly above the bound, and rises until a choice is found, or until
/// it reaches `most`. Each threshold that is reached without a choice is a new bound.
///
/// `known` is a bound that is known, and `prices` are the prices to begin with, one for each moment. The search for
/// labels gives up after kMostLabels in moments_program.cpp, and all ends when the watch expires. The bound is valid
/// all the same. With S states, a pass takes O(S) time.
MomentsOptimum moments_optimum(const core::Graph& graph, const Moments& moments, std::int64_t known, std::int64_t most,
                               std::vector<double> prices, core::Stopwatch& watch);

}  // namespace cairn::solvers
