#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/support/dominance.h"
#include "cairn/sim/device/dominance/dominance.h"

namespace cairn::cuda {

sim::CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets,
                                    int ordinal) {
  const OnDevice on(ordinal);
  Machine machine;
  return sim::device::canonical_batch(machine, values, offsets);
}

sim::CanonicalBatch merge_segments(const sim::CanonicalBatch& chains, std::span<const std::int64_t> sets, int ordinal) {
  const OnDevice on(ordinal);
  Machine machine;
  return sim::device::merge_segments(machine, chains, sets);
}

std::unique_ptr<sim::DominanceSet> dominance_set(const sim::CanonicalBatch& profiles, int ordinal) {
  const OnDevice on(ordinal);
  return std::make_unique<sim::device::OwningDominanceSet<Machine>>(profiles);
}

}  // namespace cairn::cuda
