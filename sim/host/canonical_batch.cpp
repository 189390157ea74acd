#include "cairn/sim/canonical_batch.h"

#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/device/dominance/canonical_batch.h"

namespace cairn::sim {

void device::check_offsets(std::span<const std::int64_t> offsets, std::int64_t length, std::int64_t least,
                           const char* what) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != length) {
    throw core::InputError("the offsets of each " + std::string(what) + " must go from 0 to " + std::to_string(length));
  }
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] - offsets[i] < least) {
      throw core::InputError(std::string(what) + " " + std::to_string(i) + " goes from " + std::to_string(offsets[i]) +
                             " to " + std::to_string(offsets[i + 1]) + ": it needs at least " + std::to_string(least) +
                             " entries");
    }
  }
}

CanonicalBatch::CanonicalBatch(std::vector<std::int64_t> starts, std::vector<std::int64_t> begins,
                               std::vector<core::Segment> segments)
    : starts_(std::move(starts)), begins_(std::move(begins)), segments_(std::move(segments)) {
  if (begins_.size() != starts_.size() + 1) {
    throw core::InputError(std::to_string(starts_.size()) + " canonical profiles need " +
                           std::to_string(starts_.size() + 1) + " offsets, not " + std::to_string(begins_.size()));
  }
  device::check_offsets(begins_, static_cast<std::int64_t>(segments_.size()), 0, "canonical profile");
}

core::CanonicalProfile CanonicalBatch::profile(std::int64_t i) const {
  const core::CanonicalView view = (*this)[i];
  return {view.start, {view.segments.begin(), view.segments.end()}};
}

void CanonicalBatch::add(const core::CanonicalView& profile) {
  segments_.insert(segments_.end(), profile.segments.begin(), profile.segments.end());
  begins_.push_back(static_cast<std::int64_t>(segments_.size()));
  starts_.push_back(profile.start);
}

CanonicalBatch canonical_batch(std::span<const core::CanonicalProfile> profiles) {
  CanonicalBatch batch;
  for (const core::CanonicalProfile& profile : profiles) batch.add(profile);
  return batch;
}

CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets,
                               int threads) {
  core::HostMachine machine(threads);
  return device::canonical_batch(machine, values, offsets);
}

CanonicalBatch merge_segments(const CanonicalBatch& chains, std::span<const std::int64_t> sets, int threads) {
  core::HostMachine machine(threads);
  return device::merge_segments(machine, chains, sets);
}

}  // namespace cairn::sim
