#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Bytes live over time, of blocks that come and go: sums of changes in a segment tree over sections of the time axis.
/// Times are any integers below 2^62.
class LiveBytes {
 public:
  /// `times`, ascending: as they are to be expected; about `kSectionTimes` of them make a section.
  explicit LiveBytes(const std::vector<std::int64_t>& times);

  /// O(log b + changes in a section).
  void add(std::span<const Rectangle> block) { apply(block, 1); }
  void remove(std::span<const Rectangle> block) { apply(block, -1); }

  /// The most at any time.
  std::int64_t most() const { return nodes_[1].most; }
  /// The most during the closed range of times.
  std::int64_t most(std::int64_t first, std::int64_t last) const;

 private:
  static constexpr std::size_t kSectionTimes = 48;

  struct Change {
    std::int64_t time, bytes;
    auto operator<=>(const Change&) const = default;
  };
  struct Node {
    std::int64_t sum = 0, most = 0;  ///< of the changes; the largest sum of the first of them, of none at least
  };

  std::size_t section_of(std::int64_t time) const;
  void apply(std::span<const Rectangle> block, std::int64_t sign);
  void change(std::int64_t time, std::int64_t bytes, std::int64_t sign);
  void most_in(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
               std::int64_t& before, std::int64_t& most) const;

  std::vector<std::int64_t> starts_;
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Change>> changes_;  ///< of a section, by time, at one time by bytes: first what ends
};

}  // namespace cairn::solvers::plan
