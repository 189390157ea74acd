#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Plans all blocks except the fixed ones, which are ignored, from the bottom up by the best-fit heuristic of Sekiyama,
/// Imai, Negishi and Kawachiya (Profile-guided memory optimization for deep neural networks, 2018). The lowest part of
/// the skyline (bytes used at every step) gets the block of the largest `key` (one key a block) among the blocks that
/// are not placed yet and live within its steps; if there is no such block, the part is raised to the lower of its
/// neighbours. Alignments, gaps and forbidden addresses are kept, hints are ignored. Returns an offset for each block.
/// O(b log b): at most a constant number of blocks that do not fit are scanned.
std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
