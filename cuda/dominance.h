#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/dominance.h"

/// sim/canonical_batch.h and sim/dominance.h on the first visible GPU, with the same results. Everything throws
/// DeviceError where there is no device or its memory is too small.
namespace cairn::cuda {

/// core::canonical of many profiles; see sim::canonical_batch.
sim::CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets);

/// See sim::merge_segments.
sim::CanonicalBatch merge_segments(const sim::CanonicalBatch& chains, std::span<const std::int64_t> sets);

/// See sim::DominanceSet. The profiles stay in the GPU's memory.
class DominanceSet {
 public:
  explicit DominanceSet(const sim::CanonicalBatch& profiles);
  DominanceSet(DominanceSet&&) noexcept;
  DominanceSet& operator=(DominanceSet&&) noexcept;
  ~DominanceSet();

  std::int64_t size() const;
  std::vector<std::uint8_t> dominated_by(const core::CanonicalView& one) const;
  std::vector<std::uint8_t> dominators_of(const core::CanonicalView& one) const;
  void for_each_band(std::int64_t most_bytes, const std::function<void(const sim::DominanceBand&)>& visit) const;
  std::vector<std::int64_t> non_dominated() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::cuda
