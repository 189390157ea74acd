#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs each node once in the graph's input order. This is NoRemat of Kumar et al. 2019 ("Efficient Rematerialization
/// for Deep Networks"). Takes O(n + m) time for n nodes and m edges.
Solution no_remat(const core::Graph& graph, const SolveOptions& options);

/// Evicts values greedily under a memory limit. This is GreedyRemat of Kumar et al. 2019, section 4 (the heuristic of
/// XLA). Goes through the input order. While a step exceeds the limit, drops the value that frees the most bytes at
/// this step, and inserts a recomputation of this value right before its next use. The number of freed bytes is the
/// size of the value, less the sizes of the inputs that must stay in memory only for this recomputation. If no value
/// frees memory, goes on to the next step.
///
/// The inserted recomputations can make steps exceed the limit that were within it before. So the walk through the
/// input order is repeated with limits below the budget, and the best schedule is returned. Takes O(l * d * v) time for
/// l limits, d dropped values per limit, and v values in memory.
Solution greedy_remat(const core::Graph& graph, const SolveOptions& options);

/// Recomputes values from checkpoints. This is the method of Chen et al. (2016), applied to the input order of any DAG.
/// The forward part is a prefix of the input order. The prefix ends before the first node that is marked backward. If
/// no node is marked, the prefix ends with the step at which the baseline, i.e. the input order itself, needs most
/// memory. The forward part is divided into segments of about equal size. At the end of its segment, a value is dropped
/// if no other segment reads it. Some step after the forward part is the first to read a dropped value of a segment.
/// Right before this step, the nodes of the segment whose dropped values are still needed run again.
///
/// Let s be the number of steps of the forward part. First tries sqrt(s) segments. Afterwards tries all numbers of
/// segments up to 4 sqrt(s), and then a geometric sequence of larger numbers. Takes O(n * (n + m)) time at worst, for n
/// nodes and m edges.
Solution chen_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
