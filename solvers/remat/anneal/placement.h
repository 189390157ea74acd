#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers {

/// Addresses of all values of an EditableSchedule in an arena of fixed height. The addresses are maintained while the
/// schedule is edited, for searches that change order, recomputation and addresses together. Two values are in conflict
/// if they are live at the same time and share bytes. If there is no conflict, the offsets are a plan. Values are
/// indexed by address. So if a lifetime changes, only the values at nearby addresses are visited.
///
/// A move is a sequence of calls:
/// - inserted(), dropping() and relocate() record the edits.
/// - settle() updates lifetimes and conflicts; repair() may then reduce conflicts.
/// - The caller reads the conflicts.
/// - commit() keeps the move. Alternatively, the caller undoes the edits of the schedule and calls undo(), which undoes
/// the move.
class Placement {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  /// A rectangle of steps and bytes, for an output of an occurrence or for its scratch. The rectangles of one
  /// occurrence have consecutive numbers, which they keep while the occurrence is dropped.
  using Rect = std::int32_t;
  static constexpr Rect kNoRect = -1;

  /// Returns whether the graph can be placed. It cannot be placed if a node takes over another value's storage, because
  /// such a value has no address of its own.
  static bool takes(const core::Graph& graph);

  /// Makes an arena of `capacity` bytes. No single value may be larger than the arena. A number that divides all sizes,
  /// the capacity and all given offsets also divides all later offsets. The graph must outlive the object.
  Placement(const core::Graph& graph, std::int64_t capacity, std::uint64_t seed);

  /// Restarts with a schedule. For each step, `offsets` contains the offsets of its outputs of more than 0 bytes,
  /// followed by the offset of its scratch, if any. Values that would exceed the capacity are moved down. O(T * values
  /// at nearby addresses) for T steps.
  void assign(const core::EditableSchedule& schedule, std::span<const std::int64_t> offsets);
  /// Returns the current offsets, in the order of assign(). O(T) for T steps.
  std::vector<std::int64_t> offsets(const core::EditableSchedule& schedule) const;

  /// Records that occurrence o was inserted. If `like` is an occurrence of the same node, o takes over the offsets of
  /// `like`, which the caller must drop afterwards. If `like` is kNone, settle() looks for free offsets.
  void inserted(const core::EditableSchedule& schedule, Occurrence o, Occurrence like);
  /// Records that occurrence o is about to be dropped.
  void dropping(const core::EditableSchedule& schedule, Occurrence o);
  /// Moves a rectangle to another offset where it has room, or next to another value. O(values).
  void relocate(Rect r);
  /// Updates lifetimes and conflicts after the recorded edits.
  void settle(const core::EditableSchedule& schedule);
  /// Moves changed values, and values in conflict with them, to other offsets, one at a time. Stops after `tries`
  /// attempts, or when there are no more conflicts than before the move. Requires settle() first.
  void repair(int tries);
  void commit();
  void undo(const core::EditableSchedule& schedule);

  /// Moves every value down until it touches a value that is live at the same time, or the bottom. With `from_top`,
  /// moves every value up in the same way. There must be no conflicts. The result is kept only if it fits into the
  /// arena. Returns whether it fits. O(values^2) with a small constant.
  bool straighten(bool from_top);
  /// Returns the work of straighten() in both directions, in the unit of work().
  std::int64_t straightening() const {
    const auto values = static_cast<std::int64_t>(owner_.size());
    return values * values / 16 + 1;
  }

  std::int64_t conflicts() const { return conflicts_; }
  /// Returns the sum, over all conflicts, of shared bytes times shared steps. The number of steps is approximate.
  double overlap() const { return overlap_ / spacing_; }
  /// Returns the work so far, in units of about 16 visited values.
  std::int64_t work() const { return work_; }
  /// Returns whether settle() needed a key between two neighbouring occurrences but no key was unused there (see Key).
  /// If so, the caller must undo the move.
  bool crowded() const { return crowded_; }

  /// Picks a random value that is in a conflict. Returns kNoRect if a few attempts found no such value.
  Rect conflicting();
  /// Picks a random value that is in conflict with r. Returns kNoRect if there is no such value.
  Rect partner(Rect r);
  Occurrence occurrence(Rect r) const { return owner_[r]; }
  /// Returns the occurrence at which the conflict of two values begins.
  Occurrence meeting(Rect a, Rect b) const { return owner_[at(a).first >= at(b).first ? a : b]; }

 private:
  /// Number that stands for the time of an occurrence. Keys ascend along the schedule, with gaps for later insertions.
  using Key = std::int32_t;
  static constexpr Key kNoKey = -1, kLastKey = Key{1} << 30;
  /// A rectangle of the times [first, last), given as keys, and the bytes [bottom, top). It is empty if first == last.
  struct Place {
    Key first = 0, last = 0;
    std::int64_t bottom = 0, top = 0;

    bool empty() const { return first == last; }
    bool meets(const Place& other) const {
      return first < other.last && other.first < last && bottom < other.top && other.bottom < top;
    }
  };
  struct Item {
    Place place;
    Rect rect;
  };
  /// A range of addresses of the arena. Its items are those whose bottom is in this range.
  struct Shelf {
    std::vector<Item> items;
    std::int64_t reach = 0;  ///< an upper bound of the highest top of the items
  };
  struct Slot {
    std::int32_t shelf = -1, index = 0;
  };
  struct Sum {
    double overlap = 0;
    std::int64_t conflicts = 0;
  };
  struct Change {
    Rect rect;
    Place before;
  };

  std::int32_t rect_count(core::NodeId v) const;
  std::int64_t size(core::NodeId v, std::int32_t k) const;
  void add_rects(const core::EditableSchedule& schedule, Occurrence o);
  Place life(const core::EditableSchedule& schedule, Occurrence o, std::int32_t k) const;
  Place at(Rect r) const;
  void put(Rect r, const Place& p);
  void take(Rect r);
  void change(Rect r, const Place& p);
  template <class Visit>
  void for_each_conflict(const Place& p, Rect but, const Visit& visit) const;
  Sum sum(const Place& p, Rect but) const;
  std::int64_t room_for(Rect r, const Place& p);

  void touch(Occurrence o);
  void touch_read(const core::EditableSchedule& schedule, Occurrence o);
  void give_keys(const core::EditableSchedule& schedule);
  void lay_out_keys(const core::EditableSchedule& schedule);
  void count();
  void pool(Rect r);
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.uniform() * static_cast<double>(n)); }

  const core::Graph& graph_;
  const std::int64_t capacity_;
  core::Random random_;
  double spacing_ = 1;  ///< mean distance between the keys of neighbouring occurrences
  std::vector<Shelf> shelves_;
  std::int64_t unit_ = 0;  ///< greatest common divisor of all sizes, in bytes
  /// Bytes of a shelf. This is a multiple of unit_, so that offsets stay multiples of an alignment.
  std::int64_t shelf_bytes_ = 1;
  // Indexed by rectangle.
  std::vector<Occurrence> owner_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> pooled_;
  // Indexed by occurrence.
  std::vector<Key> keys_;  ///< ascending along the schedule
  std::vector<Rect> first_rect_;
  std::vector<std::uint8_t> touched_;

  mutable std::int64_t work_ = 0;
  /// Sum, over all conflicts, of shared keys times shared bytes.
  /// - overlap_: the current sum.
  /// - overlap_before_: the sum before the move.
  double overlap_ = 0, overlap_before_ = 0;
  std::int64_t conflicts_ = 0, conflicts_before_ = 0;
  /// Contains every value that came into a conflict after the last count(). It can also contain other values.
  std::vector<Rect> pool_;
  // State of the current move.
  std::vector<Occurrence> touched_list_;
  std::vector<std::pair<Occurrence, Occurrence>> likes_;
  std::vector<std::pair<Occurrence, Key>> key_changes_;
  std::vector<Change> changes_;
  bool crowded_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> around_;  ///< scratch memory
  std::vector<Item> line_;                                     ///< scratch memory
};

}  // namespace cairn::solvers
