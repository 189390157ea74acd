#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Plans the blocks from the bottom up by the best-fit heuristic of Sekiyama, Imai, Negishi and Kawachiya
/// (Profile-guided memory optimization for deep neural networks, 2018). The skyline is the number of bytes used at
/// every step. The lowest part of the skyline gets a block that is not placed yet and lives within the steps of that
/// part. Among several such blocks, the one with the largest `key` is placed. If there is no such block, the part is
/// raised to the lower of the neighbouring parts. `key` has one number per block.
///
/// Ignores fixed blocks and hints. Respects alignments, gaps and forbidden addresses. Returns an offset for each block.
/// O(b log b), because for each part at most a constant number of blocks that do not fit are scanned.
std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
