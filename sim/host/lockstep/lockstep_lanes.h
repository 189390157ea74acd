#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/sim/host/lockstep/draw_lanes.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/host/lockstep/moved_lane.h"
#include "cairn/sim/host/lockstep/narrow_amounts.h"
#include "cairn/sim/host/lockstep/vectors.h"

// One file per processor family (for example processors with AVX2) includes this header, after `#pragma GCC target`.
// The namespace has no name, because otherwise the linker could merge functions that were compiled for different
// families. Vectors are types of the compiler's vector extension, whose operators compile to the family's instructions.
namespace cairn::sim {
namespace {

using device::Outcome;
using device::TablesView;

/// Evaluates candidates in lanes (sim/host/lockstep/lockstep.h). Position is std::int16_t, or std::int32_t for
/// schedules that are too long for std::int16_t. Arrays about occurrences consist of planes: plane k has the entries of
/// the k-th occurrence of each node, where k counts from 0.
template <class Id, class Position, int kVectorBytes>
class LockstepOf final : public Lockstep<Id> {
 public:
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Position));

  LockstepOf(const TablesView<Id>& graph, std::int32_t longest)
      : graph_(graph),
        narrow_(graph),
        node_width_(rounded_up(graph.node_count)),
        width_(rounded_up(graph.value_count)),
        row_(longest + 64),
        plane_count_(longest > graph.node_count ? kPlanes : 1),
        reads_(graph.reader_begin[graph.value_count]) {
    for (std::int32_t v = 0; v < graph.node_count; ++v) has_scratch_ |= graph.in_bytes.scratch[v] != 0;
    const auto of_plane = static_cast<std::size_t>(width_), planes = static_cast<std::size_t>(plane_count_);
    positions_.resize(of_plane * kLanes * planes);
    last_.resize(of_plane * kLanes * planes);
    rows_.resize(of_plane * kGroup * planes);
    taken_.resize(row_);
    freed_.resize(row_);
    if (has_scratch_) extra_.resize(row_);
    if (plane_count_ == 1) return;
    counts_.resize(static_cast<std::size_t>(node_width_) * kLanes);
    most_.resize(of_plane);
    most_of_block_.resize(of_plane / kGroup);
    next_.resize(of_plane);
    slots_.resize(static_cast<std::size_t>(row_) * kLanes);
    if (!graph.single_output()) again_.resize(static_cast<std::size_t>(row_));
  }

  int lanes() const override { return kLanes; }

  bool knows(const Row<Id>& row) const override {
    constexpr std::int32_t kIds = kVectorBytes / static_cast<std::int32_t>(sizeof(Id));
    using Ids = typename VectorOf<Id, kIds>::Type;
    Ids highest{};
    std::int32_t i = 0;
    for (; i + kIds <= row.length; i += kIds) {
      Ids ids;
      std::memcpy(&ids, row.steps + i, sizeof ids);
      highest = ids > highest ? ids : highest;
    }
    fold(highest, [](Ids a, Ids b) { return a > b ? a : b; });
    std::uint32_t most = highest[0];
    for (; i < row.length; ++i) most = row.steps[i] > most ? row.steps[i] : most;
    return row.length == 0 || std::int64_t{most} < graph_.node_count;
  }

  void run_orders(const Row<Id>* rows, int count, Outcome* outcomes) override {
    for_valid_orders(rows, count, [&](int lane) {
      walk<false>(rows[lane], lane, outcomes[lane]);
      outcomes[lane].cost = graph_.cost_once;
    });
  }

  void run(const Row<Id>* rows, int count, Outcome* outcomes, bool* done) override {
    for_valid(rows, count, done, [&](int lane) {
      walk<true>(rows[lane], lane, outcomes[lane]);
      outcomes[lane].cost = cost_of(lane);
    });
  }

  void run_moved(const MovedRow<Id>* rows, int count, const MovesView& moves, MovedOutcome* outcomes,
                 bool* done) override {
    if (!moved_) {
      moved_ = std::make_unique<MovedLane<Id>>(graph_, moves);
      between_.resize(row_);
      before_.resize(row_);
    }
    Row<Id> plain[kLanes];
    for (int lane = 0; lane < count; ++lane) plain[lane] = {rows[lane].steps, rows[lane].length};
    bool evaluated[kLanes] = {}, known[kLanes];
    if (plane_count_ == 1) {
      for_valid_orders(plain, count,
                       [&](int lane) { evaluated[lane] = walk_moved<false>(rows[lane], lane, outcomes[lane]); });
    } else {
      for_valid(plain, count, known,
                [&](int lane) { evaluated[lane] = walk_moved<true>(rows[lane], lane, outcomes[lane]); });
    }
    for (int lane = 0; lane < count; ++lane) done[lane] = evaluated[lane];
  }

 private:
  /// Finds, in every candidate, the last reads: for each value, the step that reads it last. No candidate may
  /// recompute. Then calls evaluate(lane) for each valid candidate.
  template <class Evaluate>
  void for_valid_orders(const Row<Id>* rows, int count, const Evaluate& evaluate) {
    for (int lane = 0; lane < kLanes; lane += kGroup) {
      for (int i = 0; i < kGroup; ++i) place_order(row_of(rows, count, lane + i), plane_row(i, 0));
      to_lanes(lane, 0);
    }
    const Positions bad = last_reads<false>();
    for (int lane = 0; lane < count; ++lane) {
      if (bad[lane] == 0) evaluate(lane);
    }
  }

  /// Does the same as for_valid_orders() for candidates that may recompute. Sets done[lane] to whether every node of
  /// the lane's candidate occurs at most kMostOccurrences times.
  template <class Evaluate>
  void for_valid(const Row<Id>* rows, int count, bool* done, const Evaluate& evaluate) {
    planes_ = 1;
    for (int lane = 0; lane < kLanes; lane += kGroup) {
      for (int i = 0; i < kGroup; ++i) place_any(row_of(rows, count, lane + i), lane + i);
      find_most(lane, lane + kGroup);
      for (int plane = 0; plane < planes_; ++plane) to_lanes(lane, plane);
    }
    find_most(0, kLanes);
    const Positions bad = last_reads<true>();
    for (int lane = 0; lane < count; ++lane) {
      done[lane] = !too_many_[lane];
      if (!too_many_[lane] && bad[lane] == 0) evaluate(lane);
    }
    for (std::int32_t v = 0; v < graph_.node_count; ++v) {  // clears positions_ for the next run
      for (int plane = 1; plane < most_.data()[v]; ++plane) at(positions_, plane, v) = Positions{};
    }
  }

  static constexpr int kPlanes = Lockstep<Id>::kMostOccurrences;
  static constexpr int kGroup = kTransposed;  ///< number of lanes that are transposed at once, called a group
  /// A row of positions_ is fetched into the fast caches this many reads before it is needed. Between 24 and 600, the
  /// time is the same within the noise.
  static constexpr std::int32_t kAhead = 64;
  static constexpr Position kNever = std::numeric_limits<Position>::max();
  /// One entry per lane: the number of a node's step plus 1, or 0 if the node does not occur.
  using Positions = typename VectorOf<Position, kLanes>::Type;
  /// Index of the k-th occurrence (plane k) of a node in one candidate: `k * width_ + node`, where k counts from 0. The
  /// first output of the occurrence has the same index.
  using Slot = std::conditional_t<sizeof(Position) == 2, std::uint16_t, std::uint32_t>;
  /// Memory at successive steps of one candidate, in bytes or in units of several bytes.
  template <class Sum>
  using Steps = typename VectorOf<Sum, kVectorBytes / static_cast<int>(sizeof(Sum))>::Type;

  static std::int32_t rounded_up(std::int32_t count) { return (count + kGroup - 1) / kGroup * kGroup; }
  static const Row<Id>& row_of(const Row<Id>* rows, int count, int lane) { return rows[lane < count ? lane : 0]; }
  Positions& at(const Aligned<Position>& array, int plane, std::int32_t v) const {
    return *reinterpret_cast<Positions*>(array.data() + (static_cast<std::size_t>(plane) * width_ + v) * kLanes);
  }
  /// Returns the positions of occurrence number `plane` of every node, for one of the lanes of a group.
  Position* plane_row(int lane_of_group, int plane) const {
    return rows_.data() + (static_cast<std::size_t>(lane_of_group) * plane_count_ + plane) * width_;
  }

  /// Returns the last reads of one candidate: those of its values' first occurrences, followed by the other planes.
  Position* last_of(int lane) const {
    return last_.data() + static_cast<std::size_t>(lane) * plane_count_ * static_cast<std::size_t>(width_);
  }

  // The loops below use only local variables. Otherwise the compiler would have to assume that every store to an array
  // of bytes might change members of this object. Each loop is a function that is not inlined, because otherwise the
  // compiler runs out of registers.
#define CAIRN_APART __attribute__((noinline))

  CAIRN_APART void place_order(const Row<Id>& row, Position* __restrict positions) const {
    const Id* steps = row.steps;
    const std::int32_t length = row.length;
    std::memset(positions, 0, static_cast<std::size_t>(node_width_) * sizeof(Position));
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < length; ++i) positions[steps[i]] = static_cast<Position>(i + 1);
  }

  CAIRN_APART void place_any(const Row<Id>& row, int lane) {
    const Id* steps = row.steps;
    const std::int32_t length = row.length;
    const std::uint32_t nodes = static_cast<std::uint32_t>(node_width_);
    const std::uint32_t width = static_cast<std::uint32_t>(width_), end = kPlanes * width;
    Position* __restrict positions = plane_row(lane % kGroup, 0);
    std::memset(positions, 0, nodes * sizeof(Position));
    Slot* __restrict slots = slots_.data() + static_cast<std::size_t>(lane) * row_;
    Slot* __restrict next = next_.data();  // for each node, the slot of its next occurrence
    for (std::uint32_t v = 0; v < nodes; ++v) next[v] = static_cast<Slot>(v);
    bool too_many = false;
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < length; ++i) {
      const std::uint32_t v = steps[i], slot = next[v];
      if (slot >= end) {
        too_many = true;
        break;
      }
      next[v] = static_cast<Slot>(slot + width);
      slots[i] = static_cast<Slot>(slot);
      positions[slot] = static_cast<Position>(i + 1);
    }
    too_many_[lane] = too_many;
    std::uint8_t* __restrict counts = counts_.data() + static_cast<std::size_t>(lane) * nodes;
    for (std::uint32_t v = 0; v < nodes; ++v) counts[v] = static_cast<std::uint8_t>(planes_below(next[v] - v));
  }
  /// Returns slots / width_, i.e. the number of planes that `slots` slots fill. `slots` must be a multiple of width_.
  std::uint32_t planes_below(std::uint32_t slots) const {
    if constexpr (sizeof(Slot) == 4) return slots / static_cast<std::uint32_t>(width_);
    return slots * per_width_ >> 16;
  }

  /// Finds, for each node, the largest number of its occurrences in any of the lanes begin .. end - 1. Stores this
  /// number in most_ for each value of the node. Sets planes_ to the largest number of all nodes.
  void find_most(int begin, int end) {
    const std::int32_t nodes = node_width_, width = width_;
    std::uint8_t* __restrict most = most_.data();
    for (std::int32_t v = 0; v < width; ++v) most[v] = 1;
    for (int lane = begin; lane < end; ++lane) {
      const std::uint8_t* counts = counts_.data() + static_cast<std::size_t>(lane) * nodes;
      for (std::int32_t v = 0; v < nodes; ++v) most[v] = counts[v] > most[v] ? counts[v] : most[v];
    }
    for (std::int32_t x = graph_.node_count; x < graph_.value_count; ++x) most[x] = most[graph_.producer[x]];
    std::uint8_t* __restrict of_block = most_of_block_.data();
    int planes = 1;
    for (std::int32_t v = 0; v < width; v += kGroup) {
      std::uint8_t highest = 1;
      for (int i = 0; i < kGroup; ++i) highest = most[v + i] > highest ? most[v + i] : highest;
      of_block[v / kGroup] = highest;
      planes = highest > planes ? highest : planes;
    }
    planes_ = planes;
  }
  bool any_of_block(std::int32_t v, int plane) const { return most_of_block_.data()[v / kGroup] > plane; }

  /// Copies the positions of one group of lanes from rows_ to positions_. Then clears rows_ for the next group,
  /// except plane 0, which is cleared when it is filled.
  void to_lanes(int lane, int plane) {
    const std::size_t stride = static_cast<std::size_t>(plane_count_) * width_;
    for (std::int32_t v = 0; v < node_width_; v += kGroup) {
      if (plane > 0 && !any_of_block(v, plane)) continue;
      transpose<kGroup>(plane_row(0, plane) + v, stride,
                        positions_.data() + (static_cast<std::size_t>(plane) * width_ + v) * kLanes + lane, kLanes);
    }
    if (plane > 0) clear_rows(plane);
  }
  void clear_rows(int plane) {
    for (std::int32_t v = 0; v < width_; v += kGroup) {
      if (!any_of_block(v, plane)) continue;
      for (int i = 0; i < kGroup; ++i) std::memset(plane_row(i, plane) + v, 0, kGroup * sizeof(Position));
    }
  }
  static Positions greater(Positions a, Positions b) { return a > b ? a : b; }
  static Positions smaller(Positions a, Positions b) { return a < b ? a : b; }

  /// Stores in last_, for every occurrence of every value, the step that reads it last. If no step reads the
  /// occurrence, stores the step that produces it. If the occurrence is never freed, stores 0. Returns a vector in
  /// which the element of a lane is not 0 if the lane's candidate is invalid. The last reads of kGroup values are found
  /// for all lanes, and then transposed at once, while they are in registers or in the fastest cache.
  template <bool kRecomputes>
  CAIRN_APART Positions last_reads() {
    Positions bad{}, found[kRecomputes ? kPlanes : 1][kGroup] = {};
    const std::int32_t nodes = graph_.node_count, values = graph_.value_count;
    const std::size_t stride = static_cast<std::size_t>(plane_count_) * width_;
    for (std::int32_t begin = 0; begin < values; begin += kGroup) {
      const std::int32_t end = std::min(begin + kGroup, values);
      for (std::int32_t x = begin; x < end; ++x) {
        const std::int32_t producer = x < nodes ? x : static_cast<std::int32_t>(graph_.producer[x]);
        bad |= last_reads_of_value<kRecomputes>(x, producer, found[0] + (x - begin));
      }
      const int planes = kRecomputes ? most_of_block_.data()[begin / kGroup] : 1;
      for (int plane = 0; plane < planes; ++plane) {
        for (int lane = 0; lane < kLanes; lane += kGroup) {
          transpose<kGroup>(reinterpret_cast<const Position*>(found[plane]) + lane, kLanes,
                            last_of(lane) + static_cast<std::size_t>(plane) * width_ + begin, stride);
        }
      }
    }
    for (std::int32_t v = 0; kRecomputes && graph_.pinned_count > 0 && v < nodes; ++v) {
      if (graph_.pinned[v] != 0 && most_.data()[v] > 1) bad |= reinterpret_cast<Positions>(at(positions_, 1, v) != 0);
    }
    return bad;
  }
  /// Finds the last reads of all occurrences of value x. Stores those of occurrence k in found[k * kGroup].
  template <bool kRecomputes>
  Positions last_reads_of_value(std::int32_t x, std::int32_t producer, Positions* found) const {
    if (kRecomputes && most_.data()[producer] > 1) return last_reads_of_many(x, producer, found);
    return last_read_of_one<kRecomputes>(x, producer, *found);
  }

  /// Finds the last read of value x, which its producer computes once in each lane. Returns a vector like last_reads().
  template <bool kRecomputes>
  Positions last_read_of_one(std::int32_t x, std::int32_t producer, Positions& found) const {
    const Positions own = at(positions_, 0, producer);
    Positions last = own, first = Positions{} + kNever;
    for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e) {
      const std::int32_t reader = graph_.readers[e];
      if constexpr (sizeof(Position) > 2) {  // such graphs are too large for the fast caches
        __builtin_prefetch(&at(positions_, 0, graph_.readers[std::min(e + kAhead, reads_ - 1)]));
      }
      Positions read = at(positions_, 0, reader);
      last = greater(last, read);
      // Only the first occurrence of a reader is compared: if it comes after the producer's first occurrence, so do the
      // reader's later ones.
      first = smaller(first, read);
      if constexpr (kRecomputes) {
        for_further_planes(reader, [&](Positions again) { last = greater(last, again); });
      }
    }
    found = graph_.keep[x] != 0 ? Positions{} : last;
    return reinterpret_cast<Positions>(own == 0) | reinterpret_cast<Positions>(first <= own);
  }

  /// Calls take() with the positions of the second occurrence of a reader in every lane, then of the third, and so on.
  /// Makes no call if the reader occurs once in every lane. Otherwise, always makes the calls for the second to the
  /// fourth occurrence, so that the processor predicts branches better. The position of a missing occurrence is zero.
  template <class Take>
  void for_further_planes(std::int32_t reader, const Take& take) const {
    static_assert(kPlanes >= 4);
    const int most = most_.data()[reader];
    if (most == 1) return;
    const Position* first = positions_.data() + static_cast<std::size_t>(reader) * kLanes;
    const std::size_t stride = static_cast<std::size_t>(width_) * kLanes;
    const auto plane_at = [=](int plane) { return *reinterpret_cast<const Positions*>(first + plane * stride); };
    take(plane_at(1));
    take(plane_at(2));
    take(plane_at(3));
    for (int plane = 4; plane < most; ++plane) take(plane_at(plane));
  }

  Positions last_reads_of_many(std::int32_t x, std::int32_t producer, Positions* found) const {
    static_assert(kPlanes == 8);
    switch (most_.data()[producer]) {
      case 2:
        return last_reads_of<2>(x, producer, found);
      case 3:
        return last_reads_of<3>(x, producer, found);
      case 4:
        return last_reads_of<4>(x, producer, found);
      case 5:
        return last_reads_of<5>(x, producer, found);
      case 6:
        return last_reads_of<6>(x, producer, found);
      case 7:
        return last_reads_of<7>(x, producer, found);
      default:
        return last_reads_of<8>(x, producer, found);
    }
  }

  /// Finds, for each occurrence k of `producer` (the node that computes value x), the last read of x before occurrence
  /// k + 1. If nothing reads x between the two, stores the step of occurrence k itself. In every lane, the producer
  /// occurs at most kCount times.
  template <int kCount>
  Positions last_reads_of(std::int32_t x, std::int32_t producer, Positions* found) const {
    Positions own[kCount + 1], last[kCount];
    for (int k = 0; k < kCount; ++k) {
      own[k] = at(positions_, k, producer);
      own[k] = own[k] == 0 ? Positions{} + kNever : own[k];
      last[k] = Positions{};
    }
    own[kCount] = Positions{} + kNever;
    Positions first = Positions{} + kNever;
    for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e) {
      const std::int32_t reader = graph_.readers[e];
      const auto take = [&](Positions read) {
#pragma GCC unroll 8
        for (int k = 0; k + 1 < kCount; ++k) last[k] = read < own[k + 1] ? greater(last[k], read) : last[k];
        last[kCount - 1] = greater(last[kCount - 1], read);
      };
      const Positions read = at(positions_, 0, reader);
      first = smaller(first, read);
      take(read);
      for_further_planes(reader, take);
    }
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      Positions of_k = last[k] > own[k] ? last[k] : own[k];
      if (graph_.keep[x] != 0) of_k = own[k + 1] == kNever ? Positions{} : of_k;
      found[k * kGroup] = of_k;
    }
    return reinterpret_cast<Positions>(own[0] == kNever) | reinterpret_cast<Positions>(first <= own[0]);
  }

  template <bool kRecomputes>
  void walk(const Row<Id>& row, int lane, Outcome& outcome) {
    if (graph_.single_output()) return walk_outputs<kRecomputes, true>(row, lane, outcome);
    walk_outputs<kRecomputes, false>(row, lane, outcome);
  }
  template <bool kRecomputes, bool kSingle>
  void walk_outputs(const Row<Id>& row, int lane, Outcome& outcome) {
    if (narrow_.fit()) return walk_in<kRecomputes, kSingle>(row, lane, narrow_.amounts(), outcome);
    walk_in<kRecomputes, kSingle>(row, lane, graph_.in_bytes, outcome);
  }
  template <bool kRecomputes, bool kSingle, class Sum>
  CAIRN_APART void walk_in(const Row<Id>& row, int lane, device::Amounts<Sum> amounts, Outcome& outcome) {
    add_up_values<kRecomputes, kSingle>(row, lane, amounts);
    if (!has_scratch_) return find_peak<false, false, Sum>(row.length, outcome);
    find_peak<true, false, Sum>(row.length, outcome);
  }

  /// Fills taken_, freed_ and extra_ (the bytes per step) for one candidate.
  template <bool kRecomputes, bool kSingle, class Sum>
  __attribute__((always_inline)) void add_up_values(const Row<Id>& row, int lane, device::Amounts<Sum> amounts) {
    constexpr std::size_t kSteps = kVectorBytes / sizeof(Sum);
    const std::int32_t length = row.length;
    Sum* __restrict taken = reinterpret_cast<Sum*>(taken_.data());
    Sum* __restrict freed = reinterpret_cast<Sum*>(freed_.data());
    std::memset(freed, 0, (static_cast<std::size_t>(length) + 1 + kSteps) * sizeof(Sum));
    std::memset(taken + length + 1, 0, kSteps * sizeof(Sum));
    const Position* last = last_of(lane);
    const Slot* slots = kRecomputes ? slots_.data() + static_cast<std::size_t>(lane) * row_ : nullptr;
    const Id* steps = row.steps;
    const Sum *size = amounts.size, *outputs = amounts.outputs;
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < length; ++i) {
      const std::int32_t v = steps[i];
      const Sum bytes = size[v];
      taken[i + 1] = kSingle ? bytes : outputs[v];
      add(freed[last[kRecomputes ? slots[i] : v]], bytes);
    }
    if constexpr (!kSingle) free_further<kRecomputes>(row, size, last, slots, freed);
    taken[0] = freed[0] = 0;
    if (!has_scratch_) return;
    Sum* extra = reinterpret_cast<Sum*>(extra_.data());
    for (std::int32_t i = 0; i < length; ++i) extra[i + 1] = amounts.scratch[steps[i]];
  }

  /// Adds `bytes` without signed overflow. Entry 0 of freed_ adds up all that is never freed. That may be too much for
  /// a Sum, and is set to 0 before it is read.
  template <class Sum>
  static void add(Sum& sum, Sum bytes) {
    using Unsigned = std::make_unsigned_t<Sum>;
    sum = static_cast<Sum>(static_cast<Unsigned>(sum) + static_cast<Unsigned>(bytes));
  }

  /// Evaluates a candidate with transfers, whose steps must be valid. Returns false if its transfers are invalid, or if
  /// its times could be too large for 64 bits.
  template <bool kRecomputes>
  bool walk_moved(const MovedRow<Id>& row, int lane, MovedOutcome& outcome) {
    if (!moved_->begin(row)) return false;
    const Row<Id> plain{row.steps, row.length};
    add_up_bytes<kRecomputes>(plain, lane);
    std::int64_t* const before = before_.data();
    std::int64_t cost = 0;
    for (std::int32_t i = 0; i < row.length; ++i) {
      before[i] = cost;
      cost += graph_.cost[row.steps[i]];
    }
    before[row.length] = cost;
    bool valid = true;
    for (const std::int32_t x : moved_->values()) valid = valid && move_value<kRecomputes>(x, lane);
    if (!moved_->end_values(valid) || !moved_->run_clocks(before, outcome)) return false;
    add_copies(row);
    taken_.data()[0] = freed_.data()[0] = 0;
    const auto find = [&](auto between) {
      constexpr bool kBetween = decltype(between)::value;
      has_scratch_ ? find_peak<true, kBetween, std::int64_t>(row.length, outcome)
                   : find_peak<false, kBetween, std::int64_t>(row.length, outcome);
    };
    row.count > 0 ? find(std::true_type()) : find(std::false_type());
    return true;
  }
  template <bool kRecomputes>
  CAIRN_APART void add_up_bytes(const Row<Id>& row, int lane) {
    if (graph_.single_output()) return add_up_values<kRecomputes, true>(row, lane, graph_.in_bytes);
    add_up_values<kRecomputes, false>(row, lane, graph_.in_bytes);
  }

  /// Corrects freed_ for value x, which has transfers. Subtracts the bytes that add_up_values() added for x without
  /// regard to transfers, and adds them where the value's occurrences are freed with transfers. Returns false if the
  /// candidate is invalid.
  template <bool kRecomputes>
  bool move_value(std::int32_t x, int lane) {
    const std::int32_t v = graph_.single_output() ? x : static_cast<std::int32_t>(graph_.producer[x]);
    const int count = kRecomputes ? counts_.data()[static_cast<std::size_t>(lane) * node_width_ + v] : 1;
    const Position* last = last_of(lane);
    const std::int64_t bytes = graph_.in_bytes.size[x];
    std::int64_t* const freed = freed_.data();
    made_.clear();
    for (int plane = 0; plane < count; ++plane) {
      made_.push_back(at(positions_, plane, v)[lane] - 1);
      freed[last[plane * width_ + x]] -= bytes;
    }
    const auto for_reads = [&](const auto& read) {
      for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e) {
        const std::int32_t reader = graph_.readers[e];
        const int most = kRecomputes ? counts_.data()[static_cast<std::size_t>(lane) * node_width_ + reader] : 1;
        for (int plane = 0; plane < most; ++plane) read(std::int32_t{at(positions_, plane, reader)[lane]} - 1);
      }
    };
    return moved_->trace(x, made_, for_reads, [&](std::int32_t step) { freed[step + 1] += bytes; });
  }

  /// Adds the bytes that copies occupy on the device. Between two steps, the bytes of a fetched value appear, and the
  /// bytes of an evicted value disappear. A fetch is added to taken_ of the step after that moment, an evict to freed_
  /// of the step before that moment. Both are also added to between_ of the step before, because at that moment the
  /// fetched and the evicted values are on the device at the same time.
  void add_copies(const MovedRow<Id>& row) {
    std::int64_t *const taken = taken_.data(), *const freed = freed_.data(), *const between = between_.data();
    std::memset(
        between, 0,
        (static_cast<std::size_t>(row.length) + 1 + kVectorBytes / sizeof(std::int64_t)) * sizeof(std::int64_t));
    for (std::int32_t k = 0; k < row.count; ++k) {
      const Copy& copy = row.copies[k];
      const std::int64_t bytes = moved_->value_of(copy).bytes;
      if ((copy.kind & Copy::kFetch) == 0) {
        freed[copy.finish] += bytes;
        between[copy.finish] += bytes;
      } else {
        if (copy.start + 2 <= row.length) taken[copy.start + 2] += bytes;
        between[copy.start + 1] += bytes;
      }
    }
  }

  /// Adds the bytes of the second and further outputs of all steps to `freed`. First occurrences of nodes are handled
  /// in one loop, because the entries of their outputs are consecutive. A second loop handles the steps that run a node
  /// again.
  template <bool kRecomputes, class Sum>
  void free_further(const Row<Id>& row, const Sum* size, const Position* last, const Slot* slots,
                    Sum* __restrict freed) {
    const std::int32_t begin = graph_.node_count, end = graph_.value_count, width = width_;
#pragma GCC unroll 4
    for (std::int32_t x = begin; x < end; ++x) add(freed[last[x]], size[x]);
    if constexpr (kRecomputes) {
      const std::int32_t* further = graph_.further_begin;
      std::int32_t* again = again_.data();
      std::int32_t count = 0;
      for (std::int32_t i = 0; i < row.length; ++i) {
        const std::int32_t v = row.steps[i];
        again[count] = i;
        const bool is_again = static_cast<std::int32_t>(slots[i]) >= width, has_further = further[v] < further[v + 1];
        // Added without a branch, because the processor could not predict it.
        count += static_cast<int>(is_again) & static_cast<int>(has_further);
      }
      for (std::int32_t k = 0; k < count; ++k) {
        const std::int32_t i = again[k], v = row.steps[i];
        const Position* of_plane = last + (slots[i] - v);
        for (std::int32_t x = further[v]; x < further[v + 1]; ++x) add(freed[of_plane[x]], size[x]);
      }
    }
  }

  /// Finds the candidate's peak and its step from taken_, freed_ and extra_. If kBetween is set, also considers the
  /// memory between two steps, where between_ adds the bytes of copies. Narrow sums begin anew after steps_at_once()
  /// steps, with the memory so far in 64 bits.
  template <bool kScratch, bool kBetween, class Sum>
  void find_peak(std::int32_t length, Outcome& outcome) const {
    constexpr bool kNarrow = sizeof(Sum) < sizeof(std::int64_t);
    HighestPeak highest;
    std::int32_t begin = 0;
    for (; kNarrow && length - begin >= narrow_.steps_at_once(); begin += narrow_.steps_at_once()) {
      add_up_steps<kScratch, kBetween, Sum>(begin, begin + narrow_.steps_at_once() - 1, highest);
    }
    add_up_steps<kScratch, kBetween, Sum>(begin, length, highest);
    outcome.valid = true;
    outcome.peak = highest.memory * (kNarrow ? narrow_.unit() : 1);
    outcome.peak_step = highest.step - 1;
  }

  /// The highest memory of the steps so far, the first step with it, and the memory after all of them.
  struct HighestPeak {
    std::int64_t memory = -1, after = 0;
    std::int32_t step = 0;
  };
  template <bool kScratch, bool kBetween, class Sum>
  __attribute__((always_inline)) void add_up_steps(std::int32_t begin, std::int32_t last, HighestPeak& highest) const {
    using V = Steps<Sum>;
    constexpr int kCount = sizeof(V) / sizeof(Sum);
    const Sum* of_taken = reinterpret_cast<const Sum*>(taken_.data());
    const Sum* of_freed = reinterpret_cast<const Sum*>(freed_.data());
    V best = V{} + std::numeric_limits<Sum>::min(), where{}, step, live{};
    for (int i = 0; i < kCount; ++i) step[i] = begin + i;
    for (std::int32_t i = begin; i <= last; i += kCount) {
      V taken, freed;
      std::memcpy(&taken, of_taken + i, sizeof(V));
      std::memcpy(&freed, of_freed + i, sizeof(V));
      V change = taken - freed;
      sum_up(change);
      V during = live + change + freed;
      if constexpr (kScratch) {
        V extra;
        std::memcpy(&extra, reinterpret_cast<const Sum*>(extra_.data()) + i, sizeof(V));
        during += extra;
      }
      if constexpr (kBetween) {
        V more;
        std::memcpy(&more, between_.data() + i, sizeof(V));
        const V after = live + change + more;
        during = after > during ? after : during;
      }
      // Entry 0 stands for the time before the first step, and entries after the last step are padding. Both are
      // ignored.
      const V higher = (during > best) & (step <= last) & (step > 0);
      best = higher ? during : best;
      where = higher ? step : where;
      step += kCount;
      live += shuffled(change, change, V{} + (kCount - 1));
    }
    V peak = best;
    fold(peak, [](V a, V b) { return a > b ? a : b; });
    if (highest.after + peak[0] > highest.memory) {
      V first = best == peak ? where : V{} + std::numeric_limits<std::int32_t>::max();
      fold(first, [](V a, V b) { return a < b ? a : b; });
      highest.memory = highest.after + peak[0];
      highest.step = static_cast<std::int32_t>(first[0]);
    }
    highest.after += live[0];
  }

  std::int64_t cost_of(int lane) const {
    const std::uint8_t* counts = counts_.data() + static_cast<std::size_t>(lane) * node_width_;
    std::int64_t cost = 0;
    for (std::int32_t v = 0; v < graph_.node_count; ++v) cost += counts[v] * graph_.cost[v];
    return cost;
  }

  TablesView<Id> graph_;
  NarrowAmounts<Id> narrow_;
  std::int32_t node_width_;  ///< number of nodes, rounded up to a multiple of kGroup
  std::int32_t width_;       ///< width of a plane: number of values, rounded up to a multiple of kGroup
  std::int32_t row_;         ///< number of entries in an array with one entry per step of a candidate
  /// Number of occurrences per node for which the arrays have room: 1 if no schedule has more steps than the graph has
  /// nodes, else kPlanes.
  int plane_count_;
  std::int32_t reads_;  ///< number of pairs of a value and a node that reads it
  std::uint32_t per_width_ = 0x10000U / static_cast<std::uint32_t>(width_) + 1;
  bool has_scratch_ = false;
  int planes_ = 1;  ///< largest number of occurrences of a node in the current candidates
  bool too_many_[kLanes] = {};
  /// - positions_: position of each occurrence of a node, indexed [plane][node][lane].
  /// - last_: position of the last read of each occurrence of a value, indexed [lane][plane][value].
  Aligned<Position> positions_, last_;
  /// The entries of positions_ for one group of lanes, indexed [lane of the group][plane][node].
  Aligned<Position> rows_;
  Aligned<std::uint8_t> counts_;  ///< numbers of occurrences, indexed [lane][node]
  /// - most_: for each value, the largest number of its occurrences in any lane.
  /// - most_of_block_: for each block of kGroup consecutive values, the largest of their entries in most_.
  Aligned<std::uint8_t> most_, most_of_block_;
  Aligned<Slot> next_;   ///< for one lane, the slot of the next occurrence of each node
  Aligned<Slot> slots_;  ///< slot of each step, indexed [lane][step]
  /// Work array of free_further(): the steps of one candidate that run a node with several outputs again.
  Aligned<std::int32_t> again_;
  /// Bytes for one candidate, indexed by position of the step: taken_ has the bytes of the step's outputs, freed_ the
  /// bytes that are freed after the step, and extra_ the step's scratch. The elements have the type Sum that is in use.
  Aligned<std::int64_t> taken_, freed_, extra_;
  // For candidates with transfers:
  std::unique_ptr<MovedLane<Id>> moved_;
  std::vector<std::int32_t> made_;  ///< steps that make a value
  Aligned<std::int64_t> between_;   ///< bytes that are added between two steps, by position of the step before them
  Aligned<std::int64_t> before_;    ///< for each step, the cost of the steps before it
};

template <class Id, int kVectorBytes>
std::unique_ptr<Lockstep<Id>> lockstep(const device::TablesView<Id>& graph, std::int32_t longest) {
  if (longest < std::numeric_limits<std::int16_t>::max())
    return std::make_unique<LockstepOf<Id, std::int16_t, kVectorBytes>>(graph, longest);
  return std::make_unique<LockstepOf<Id, std::int32_t, kVectorBytes>>(graph, longest);
}
template <class Id, int kVectorBytes>
std::unique_ptr<DrawOrders> draw_orders(const device::TablesView<Id>& graph) {
  return std::make_unique<DrawLanes<Id, kVectorBytes>>(graph);
}

template <int kVectorBytes>
ProcessorFamily family_of() {
  return {kVectorBytes, lockstep<std::uint16_t, kVectorBytes>, lockstep<std::uint32_t, kVectorBytes>,
          draw_orders<std::uint16_t, kVectorBytes>, draw_orders<std::uint32_t, kVectorBytes>};
}

}  // namespace
}  // namespace cairn::sim

#undef CAIRN_APART
