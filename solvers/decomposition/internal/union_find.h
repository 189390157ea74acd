#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace cairn::solvers {

/// Stores disjoint sets of the numbers 0 to n - 1. Each call takes O(log n) amortised time.
class UnionFind {
 public:
  explicit UnionFind(std::int32_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::int32_t find(std::int32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  /// Unites the sets that contain `from` and `into`. The representative of the united set is the representative of
  /// `into`.
  void join(std::int32_t from, std::int32_t into) { parent_[find(from)] = find(into); }

 private:
  std::vector<std::int32_t> parent_;
};

}  // namespace cairn::solvers
