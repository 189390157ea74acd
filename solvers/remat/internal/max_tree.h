#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace cairn::solvers {

/// Range addition and range maximum over steps, each in O(log T): a segment tree whose pending additions stay where
/// they were made.
class MaxTree {
 public:
  explicit MaxTree(const std::vector<std::int64_t>& values) {
    while (width_ < values.size()) width_ *= 2;
    most_.assign(2 * width_, std::numeric_limits<std::int64_t>::min() / 4);
    pending_.assign(2 * width_, 0);
    std::copy(values.begin(), values.end(), most_.begin() + static_cast<std::ptrdiff_t>(width_));
    for (std::size_t i = width_ - 1; i > 0; --i) most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
  }

  /// Closed ranges; an empty one (last < first) is fine.
  void add(std::int64_t first, std::int64_t last, std::int64_t value) {
    if (first > last) return;
    const std::size_t left = width_ + first, right = width_ + last;
    for (std::size_t l = left, r = right + 1; l < r; l /= 2, r /= 2) {
      if (l & 1) apply(l++, value);
      if (r & 1) apply(--r, value);
    }
    for (std::size_t i = left / 2; i > 0; i /= 2) pull(i);
    for (std::size_t i = right / 2; i > 0; i /= 2) pull(i);
  }

  std::int64_t max(std::int64_t first, std::int64_t last) const {
    std::int64_t most = std::numeric_limits<std::int64_t>::min() / 2;
    if (first > last) return most;
    return query(1, 0, width_ - 1, first, last);
  }

 private:
  void apply(std::size_t i, std::int64_t value) {
    most_[i] += value;
    pending_[i] += value;
  }
  void pull(std::size_t i) { most_[i] = std::max(most_[2 * i], most_[2 * i + 1]) + pending_[i]; }

  std::int64_t query(std::size_t i, std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t last) const {
    if (last < from || to < first) return std::numeric_limits<std::int64_t>::min() / 2;
    if (first <= from && to <= last) return most_[i];
    const std::int64_t middle = from + (to - from) / 2;
    return pending_[i] +
           std::max(query(2 * i, from, middle, first, last), query(2 * i + 1, middle + 1, to, first, last));
  }

  std::size_t width_ = 1;
  std::vector<std::int64_t> most_, pending_;
};

}  // namespace cairn::solvers
