#include "cairn/sim/undominated.h"

#include <utility>

namespace cairn::sim {
namespace {

core::NodeId last_step(const ScheduleBatch& batch, std::int64_t candidate) {
  return visit_batch(batch, [&](const auto& view) {
    return static_cast<core::NodeId>(view.steps[view.begin[candidate] + view.length[candidate] - 1]);
  });
}

}  // namespace

void Undominated::add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers) {
  const Profiles whole = simulator.profiles(batch);
  std::vector<std::int64_t> values, offsets{0}, added = numbers_;
  for (std::int64_t c = 0; c < batch.count(); ++c) {
    const std::int64_t begin = whole.begin[c], length = whole.begin[c + 1] - begin;
    if (length <= 1) continue;  // the candidate is invalid or has no steps
    core::append_internal_profile(*graph_, std::span(whole.value).subspan(begin, length), last_step(batch, c), values);
    offsets.push_back(static_cast<std::int64_t>(values.size()));
    added.push_back(numbers[static_cast<std::size_t>(c)]);
  }
  candidates_ += static_cast<std::int64_t>(added.size() - numbers_.size());
  const CanonicalBatch fresh = canonical_batch(values, offsets);
  CanonicalBatch all = std::move(profiles_);
  for (std::int64_t i = 0; i < fresh.size(); ++i) all.add(fresh[i]);
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
