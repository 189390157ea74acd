#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/address_set.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// The placed rectangles by time and address, in a segment tree over sections of the time axis. Each node stores the
/// addresses that are used during some or all of its sections. A rectangle that lives as long as thousands of others is
/// placed without visiting them one by one. Times are any integers below 2^62, however sparse.
class Occupancy {
 public:
  /// Makes an empty set. `times`, ascending: the expected first and last steps; about `kSectionTimes` of them make a
  /// section.
  explicit Occupancy(const std::vector<std::int64_t>& times);

  void insert(const Rectangle& rectangle, std::int64_t offset);

  /// Finds the lowest multiple of `alignment` at which no rectangle meets an inserted one or a forbidden range; -1 if
  /// the highest rectangle then ends above `limit`. O((log sections) * (ranges passed) + times in a section).
  std::int64_t lowest_free(std::span<const Rectangle> rectangles, std::int64_t alignment,
                           const std::vector<core::AddressRange>& forbidden, std::int64_t limit) const;

  /// Whether no rectangle meets an inserted one or a forbidden range at this offset.
  bool is_free(std::span<const Rectangle> rectangles, std::int64_t offset,
               const std::vector<core::AddressRange>& forbidden) const;

  static constexpr std::size_t kSectionTimes = 48;

 private:
  struct Partial {
    std::int64_t first, last, lower, upper;
  };
  struct Node {
    /// Addresses used by rectangles stored at the node: those that live during all of its sections.
    AddressSet all_along;
    AddressSet used;  ///< addresses used by rectangles stored at the node or below it
  };

  std::size_t section_of(std::int64_t time) const;
  /// Whether an inserted rectangle meets this one at this offset.
  bool meets(const Rectangle& rectangle, std::int64_t offset) const;

  /// Visits the nodes between the two sections whose parents are above one of them, and the two sections' nodes with
  /// all their ancestors; children come before parents.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  /// First steps of all sections except the first section, which starts before everything.
  std::vector<std::int64_t> starts_;
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Partial>> partial_;  ///< rectangles that start or end in the section, by section
};

}  // namespace cairn::solvers::plan
