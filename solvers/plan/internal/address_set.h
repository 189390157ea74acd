#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::solvers::plan {

/// A set of addresses, stored as disjoint ranges in a sorted vector. For n ranges, meets() takes O(log n), and add()
/// takes O(n) because it shifts the ranges after the added one.
class AddressSet {
 public:
  const std::vector<core::AddressRange>& ranges() const { return ranges_; }

  bool meets(std::int64_t lower, std::int64_t upper) const {
    const auto at = ending_above(lower);
    return at != ranges_.end() && at->lower < upper;
  }

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
  std::vector<core::AddressRange>::const_iterator ending_above(std::int64_t address) const {
    return std::partition_point(ranges_.begin(), ranges_.end(),
                                [&](const core::AddressRange& r) { return r.upper <= address; });
  }

  std::vector<core::AddressRange> ranges_;  ///< ascending; no range touches another
};

}  // namespace cairn::solvers::plan
