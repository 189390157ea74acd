#include "cairn/sim/undominated.h"

#include <utility>

namespace cairn::sim {
namespace {

core::NodeId last_step(const ScheduleBatch& batch, std::int64_t candidate) {
  return visit_batch(batch, [&](const auto& view) {
    return static_cast<core::NodeId>(view.steps[view.begin[candidate] + view.length[candidate] - 1]);
  });
}

/// Does what Simulator::internal_profiles() does, also for candidates with transfers.
InternalProfiles from_whole_profiles(const core::Graph& graph, Simulator& simulator, const ScheduleBatch& batch) {
  const Profiles whole = simulator.profiles(batch);
  InternalProfiles found;
  std::vector<std::int64_t> values, offsets{0};
  for (std::int64_t c = 0; c < batch.count(); ++c) {
    const std::int64_t begin = whole.begin[c], length = whole.begin[c + 1] - begin;
    if (length <= 1) continue;  // the candidate is invalid or has no steps
    core::append_internal_profile(graph, std::span(whole.value).subspan(begin, length), last_step(batch, c), values);
    offsets.push_back(static_cast<std::int64_t>(values.size()));
    found.candidates.push_back(c);
  }
  found.profiles = canonical_batch(values, offsets);
  return found;
}

}  // namespace

void Undominated::add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers) {
  const InternalProfiles fresh =
      batch.has_transfers() ? from_whole_profiles(*graph_, simulator, batch) : simulator.internal_profiles(batch);
  candidates_ += fresh.profiles.size();
  std::vector<std::int64_t> added = numbers_;
  CanonicalBatch all = std::move(profiles_);
  for (std::int64_t i = 0; i < fresh.profiles.size(); ++i) {
    added.push_back(numbers[static_cast<std::size_t>(fresh.candidates[i])]);
    all.add(fresh.profiles[i]);
  }
  std::vector<std::int64_t> stay = simulator.non_dominated(all);
  if (static_cast<std::int64_t>(stay.size()) > kMost) {
    stay.resize(kMost);
    complete_ = false;
  }
  numbers_.clear();
  profiles_ = {};
  for (const std::int64_t i : stay) {
    numbers_.push_back(added[static_cast<std::size_t>(i)]);
    profiles_.add(all[i]);
  }
}

}  // namespace cairn::sim
