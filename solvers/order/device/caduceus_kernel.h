#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"
#include "cairn/core/machine/team.h"
#include "cairn/sim/device/canonical_batch.h"
#include "cairn/solvers/order/device/caduceus_batch.h"

/// Algorithms 5 and 6 of Jin et al. for many small caduceus graphs at once: one thread solves one graph, in memory that
/// it is given. The order is one array of segments, cut into blocks by the staff, each with the sums of what is in it.
/// A segment moves only to the next block, so that a move costs what is in these two blocks, and one look at each.
namespace cairn::solvers::device {

/// Hands out pieces of a stretch of memory; of none, it counts how many bytes they need.
class Carver {
 public:
  CAIRN_HD explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}
  template <class T>
  CAIRN_HD T* take(std::int64_t count) {
    static_assert(alignof(T) <= kAlignment);
    T* taken = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return taken;
  }
  CAIRN_HD std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 16;
  std::byte* memory_;
  std::int64_t bytes_ = 0;
};

/// Appends `next` to the `count` segments of a chain, so that they stay those of a profile (core::append_segment).
template <class T, class Absorb>
CAIRN_HD void append(T* chain, std::int32_t& count, T next, const Absorb& absorb) {
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

/// The most of everything that a graph has.
struct CaduceusSize {
  std::int32_t staff = 0, bends = 0, segments = 0;  ///< segments: with the staff's
};

/// A segment, and the stretch of another graph's ids that it stands for.
struct MirroredSegment : core::Segment {
  std::int32_t begin, end;
};

/// A caduceus graph. Ids count along the staff, then bend by bend; gap g is before staff segment g, the last gap behind
/// the last one.
template <class T>
struct CaduceusOf {
  struct Bend {
    std::int32_t first, last;  ///< gaps in which it may run
    std::int32_t begin, end;   ///< ids
  };
  T* segments;            ///< by id
  Bend* bends;            ///< in the order of their ids
  std::int32_t* bend_of;  ///< by id; -1 for the staff
  std::int32_t* ranked;   ///< ids of bend segments in sort order
  std::int32_t staff = 0, bend_count = 0, count = 0;

  CAIRN_HD CaduceusOf(Carver& carver, const CaduceusSize& size)
      : segments(carver.take<T>(size.segments)),
        bends(carver.take<Bend>(size.bends)),
        bend_of(carver.take<std::int32_t>(size.segments)),
        ranked(carver.take<std::int32_t>(size.segments)) {}

  CAIRN_HD void clear() { staff = bend_count = count = 0; }
  /// The whole staff comes before the first bend.
  CAIRN_HD void add_staff(const T& segment) {
    bend_of[count] = -1;
    segments[count++] = segment;
    ++staff;
  }
  /// A bend without segments, to which end_bend() adds what was written behind the last id.
  CAIRN_HD T* begin_bend() { return segments + count; }
  CAIRN_HD void end_bend(std::int32_t first, std::int32_t last, std::int32_t length) {
    for (std::int32_t i = 0; i < length; ++i) bend_of[count + i] = bend_count;
    bends[bend_count++] = {first, last, count, count + length};
    count += length;
  }
  /// Sorts the ids of the bends; O(s^2) for s segments, O(s) where they nearly are.
  CAIRN_HD void rank() {
    for (std::int32_t i = 0; i < count - staff; ++i) {
      const std::int32_t id = staff + i;
      std::int32_t at = i;
      for (; at > 0 && core::sorts_before(segments[id], segments[ranked[at - 1]]); --at) ranked[at] = ranked[at - 1];
      ranked[at] = id;
    }
  }
};
using Caduceus = CaduceusOf<core::Segment>;
using MirroredCaduceus = CaduceusOf<MirroredSegment>;

/// Solves graphs one after the other, in memory of bytes().
class CaduceusSolver {
 public:
  CAIRN_HD CaduceusSolver(Carver& carver, const CaduceusSize& size)
      : mirror_(carver, size),
        blocks_(carver.take<Block>(size.staff + 1)),
        change_(carver.take<std::int64_t>(size.staff + 2)),
        rank_(carver.take<std::int32_t>(size.segments)),
        gap_(carver.take<std::int32_t>(size.segments)),
        sequence_(carver.take<std::int32_t>(size.segments)),
        order_(carver.take<std::int32_t>(size.segments)),
        result_(carver.take<std::int32_t>(size.segments)),
        at_(carver.take<std::int32_t>(size.bends)),
        cut_(carver.take<std::int32_t>(size.bends)) {}

  /// Algorithm 6: O(s p) moves for s segments of bends and p of the staff, each O(p) and what is in two gaps.
  CAIRN_HD std::int64_t least_peak(const Caduceus& graph) {
    start(graph);
    return optimal(graph);
  }
  /// Corollary 7.9: dominant_order() becomes one that dominates all others. O(s) times Algorithm 6 at most.
  CAIRN_HD void dominant(const Caduceus& graph) {
    start(graph);
    least_cut(graph);
    const std::int32_t cut_staff = staff_at_;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) cut_[b] = at_[b];

    // Backwards from the lowest cut to the beginning, and then from there to the end.
    mirror(graph);
    result_count_ = 0;
    start(mirror_);
    find_schedule(mirror_);
    std::int32_t places = 0;
    for (std::int32_t i = 0; i < result_count_; ++i) {
      const MirroredSegment& segment = mirror_.segments[result_[i]];
      for (std::int32_t id = segment.end; id-- > segment.begin;) order_[places++] = id;
    }
    for (std::int32_t i = 0; i < places; ++i) result_[i] = order_[places - 1 - i];
    result_count_ = places;

    rank(graph);
    staff_at_ = cut_staff;
    for (std::int32_t b = 0; b < graph.bend_count; ++b) at_[b] = cut_[b];
    find_schedule(graph);
  }
  CAIRN_HD const std::int32_t* optimal_order() const { return order_; }    ///< all ids, after least_peak()
  CAIRN_HD const std::int32_t* dominant_order() const { return result_; }  ///< all ids, after dominant()

 private:
  /// A gap's segments in sort order, and the staff segment behind it.
  struct Block {
    std::int64_t change, peak;
    std::int32_t begin;  ///< in sequence_
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

  /// What lies beyond the cut, every segment where it does least harm: as early as may be where it frees memory, as
  /// late where it takes some.
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

  /// The peak, and the segment at the first of the highest places.
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

  /// To the next gap: later or earlier.
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
  /// Does `other`, in a gap where `id` comes, stand before it? Staff segments have no rank and stand last.
  CAIRN_HD bool precedes(std::int32_t other, std::int32_t id) const {
    return other >= staff_ && rank_[other] < rank_[id];
  }

  /// Moves a segment that is too high, and those of its bend that must go along, to the next gap: later where it frees
  /// memory, earlier where it takes some. False where that cannot be.
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
      // The others of its sign go along; one of the other sign stands in the way.
      if (graph.segments[last].negative() != negative) return false;
    }
    for (std::int32_t other = id; other != last; other += step) move(other, negative);
    sum_up(graph, gap);
    sum_up(graph, next);
    return true;
  }

  /// Algorithm 6 on what lies beyond the cut: the least peak above it; order_ becomes an order that has it.
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

  /// Moves the cut on to one of least memory, the last of several staffs. At each staff position a bend stands at its
  /// lowest valley, or where the cut has it already, or at its end if it must be done.
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
  /// Where the segments beyond the cut that free memory end, and what they do to it.
  template <class Graph>
  CAIRN_HD std::int32_t lowest_valley(const Graph& graph, std::int32_t bend, std::int64_t& bytes) const {
    std::int32_t id = at_[bend];
    for (; id < graph.bends[bend].end && graph.segments[id].negative(); ++id) bytes += graph.segments[id].change();
    return id;
  }

  /// Algorithm 1: appends to result_ what lies beyond the cut, below which no other cut has less memory.
  template <class Graph>
  CAIRN_HD void find_schedule(const Graph& graph) {
    for (;;) {
      const std::int64_t peak = optimal(graph);
      if (peak == 0) {  // nothing but zeros
        for (std::int32_t i = 0; i < places_; ++i) result_[result_count_++] = order_[i];
        return;
      }
      std::int64_t bytes = 0;
      for (std::int32_t i = 0; i < places_; ++i) {
        const std::int32_t id = order_[i];
        (graph.bend_of[id] < 0 ? staff_at_ : at_[graph.bend_of[id]]) = id + 1;
        if (bytes + graph.segments[id].rise == peak) break;
        bytes += graph.segments[id].change();
      }
      least_cut(graph);
      for (std::int32_t i = 0; i < places_; ++i) {
        const std::int32_t id = order_[i];
        const std::int32_t bend = graph.bend_of[id];
        if (id < (bend < 0 ? staff_at_ : at_[bend])) result_[result_count_++] = id;
      }
    }
  }

  /// mirror_ becomes what lies before the cut, read backwards with all weights negated: what rose, drops.
  CAIRN_HD void mirror(const Caduceus& graph) {
    const auto reversed = [&](std::int32_t id) {
      return MirroredSegment{{graph.segments[id].drop, graph.segments[id].rise}, id, id + 1};
    };
    mirror_.clear();
    for (std::int32_t id = staff_at_; id-- > 0;) mirror_.add_staff(reversed(id));
    for (std::int32_t b = 0; b < graph.bend_count; ++b) {
      const auto& bend = graph.bends[b];
      // Backwards a segment of no change stands on the other side of the lowest valley, and may belong to the next one.
      MirroredSegment* chain = mirror_.begin_bend();
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

  static constexpr std::int64_t kNothing = -(std::int64_t{1} << 61);  ///< below any peak

  MirroredCaduceus mirror_;
  Block* blocks_;
  std::int64_t* change_;  ///< of memory at a staff position against the one before
  std::int32_t* rank_;    ///< by id
  std::int32_t* gap_;     ///< by id
  std::int32_t *sequence_, *order_, *result_;
  std::int32_t* at_;  ///< of each bend: how far the cut has got
  std::int32_t* cut_;
  std::int32_t staff_at_ = 0;  ///< how far it has got on the staff
  std::int32_t staff_ = 0, places_ = 0, result_count_ = 0;
};

/// One answer of a batch after the other, by as many teams as there is memory for.
struct SolveCaduceus {
  static constexpr int kThreads = 1;

  const core::Segment* segments;
  const CaduceusBatch::Bend* bends;
  const CaduceusBatch::Graph* graphs;
  CaduceusSize size;
  bool dominant;
  std::byte* workspace;
  std::int64_t stride, teams, count;
  std::int64_t* peaks;
  std::int32_t* orders;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t index) const {
    Carver carver(workspace + index * stride);
    Caduceus graph(carver, size);
    CaduceusSolver solver(carver, size);
    for (std::int64_t i = index; i < count; i += teams) {
      build(graphs[i], graph);
      std::int64_t peak = 0;
      const std::int32_t* order = nullptr;
      if (dominant) {
        solver.dominant(graph);
        order = solver.dominant_order();
        std::int64_t bytes = 0;
        for (std::int32_t k = 0; k < graph.count; ++k) {
          const core::Segment& segment = graph.segments[order[k]];
          peak = peak > bytes + segment.rise ? peak : bytes + segment.rise;
          bytes += segment.change();
        }
      } else {
        peak = solver.least_peak(graph);
        order = solver.optimal_order();
      }
      peaks[i] = peak;
      for (std::int32_t k = 0; k < graph.count; ++k) orders[graphs[i].segment + k] = order[k];
    }
  }

 private:
  CAIRN_HD void build(const CaduceusBatch::Graph& from, Caduceus& graph) const {
    graph.clear();
    const core::Segment* next = segments + from.segment;
    for (std::int32_t k = 0; k < from.staff; ++k) graph.add_staff(*next++);
    for (std::int32_t b = 0; b < from.bends; ++b) {
      const CaduceusBatch::Bend& bend = bends[from.bend + b];
      core::Segment* chain = graph.begin_bend();
      for (std::int32_t k = 0; k < bend.segments; ++k) chain[k] = *next++;
      graph.end_bend(bend.first, bend.last, bend.segments);
    }
    graph.rank();
  }
};

/// How many teams share `count` pieces of work if each needs memory of its own: as many as run at once; some more where
/// they are few, so that none is waited for.
template <class F, class Machine>
std::int64_t teams_for(const Machine& machine, std::int64_t count, std::int64_t bytes_of_team) {
  constexpr std::int64_t kFew = 512, kSpareBytes = 16 << 20;
  const std::int64_t fitting = machine.free_bytes() / 2 / std::max<std::int64_t>(1, bytes_of_team);
  const std::int64_t resident = std::min(machine.template resident_teams<F>(0), std::max<std::int64_t>(1, fitting));
  const std::int64_t spare = std::min(kFew, kSpareBytes / std::max<std::int64_t>(1, bytes_of_team));
  return std::min(count, std::max(resident, std::min(8 * resident, spare)));
}

/// solvers::solve_caduceus on any Machine.
template <class Machine>
CaduceusAnswers solve_caduceus(const CaduceusBatch& batch, CaduceusGoal goal, Machine& machine) {
  CaduceusAnswers answers;
  const auto count = static_cast<std::int64_t>(batch.graphs().size());
  if (count == 0) return answers;
  CaduceusSize size;
  for (const CaduceusBatch::Graph& graph : batch.graphs()) {
    size.staff = std::max(size.staff, graph.staff);
    size.bends = std::max(size.bends, graph.bends);
    size.segments = std::max(size.segments, graph.segments);
  }
  Carver carver;
  const Caduceus graph(carver, size);
  const CaduceusSolver solver(carver, size);

  const auto segments = sim::device::uploaded(machine, std::span(batch.segments()));
  const auto bends = sim::device::uploaded(machine, std::span(batch.bends()));
  const auto graphs = sim::device::uploaded(machine, std::span(batch.graphs()));
  const std::int64_t teams = teams_for<SolveCaduceus>(machine, count, carver.bytes());
  const auto workspace = machine.template array<std::byte>(teams * carver.bytes());
  const auto peaks = machine.template array<std::int64_t>(count);
  const auto orders = machine.template array<std::int32_t>(segments.size());
  machine.launch(SolveCaduceus{segments.data(), bends.data(), graphs.data(), size, goal == CaduceusGoal::dominant,
                               workspace.data(), carver.bytes(), teams, count, peaks.data(), orders.data()},
                 teams);
  answers.peaks.resize(static_cast<std::size_t>(count));
  answers.orders.resize(batch.segments().size());
  machine.download(peaks.data(), count, answers.peaks.data());
  machine.download(orders.data(), orders.size(), answers.orders.data());
  return answers;
}

}  // namespace cairn::solvers::device
