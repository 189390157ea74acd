#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/transfers/copies.h"

/// This file evaluates and draws candidates (schedules) with transfers, one in each thread, from the first step to the
/// last.
namespace cairn::sim::device {

/// Work arrays for one candidate. Entry k is at [k * stride], so that entry k of all threads of a team is side by side
/// in memory.
struct WalkArrays {
  std::int32_t* last = nullptr;   ///< for each value, see TransferWalk::last()
  std::int32_t* note = nullptr;   ///< for each value, see TransferWalk::note()
  std::int64_t* freed = nullptr;  ///< for each step, the bytes that are freed after it
  std::int64_t* end = nullptr;    ///< for each copy, the time at which it is complete
  CopyKey* keys = nullptr;        ///< room for arrange_copies(), with a stride of 1, in the memory of `end`
  std::int32_t stride = 1;

  /// Returns the bytes for `lanes` candidates.
  static CAIRN_HD std::int64_t bytes(std::int64_t values, std::int64_t steps, std::int64_t copies, std::int64_t lanes) {
    return lanes * (values * 8 + steps * 8 + copies * std::int64_t{sizeof(CopyKey) + 4}) + 32;
  }
  static CAIRN_HD WalkArrays in(std::byte* memory, std::int64_t lane, std::int64_t lanes, std::int64_t values,
                                std::int64_t steps, std::int64_t copies) {
    WalkArrays arrays;
    arrays.freed = reinterpret_cast<std::int64_t*>(memory) + lane;
    memory += lanes * steps * 8;
    arrays.end = reinterpret_cast<std::int64_t*>(memory) + lane;
    arrays.keys = reinterpret_cast<CopyKey*>(memory) + lane * copies;
    memory += lanes * copies * std::int64_t{sizeof(CopyKey) + 4};
    arrays.last = reinterpret_cast<std::int32_t*>(memory) + lane;
    arrays.note = arrays.last + lanes * values;
    arrays.stride = static_cast<std::int32_t>(lanes);
    return arrays;
  }
};

/// A candidate with its transfers, as one thread reads it.
template <class Id>
struct MovedRow {
  const Id* steps = nullptr;
  std::int32_t length = 0;
  const Copy* copies = nullptr;
  std::int32_t count = 0;  ///< number of copies
};

/// Returns a candidate of a batch with transfers (ScheduleBatch::has_transfers).
template <class Id>
CAIRN_HD MovedRow<Id> moved_row(const BatchView<Id>& batch, std::int64_t c) {
  return {batch.steps + batch.begin[c], batch.length[c], batch.copies + batch.copies_begin[c], batch.copies_count[c]};
}

/// The results for a candidate with transfers.
struct MovedOutcome : Outcome {
  std::int64_t host_peak = 0;
  core::Defect::Kind defect = core::Defect::Kind::none;
};

CAIRN_HD inline void put(const OutcomesView& outcomes, std::int64_t c, const MovedOutcome& outcome) {
  outcomes.put(c, outcome);
  outcomes.host_peak[c] = outcome.host_peak;
  outcomes.defect[c] = outcome.defect;
}

/// Evaluates one candidate with transfers, in two passes over its steps. The first pass finds the last read of each
/// occurrence of a value, after which its bytes are freed, and finds the first defect. The second pass adds up the
/// bytes on the device and on the host, and moves three clocks: one for the steps and one for each direction of the
/// link. The struct Copy gives the copies in each order in which a pass needs them, so no pass searches for copies.
/// Takes O(values + T + k + inputs and outputs of all steps) for T steps and k copies, with 8 bytes for each value,
/// step and copy.
template <bool kSingle, class Id>
class TransferWalk {
 public:
  using Kind = core::Defect::Kind;

  CAIRN_HD TransferWalk(const TablesView<Id>& graph, const MovesView& moves, const MovedRow<Id>& row,
                        const WalkArrays& arrays)
      : graph_(graph), moves_(moves), row_(row), arrays_(arrays) {}

  /// Evaluates the candidate. If it is valid, calls visit(i, during, after) for every step i in ascending order, with
  /// the bytes on the device during and after the step.
  template <class Visit>
  CAIRN_HD MovedOutcome run(const Visit& visit) {
    MovedOutcome outcome;
    outcome.defect = check_copies();
    if (outcome.defect == Kind::none) outcome.defect = find_reads();
    if (outcome.defect == Kind::none) outcome.defect = check_end();
    if (outcome.defect != Kind::none) return outcome;
    add_up(visit, outcome);
    outcome.valid = true;
    return outcome;
  }

  /// Checks each copy by itself, without the work arrays. Returns bad_evict if some evict is invalid, else bad_fetch if
  /// some fetch is invalid, else none.
  CAIRN_HD Kind check_copies() const {
    Kind found = Kind::none;
    for (std::int32_t k = 0; k < row_.count; ++k) {
      const Copy& copy = row_.copies[k];
      if (!is_fetch(copy) && evict_fails(copy)) return Kind::bad_evict;
      if (is_fetch(copy) && fetch_fails(copy)) found = Kind::bad_fetch;
    }
    return found;
  }

 private:
  // Special entries of last(): the value has not been computed yet, or it is only on the host.
  static constexpr std::int32_t kNotMade = -1, kOnHost = -2;

  /// The step that last read the current occurrence of value x. If no step has read it: the step that computed it, or,
  /// for a fetched occurrence, the step before its fetch's `finish`.
  CAIRN_HD std::int32_t& last(std::int32_t x) const { return arrays_.last[std::int64_t{x} * arrays_.stride]; }
  /// Where the current occurrence of value x came from. 0: a step computed it, and no evict copies it. f > 0: a step
  /// computed it, and an evict that finishes before step f copies it. -f: a fetch that finishes before step f.
  CAIRN_HD std::int32_t& note(std::int32_t x) const { return arrays_.note[std::int64_t{x} * arrays_.stride]; }
  CAIRN_HD std::int64_t& freed(std::int32_t i) const { return arrays_.freed[std::int64_t{i} * arrays_.stride]; }
  CAIRN_HD std::int64_t& end(std::int32_t k) const { return arrays_.end[std::int64_t{k} * arrays_.stride]; }
  static CAIRN_HD bool is_fetch(const Copy& copy) { return (copy.kind & Copy::kFetch) != 0; }
  CAIRN_HD const MovedValue& value_of(const Copy& copy) const { return moves_.values[copy.value]; }

  CAIRN_HD bool evict_fails(const Copy& copy) const {
    if (copy.value < 0 || copy.value >= moves_.value_count) return true;
    const MovedValue& value = value_of(copy);
    if (value.time < 0 || copy.from < 0 || copy.from >= row_.length) return true;
    return static_cast<std::int32_t>(row_.steps[copy.from]) != value.producer || copy.start < copy.from ||
           copy.finish <= copy.start || copy.finish > row_.length;
  }
  CAIRN_HD bool fetch_fails(const Copy& copy) const {
    if (copy.from < 0 || copy.value < 0 || copy.value >= moves_.value_count) return true;
    const std::int32_t kept = graph_.keep[value_of(copy).number] != 0 ? 1 : 0;
    return copy.start < row_.copies[copy.from].finish - 1 || copy.finish <= copy.start ||
           copy.finish > row_.length - 1 + kept;
  }

  /// Ends the current occurrence of a value. If an evict copies the occurrence, the end of the evict frees its bytes,
  /// so this function does nothing.
  CAIRN_HD void close(std::int32_t x) {
    if (last(x) < 0 || note(x) > 0) return;
    if (last(x) < -note(x)) unread_ = true;
    freed(last(x)) += graph_.in_bytes.size[x];
  }
  CAIRN_HD void make(std::int32_t x, std::int32_t step, std::int32_t of) {
    close(x);
    last(x) = step;
    note(x) = of;
  }
  /// Calls visit(place) for all copies that must be complete before step i and were not visited yet. `place` is the
  /// index of a copy.
  template <class Visit>
  CAIRN_HD void finish_copies(std::int32_t i, const Visit& visit) {
    for (; finished_ < row_.count; ++finished_) {
      const std::int32_t place = row_.copies[finished_].by_finish;
      if (row_.copies[place].finish > i) return;
      visit(place);
    }
  }
  CAIRN_HD void finish_occurrences(std::int32_t i) {
    finish_copies(i, [&](std::int32_t place) {
      const Copy& copy = row_.copies[place];
      const std::int32_t x = value_of(copy).number;
      if (is_fetch(copy)) {
        make(x, copy.finish - 1, -copy.finish);
      } else if (note(x) == copy.finish) {
        last(x) = kOnHost;
        note(x) = 0;
      }
    });
  }

  /// Returns `kind`, the defect that was found at step i, or unknown_node if the candidate has transfers and step i or
  /// a later step is not a node. In a schedule with transfers, core::evaluate() looks for steps that are not nodes
  /// before it looks for other defects, so unknown_node takes precedence here, too.
  CAIRN_HD Kind unless_unknown(Kind kind, std::int32_t i) const {
    for (; row_.count > 0 && i < row_.length; ++i) {
      if (static_cast<std::int64_t>(row_.steps[i]) >= graph_.node_count) return Kind::unknown_node;
    }
    return kind;
  }

  CAIRN_HD Kind find_reads() {
    for (std::int32_t x = 0; x < graph_.value_count; ++x) {
      last(x) = kNotMade;
      note(x) = 0;
    }
    for (std::int32_t i = 0; i < row_.length; ++i) freed(i) = 0;
    std::int32_t evicts = 0;
    for (std::int32_t k = 0; k < row_.count; ++k) evicts += is_fetch(row_.copies[k]) ? 0 : 1;
    std::int32_t made = 0;
    for (std::int32_t i = 0; i < row_.length; ++i) {
      finish_occurrences(i);
      if (static_cast<std::int64_t>(row_.steps[i]) >= graph_.node_count) return Kind::unknown_node;
      const auto v = static_cast<std::int32_t>(row_.steps[i]);
      const NodeRecord node = graph_.nodes[v];
      for (std::int32_t e = node.begin(); e < node.end(); ++e) {
        std::int32_t& read = last(static_cast<std::int32_t>(graph_.template input<kSingle>(e)));
        if (read < 0) return unless_unknown(read == kOnHost ? Kind::input_on_host : Kind::missing_input, i);
        read = i;
      }
      if (graph_.pinned[v] != 0 && last(v) != kNotMade) return unless_unknown(Kind::pinned_again, i);
      make(v, i, 0);
      if constexpr (!kSingle) {
        for (std::int32_t x = graph_.further_begin[v]; x < graph_.further_begin[v + 1]; ++x) make(x, i, 0);
      }
      for (; made < evicts && row_.copies[row_.copies[made].by_made].from == i; ++made) {
        const Copy& copy = row_.copies[row_.copies[made].by_made];
        note(value_of(copy).number) = copy.finish;
      }
    }
    finish_occurrences(row_.length);
    return Kind::none;
  }

  CAIRN_HD Kind check_end() {
    bool on_host = false;
    for (std::int32_t x = 0; x < graph_.value_count; ++x) {
      if (graph_.at_end[x] == 0 && last(x) == kNotMade) return Kind::missing_node;
      if (graph_.keep[x] == 0) {
        close(x);
      } else if (last(x) == kOnHost) {
        on_host = true;
      }
    }
    if (on_host) return Kind::kept_on_host;
    if (unread_) return Kind::bad_fetch;
    for (std::int32_t k = 0; k < row_.count; ++k) {
      if ((row_.copies[k].kind & Copy::kUnfetched) != 0) return Kind::bad_evict;
    }
    return Kind::none;
  }

  /// Lets the link carry the copy with index `place`, which may start at time `now` or later. Sets end() of the copy.
  CAIRN_HD void serve(std::int32_t place, std::int64_t now) {
    const Copy& copy = row_.copies[place];
    const bool inward = is_fetch(copy) && moves_.duplex;
    std::int64_t begin = inward ? in_ : out_;
    if (now > begin) begin = now;
    if (is_fetch(copy) && end(copy.from) > begin) begin = end(copy.from);
    const std::int64_t over = core::saturating_add(begin, value_of(copy).time);
    end(place) = over;
    // With a reference to one of the two clocks, the compiler would keep both in memory instead of registers.
    in_ = inward ? over : in_;
    out_ = inward ? out_ : over;
    if (is_fetch(copy) && over > fetched_) fetched_ = over;
  }

  template <class Visit>
  CAIRN_HD void add_up(const Visit& visit, MovedOutcome& outcome) {
    std::int64_t live = 0, host = 0, now = 0;
    std::int32_t started = 0;
    const auto raise_peak = [&](std::int64_t bytes, std::int32_t i) {
      if (bytes <= outcome.peak && outcome.peak_step >= 0) return;
      outcome.peak = bytes;
      outcome.peak_step = i;
    };
    finished_ = 0;
    for (std::int32_t i = 0; i < row_.length; ++i) {
      finish_copies(i, [&](std::int32_t place) {
        const Copy& copy = row_.copies[place];
        if (end(place) > now) now = end(place);
        if (!is_fetch(copy)) live -= value_of(copy).bytes;
        if ((copy.kind & Copy::kLastFetch) != 0) host -= value_of(copy).bytes;
      });
      const std::uint32_t v = row_.steps[i];
      const NodeRecord node = graph_.nodes[v];
      const std::int64_t during = live + node.extra;
      raise_peak(during, i);
      live = during - graph_.in_bytes.scratch[v] - freed(i);
      now = core::saturating_add(now, node.cost);
      for (; started < row_.count && row_.copies[started].start == i; ++started) {
        const Copy& copy = row_.copies[started];
        serve(started, now);
        (is_fetch(copy) ? live : host) += value_of(copy).bytes;
      }
      if (row_.count > 0) raise_peak(live, i);
      if (host > outcome.host_peak) outcome.host_peak = host;
      visit(i, during, live);
    }
    outcome.cost = now > fetched_ ? now : fetched_;
  }

  const TablesView<Id>& graph_;
  const MovesView& moves_;
  // These members are copies, not references, so that the compiler sees whether their pointers point to shared or to
  // global memory.
  const MovedRow<Id> row_;
  const WalkArrays arrays_;
  std::int32_t finished_ = 0;  ///< number of copies that finish_copies() has visited
  bool unread_ = false;        ///< whether some fetched occurrence is never read, which is a defect
  /// Times from which the link to the host (out_) and the link to the device (in_) are free. If one link carries both
  /// directions, only out_ is used.
  std::int64_t out_ = 0, in_ = 0;
  std::int64_t fetched_ = 0;  ///< time at which all fetches so far are complete
};

template <class Id, class Visit>
CAIRN_HD MovedOutcome walk_transfers(const TablesView<Id>& graph, const MovesView& moves, const MovedRow<Id>& row,
                                     const WalkArrays& arrays, const Visit& visit) {
  return graph.single_output() ? TransferWalk<true, Id>(graph, moves, row, arrays).run(visit)
                               : TransferWalk<false, Id>(graph, moves, row, arrays).run(visit);
}

/// Draws the transfers of candidate `index` (sim/generator.h), whose steps are in `row`. Writes them to `copies`, which
/// must have room for 2 * most entries, and returns the number of copies. O(T + k log k + inputs and outputs of all
/// steps) for T steps and k copies.
template <bool kSingle, class Id>
CAIRN_HD std::int32_t draw_copies(const TablesView<Id>& graph, const MovesView& moves, std::uint64_t seed,
                                  std::int32_t most, std::int64_t index, const MovedRow<Id>& row,
                                  const WalkArrays& arrays, Copy* copies) {
  const std::int32_t length = row.length;
  constexpr std::int32_t kDrawn = -1;  // entry of `last` for a value that a step has already drawn
  const std::uint32_t wanted = below(random_word(seed, index, kTransferCount, 0), static_cast<std::uint32_t>(most) + 1);
  const auto last = [&](std::int32_t x) -> std::int32_t& { return arrays.last[std::int64_t{x} * arrays.stride]; };
  const auto made = [&](std::int32_t x) -> std::int32_t& { return arrays.note[std::int64_t{x} * arrays.stride]; };
  const auto use = [&](std::int32_t x, std::int32_t i) { last(x) = last(x) == kDrawn ? kDrawn : i; };
  for (std::int32_t x = 0; x < graph.value_count; ++x) last(x) = 0;
  std::int32_t drawn = 0;
  for (std::int32_t i = 0; i < length && drawn < most; ++i) {
    const auto v = static_cast<std::int32_t>(row.steps[i]);
    const NodeRecord node = graph.nodes[v];
    const Philox words = random_words(seed, index, kTransfers, static_cast<std::uint32_t>(i));
    if (node.begin() < node.end() && below(words.word[0], static_cast<std::uint32_t>(length)) < wanted) {
      const auto place = below(words.word[1], static_cast<std::uint32_t>(node.end() - node.begin()));
      const auto x =
          static_cast<std::int32_t>(graph.template input<kSingle>(node.begin() + static_cast<std::int32_t>(place)));
      const core::ValueId id = moves.values[x].id;
      if (last(x) != kDrawn && moves.values[id].time >= 0) {
        const std::int32_t p = last(x);
        const auto gap = static_cast<std::uint32_t>(i - p);
        const std::int32_t finish = p + 1 + static_cast<std::int32_t>(below(words.word[2], gap));
        const auto rest = static_cast<std::uint32_t>(i - finish + 1);
        const std::int32_t start = finish - 1 + static_cast<std::int32_t>(below(words.word[3], rest));
        copies[2 * drawn] = {id, made(x), p, finish, drawn, 0, 0, 0};
        copies[2 * drawn + 1] = {id, drawn, start, i, drawn, Copy::kFetch, 0, 0};
        last(x) = kDrawn;
        ++drawn;
      }
    }
    for (std::int32_t e = node.begin(); e < node.end(); ++e) {
      use(static_cast<std::int32_t>(graph.template input<kSingle>(e)), i);
    }
    const auto produce = [&](std::int32_t x) {
      use(x, i);
      made(x) = i;
    };
    produce(v);
    if constexpr (!kSingle) {
      for (std::int32_t x = graph.further_begin[v]; x < graph.further_begin[v + 1]; ++x) produce(x);
    }
  }
  arrange_copies(copies, 2 * drawn, arrays.keys);
  return 2 * drawn;
}

/// Calls draw_copies() with the kSingle that fits the graph.
template <class Id>
CAIRN_HD std::int32_t draw_transfers(const TablesView<Id>& graph, const MovesView& moves, std::uint64_t seed,
                                     std::int32_t most, std::int64_t index, const MovedRow<Id>& row,
                                     const WalkArrays& arrays, Copy* copies) {
  return graph.single_output() ? draw_copies<true>(graph, moves, seed, most, index, row, arrays, copies)
                               : draw_copies<false>(graph, moves, seed, most, index, row, arrays, copies);
}

}  // namespace cairn::sim::device
