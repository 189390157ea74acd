#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/address_set.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Placed rectangles by time and address: a segment tree over sections of the time axis, with the addresses that are
/// used during some or all of every node's sections. A rectangle that lives as long as thousands of others is placed
/// without looking at them one by one. Times are any integers below 2^62, however sparse.
class Occupancy {
 public:
  /// `times`, ascending: first and last steps as they are to be expected; about `kSectionTimes` of them make a section.
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
    AddressSet all_along;  ///< used by rectangles that are kept here: those that live during all of its sections
    AddressSet used;       ///< by what is kept here or below
  };

  std::size_t section_of(std::int64_t time) const;
  /// Whether an inserted rectangle meets this one at this offset.
  bool meets(const Rectangle& rectangle, std::int64_t offset) const;

  /// Visits the nodes between the two sections whose parents are above one of them, and all above the two and
  /// themselves, in an order in which children come before parents.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  std::vector<std::int64_t> starts_;  ///< of the sections but the first, which starts before everything
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Partial>> partial_;  ///< of a section: what starts or ends in it
};

}  // namespace cairn::solvers::plan
