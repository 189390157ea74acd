#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/remat/bound/cut/moment_cut.h"

namespace cairn::solvers {

struct MomentOptimum {
  /// Every schedule within the budget costs at least this much more than running each node once.
  std::int64_t extra = 0;
  bool infeasible = false;  ///< whether it is proved that no choice fits, so that no schedule is within the budget
  /// A choice that costs `extra`, if one was found. No choice at the moment costs less.
  std::optional<MomentCut> cut;
};

/// Raises the bound `known`, or that of a MomentBound if it is higher, to the optimum of its integer program: the
/// variables again[v] and held[x] are 0 or
/// 1. Without a link only. `bound` must have been maximized, and its moment must not be infeasible.
///
/// The program is solved by a dynamic program over the nodes, from the last one to the first. Its state says which of
/// the values that are not needed after the moment are inputs of a node that runs again. In training graphs, at most a
/// few values are in a state, because most are needed. A label is a choice so far, with its cost and its bytes. Labels
/// of one state dominate each other. For the price of the MomentBound, the cheapest completion of each state is
/// computed first. Labels whose cost, with it, exceeds a threshold are dropped. The threshold begins slightly above the
/// bound, and rises until a choice is found, or until it reaches `most`. Each threshold that is reached without a
/// choice is a new bound.
///
/// Gives up if there are too many states or labels (kMostStates, kMostLabels), or when the watch expires. The bound is
/// valid all the same. For S states and L labels in all, a threshold takes O(S log S + L log L) time.
MomentOptimum moment_optimum(const core::Graph& graph, const MomentBound& bound, std::int64_t known, std::int64_t most,
                             core::Stopwatch& watch);

}  // namespace cairn::solvers
