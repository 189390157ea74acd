#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/instance.h"
#include "cairn/solvers/plan/internal/packing/address_set.h"

namespace cairn::solvers::plan {

/// Stores the rectangles (ranges of steps and addresses) placed so far in a segment tree over time. The time axis is
/// divided into sections. Each node of the tree stands for a range of sections and stores which addresses are used
/// during them. So lowest_free() need not visit the thousands of rectangles that can be live at once. Times are
/// integers below 2^62.
class Occupancy {
 public:
  /// Makes an empty set. `times` are the first and last steps of the rectangles to be inserted, ascending. About
  /// kSectionTimes consecutive entries form a section.
  explicit Occupancy(const std::vector<std::int64_t>& times);

  void insert(const Rectangle& rectangle, std::int64_t offset);

  /// Finds the lowest offset at which none of the rectangles overlaps an inserted rectangle or a forbidden range. The
  /// offset is a multiple of `alignment`. Returns -1 if a rectangle would end above the address `limit`. For one
  /// rectangle, takes O(r log s + t) time, where s is the number of sections, r the number of occupied ranges below the
  /// offset, and t the number of rectangles that start or end in the rectangle's first or last section.
  std::int64_t lowest_free(std::span<const Rectangle> rectangles, std::int64_t alignment,
                           const std::vector<core::AddressRange>& forbidden, std::int64_t limit) const;

  bool is_free(std::span<const Rectangle> rectangles, std::int64_t offset,
               const std::vector<core::AddressRange>& forbidden) const;

  static constexpr std::size_t kSectionTimes = 48;

 private:
  /// A rectangle that starts or ends in a section, at the addresses [lower, upper).
  struct Partial {
    std::int64_t first, last, lower, upper;
  };
  struct Node {
    /// Addresses of the rectangles that are live during all sections of this node, but not during all sections of its
    /// parent.
    AddressSet all_along;
    AddressSet used;  ///< addresses of all rectangles stored at this node or below it
  };

  std::size_t section_of(std::int64_t time) const;
  /// Calls visit() for the rectangles that are live at a step of `rectangle` and start or end in its first or last
  /// section. Visits some of them twice.
  template <class Visit>
  void for_each_partial(const Rectangle& rectangle, const Visit& visit) const;
  bool meets(const Rectangle& rectangle, std::int64_t offset) const;

  /// Visits the tree nodes that concern a rectangle, children before parents. Calls above() for the leaves of the
  /// rectangle's first and last section and for all their ancestors. Calls between() for the highest nodes that
  /// together stand for all sections between the first and the last.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  /// First step of each section except the first section.
  std::vector<std::int64_t> starts_;
  std::size_t width_ = 1;    ///< number of leaves: the number of sections, rounded up to a power of two
  std::vector<Node> nodes_;  ///< nodes_[1] is the root; node i has the children 2i and 2i + 1
  std::vector<std::vector<Partial>> partial_;  ///< for each section, the rectangles that start or end in it
};

}  // namespace cairn::solvers::plan
