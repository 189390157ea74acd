#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/address_set.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// The placed rectangles by time and address, in a segment tree over sections of the time axis. Each tree node stores
/// the addresses used during some or all of its sections. So a rectangle that conflicts with thousands of others can be
/// placed without visiting these others. Times may be any integers below 2^62, with gaps of any length.
class Occupancy {
 public:
  /// Makes an empty set. `times` are the expected first and last steps, ascending. About `kSectionTimes` of them form a
  /// section.
  explicit Occupancy(const std::vector<std::int64_t>& times);

  void insert(const Rectangle& rectangle, std::int64_t offset);

  /// Finds the lowest multiple of `alignment` at which none of the rectangles overlaps an inserted rectangle or a
  /// forbidden range. Returns -1 if the highest rectangle would end above `limit`. For one rectangle, takes O(r log s +
  /// t) time for s sections, r occupied ranges that the search skips, and t points in time per section.
  std::int64_t lowest_free(std::span<const Rectangle> rectangles, std::int64_t alignment,
                           const std::vector<core::AddressRange>& forbidden, std::int64_t limit) const;

  /// Returns whether none of the rectangles overlaps an inserted rectangle or a forbidden range at this offset.
  bool is_free(std::span<const Rectangle> rectangles, std::int64_t offset,
               const std::vector<core::AddressRange>& forbidden) const;

  static constexpr std::size_t kSectionTimes = 48;

 private:
  struct Partial {
    std::int64_t first, last, lower, upper;
  };
  struct Node {
    /// Addresses used by rectangles that are stored at this node because they live during all of its sections.
    AddressSet all_along;
    AddressSet used;  ///< addresses used by rectangles stored at this node or below it
  };

  std::size_t section_of(std::int64_t time) const;
  /// Returns whether the rectangle at this offset overlaps an inserted rectangle.
  bool meets(const Rectangle& rectangle, std::int64_t offset) const;

  /// Visits the tree nodes of a rectangle, children before parents. Calls between() for the nodes that together cover
  /// the sections strictly between the rectangle's first and last section. Calls above() for the nodes of the first and
  /// the last section and all their ancestors.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  /// First steps of all sections but the first. The first section has no lower end.
  std::vector<std::int64_t> starts_;
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Partial>> partial_;  ///< for each section, the rectangles that start or end in it
};

}  // namespace cairn::solvers::plan
