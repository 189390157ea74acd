#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers {

/// Where every value of an EditableSchedule lies in an arena of fixed height, while the schedule is edited: for
/// searches over order, recomputation and addresses at once. Two values that are live at once and share bytes are a
/// *conflict*; without any, the offsets are a plan. Values are found by their addresses, so that a changed lifetime
/// costs a look at those that lie beside it, and little for the others.
///
/// A move is: note what is edited (inserted(), dropping(), relocate()), settle(), perhaps repair(), look at the
/// conflicts, and then commit() or, after the schedule's edits were taken back, undo().
class Placement {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  /// A rectangle of steps and bytes: an output, or the scratch, of an occurrence. Those of one occurrence are numbered
  /// in a row; they keep their numbers while it is dropped.
  using Rect = std::int32_t;
  static constexpr Rect kNoRect = -1;

  /// A value that takes over another's storage has no place of its own: graphs with such nodes are not taken.
  static bool takes(const core::Graph& graph);

  /// An arena of `capacity` bytes, which no single value exceeds; offsets are multiples of whatever sizes, capacity and
  /// the offsets that it is given are. The graph must outlive it.
  Placement(const core::Graph& graph, std::int64_t capacity, std::uint64_t seed);

  /// Begins anew with a schedule and, for each of its steps, the offsets of the outputs that have bytes and then of the
  /// scratch, if any. What lies above the capacity is moved down. O(T times what lies beside a value).
  void assign(const core::EditableSchedule& schedule, std::span<const std::int64_t> offsets);
  /// The same of what is there now. O(T).
  std::vector<std::int64_t> offsets(const core::EditableSchedule& schedule) const;

  /// After o was inserted; `like`: it takes the offsets of this occurrence of its node, which is then dropped; kNone:
  /// settle() looks for room.
  void inserted(const core::EditableSchedule& schedule, Occurrence o, Occurrence like);
  /// Before o is dropped.
  void dropping(const core::EditableSchedule& schedule, Occurrence o);
  /// Puts a value elsewhere: where there is room, or beside another one. O(values).
  void relocate(Rect r);
  /// Brings lifetimes and conflicts up to date.
  void settle(const core::EditableSchedule& schedule);
  /// After settle(): as long as there are more conflicts than before the move, and up to so many times, relocates one
  /// of those values, or what it is in conflict with.
  void repair(int tries);
  void commit();
  void undo(const core::EditableSchedule& schedule);

  /// Without conflicts: every value as low as those allow that lie below it now and are live at some time with it, or
  /// as high as those above. Whether that fits; then it is what is there. O(values^2), but fast.
  bool straighten(bool from_top);
  /// The work of both ways.
  std::int64_t straightening() const {
    const auto values = static_cast<std::int64_t>(owner_.size());
    return values * values / 16 + 1;
  }

  std::int64_t conflicts() const { return conflicts_; }
  /// Sum over conflicts of shared bytes times shared steps; of the latter about.
  double overlap() const { return overlap_ / spacing_; }
  /// What was looked at so far, in units of some 16 values.
  std::int64_t work() const { return work_; }
  /// A settled move between whose neighbours there was no room in time: it must be taken back.
  bool crowded() const { return crowded_; }

  /// One of the settled values that are in conflicts, at random; kNoRect: none was found at once.
  Rect conflicting();
  /// One that r is in conflict with, at random; kNoRect: none.
  Rect partner(Rect r);
  Occurrence occurrence(Rect r) const { return owner_[r]; }
  /// Of two in a conflict, the occurrence that begins it.
  Occurrence meeting(Rect a, Rect b) const { return owner_[at(a).first >= at(b).first ? a : b]; }

 private:
  using Key = std::int32_t;
  static constexpr Key kNoKey = -1, kLastKey = Key{1} << 30;
  /// During keys [first, last), at bytes [bottom, top). Empty: no keys.
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
  /// The items whose bottoms lie in one part of the arena.
  struct Shelf {
    std::vector<Item> items;
    std::int64_t reach = 0;  ///< no top is above it
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
  double spacing_ = 1;  ///< of keys, in the mean
  std::vector<Shelf> shelves_;
  std::int64_t unit_ = 0;         ///< what all sizes are multiples of, bytes
  std::int64_t shelf_bytes_ = 1;  ///< a multiple of it, so that offsets stay multiples of an alignment
  // By rectangle.
  std::vector<Occurrence> owner_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> pooled_;
  // By occurrence.
  std::vector<Key> keys_;  ///< ascend along the schedule
  std::vector<Rect> first_rect_;
  std::vector<std::uint8_t> touched_;

  mutable std::int64_t work_ = 0;
  double overlap_ = 0, overlap_before_ = 0;  ///< keys times bytes
  std::int64_t conflicts_ = 0, conflicts_before_ = 0;
  std::vector<Rect> pool_;  ///< every value in a conflict that was not there at the last count(), and others
  // Of the move that is under way.
  std::vector<Occurrence> touched_list_;
  std::vector<std::pair<Occurrence, Occurrence>> likes_;
  std::vector<std::pair<Occurrence, Key>> key_changes_;
  std::vector<Change> changes_;
  bool crowded_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> around_;  ///< work space
  std::vector<Item> line_;                                     ///< work space
};

}  // namespace cairn::solvers
