#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/address_set.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Placed rectangles by time and address: a segment tree over sections of the time axis. Each node stores the addresses
/// that are used during some or all of its sections. A rectangle that lives as long as thousands of others is placed
/// without visiting them one by one. Times are any integers below 2^62, however sparse.
class Occupancy {
 public:
  /// `times`, ascending: the expected first and last steps; about `kSectionTimes` of them make a section.
  explicit Occupancy(const std::vector<std::int64_t>& times);

  void insert(const Rectangle& rectangle, std::int64_t offset);

  /// The lowest multiple of `alignment` at which no rectangle meets an inserted one or a forbidden range; -1 if the
  /// largest then ends above `limit`. O((log sections) * (ranges passed) + times in a section).
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
    AddressSet all_along;  ///< used by rectangles stored here: those that live during all of the node's sections
    AddressSet used;       ///< used by rectangles stored here or below
  };

  std::size_t section_of(std::int64_t time) const;
  /// Whether an inserted rectangle meets this one at this offset.
  bool meets(const Rectangle& rectangle, std::int64_t offset) const;

  /// Visits the nodes between the two sections whose parents are above one of them, and the two sections' nodes with
  /// all their ancestors; children come before parents.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  std::vector<std::int64_t> starts_;  ///< of all sections except the first, which starts before everything
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Partial>> partial_;  ///< by section: rectangles that start or end in it
};

}  // namespace cairn::solvers::plan
