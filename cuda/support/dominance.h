#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/support/dominance.h"

/// These functions do on a GPU what the functions of the same names in sim/canonical_batch.h and
/// sim/support/dominance.h do on the host, with the same results. `ordinal` is the index of the GPU among the visible
/// ones. They throw DeviceError if there is no such GPU, or if its memory is too small.
namespace cairn::cuda {

/// Computes the canonical form (core/dominance.h) of many memory profiles, as sim::canonical_batch does.
sim::CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets,
                                    int ordinal = 0);

/// Merges each set of chains (sequences of nodes, given by their canonical profiles) into one chain, as
/// sim::merge_segments does.
sim::CanonicalBatch merge_segments(const sim::CanonicalBatch& chains, std::span<const std::int64_t> sets,
                                   int ordinal = 0);

/// Creates a DominanceSet, which compares profiles by dominance, as sim::dominance_set does. The profiles stay in the
/// GPU's memory.
std::unique_ptr<sim::DominanceSet> dominance_set(const sim::CanonicalBatch& profiles, int ordinal = 0);

}  // namespace cairn::cuda
