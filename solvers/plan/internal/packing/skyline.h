#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Plans the blocks from the bottom up by the best-fit heuristic of Sekiyama, Imai, Negishi and Kawachiya
/// (Profile-guided memory optimization for deep neural networks, 2018). The skyline is, for each step, the end of the
/// highest block placed at this step. A part of the skyline is a range of steps with the same height. The heuristic
/// repeats the following. It takes the lowest part, and looks for blocks that are not placed yet and that live only
/// within the steps of this part. Of these blocks, the heuristic places the block with the largest `key` on the part.
/// If there is no such block, it raises the part to the height of the lower of its two neighbouring parts. `key` has
/// one number per block.
///
/// Ignores fixed blocks and hints. Respects alignments, gaps and forbidden addresses. Returns an offset for each block.
/// Takes O(b log b) time for b blocks, because the search for a block to place on a part ends after a constant number
/// of visits.
std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
