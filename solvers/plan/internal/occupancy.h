#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
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

  /// `owner` is a block, of which all rectangles have one offset.
  void insert(const Rectangle& rectangle, std::int64_t offset, std::int32_t owner);
  /// What was inserted so.
  void erase(const Rectangle& rectangle, std::int64_t offset, std::int32_t owner);

  /// The lowest multiple of `alignment` at which no rectangle meets an inserted one or a forbidden range; -1 if the
  /// largest then ends above `limit`. O((log sections) * (ranges passed) + times in a section).
  std::int64_t lowest_free(std::span<const Rectangle> rectangles, std::int64_t alignment,
                           const std::vector<core::AddressRange>& forbidden, std::int64_t limit) const;

  /// Whether no rectangle meets an inserted one or a forbidden range at this offset.
  bool is_free(std::span<const Rectangle> rectangles, std::int64_t offset,
               const std::vector<core::AddressRange>& forbidden) const;

  /// Owners of what meets the addresses [lower, upper) while the rectangle lives, each once, ascending; none if the
  /// search meets more than `most`, some of them again.
  std::optional<std::vector<std::int32_t>> owners(const Rectangle& rectangle, std::int64_t lower, std::int64_t upper,
                                                  std::size_t most) const;

  std::int64_t height() const { return nodes_[1].used.end(); }
  /// Rectangles that start or end within the most crowded section; rebuild when it grows.
  std::size_t crowd() const { return crowd_; }

  static constexpr std::size_t kSectionTimes = 48;

 private:
  struct Item {
    std::int64_t lower, upper;
    std::int32_t owner;
  };
  struct Partial {
    std::int64_t first, last, lower, upper;
    std::int32_t owner;
  };
  struct Node {
    AddressSet all_along;     ///< used by rectangles that are kept here: those that live during all of its sections
    std::vector<Item> items;  ///< those, by address
    AddressSet used;          ///< by what is kept here or below
  };

  std::size_t section_of(std::int64_t time) const;
  /// Of the rectangles of a section and of all that is kept in the subtree.
  void refresh(std::size_t node, std::int64_t lower, std::int64_t upper);
  /// Owners of what is kept in a node, and of what is kept below it and meets the rectangle.
  void collect_here(std::size_t node, std::int64_t lower, std::int64_t upper, std::size_t most,
                    std::vector<std::int32_t>& found) const;
  void collect_below(std::size_t node, const Rectangle& rectangle, std::int64_t lower, std::int64_t upper,
                     std::size_t most, std::vector<std::int32_t>& found) const;

  /// Visits the nodes between the two sections whose parents are above one of them, and all above the two and
  /// themselves, in an order in which children come before parents.
  template <class Between, class Above>
  void climb(const Rectangle& rectangle, const Between& between, const Above& above) const;

  std::vector<std::int64_t> starts_;  ///< of the sections but the first, which starts before everything
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<Partial>> partial_;  ///< of a section: what starts or ends in it
  std::size_t crowd_ = 0;
};

}  // namespace cairn::solvers::plan
