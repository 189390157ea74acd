#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/exact/verdict.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Searches for a plan that fits into a capacity by guided local search (Voudouris and Tsang 1999; Faroe, Pisinger and
/// Zachariasen 2003 for packing; Egeblad, Nielsen and Odgaard 2007 for moves along one axis). All blocks are within the
/// capacity from the beginning, but they may overlap. The search minimises the sum, over all pairs of blocks, of the
/// bytes that they share times the weight of the pair. At first, the weight of a pair is the number of steps at which
/// both are live. A move gives one block its best offset: along the offset, the sum changes linearly between the ends
/// of other blocks, so that a sweep over these ends finds the minimum. If no move lowers the sum, the weights of some
/// pairs rise: of those for which the ratio of shared bytes to weight is largest. From time to time, all weights return
/// a part of the way to their first values, because weights of pairs that no longer overlap mislead the search. Once no
/// two blocks overlap, the offsets are a plan, and its blocks are moved down as far as possible.
///
/// The search improves a given plan. It cannot prove that there is no plan. A block is treated as one rectangle, its
/// bounds(). A search needs 4 bytes for each pair of blocks that are live at the same time, and the Problem that
/// searches share needs 12.
class GuidedSearch {
 public:
  /// Holds the data that all searches of one instance share.
  struct Problem {
    explicit Problem(const Instance& instance);

    struct Pair {
      std::int32_t other;  ///< the block that is live at the same time
      std::int32_t twin;   ///< index of the same pair in the list of the block `other`
      float steps;         ///< number of steps at which both are live
    };
    std::int64_t unit = 1;             ///< greatest common divisor of all sizes and fixed offsets
    std::vector<std::int64_t> sizes;   ///< for each block, its size in bytes
    std::vector<std::uint8_t> fixed;   ///< for each block, whether its offset is fixed
    std::vector<std::int64_t> start;   ///< for each block, the offset with which searches begin; set by the caller
    std::vector<std::int32_t> begins;  ///< for each block, the index of its first pair; ends with the number of pairs
    std::vector<Pair> pairs;           ///< pairs of all blocks, one block after the other
  };

  /// Returns whether the search can be used on the instance. It cannot be used in these cases:
  /// - There are forbidden addresses.
  /// - An alignment does not divide all sizes and fixed offsets.
  /// - The bounds() of two blocks with fixed offsets overlap, which they can because of gaps.
  /// - There are more than 4 million pairs of blocks that are live at the same time.
  static bool takes(const Instance& instance);

  /// Prepares a search for a plan of at most `capacity` bytes, which must be at least the size of each block and a
  /// multiple of Problem::unit. Each seed gives a different search. The problem must outlive the search.
  GuidedSearch(const Problem& problem, std::int64_t capacity, int seed);

  /// Continues the search until one of the following holds:
  /// - A plan is found.
  /// - This call has done `work` units of work, or all calls together have done more than `*most` units.
  /// - The time limit or the stop flag of `watch` ends the search.
  ///
  /// A unit of work takes about as long as a unit of the exact search (exact.h).
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  /// Returns the offsets in the order of Instance::blocks; valid if the verdict is `fits`.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }

 private:
  /// Tells by how much the slope of the weighted sum changes at an offset.
  struct Bend {
    std::int64_t offset;
    double change;
  };
  /// A pair of blocks that share bytes, and the ratio of their shared bytes to the weight of the pair.
  struct Shared {
    float ratio;
    std::int32_t block, pair;
  };

  std::int64_t shared(std::int32_t b, std::int64_t offset, std::int32_t other) const;
  double sum(std::int32_t b, std::int64_t offset) const;
  std::int64_t best_offset(std::int32_t b);
  void sort_bends(std::int64_t top);
  void improve(std::int32_t b);
  void move(std::int32_t b, std::int64_t offset);
  void add_overlaps(std::int32_t b, std::int32_t change);
  void visit(std::int32_t b);
  void raise_weights();
  void push_down();
  std::span<const Problem::Pair> pairs(std::int32_t b) const {
    return {problem_.pairs.data() + problem_.begins[b], problem_.pairs.data() + problem_.begins[b + 1]};
  }

  const Problem& problem_;
  const std::int64_t capacity_;
  core::Random random_;
  std::vector<std::int64_t> offsets_;
  std::vector<float> weights_;          ///< weight of each pair of Problem::pairs
  std::vector<std::int32_t> overlaps_;  ///< for each block, the number of blocks with which it shares bytes
  /// Blocks that share bytes, in any order, and for each block its index in overlapping_, or -1.
  std::vector<std::int32_t> overlapping_, places_;
  std::vector<std::int32_t> open_;     ///< blocks to move
  std::vector<std::uint8_t> is_open_;  ///< for each block, whether it is in open_
  std::vector<Bend> bends_, sorted_;   ///< temporary data of best_offset() and sort_bends()
  std::vector<Shared> shared_;         ///< temporary data of raise_weights()
  std::int64_t work_ = 0;
};

}  // namespace cairn::solvers::plan
