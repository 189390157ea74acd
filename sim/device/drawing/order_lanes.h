#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cairn/core/machine/support/team.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/lanes.h"
#include "cairn/sim/schedule_batch.h"

/// Evaluates schedules that run every node once, one in each lane of a team (sim/device/lanes.h).
namespace cairn::sim::device {

/// The highest of several values, and the first index at which it occurs.
template <class Sum>
struct Peak {
  Sum value = -1;
  std::int32_t place = INT32_MAX;

  struct Higher {
    CAIRN_HD Peak operator()(const Peak& a, const Peak& b) const {
      if (a.value != b.value) return a.value > b.value ? a : b;
      return a.place < b.place ? a : b;
    }
  };
};

/// Work arrays of OrderLanes, shared by a team. Position is std::uint16_t or std::uint32_t.
template <class Position, class Sum, int kLanes>
struct OrderArrays {
  Position* position = nullptr;  ///< [node][lane]: number of the node's step, counted from 1, or 0 if it has none
  /// [step][lane]: memory during a step minus memory during the step before it. Steps are counted from 1. The entries
  /// of step 0 and of the step after the last have no meaning.
  Sum* change = nullptr;
  std::uint32_t* bad = nullptr;  ///< [lane]: not 0 if the lane's candidate is invalid
  std::byte* of_row = nullptr;   ///< room for LaneGrid::combine_below(), in the same memory as `position`

  static CAIRN_HD std::int64_t bytes(std::int64_t nodes, std::int64_t threads) {
    return positions(nodes, threads) + changes(nodes) + aligned(kLanes * 4);
  }
  static CAIRN_HD OrderArrays in(std::byte* memory, std::int64_t nodes, std::int64_t threads) {
    std::byte* const change = memory + positions(nodes, threads);
    return {reinterpret_cast<Position*>(memory), reinterpret_cast<Sum*>(change),
            reinterpret_cast<std::uint32_t*>(change + changes(nodes)), memory};
  }

 private:
  static CAIRN_HD std::int64_t positions(std::int64_t nodes, std::int64_t threads) {
    const std::int64_t of_nodes = nodes * kLanes * static_cast<std::int64_t>(sizeof(Position));
    const std::int64_t of_rows = of_row_entries<kLanes>(threads) * static_cast<std::int64_t>(sizeof(Peak<Sum>));
    return aligned(of_nodes > of_rows ? of_nodes : of_rows);
  }
  static CAIRN_HD std::int64_t changes(std::int64_t nodes) {
    return aligned((nodes + 2) * kLanes * static_cast<std::int64_t>(sizeof(Sum)));
  }
};

/// Evaluates one candidate per lane. The member functions are the stages of the evaluation: begin(), then `position`
/// must be filled, then find_changes() and outcome(). kSingle says whether every node has one output.
///
/// The memory during step i is the sum of the changes of the steps 1 .. i. The bytes of a value are added at the step
/// of its node, and subtracted at the step after its last read. The last read is the highest position among the value's
/// readers. The scratch of a node is added at its step and subtracted at the next step.
template <bool kSingle, class Id, class Position, class Sum, int kLanes, class Team>
class OrderLanes {
 public:
  using Grid = LaneGrid<Team, kLanes>;
  using Arrays = OrderArrays<Position, Sum, kLanes>;
  /// Index of an entry in an array. Graphs with wide ids can have arrays of more than 2^31 entries.
  using Index = std::conditional_t<sizeof(Id) == sizeof(std::uint16_t), std::int32_t, std::int64_t>;

  CAIRN_HD OrderLanes(const Grid& grid, const TablesView<Id>& graph, const Arrays& arrays)
      : grid_(grid), graph_(graph), arrays_(arrays), amounts_(graph.template amounts<Sum>()) {}

  CAIRN_HD void begin() const {
    grid_.clear(arrays_.change, (std::int64_t{graph_.node_count} + 2) * grid_.lanes() * std::int64_t{sizeof(Sum)});
    grid_.clear(arrays_.bad, grid_.lanes() * std::int64_t{sizeof(std::uint32_t)});
  }

  /// Computes the changes of memory from step to step. Marks a lane as invalid in `bad` if a node is missing in it or
  /// reads a value before the value is produced. If kValid is set, the candidates must be valid, and nothing is
  /// checked.
  template <bool kValid>
  CAIRN_HD void find_changes() const {
    const Index lanes = grid_.lanes();
    const Position* const position = arrays_.position + grid_.lane();
    Sum* const change = arrays_.change + grid_.lane();
    bool bad = false;
    grid_.for_each(graph_.value_count, [&](std::int32_t x) {
      const ValueRecord<Sum> value = amounts_.values[x];
      const Index node = kSingle ? x : graph_.producer[x];
      const std::uint32_t own = position[node * lanes];
      std::uint32_t last = own, first = UINT32_MAX;
      const FourIds<Id>* const end = graph_.reader_fours + value.end;
      CAIRN_UNROLL_BY(1)
      for (const FourIds<Id>* next = graph_.reader_fours + value.begin; next != end; ++next) {
        const FourIds<Id> readers = *next;
        std::uint32_t read[4];
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) read[j] = position[static_cast<Index>(readers.id[j]) * lanes];
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) {
          last = read[j] > last ? read[j] : last;
          if constexpr (!kValid) first = read[j] < first ? read[j] : first;
        }
      }
      if constexpr (!kValid) bad = bad | (first - 1 <= own - 1);  // also true if `own` is 0: the producer is missing
      if (kSingle || x < graph_.node_count) {
        fetch_add(&change[own * lanes], value.taken);
        if (graph_.has_scratch) fetch_add(&change[(own + 1) * lanes], -amounts_.scratch[x]);
      }
      fetch_add(&change[(last + 1) * lanes], -value.freed);
    });
    if (!kValid && bad) fetch_or(&arrays_.bad[grid_.lane()], 1U);
    grid_.team().sync();
  }

  /// Returns the outcome of the lane's candidate, in every thread of the lane. Adds up the changes of memory for this.
  CAIRN_HD Outcome outcome() const {
    const Index lanes = grid_.lanes();
    const typename Grid::Stretch steps = grid_.stretch(graph_.node_count);
    const Sum* const change = arrays_.change + (steps.begin + Index{1}) * lanes + grid_.lane();
    Sum own = 0, total = 0;
    const Sum* next = change;
    CAIRN_UNROLL_BY(4)
    for (std::int32_t i = steps.begin; i < steps.end; ++i, next += lanes) own += *next;
    Sum live = grid_.combine_below(own, Sum{0}, core::Sum(), reinterpret_cast<Sum*>(arrays_.of_row), total);
    Peak<Sum> peak, highest;
    next = change;
    CAIRN_UNROLL_BY(4)
    for (std::int32_t i = steps.begin; i < steps.end; ++i, next += lanes) {
      live += *next;
      if (live > peak.value) peak = {live, i};
    }
    grid_.combine_below(peak, Peak<Sum>{}, typename Peak<Sum>::Higher{}, reinterpret_cast<Peak<Sum>*>(arrays_.of_row),
                        highest);
    Outcome outcome;
    if (arrays_.bad[grid_.lane()] != 0) return outcome;
    outcome.valid = true;
    outcome.cost = graph_.cost_once;
    if (graph_.node_count > 0) {
      outcome.peak = static_cast<std::int64_t>(highest.value) * (sizeof(Sum) == sizeof(std::int32_t) ? graph_.unit : 1);
      outcome.peak_step = highest.place;
    }
    return outcome;
  }

 private:
  const Grid& grid_;
  const TablesView<Id>& graph_;
  const Arrays& arrays_;
  const Amounts<Sum> amounts_;
};

/// Sets position[node][lane] for the lane's candidate from its steps. Leaves out steps that are not nodes. `steps` must
/// have `count` entries, or be nullptr if the candidate has another number of steps; then no node gets a position.
template <class Grid, class Id, class Position>
CAIRN_HD void find_positions(const Grid& grid, const Id* steps, std::int32_t count, Position* position) {
  const std::int64_t lanes = grid.lanes();
  grid.clear(position, count * lanes * std::int64_t{sizeof(Position)});
  grid.team().sync();
  const auto put = [&](std::uint32_t v, std::int32_t i) {
    // In an invalid schedule, a node can have several steps. Some other node then has no step, which find_changes()
    // notices.
    if (v < static_cast<std::uint32_t>(count))
      store_one(&position[v * lanes + grid.lane()], static_cast<Position>(i + 1));
  };
  constexpr int kAtOnce = 16 / sizeof(Id);  // number of steps in a load of 128 bits
  struct alignas(16) Steps {
    Id of[kAtOnce];
  };
  // The loops are not unrolled, because they would then need more registers than there are.
  const bool aligned = reinterpret_cast<std::uintptr_t>(steps) % sizeof(Steps) == 0;
  const std::int32_t whole = steps != nullptr && aligned ? count / kAtOnce : 0;
  CAIRN_UNROLL_BY(1)
  for (std::int32_t i = grid.row(); i < whole; i += grid.rows()) {
    const Steps some = reinterpret_cast<const Steps*>(steps)[i];
    CAIRN_UNROLL
    for (int k = 0; k < kAtOnce; ++k) put(some.of[k], i * kAtOnce + k);
  }
  const std::int32_t end = steps != nullptr ? count : 0;
  CAIRN_UNROLL_BY(1)
  for (std::int32_t i = whole * kAtOnce + grid.row(); i < end; i += grid.rows()) put(steps[i], i);
  grid.team().sync();
}

}  // namespace cairn::sim::device
