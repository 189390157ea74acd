#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::solvers::plan {

/// Returns the first range that ends above `address`. The n ranges must be disjoint and ascending. O(log n).
inline auto first_above(std::span<const core::AddressRange> ranges, std::int64_t address) {
  return std::ranges::upper_bound(ranges, address, {}, &core::AddressRange::upper);
}

/// Returns whether one of the ranges overlaps [lower, upper). An empty range overlaps a range only if it lies strictly
/// inside it: for example, [a, a) overlaps [lower, upper) if lower < a < upper. The n ranges must be disjoint and
/// ascending. O(log n).
inline bool overlap(std::span<const core::AddressRange> ranges, std::int64_t lower, std::int64_t upper) {
  const auto at = first_above(ranges, lower);
  return at != ranges.end() && at->lower < upper;
}

/// Stores a set of addresses as disjoint ranges in a sorted vector. For n ranges, add() takes O(n) time, because it
/// shifts the ranges after the added range.
class AddressSet {
 public:
  const std::vector<core::AddressRange>& ranges() const { return ranges_; }

  void add(std::int64_t lower, std::int64_t upper) {
    auto from = std::partition_point(ranges_.begin(), ranges_.end(),
                                     [&](const core::AddressRange& r) { return r.upper < lower; });
    auto to = from;
    for (; to != ranges_.end() && to->lower <= upper; ++to) {
      lower = std::min(lower, to->lower);
      upper = std::max(upper, to->upper);
    }
    if (from == to) {
      ranges_.insert(from, {lower, upper});
    } else {
      *from = {lower, upper};
      ranges_.erase(from + 1, to);
    }
  }

 private:
  std::vector<core::AddressRange> ranges_;  ///< ascending; no range touches another
};

}  // namespace cairn::solvers::plan
