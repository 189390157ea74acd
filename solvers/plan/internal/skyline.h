#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// A plan of all blocks but the fixed ones, as though those were not there, built from the bottom up: the best-fit
/// heuristic of Sekiyama, Imai, Negishi and Kawachiya (Profile-guided memory optimization for deep neural networks,
/// 2018). The lowest part of the skyline (bytes used at every step) gets, of the blocks that live within its steps and
/// are not placed yet, the one of the largest `key` (one a block); where there is none it is raised to the lower one of
/// its neighbours. Alignments, gaps and forbidden addresses are kept, hints are not looked at. Returns an offset a
/// block. O(b log b): blocks of which many do not fit are looked through up to a constant number.
std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
