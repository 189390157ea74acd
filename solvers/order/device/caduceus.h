#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"
#include "cairn/solvers/order/device/dominant_schedule.h"

/// Runs Algorithms 5 and 6 of Jin et al. on caduceus graphs (Definition 7.4). Such a graph consists of a path, called
/// the staff, and of bends, which are paths that leave the staff and rejoin it. A bend is given by the segments of its
/// memory profile, because an optimal order runs each segment without interruption (Theorem 6.5). One thread solves one
/// graph, in memory that the caller provides.
///
/// A gap is a position on the staff at which segments of bends can run: before the first staff segment, between two
/// staff segments, or behind the last staff segment. The current order is one array of segments, divided into blocks. A
/// block consists of the bend segments that run in one gap and of the staff segment behind this gap. Each block stores
/// its change of memory and its peak. A bend segment moves only from one gap to a neighbouring gap. Such a move takes
/// time linear in the segments of the two gaps' blocks, plus O(1) for each other block.
///
/// The cut of a solver is the set of segments that have run: a prefix of the staff and a prefix of each bend. All other
/// segments are beyond the cut. An order dominates another one if the two memory profiles can be walked at such speeds
/// that the first is never above the second (core/dominance.h).
namespace cairn::solvers {

/// An array of one thread. The arrays of kLanes threads are interleaved: entry i of all these threads is in kLanes
/// consecutive entries of memory. On a GPU, threads of a warp that read entry i at once then share their accesses.
template <class T, int kLanes>
struct LaneArray {
  T* first = nullptr;

  CAIRN_HD T& operator[](std::int32_t i) const { return first[std::int64_t{i} * kLanes]; }
  CAIRN_HD LaneArray operator+(std::int32_t count) const { return {first + std::int64_t{count} * kLanes}; }
};

/// Places arrays one after another in the caller's memory, for thread `lane` of kLanes threads that share the memory.
/// Without memory, only counts the bytes needed for all of these threads.
template <int kLanes>
class LaneAllocator {
 public:
  CAIRN_HD explicit LaneAllocator(std::byte* memory = nullptr, std::int32_t lane = 0) : memory_(memory), lane_(lane) {}
  template <class T>
  CAIRN_HD LaneArray<T, kLanes> take(std::int64_t count) {
    static_assert(alignof(T) <= kAlignment);
    LaneArray<T, kLanes> taken;
    if (memory_ != nullptr) taken.first = reinterpret_cast<T*>(memory_ + bytes_) + lane_;
    const std::int64_t bytes = count * kLanes * static_cast<std::int64_t>(sizeof(T));
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return taken;
  }
  CAIRN_HD std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 16;
  std::byte* memory_;
  std::int32_t lane_;
  std::int64_t bytes_ = 0;
};

/// Appends the segment `next` to a chain of `count` segments, which must be the segments of a memory profile
/// (core::append_segment()). Merges segments for which core::belong_together() is true, so that the result again has
/// the form of a memory profile's segments. `Chain` is a pointer or a LaneArray.
template <class Chain, class T, class Absorb>
CAIRN_HD void append(const Chain& chain, std::int32_t& count, T next, const Absorb& absorb) {
  while (count > 0 && core::belong_together(chain[count - 1], next)) {
    T last = chain[--count];
    absorb(last, next);
    next = last;
  }
  chain[count++] = next;
}
CAIRN_HD inline void append(core::Segment* chain, std::int32_t& count, const core::Segment& next) {
  append(chain, count, next, [](core::Segment& a, const core::Segment& b) { a = core::joined(a, b); });
}

/// Holds upper bounds on the sizes of all graphs that a solver solves.
struct CaduceusSize {
  /// - staff: number of staff segments.
  /// - bends: number of bends.
  /// - segments: number of all segments, including those of the staff.
  std::int32_t staff = 0, bends = 0, segments = 0;
};

/// Stores a segment of a mirrored graph, i.e. of a part of a graph that is read backwards. It stands for a range of
/// segments of the original graph, given by their ids.
struct MirroredSegment : core::Segment {
  std::int32_t begin, end;
};

/// Stores a caduceus graph, given by segments. Ids number the segments, first the segments of the staff, then the
/// segments of one bend after another. Gap g is the gap before staff segment g. The last gap is behind the last staff
/// segment.
template <class T, int kLanes>
struct CaduceusOf {
  template <class Entry>
  using Array = LaneArray<Entry, kLanes>;
  struct Bend {
    std::int32_t first, last;  ///< first and last gap in which the bend's segments can run
    std::int32_t begin, end;   ///< range of the ids of the bend's segments
  };
  Array<T> segments;            ///< indexed by id
  Array<Bend> bends;            ///< in ascending order of ids
  Array<std::int32_t> bend_of;  ///< for each id, the number of the bend that contains the segment; -1: the staff
  Array<std::int32_t> ranked;   ///< ids of bend segments in sort order
  std::int32_t staff = 0, bend_count = 0, count = 0;

  CAIRN_HD CaduceusOf(LaneAllocator<kLanes>& allocator, const CaduceusSize& size)
      : segments(allocator.template take<T>(size.segments)),
        bends(allocator.template take<Bend>(size.bends)),
        bend_of(allocator.template take<std::int32_t>(size.segments)),
        ranked(allocator.template take<std::int32_t>(size.segments)) {}

  CAIRN_HD void clear() { staff = bend_count = count = 0; }
  /// Adds a staff segment. The whole staff must be added before the first bend.
  CAIRN_HD void add_staff(const T& segment) {
    bend_of[count] = -1;
    segments[count++] = segment;
    ++staff;
  }
  /// Returns the array to which the caller writes the next bend's segments before it calls end_bend().
  CAIRN_HD Array<T> begin_bend() { return segments + count; }
  /// Adds the bend of `length` segments that were written to begin_bend(). `first` is the first gap in which its
  /// segments can run, and `last` is the last such gap.
  CAIRN_HD void end_bend(std::int32_t first, std::int32_t last, std::int32_t length) {
    for (std::int32_t i = 0; i < length; ++i) bend_of[count + i] = bend_count;
    bends[bend_count++] = {first, last, count, count + length};
    count += length;
  }
  /// Sorts the ids of bend segments into `ranked`, equal segments by id. Uses Shell's sort with Knuth's increments,
  /// which takes about s^1.3 steps for s segments.
  CAIRN_HD void rank() {
    const std::int32_t length = count - staff;
    for (std::int32_t i = 0; i < length; ++i) ranked[i] = staff + i;
    std::int32_t gap = 1;
    while (gap < length / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
      for (std::int32_t i = gap; i < length; ++i) {
        const std::int32_t id = ranked[i];
        std::int32_t at = i;
        for (; at >= gap && ranks_before(id, ranked[at - gap]); at -= gap) ranked[at] = ranked[at - gap];
        ranked[at] = id;
      }
    }
  }

 private:
  CAIRN_HD bool ranks_before(std::int32_t a, std::int32_t b) const {
    if (core::sorts_before(segments[a], segments[b])) return true;
    return a < b && !core::sorts_before(segments[b], segments[a]);
  }
};
using SegmentCaduceus = CaduceusOf<core::Segment, 1>;

/// Solves caduceus graphs one after another, in memory that the allocator provides.
template <int kLanes>
class CaduceusSolverOf {
 public:
  using Whole = CaduceusOf<core::Segment, kLanes>;
  using Mirror = CaduceusOf<MirroredSegment, kLanes>;
  template <class T>
  using Array = LaneArray<T, kLanes>;

  CAIRN_HD CaduceusSolverOf(LaneAllocator<kLanes>& allocator, const CaduceusSize& size)
      : mirror_(allocator, size),
        blocks_(allocator.template take<Block>(size.staff + 1)),
        change_(allocator.template take<std::int64_t>(size.staff + 2)),
        rank_(allocator.template take<std::int32_t>(size.segments)),
        gap_(allocator.template take<std::int32_t>(size.segments)),
        sequence_(allocator.template take<std::int32_t>(size.segments)),
        order_(allocator.template take<std::int32_t>(size.segments)),
        result_(allocator.template take<std::int32_t>(size.segments)),
        at_(allocator.template take<std::int32_t>(size.bends)),
        cut_(allocator.template take<std::int32_t>(size.bends)) {}

  /// Finds an order of least peak by Algorithm 6 and returns this peak. Makes O(s p) moves if the bends have s segments
  /// and the staff has p segments. A move takes a bend segment from its gap to a neighbouring gap. A move takes O(p +
  /// q) time if q bend segments are in these two gaps.
  CAIRN_HD std::int64_t least_peak(const Whole& graph) {
    start(graph);
    return optimal(graph);
  }
  /// Computes an order that dominates all other orders (Corollary 7.9); dominant_order() returns it. Runs Algorithm 6
  /// at most O(s) times if the bends have s segments. Minimum cuts of a caduceus need no flow; see least_cut().
  CAIRN_HD void dominant(const Whole& graph) {
    start(graph);
    result_count_ = 0;
    Cuts<Whole> cuts{*this, graph};
    find_schedule_general(cuts);
  }
  /// Returns all ids in an order of least peak, after least_peak().
  CAIRN_HD Array<std::int32_t> optimal_order() const { return order_; }
  /// Returns all ids in a dominant order, after dominant().
  CAIRN_HD Array<std::int32_t> dominant_order() const { return result_; }

 private:
  /// Describes the bend segments that run in one gap, in the order of `ranked`, followed by the staff segment behind
  /// the gap. `begin` and `end` are the range of these segments in sequence_. `change` and `peak` are in bytes, counted
  /// from the memory before the block.
  struct Block {
    std::int64_t change, peak;
    std::int32_t begin;
    std::int32_t end;
  };

  template <class Graph>
  CAIRN_HD void start(const Graph& graph) {
    rank(graph);
    staff_at_ = 0;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) at_[b] = graph.bends[b].begin;
  }
  template <class Graph>
  CAIRN_HD void rank(const Graph& graph) {
    for (std::int32_t r = 0; r < graph.count - graph.staff; ++r) rank_[graph.ranked[r]] = r;
  }
  template <class Graph>
  CAIRN_HD std::int32_t low(const Graph& graph, std::int32_t bend) const {
    return graph.bends[bend].first > staff_at_ ? graph.bends[bend].first : staff_at_;
  }

  /// Makes the first order: puts each bend segment beyond the cut into one of the gaps in which it can run. A segment
  /// that lowers memory goes to the earliest of these gaps, any other segment to the latest. At these gaps, a segment
  /// adds least to the memory during other segments.
  template <class Graph>
  CAIRN_HD void lay_out(const Graph& graph) {
    const std::int32_t segments = graph.count - graph.staff;
    for (std::int32_t g = staff_at_; g <= graph.staff; ++g) blocks_[g].end = g < graph.staff ? 1 : 0;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) {
      for (std::int32_t id = at_[b]; id < graph.bends[b].end; ++id) {
        gap_[id] = graph.segments[id].negative() ? low(graph, b) : graph.bends[b].last;
        ++blocks_[gap_[id]].end;
      }
    }
    std::int32_t places = 0;
    for (std::int32_t g = staff_at_; g <= graph.staff; ++g) {
      blocks_[g].begin = places;
      places += blocks_[g].end;
      blocks_[g].end = blocks_[g].begin;
    }
    for (std::int32_t r = 0; r < segments; ++r) {
      const std::int32_t id = graph.ranked[r];
      if (id >= at_[graph.bend_of[id]]) sequence_[blocks_[gap_[id]].end++] = id;
    }
    for (std::int32_t g = staff_at_; g <= graph.staff; ++g) {
      if (g < graph.staff) sequence_[blocks_[g].end++] = g;
      sum_up(graph, g);
    }
    places_ = places;
  }

  template <class Graph>
  CAIRN_HD void sum_up(const Graph& graph, std::int32_t gap) {
    Block& block = blocks_[gap];
    std::int64_t bytes = 0, peak = kNothing;
    for (std::int32_t i = block.begin; i < block.end; ++i) {
      const core::Segment& segment = graph.segments[sequence_[i]];
      peak = peak > bytes + segment.rise ? peak : bytes + segment.rise;
      bytes += segment.change();
    }
    block.change = bytes;
    block.peak = peak;
  }

  /// Returns the peak of the current order. Sets `id` to the first segment that reaches the peak.
  template <class Graph>
  CAIRN_HD std::int64_t highest(const Graph& graph, std::int32_t& id) const {
    std::int64_t bytes = 0, peak = kNothing, before = 0;
    std::int32_t gap = staff_at_;
    for (std::int32_t g = staff_at_; g <= graph.staff; ++g) {
      if (bytes + blocks_[g].peak > peak) {
        peak = bytes + blocks_[g].peak;
        gap = g;
        before = bytes;
      }
      bytes += blocks_[g].change;
    }
    for (std::int32_t i = blocks_[gap].begin; i < blocks_[gap].end; ++i) {
      id = sequence_[i];
      if (before + graph.segments[id].rise == peak) break;
      before += graph.segments[id].change();
    }
    return peak;
  }

  CAIRN_HD void move(std::int32_t id, bool later) {
    Block& block = blocks_[gap_[id]];
    std::int32_t at = block.begin;
    while (sequence_[at] != id) ++at;
    if (later) {
      Block& next = blocks_[++gap_[id]];
      for (; at + 1 < block.end; ++at) sequence_[at] = sequence_[at + 1];
      --block.end;
      --next.begin;
      for (; at + 1 < next.end && precedes(sequence_[at + 1], id); ++at) sequence_[at] = sequence_[at + 1];
    } else {
      Block& next = blocks_[--gap_[id]];
      for (; at > block.begin; --at) sequence_[at] = sequence_[at - 1];
      ++block.begin;
      ++next.end;
      for (; at > next.begin && !precedes(sequence_[at - 1], id); --at) sequence_[at] = sequence_[at - 1];
    }
    sequence_[at] = id;
  }
  /// Returns whether the segment `other` comes before the segment `id` in a gap. Staff segments have no rank and come
  /// last.
  CAIRN_HD bool precedes(std::int32_t other, std::int32_t id) const {
    return other >= staff_ && rank_[other] < rank_[id];
  }

  /// Moves a bend segment whose peak is too high: to the next later gap if the segment lowers memory, otherwise to the
  /// next earlier gap. Segments of the same bend must keep their order. So if the segment would pass segments of its
  /// bend in the same gap, these move, too. Returns false if the move is impossible.
  template <class Graph>
  CAIRN_HD bool give_way(const Graph& graph, std::int32_t id) {
    const std::int32_t bend = graph.bend_of[id];
    if (bend < 0) return false;
    const bool negative = graph.segments[id].negative();
    const std::int32_t step = negative ? 1 : -1, gap = gap_[id], next = gap + step;
    if (next < low(graph, bend) || next > graph.bends[bend].last) return false;
    const std::int32_t begin = at_[bend], end = graph.bends[bend].end;
    std::int32_t last = id;
    for (; last >= begin && last < end && gap_[last] == gap; last += step) {
      // The move is blocked by a segment in the way if only one of the two segments lowers memory.
      if (graph.segments[last].negative() != negative) return false;
    }
    for (std::int32_t other = id; other != last; other += step) move(other, negative);
    sum_up(graph, gap);
    sum_up(graph, next);
    return true;
  }

  /// Runs Algorithm 6 on the segments that have not run, i.e. those beyond the cut. Returns the least peak, counted
  /// from the memory at the cut. Sets order_ to an order with this peak.
  template <class Graph>
  CAIRN_HD std::int64_t optimal(const Graph& graph) {
    staff_ = graph.staff;
    lay_out(graph);
    if (places_ == 0) return 0;
    std::int32_t id = 0;
    std::int64_t peak = highest(graph, id);
    for (;;) {
      const std::int64_t threshold = peak;
      for (std::int32_t i = 0; i < places_; ++i) order_[i] = sequence_[i];
      do {
        if (!give_way(graph, id)) return threshold;
        peak = highest(graph, id);
      } while (peak >= threshold);
    }
  }

  /// Extends the cut to a cut of least memory; among cuts of equal memory, to the one farthest along the staff. Tries
  /// every position on the staff. At each position, the cut contains the segments of every bend up to the bend's lowest
  /// valley, i.e. the point at which the bend's segments have changed memory to the lowest value, with two exceptions.
  /// A bend that must not start yet stays where it is in the current cut. A bend whose last gap is already passed must
  /// be complete, so it is contained as a whole.
  template <class Graph>
  CAIRN_HD void least_cut(const Graph& graph) {
    for (std::int32_t g = staff_at_; g <= graph.staff; ++g) change_[g] = 0;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) {
      const auto& bend = graph.bends[b];
      std::int64_t bytes = 0, rest = 0;
      const std::int32_t lowest = lowest_valley(graph, b, bytes);
      for (std::int32_t id = lowest; id < bend.end; ++id) rest += graph.segments[id].change();
      change_[low(graph, b)] += bytes;
      if (bend.last < graph.staff) change_[bend.last + 1 > staff_at_ ? bend.last + 1 : staff_at_] += rest;
    }
    std::int32_t best = staff_at_;
    std::int64_t bytes = change_[best], least = bytes;
    for (std::int32_t staff = best + 1; staff <= graph.staff; ++staff) {
      bytes += graph.segments[staff - 1].change() + change_[staff];
      if (bytes > least) continue;
      least = bytes;
      best = staff;
    }
    staff_at_ = best;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) {
      std::int64_t unused = 0;
      if (best > graph.bends[b].last) {
        at_[b] = graph.bends[b].end;
      } else if (best >= graph.bends[b].first) {
        at_[b] = lowest_valley(graph, b, unused);
      }
    }
  }
  /// Visits the segments of a bend that directly follow the cut and lower memory, up to the first that does not.
  /// Returns the id after the last segment visited. Adds the change of memory of the segments visited to `bytes`.
  template <class Graph>
  CAIRN_HD std::int32_t lowest_valley(const Graph& graph, std::int32_t bend, std::int64_t& bytes) const {
    std::int32_t id = at_[bend];
    for (; id < graph.bends[bend].end && graph.segments[id].negative(); ++id) bytes += graph.segments[id].change();
    return id;
  }

  template <class Graph>
  struct Cuts {
    CaduceusSolverOf& solver;
    const Graph& graph;
    std::int64_t peak = 0;

    // The answer is always false, because find_schedule() ends when no segment has a peak above the memory at the cut.
    CAIRN_HD bool done() const { return false; }
    CAIRN_HD bool find_optimal() {
      peak = solver.optimal(graph);
      return true;
    }
    CAIRN_HD bool pass_peak() { return solver.pass(graph, peak); }
    CAIRN_HD void move_to_least_cut() { solver.least_cut(graph); }
    CAIRN_HD void append_found() {
      for (std::int32_t i = 0; i < solver.places_; ++i) solver.result_[solver.result_count_++] = solver.order_[i];
    }
    CAIRN_HD void append_passed() {
      for (std::int32_t i = 0; i < solver.places_; ++i) {
        const std::int32_t id = solver.order_[i], bend = graph.bend_of[id];
        if (id < (bend < 0 ? solver.staff_at_ : solver.at_[bend])) solver.result_[solver.result_count_++] = id;
      }
    }
    CAIRN_HD Cuts<Mirror> reversed() {
      solver.begin_mirror(graph);
      return {solver, solver.mirror_};
    }
    CAIRN_HD void append_reversed(const Cuts<Mirror>&) { solver.end_mirror(graph); }
  };

  /// Extends the cut up to and including the first segment of order_ that reaches `peak` bytes above the memory at the
  /// cut. If `peak` is 0, no segment exceeds the memory at the cut; returns false and leaves the cut unchanged.
  template <class Graph>
  CAIRN_HD bool pass(const Graph& graph, std::int64_t peak) {
    if (peak == 0) return false;
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < places_; ++i) {
      const std::int32_t id = order_[i];
      (graph.bend_of[id] < 0 ? staff_at_ : at_[graph.bend_of[id]]) = id + 1;
      if (bytes + graph.segments[id].rise == peak) break;
      bytes += graph.segments[id].change();
    }
    return true;
  }

  /// Saves the cut and begins to work on the mirror, which is the part before the cut, read backwards.
  CAIRN_HD void begin_mirror(const Whole& graph) {
    cut_staff_ = staff_at_;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) cut_[b] = at_[b];
    mirror(graph);
    start(mirror_);
  }
  CAIRN_HD void end_mirror(const Whole& graph) {
    std::int32_t places = 0;
    for (std::int32_t i = 0; i < result_count_; ++i) {
      const MirroredSegment& segment = mirror_.segments[result_[i]];
      for (std::int32_t id = segment.end; id-- > segment.begin;) order_[places++] = id;
    }
    for (std::int32_t i = 0; i < places; ++i) result_[i] = order_[places - 1 - i];
    result_count_ = places;
    rank(graph);
    staff_at_ = cut_staff_;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) at_[b] = cut_[b];
  }

  /// Sets mirror_ to the part before the cut, read backwards. All weights are negated, so that rises become drops.
  CAIRN_HD void mirror(const Whole& graph) {
    const auto reversed = [&](std::int32_t id) {
      return MirroredSegment{{graph.segments[id].drop, graph.segments[id].rise}, id, id + 1};
    };
    mirror_.clear();
    for (std::int32_t id = staff_at_; id-- > 0;) mirror_.add_staff(reversed(id));
    for (std::int32_t b = 0; b < graph.bend_count; ++b) {
      const auto& bend = graph.bends[b];
      // A segment that leaves memory unchanged lies before or after a point of least memory, depending on the direction
      // in which the bend is read. So when the bend is read backwards, such a segment and its successor can belong
      // together, and append() then merges these two.
      const Array<MirroredSegment> chain = mirror_.begin_bend();
      std::int32_t length = 0;
      for (std::int32_t id = at_[b]; id-- > bend.begin;) {
        append(chain, length, reversed(id), [](MirroredSegment& first, const MirroredSegment& second) {
          static_cast<core::Segment&>(first) = core::joined(first, second);
          first.begin = second.begin;
        });
      }
      if (length == 0) continue;
      mirror_.end_bend(staff_at_ - (bend.last < staff_at_ ? bend.last : staff_at_), staff_at_ - bend.first, length);
    }
    mirror_.rank();
  }

  static constexpr std::int64_t kNothing = -(std::int64_t{1} << 61);

  Mirror mirror_;
  Array<Block> blocks_;
  /// for each staff position, the change of memory in the bends when a cut moves from the position before it to this
  /// one
  Array<std::int64_t> change_;
  Array<std::int32_t> rank_;  ///< for each id of a bend segment, its position in `ranked`
  Array<std::int32_t> gap_;   ///< for each id of a bend segment, the gap in which the segment runs
  Array<std::int32_t> sequence_, order_, result_;
  Array<std::int32_t> at_;   ///< for each bend, the id of the first segment beyond the cut
  Array<std::int32_t> cut_;  ///< copy of at_ for the cut at which the mirror begins
  std::int32_t cut_staff_ = 0;
  std::int32_t staff_at_ = 0;  ///< id of the first staff segment beyond the cut
  std::int32_t staff_ = 0, places_ = 0, result_count_ = 0;
};
using CaduceusSolver = CaduceusSolverOf<1>;

}  // namespace cairn::solvers
