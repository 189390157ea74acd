#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/device/transfers/transfer.h"

/// Computes canonical profiles of many candidates (schedules) on any Machine (core/machine/support/machine.h). One
/// thread handles one profile, or one set of chains that are merged (sim::merge_segments).
namespace cairn::sim::device {

/// A sim::CanonicalBatch in a Machine's memory.
template <class Machine>
struct Batch {
  template <class T>
  using Array = typename Machine::template ArrayOf<T>;

  Array<std::int64_t> starts, begins;
  Array<core::Segment> segments;
  std::int64_t count() const { return starts.size(); }
};

template <class Machine>
Batch<Machine> upload(Machine& machine, const CanonicalBatch& batch) {
  return {uploaded(machine, batch.starts()), uploaded(machine, batch.begins()), uploaded(machine, batch.segments())};
}
template <class Machine>
CanonicalBatch download(Machine& machine, const Batch<Machine>& batch) {
  return {downloaded(machine, batch.starts.data(), batch.starts.size()),
          downloaded(machine, batch.begins.data(), batch.begins.size()),
          downloaded(machine, batch.segments.data(), batch.segments.size())};
}

/// Finds the segments (core::Segment) between one end of a profile and its lowest valley (local minimum), from the end
/// inwards. A segment has a peak between two valleys: the outer valley is nearer to the end, the inner valley nearer to
/// the lowest valley. For each segment calls emit(outer, inner) with the heights of its peak above these two valleys.
/// From the end to the lowest valley, each segment has a higher peak and a lower inner valley than all segments before
/// it. So one pass finds the segments: only a value that is higher than all values before it can be a peak, and only a
/// value that is lower than all values before it can be a valley.
template <class Emit>
CAIRN_HD void meet_segments(const std::int64_t* values, std::int64_t end, std::int64_t lowest, const Emit& emit) {
  if (end == lowest) return;
  const std::int64_t step = end < lowest ? 1 : -1;
  std::int64_t valley = values[end], high = valley, low = valley;
  for (std::int64_t i = end; i != lowest;) {
    const std::int64_t value = values[i += step];
    if (value > high) {
      if (low < valley) emit(high - valley, high - low);
      valley = low;
      high = value;
    } else if (value < low) {
      low = value;
    }
  }
  emit(high - valley, high - low);
}

/// Finds the segments of each profile. Writes them into the profile's own part of `found`, which has room for every
/// profile of this length. Segments left of the lowest valley are stored from the beginning of the part on. Segments
/// right of the lowest valley are stored so that the last of them is at the end of the part.
struct FindSegments {
  static constexpr int kThreads = 1;
  const std::int64_t* values;
  const std::int64_t* offsets;
  std::int64_t* starts;
  core::Segment* found;
  std::int64_t* left_counts;
  std::int64_t* counts;

  /// Returns the index in `found` at which the part of profile i begins. The parts are long enough, because a profile
  /// of k values has at most (k + 1) / 2 segments.
  CAIRN_HD static std::int64_t part(const std::int64_t* offsets, std::int64_t i) { return offsets[i] / 2 + i; }

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    const std::int64_t begin = offsets[i], end = offsets[i + 1];
    std::int64_t lowest = begin, least = values[begin];
    for (std::int64_t k = begin + 1; k < end; ++k) {
      if (values[k] < least) {
        least = values[k];
        lowest = k;
      }
    }
    starts[i] = values[begin];
    core::Segment* const first = found + part(offsets, i);
    core::Segment* const last = found + part(offsets, i + 1);
    // The lambdas count with integers instead of moving pointers. If they changed a pointer, nvcc would store through
    // it by a generic instruction, which is slower than one for global memory.
    std::int64_t left = 0, right = 0;
    meet_segments(values, begin, lowest, [&](std::int64_t outer, std::int64_t inner) {
      first[left++] = core::Segment{outer, inner};
    });
    meet_segments(values, end - 1, lowest, [&](std::int64_t outer, std::int64_t inner) {
      *(last - ++right) = core::Segment{inner, outer};
    });
    left_counts[i] = left;
    counts[i] = left + right;
  }
};

/// Copies the segments that FindSegments has found to their final positions, without the gaps between parts.
struct PlaceSegments {
  static constexpr int kThreads = 1;
  const std::int64_t* offsets;
  const core::Segment* found;
  const std::int64_t* left_counts;
  const std::int64_t* begins;
  core::Segment* segments;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    const std::int64_t begin = begins[i], count = begins[i + 1] - begin, left = left_counts[i];
    const core::Segment* from = found + FindSegments::part(offsets, i);
    const core::Segment* end = found + FindSegments::part(offsets, i + 1);
    for (std::int64_t k = 0; k < count; ++k) segments[begin + k] = k < left ? from[k] : end[k - count];
  }
};

/// Computes the canonical form (core::canonical) of `count` profiles. Profile i consists of values[offsets[i]] ..
/// values[offsets[i + 1] - 1] and must have at least one value. value_count is the number of values of all profiles. In
/// addition to the result, takes 8 bytes of memory per value and 32 bytes per profile.
template <class Machine>
Batch<Machine> canonical(Machine& machine, const std::int64_t* values, std::int64_t value_count,
                         const std::int64_t* offsets, std::int64_t count) {
  const auto found = machine.template array<core::Segment>(value_count / 2 + count);
  const auto left_counts = machine.template array<std::int64_t>(count);
  const auto counts = machine.template array<std::int64_t>(count);
  Batch<Machine> batch;
  batch.starts = machine.template array<std::int64_t>(count);
  machine.launch(FindSegments{values, offsets, batch.starts.data(), found.data(), left_counts.data(), counts.data()},
                 count);
  batch.begins = machine.template array<std::int64_t>(count + 1);
  machine.exclusive_sum(counts.data(), batch.begins.data(), count);
  batch.segments = machine.template array<core::Segment>(downloaded(machine, batch.begins.data() + count, 1)[0]);
  machine.launch(PlaceSegments{offsets, found.data(), left_counts.data(), batch.begins.data(), batch.segments.data()},
                 count);
  return batch;
}

/// A chain that is being merged, with its next segment. If the next segments of two chains are equal in the order of
/// core::sorts_before, either may come first: the two are joined to one segment, which is the same for both orders.
struct ChainHead {
  core::Segment segment;
  std::int64_t chain;
};

/// Replaces the element at index `first` of a heap by `head`. Moves the gap down to a leaf, where `head` usually
/// belongs, and then up to where `head` fits.
CAIRN_HD inline void replace_first(ChainHead* heap, std::int64_t size, std::int64_t first, const ChainHead& head) {
  std::int64_t hole = first;
  for (std::int64_t child = 2 * hole + 1; child < size; child = 2 * hole + 1) {
    if (child + 1 < size && core::sorts_before(heap[child + 1].segment, heap[child].segment)) ++child;
    heap[hole] = heap[child];
    hole = child;
  }
  while (hole > first && core::sorts_before(head.segment, heap[(hole - 1) / 2].segment)) {
    heap[hole] = heap[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  heap[hole] = head;
}

/// Merges the chains of one set as core::merge_segments does. The result goes into the set's part of `merged`, which
/// has room for all segments of these chains.
struct MergeChains {
  static constexpr int kThreads = 1;
  const std::int64_t* starts;
  const std::int64_t* begins;
  const core::Segment* segments;
  const std::int64_t* sets;
  std::int64_t* next;  ///< next segment of each chain
  ChainHead* heads;    ///< a heap of chains for each set
  core::Segment* merged;
  std::int64_t* merged_starts;
  std::int64_t* counts;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t set) const {
    ChainHead* heap = heads + sets[set];
    std::int64_t size = 0, start = 0;
    for (std::int64_t chain = sets[set]; chain < sets[set + 1]; ++chain) {
      start += starts[chain];
      next[chain] = begins[chain];
      if (begins[chain] < begins[chain + 1]) heap[size++] = {segments[begins[chain]], chain};
    }
    for (std::int64_t place = size / 2; place-- > 0;) {
      const ChainHead head = heap[place];
      replace_first(heap, size, place, head);
    }
    core::Segment* const first = merged + begins[sets[set]];
    core::Segment* end = first;
    while (size > 0) {
      core::Segment segment = heap[0].segment;
      const std::int64_t chain = heap[0].chain;
      while (end != first && core::belong_together(end[-1], segment)) segment = core::joined(*--end, segment);
      *end++ = segment;
      const std::int64_t after = ++next[chain];
      const ChainHead head = after < begins[chain + 1] ? ChainHead{segments[after], chain} : heap[--size];
      if (size > 0) replace_first(heap, size, 0, head);
    }
    merged_starts[set] = start;
    counts[set] = end - first;
  }
};

/// Copies the segments that MergeChains has merged for each set to their final positions, without the gaps between
/// sets.
struct CompactChains {
  static constexpr int kThreads = 32;
  const std::int64_t* begins;
  const std::int64_t* sets;
  const core::Segment* merged;
  const std::int64_t* result_begins;
  core::Segment* result;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t set) const {
    const core::Segment* from = merged + begins[sets[set]];
    const std::int64_t begin = result_begins[set], count = result_begins[set + 1] - begin;
    for (std::int64_t i = team.rank(); i < count; i += team.size()) result[begin + i] = from[i];
  }
};

/// Does the same as sim::merge_segments, in the machine's memory; `sets` has set_count + 1 entries. In addition to the
/// result, takes as much memory as the segments of all chains, 32 bytes per chain and 8 bytes per set.
template <class Machine>
Batch<Machine> merge_segments(Machine& machine, const Batch<Machine>& chains, const std::int64_t* sets,
                              std::int64_t set_count) {
  const auto next = machine.template array<std::int64_t>(chains.count());
  const auto heads = machine.template array<ChainHead>(chains.count());
  const auto merged = machine.template array<core::Segment>(chains.segments.size());
  const auto counts = machine.template array<std::int64_t>(set_count);
  Batch<Machine> result;
  result.starts = machine.template array<std::int64_t>(set_count);
  machine.launch(MergeChains{chains.starts.data(), chains.begins.data(), chains.segments.data(), sets, next.data(),
                             heads.data(), merged.data(), result.starts.data(), counts.data()},
                 set_count);
  result.begins = machine.template array<std::int64_t>(set_count + 1);
  machine.exclusive_sum(counts.data(), result.begins.data(), set_count);
  result.segments = machine.template array<core::Segment>(downloaded(machine, result.begins.data() + set_count, 1)[0]);
  machine.launch(CompactChains{chains.begins.data(), sets, merged.data(), result.begins.data(), result.segments.data()},
                 set_count);
  return result;
}

/// Throws InputError unless `offsets` divides `length` entries into pieces of at least `least` entries each. `what`
/// names a piece in the error.
void check_offsets(std::span<const std::int64_t> offsets, std::int64_t length, std::int64_t least, const char* what);

template <class Machine>
CanonicalBatch canonical_batch(Machine& machine, std::span<const std::int64_t> values,
                               std::span<const std::int64_t> offsets) {
  check_offsets(offsets, static_cast<std::int64_t>(values.size()), 1, "profile");
  const auto all_values = uploaded(machine, values);
  const auto all_offsets = uploaded(machine, offsets);
  return download(machine,
                  canonical(machine, all_values.data(), all_values.size(), all_offsets.data(), all_offsets.size() - 1));
}
template <class Machine>
CanonicalBatch merge_segments(Machine& machine, const CanonicalBatch& chains, std::span<const std::int64_t> sets) {
  check_offsets(sets, chains.size(), 0, "set of chains");
  const auto all_sets = uploaded(machine, sets);
  return download(machine, merge_segments(machine, upload(machine, chains), all_sets.data(), all_sets.size() - 1));
}

}  // namespace cairn::sim::device
