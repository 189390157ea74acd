#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// Says how running a node with one output changes memory, in bytes. For a node of a Graph, `rise` is size + scratch,
/// `drop` is scratch, and `output` is size.
struct MemoryEffect {
  std::int64_t rise = 0;  ///< bytes added when the node starts, >= 0
  std::int64_t drop = 0;  ///< bytes subtracted when the node ends
  /// Bytes subtracted when the last reader of the output ends, or when the node ends if nothing reads the output. At
  /// least 0.
  std::int64_t output = 0;
  bool keep = false;  ///< whether the output of the last occurrence is never freed
};

/// A valid schedule that can be edited step by step and that always knows its lifetimes and its memory profile. It may
/// recompute nodes. Made for searches, which try an edit, look at the memory, and keep or undo the edit.
///
/// An *occurrence* is a node at a step; it produces all outputs of its node. Its number stays the same until it is
/// dropped, whatever else is edited. Its position is its *place*. Places ascend along the schedule, so that they can be
/// compared and used as ranges. Some places are empty, so that steps can be inserted. An edit may change the places of
/// other occurrences. After assign(), the place of a step is its index, and no place is empty until the first insertion
/// or removal. The memory at an empty place is the memory before the next step, which is never above the memory during
/// that step. So a maximum over places is a maximum over steps.
///
/// In the complexities below, "range" stands for sqrt(T). T is the largest number of steps that the schedule has had
/// since all occurrences last got new places. Edits and queries allocate only if they return vectors, or if the
/// schedule becomes longer than ever before. Not thread-safe, not even for reading, because maxima of memory are
/// computed when they are asked for.
class EditableSchedule {
 public:
  using Occurrence = std::int32_t;
  using Place = std::int32_t;
  static constexpr Occurrence kNone = -1;

  /// Creates an empty schedule of a graph, which assign() can fill. O(nodes + edges).
  explicit EditableSchedule(const Graph& graph);
  /// Creates an empty schedule of nodes that are not given as a Graph and that produce one value each. Node v reads the
  /// values of nodes inputs[input_begin[v]] to inputs[input_begin[v + 1] - 1].
  EditableSchedule(std::span<const MemoryEffect> effects, std::vector<std::int32_t> input_begin,
                   std::vector<NodeId> inputs);

  /// Replaces the schedule by `steps`, which must be valid. Afterwards, the first occurrence of node v has the number
  /// v. Takes O(nodes + edges + steps + inputs of all steps) time.
  void assign(std::span<const NodeId> steps);
  std::vector<NodeId> steps() const;  ///< returns the nodes of all steps in order; O(steps)
  std::int32_t length() const { return length_; }
  /// Returns a number above all occurrence numbers.
  Occurrence occurrence_limit() const { return static_cast<Occurrence>(steps_.size()); }

  // --- The steps in order. end() is an occurrence after the last step: for (o = first(); o != end(); o = next(o)).
  Occurrence first() const { return at_[occupied_from(0)]; }
  Occurrence end() const { return end_; }
  /// Returns the next step. O(1 + e / 64) if it skips e empty places.
  Occurrence next(Occurrence o) const { return at_[next_occupied(place(o))]; }
  /// Returns the previous step, or kNone before the first one. As fast as next().
  Occurrence previous(Occurrence o) const;
  Occurrence at(Place place) const { return at_[place]; }      ///< returns kNone if the place is empty
  Place place(Occurrence o) const { return steps_[o].place; }  ///< returns -1 if o has been dropped
  NodeId node(Occurrence o) const { return steps_[o].node; }

  // --- Reads. For each input of its node, a step reads the latest occurrence of the input's producer before the step.
  /// Returns the previous occurrence of the same node, or kNone. O(1).
  Occurrence previous_of_node(Occurrence o) const { return steps_[o].previous; }
  /// Returns the next occurrence of the same node, or kNone. O(1).
  Occurrence next_of_node(Occurrence o) const { return steps_[o].next; }
  /// Returns the occurrence of v that a step at `place` would read, or kNone. O(occurrences of v after `place`).
  Occurrence latest_before(NodeId v, Place place) const {
    Occurrence o = latest_[v];
    while (o != kNone && steps_[o].place >= place) o = steps_[o].previous;
    return o;
  }
  /// Returns the occurrence that o reads as the k-th input of its node. O(1).
  Occurrence source(Occurrence o, std::int32_t k) const { return reads_[steps_[o].reads + k].source; }
  /// Returns the first step that reads an output of o, or kNone. O(outputs).
  Occurrence first_reader(Occurrence o) const {
    const Step& step = steps_[o];
    return output_count(step.node) == 1 ? reader(slots_[step.slot].first_read) : first_reader(o, 0);
  }
  /// Returns the first step at or after the place `from` that reads an output of o, or kNone. O(outputs + readers of o
  /// before `from`).
  Occurrence first_reader(Occurrence o, Place from) const;
  /// Returns the next step after o that reads an output of source(o, k), or kNone. O(1), or O(readers of the source
  /// before that step) if the source has several outputs.
  Occurrence next_reader(Occurrence o, std::int32_t k) const {
    const Read& read = reads_[steps_[o].reads + k];
    return output_count(node(read.source)) == 1 ? reader(read.next) : first_reader(read.source, place(o) + 1);
  }
  /// Returns the steps that read an output of o, in order. O(r) for r readers, or O(r log r) if o has several outputs.
  std::vector<Occurrence> readers(Occurrence o) const;
  /// Returns whether is_one(reader) holds for every step that reads an output of o. O(readers).
  template <class Predicate>
  bool all_readers(Occurrence o, const Predicate& is_one) const {
    const Step& step = steps_[o];
    for (std::int32_t k = 0; k < output_count(step.node); ++k) {
      for (std::int32_t read = slots_[step.slot + k].first_read; read != kNone; read = reads_[read].next) {
        if (!is_one(reads_[read].reader)) return false;
      }
    }
    return true;
  }
  /// Returns the place where the lifetime of the k-th output of o ends. This is the place of the output's last reader,
  /// or of o if nothing reads the output. If the output is kept and o is the last occurrence of its node, it is the
  /// place of end(). O(1).
  Place last_use(Occurrence o, std::int32_t k) const {
    const Step& step = steps_[o];
    if (step.next == kNone && values_[nodes_[step.node].value_begin + k].keep) return place(end_);
    const std::int32_t read = slots_[step.slot + k].last_read;
    return read == kNone ? step.place : place(reader(read));
  }
  /// Returns the place where the longest lifetime of an output of o ends. O(outputs).
  Place last_use(Occurrence o) const {
    Place last = last_use(o, 0);
    for (std::int32_t k = 1; k < output_count(node(o)); ++k) last = std::max(last, last_use(o, k));
    return last;
  }
  /// Returns the bytes of the outputs of o that are in memory at `place`, which must be after the place of o.
  /// O(outputs).
  std::int64_t live_bytes(Occurrence o, Place place) const {
    std::int64_t bytes = 0;
    for (std::int32_t k = 0; k < output_count(node(o)); ++k) {
      if (last_use(o, k) >= place) bytes += values_[nodes_[node(o)].value_begin + k].bytes;
    }
    return bytes;
  }
  /// Returns whether a step reads o, or whether o is the last occurrence of a node that every schedule must contain.
  /// O(outputs).
  bool needed(Occurrence o) const {
    const Step& step = steps_[o];
    if (step.next == kNone && nodes_[step.node].required) return true;
    for (std::int32_t k = 0; k < output_count(step.node); ++k) {
      if (slots_[step.slot + k].first_read != kNone) return true;
    }
    return false;
  }

  // --- Memory, in bytes.
  std::int64_t during(Place place) const { return memory_[place] + lifted_[block(place)]; }
  /// Returns the bytes in memory before the step of o runs. For end(), these are the bytes in memory at the end.
  std::int64_t before(Occurrence o) const { return during(place(o)) - nodes_[steps_[o].node].rise; }
  /// Returns the highest during() of the closed range of places. For an empty range, returns half of the least int64,
  /// so that the caller can add a number to the result without overflow. O(range).
  std::int64_t max(Place first, Place last) const;
  /// Returns the highest during() of all steps; 0 for the empty schedule. O(range).
  std::int64_t peak() const { return length_ == 0 ? 0 : max(0, place(previous(end_))); }
  /// Returns the first step that reaches peak(); end() for the empty schedule. O(range).
  Occurrence peak_step() const;
  /// Sets the ceiling, which is the memory above which excess() counts. Also sets the charge that excess() adds for
  /// each step above the ceiling. O(1), but the next call of excess() takes O(steps) time.
  void set_ceiling(std::int64_t bytes, std::int64_t charge = 0);
  /// Returns the total excess of all steps whose memory is above the ceiling. The excess of such a step is the memory
  /// above the ceiling plus the charge. The unit is one byte. If the graph's sizes add up to more than a TiB, it is 2^s
  /// bytes, where s is excess_shift(). Takes time in proportion to the time of all edits since the last call.
  std::int64_t excess() const;
  /// Returns s such that the unit of excess() is 2^s bytes.
  int excess_shift() const { return excess_shift_; }
  /// Returns a step whose memory is above the ceiling, or kNone. Searches from the place `from` to the end first, then
  /// from the start. O(range).
  Occurrence step_above_ceiling(Place from) const;

  // --- Edits.
  /// Inserts another occurrence of v directly before `before` and returns it. Readers of the previous occurrence of v
  /// that come after the new occurrence read the new one from now on. Each input of v must occur earlier in the
  /// schedule. Amortised O(range + in-degree * range + occurrences and readers of v and its inputs).
  Occurrence insert(NodeId v, Occurrence before);
  /// Removes o. Its readers read the previous occurrence of its node from now on. This occurrence must exist if o has
  /// readers. O(range + in-degree * range + readers of o).
  void drop(Occurrence o);
  /// Drops o, then every occurrence that is no longer needed() because of that. Takes the time of drop() for each
  /// dropped occurrence.
  void drop_with_unneeded(Occurrence o);
  /// Removes all empty places, so that the place of every occurrence is its step. O(steps).
  void close_gaps() { lay_out(length_ + 1); }

  struct Range {
    Place first, last;
  };
  /// Returns the range of places to which o can move without changing which occurrences the steps read. O(in-degree).
  Range legal(Occurrence o) const;
  /// Computes the memory that would result if o moved to `to`, the place of another step in legal(o). Each of the steps
  /// in between moves by one step in the other direction. Must be called before moved_during() and move(). O(steps in
  /// between + in-degree).
  void evaluate_move(Occurrence o, Place to);
  /// Returns the value that during() would have after the evaluated move. Valid for places of steps from the old to the
  /// new place of o.
  std::int64_t moved_during(Place place) const { return moved_[place]; }
  /// Makes the evaluated move. Takes O(s + r) time, where s is the number of steps between the old and the new place,
  /// and r the number of times that these steps read an input of the moved step.
  void move();

 private:
  struct Node {
    std::int64_t rise, drop;
    std::int64_t output;  // bytes of all values of the node
    std::int32_t input_begin, value_begin;
    bool required;
  };
  struct Value {
    std::int64_t bytes;
    NodeId producer;
    bool keep;
  };
  struct Step {
    NodeId node;
    Place place = -1;
    std::int32_t reads;  // index in reads_ of its first input
    std::int32_t slot;   // index in slots_ of its first output
    // Previous and next occurrence of the same node. For a dropped occurrence, `next` is the next dropped occurrence of
    // the node.
    Occurrence previous = kNone, next = kNone;
  };
  /// One output of one step, with the first and last element of the list of its reads. Both are indices in reads_.
  struct Slot {
    std::int32_t first_read = kNone, last_read = kNone;
  };
  /// One input of one step. All reads of one output of `source` form a linked list, which is ordered by step.
  struct Read {
    Occurrence source, reader;
    std::int32_t output;  // index of the output among those of `source`
    std::int32_t previous, next;
  };
  /// A place between the old and the new place of a moved step. Because of the move, the step at this place either
  /// frees `bytes` bytes of an input or no longer frees them.
  struct Release {
    Place place;
    std::int64_t bytes;
  };

  std::size_t block(Place place) const { return static_cast<std::size_t>(place) >> block_bits_; }
  Occurrence reader(std::int32_t read) const { return read == kNone ? kNone : reads_[read].reader; }
  std::int32_t in_degree(NodeId v) const { return nodes_[v + 1].input_begin - nodes_[v].input_begin; }
  std::int32_t output_count(NodeId v) const { return nodes_[v + 1].value_begin - nodes_[v].value_begin; }
  Slot& slot_of(const Read& read) { return slots_[steps_[read.source].slot + read.output]; }
  Read read_of(ValueId x, Occurrence source, Occurrence reader) const {
    return {source, reader, x - nodes_[values_[x].producer].value_begin, kNone, kNone};
  }
  /// Returns the first place at or after `place` that is not empty.
  Place occupied_from(Place place) const;
  Place next_occupied(Place place) const { return at_[place + 1] != kNone ? place + 1 : occupied_from(place + 1); }
  std::int64_t before_place(Place place) const { return during(place) - nodes_[steps_[at_[place]].node].rise; }

  Occurrence add_occurrence(NodeId v);
  Place make_room(Occurrence before);
  void lay_out(std::int32_t places);
  void set_occupied(Place place, bool occupied);
  void add_memory(Place first, Place last, std::int64_t bytes);
  void change_life(Occurrence o, std::int32_t output, Place old_last_use);
  void note_last_uses(Occurrence o);
  void change_lives(Occurrence o);
  void finish_setup();
  void link_read(std::int32_t read, std::int32_t previous);
  void unlink_read(std::int32_t read);
  std::int32_t read_before(const Read& read, Place p, const Step& step, std::int32_t k) const;
  std::int64_t top(std::size_t block) const;
  void touch(std::size_t block) { touched_[block / 64] |= std::uint64_t{1} << (block & 63); }
  void touch(std::size_t first, std::size_t last);
  template <class Visit>
  void for_each_step(std::size_t block, const Visit& visit) const;
  std::int64_t find_excess(std::size_t block) const;

  // First come the nodes, then an entry for the end of the schedule (with rise 0). The last entry only marks where the
  // inputs and values of the entry before it end.
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  // Indexed by occurrence. First come the first occurrences of all nodes, then the end of the schedule, then further
  // occurrences.
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  std::vector<Read> reads_;
  // For each node, latest_ holds its last occurrence in the schedule, and free_ the head of the list of its dropped
  // occurrences.
  std::vector<Occurrence> latest_, free_;
  Occurrence end_;
  std::int32_t length_ = 0;

  // Indexed by place. The memory during a step is memory_ of its place plus lifted_ of the place's block.
  std::vector<Occurrence> at_;
  std::vector<std::int64_t> memory_, moved_;
  std::vector<std::uint64_t> occupied_;  // one bit per place, 64 per word
  // Per block of 2^block_bits_ places:
  int block_bits_ = 6;
  std::vector<std::int64_t> lifted_;
  mutable std::vector<std::int64_t> top_;  // maximum of memory_ in each block; valid unless marked as stale
  static constexpr std::uint8_t kTopStale = 1, kSumStale = 2, kStale = kTopStale | kSumStale;
  mutable std::vector<std::uint8_t> stale_;
  /// Number of the steps in a block, and the sum, minimum and maximum of their entries in memory_.
  struct StepSum {
    std::int64_t count = 0, bytes = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
  };
  mutable std::vector<StepSum> sums_;
  std::int64_t ceiling_ = std::numeric_limits<std::int64_t>::max(), charge_ = 0;
  int excess_shift_ = 0;             // excess is counted in units of 2^excess_shift_ bytes
  mutable std::int64_t excess_ = 0;  // sum over all blocks; changes in touched blocks are not yet included
  mutable std::vector<std::int64_t> block_excess_;
  mutable std::vector<std::uint64_t> touched_;  // one bit per block: whether its entry of block_excess_ may be outdated

  std::vector<Release> releases_;  // work space of evaluate_move()
  std::vector<Place> last_uses_;   // work space of note_last_uses()
  Occurrence moving_ = kNone;      // occurrence of the evaluated move
  Place moving_to_ = 0;
  std::vector<Occurrence> list_;  // work space of lay_out() and drop_with_unneeded()
};

}  // namespace cairn::core
