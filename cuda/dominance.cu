#include "cairn/cuda/dominance.h"
#include "cairn/cuda/internal/sim_machine.cuh"
#include "cairn/sim/device/dominance.h"

namespace cairn::cuda {

sim::CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets) {
  SimMachine machine;
  return sim::device::canonical_batch(machine, values, offsets);
}

sim::CanonicalBatch merge_segments(const sim::CanonicalBatch& chains, std::span<const std::int64_t> sets) {
  SimMachine machine;
  return sim::device::merge_segments(machine, chains, sets);
}

struct DominanceSet::State {
  explicit State(const sim::CanonicalBatch& profiles) : set(machine, profiles) {}

  SimMachine machine;
  sim::device::DominanceSet<SimMachine> set;
};

DominanceSet::DominanceSet(const sim::CanonicalBatch& profiles) : state_(std::make_unique<State>(profiles)) {}
DominanceSet::DominanceSet(DominanceSet&&) noexcept = default;
DominanceSet& DominanceSet::operator=(DominanceSet&&) noexcept = default;
DominanceSet::~DominanceSet() = default;

std::int64_t DominanceSet::size() const { return state_->set.size(); }
std::vector<std::uint8_t> DominanceSet::dominated_by(const core::CanonicalView& one) const {
  return state_->set.dominated_by(one);
}
std::vector<std::uint8_t> DominanceSet::dominators_of(const core::CanonicalView& one) const {
  return state_->set.dominators_of(one);
}
void DominanceSet::for_each_band(std::int64_t most_bytes,
                                 const std::function<void(const sim::DominanceBand&)>& visit) const {
  state_->set.for_each_band(most_bytes, visit);
}
std::vector<std::int64_t> DominanceSet::non_dominated() const { return state_->set.non_dominated(); }

}  // namespace cairn::cuda
