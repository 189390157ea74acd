#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/dominance.h"

/// The functions of sim/canonical_batch.h and sim/dominance.h on the first visible GPU, with the same results. All
/// throw DeviceError if there is no device or its memory is too small.
namespace cairn::cuda {

/// See sim::canonical_batch: runs core::canonical on many profiles.
sim::CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets);

/// See sim::merge_segments.
sim::CanonicalBatch merge_segments(const sim::CanonicalBatch& chains, std::span<const std::int64_t> sets);

/// See sim::dominance_set. The profiles stay in the GPU's memory.
std::unique_ptr<sim::DominanceSet> dominance_set(const sim::CanonicalBatch& profiles);

}  // namespace cairn::cuda
