#include "cairn/sim/support/dominance.h"

#include <algorithm>

#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/device/dominance/dominance.h"

namespace cairn::sim {

namespace {

/// Returns a quantile: the entry of `values` that is higher than about the fraction part / parts of the entries.
/// `values` must be sorted and not empty, and `part` must be below `parts`.
std::int64_t quantile(const std::vector<std::int64_t>& values, std::size_t part, std::size_t parts) {
  return values[values.size() * part / parts];
}

}  // namespace

device::Levels device::levels_with_thresholds(std::vector<std::int64_t> left, std::vector<std::int64_t> right) {
  for (std::vector<std::int64_t>* heights : {&left, &right}) {
    std::erase(*heights, kBelowAll);
    std::sort(heights->begin(), heights->end());
  }
  Levels levels{};
  const std::size_t all = left.size() + right.size();
  if (all == 0) return levels;
  const std::size_t right_share = (kThresholds * right.size() + all / 2) / all;
  levels.right_thresholds = static_cast<std::int32_t>(right_share);
  for (std::size_t k = 0; k < kThresholds; ++k) {
    const bool is_right = k < right_share;
    const std::size_t share = is_right ? right_share : kThresholds - right_share;
    const std::size_t place = is_right ? k : k - right_share;
    levels.thresholds[k] = quantile(is_right ? right : left, share - place, share + 1);
  }
  return levels;
}

void device::choose_cuts(Levels& levels, std::vector<std::int64_t> values) {
  const auto samples = static_cast<std::ptrdiff_t>(values.size() / kLanes);
  if (samples == 0) return;
  for (std::ptrdiff_t lane = 0; lane < kLanes; ++lane) {
    std::vector<std::int64_t> of_lane(values.begin() + lane * samples, values.begin() + (lane + 1) * samples);
    std::sort(of_lane.begin(), of_lane.end());
    for (std::size_t k = 0; k < kCuts; ++k) levels.cuts[lane][k] = quantile(of_lane, k + 1, kCuts + 1);
  }
}

std::unique_ptr<DominanceSet> dominance_set(const CanonicalBatch& profiles, int threads) {
  return std::make_unique<device::OwningDominanceSet<core::HostMachine>>(profiles, threads);
}

std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles, int threads) {
  return dominance_set(profiles, threads)->non_dominated();
}

}  // namespace cairn::sim
