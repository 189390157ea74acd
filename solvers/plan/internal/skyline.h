#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Plans the blocks from the bottom up by the best-fit heuristic of Sekiyama, Imai, Negishi and Kawachiya
/// (Profile-guided memory optimization for deep neural networks, 2018). The skyline is the number of bytes used at
/// every step. Its lowest part gets a block that is not placed yet and lives within the steps of that part; among
/// several, the one with the largest `key`. If there is no such block, the part is raised to the lower of its
/// neighbours. `key`: one number per block.
///
/// Fixed blocks are ignored. Alignments, gaps and forbidden addresses are respected, hints are not. Returns an offset
/// for each block. O(b log b), because at most a constant number of blocks that do not fit are scanned for each part.
std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
