#include "cairn/sim/undominated.h"

#include <utility>

namespace cairn::sim {
namespace {

/// Bytes of the last step's outputs that are freed at once, because nobody reads or keeps them.
std::int64_t freed_after_last(const core::Graph& graph, core::NodeId last) {
  std::int64_t bytes = 0;
  for (const core::ValueId x : graph.outputs(last)) bytes += graph.value_kept(x) ? 0 : graph.value_size(x);
  return bytes;
}

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
    constexpr std::int64_t kBefore = 2;  // entries of a profile up to the end of the first step
    if (whole.begin[c + 1] - whole.begin[c] <= kBefore) continue;
    values.insert(values.end(), whole.value.begin() + whole.begin[c] + kBefore,
                  whole.value.begin() + whole.begin[c + 1]);
    values.back() += freed_after_last(*graph_, last_step(batch, c));
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
