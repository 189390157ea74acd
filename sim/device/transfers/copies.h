#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/schedule_batch.h"

/// This file has tables and functions for candidates (schedules) with transfers, i.e. with copies of values between
/// device and host.
namespace cairn::sim::device {

/// What the simulator knows of a value that may move between device and host. moved_values() makes a table that has an
/// entry for each value, at the index of its ValueId. The other tables of the simulator (TablesView in graph_tables.h)
/// number values in another way; `number` and `id` convert one number to the other.
struct alignas(32) MovedValue {
  std::int64_t bytes = 0;
  std::int64_t time =
      -1;  ///< copy_cost() of the value, 0 if the graph has no link; -1: the value must stay on the device
  std::int32_t number = 0;    ///< the value's number in TablesView
  std::int32_t producer = 0;  ///< node that makes the value
  /// In entry k of the table, the ValueId of the value whose number in TablesView is k. The other fields of entry k are
  /// about the value whose ValueId is k.
  core::ValueId id = 0;
};

/// The table of MovedValues of a graph, in the memory of a Machine.
struct MovesView {
  const MovedValue* values = nullptr;
  std::int32_t value_count = 0;
  bool duplex = true;  ///< whether each direction has a link of its own
};

/// Returns the table of MovedValues of a graph. O(values).
std::vector<MovedValue> moved_values(const core::Graph& graph);
/// Returns whether the graph's link carries copies in both directions at the same time. True without a link.
bool is_duplex(const core::Graph& graph);

/// Sorts by heapsort, which needs no additional memory. O(count log count).
template <class T, class Less>
CAIRN_HD void heap_sort(T* items, std::int32_t count, const Less& less) {
  const auto swap_items = [&](std::int32_t a, std::int32_t b) {
    const T item = items[a];
    items[a] = items[b];
    items[b] = item;
  };
  const auto sift = [&](std::int32_t parent, std::int32_t end) {
    for (std::int32_t child = 2 * parent + 1; child < end; child = 2 * parent + 1) {
      if (child + 1 < end && less(items[child], items[child + 1])) ++child;
      if (!less(items[parent], items[child])) return;
      swap_items(parent, child);
      parent = child;
    }
  };
  for (std::int32_t parent = count / 2; parent-- > 0;) sift(parent, count);
  for (std::int32_t end = count; end-- > 1;) {
    swap_items(0, end);
    sift(0, end);
  }
}

/// The sort key of a copy, and the copy's place in the array. Keys are compared by `first`, then by `second`, `fetch`
/// and `index`.
struct CopyKey {
  std::int32_t first, second, fetch, index, place;

  CAIRN_HD bool operator<(const CopyKey& other) const {
    if (first != other.first) return first < other.first;
    if (second != other.second) return second < other.second;
    if (fetch != other.fetch) return fetch < other.fetch;
    return index < other.index;
  }
};

/// Sorts the copies of a candidate in the order in which the link carries them, and computes their remaining fields. On
/// entry, the fields value, from, start, finish and index are set, `kind` is 0 or kFetch, and `from` of a fetch is the
/// field `index` of its evict, or -1 if it has no evict. `keys` has room for `count` entries. O(count log count).
CAIRN_HD inline void arrange_copies(Copy* copies, std::int32_t count, CopyKey* keys) {
  heap_sort(copies, count, [](const Copy& a, const Copy& b) {
    return CopyKey{a.start, a.finish, a.kind & Copy::kFetch, a.index, 0} <
           CopyKey{b.start, b.finish, b.kind & Copy::kFetch, b.index, 0};
  });
  std::int32_t evicts = 0;
  for (std::int32_t k = 0; k < count; ++k) {
    if (copies[k].kind == Copy::kFetch) continue;
    copies[copies[k].index].by_made = k;  // for now, entry i says where the evict with `index` i is
    copies[k].kind = Copy::kUnfetched;
    keys[evicts++] = {copies[k].from, copies[k].value, 0, copies[k].index, k};
  }
  for (std::int32_t k = 0; k < count; ++k) {
    Copy& copy = copies[k];
    if (copy.kind == Copy::kFetch && copy.from >= 0) copy.from = copies[copy.from].by_made;
  }
  heap_sort(keys, evicts, [](const CopyKey& a, const CopyKey& b) { return a < b; });
  for (std::int32_t k = 0; k < evicts; ++k) {
    copies[k].by_made = keys[k].place;
    const bool twice = k > 0 && keys[k].first == keys[k - 1].first && keys[k].second == keys[k - 1].second;
    if (twice) copies[keys[k].place].value = core::kNoValue;
  }
  for (std::int32_t k = 0; k < count; ++k) {
    keys[k] = {copies[k].finish, 0, copies[k].kind & Copy::kFetch, copies[k].index, k};
  }
  heap_sort(keys, count, [](const CopyKey& a, const CopyKey& b) { return a < b; });
  for (std::int32_t k = count; k-- > 0;) {
    copies[k].by_finish = keys[k].place;
    Copy& copy = copies[keys[k].place];
    if ((copy.kind & Copy::kFetch) == 0 || copy.from < 0) continue;
    Copy& evict = copies[copy.from];
    if ((evict.kind & Copy::kUnfetched) != 0) copy.kind |= Copy::kLastFetch;
    evict.kind &= ~Copy::kUnfetched;
  }
}

}  // namespace cairn::sim::device
