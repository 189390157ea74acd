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
  MomentsChoice choice;     ///< a cheap choice; if it is not exact, it can need more memory than the budget
  /// Prices of a byte at each moment, in units of cost, that give the best bound. Empty if there was too little time or
  /// memory for the dynamic program. In this case, there is no choice, and `extra` is the given `known`.
  std::vector<double> prices;
  MomentsProof proof;  ///< the proof; its `extra` is 0 if there are no prices
};

/// Bounds the cost of schedules from below by what is in memory at several moments (moments.h).
///
/// Theorem. For a schedule within the budget, let runs[t][v] be 1 if v runs in stage t, and held[t][x] be 1 if x is in
/// memory at moment t. For each stage t > 0 and each input y of a node v,
///
///     held[t-1][y] + runs[t][producer of y] >= runs[t][v]
///     held[t-1][y] + runs[t][producer of y] >= held[t][y]          held[0][y] <= runs[0][producer of y]
///     sum of size(x) held[t][x] <= room of moment t, over all x that are not free at moment t (Moments::free())
///
/// Each node v runs in at least one of the stages earliest(v) to latest(v), and in none before them. A kept value y is
/// in memory at the end: held[last moment][y] + runs[last stage][producer of y] >= 1. Beyond running each node once,
/// the schedule costs at least the sum over all v of cost(v) * (number of stages in which v runs - 1). So the least
/// such sum is a lower bound.
///
/// A dynamic program over the nodes, from the last to the first, finds this least sum. A run of a node in a stage is
/// *optional* if a schedule may contain it or not. A state of the program says for some values in which stages optional
/// runs read them. Stages in which a node reads a value in every schedule are not part of the state. In training
/// graphs, few values are in a state. If there are too many states, some inputs of optional runs are left out, which
/// can only lower the bound. Given a price of a byte at each moment, one pass over the states finds the cheapest
/// choice. Subgradient steps find good prices. Afterwards, a search extends labels (choices for the nodes so far)
/// through the states. It drops a label if another label dominates it, or if the cost of the label and of its cheapest
/// completion together exceeds a threshold. The threshold begins slightly above the bound, and rises until a choice is
/// found that fits into memory, or until the threshold reaches `most`. If a threshold leads to no choice, every
/// schedule costs more than the threshold, which is a new bound.
///
/// `known` is a bound that is already known. `most` is the largest extra cost of interest. `prices` are the prices to
/// begin with, one for each moment. The search gives up when it has made a certain number of labels (kMostLabels in
/// moments_program.cpp). Everything ends when the watch expires. In both cases, the returned bound is valid. With S
/// states, a pass takes O(S) time.
MomentsOptimum moments_optimum(const core::Graph& graph, const Moments& moments, std::int64_t known, std::int64_t most,
                               std::vector<double> prices, core::Stopwatch& watch);

}  // namespace cairn::solvers
