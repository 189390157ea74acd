#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes random transfers for tests of code that executes schedules.
namespace cairn::tests {

/// One occurrence of a value in a schedule without transfers, and the steps that read it, in ascending order. The last
/// occurrence of a kept value also has the read T, which stands for the end of the T steps.
struct Occurrence {
  core::ValueId value = core::kNoValue;
  std::int64_t made = 0;
  std::vector<std::int64_t> reads;
};

/// Returns the occurrences of all values that may be evicted, if some later step reads them.
inline std::vector<Occurrence> evictable(const core::Graph& graph, const core::Schedule& schedule) {
  std::vector<Occurrence> all;
  std::vector<std::size_t> latest(static_cast<std::size_t>(graph.value_count()));
  std::vector<bool> taken(latest.size());
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (graph.inplace(x) != core::kNoValue) taken[static_cast<std::size_t>(graph.inplace(x))] = true;
  }
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const core::NodeId v = schedule.steps[static_cast<std::size_t>(i)];
    for (const core::ValueId x : graph.inputs(v)) {
      std::vector<std::int64_t>& reads = all[latest[static_cast<std::size_t>(x)]].reads;
      if (reads.empty() || reads.back() < i) reads.push_back(i);
    }
    for (const core::ValueId x : graph.outputs(v)) {
      latest[static_cast<std::size_t>(x)] = all.size();
      all.push_back({x, i, {}});
    }
  }
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (graph.value_kept(x)) all[latest[static_cast<std::size_t>(x)]].reads.push_back(schedule.length());
  }
  std::erase_if(all, [&](const Occurrence& one) {
    return one.reads.empty() || taken[static_cast<std::size_t>(one.value)] || graph.value_size(one.value) == 0 ||
           graph.pinned(graph.producer(one.value));
  });
  return all;
}

/// Adds an evict and one or several fetches to about `percent` percent of the occurrences in a valid schedule without
/// transfers. The copies start and finish at random steps, within the limits that the occurrence's reads set. The
/// result is valid.
inline core::Schedule with_transfers(Random& random, const core::Graph& graph, core::Schedule schedule, int percent) {
  for (const Occurrence& one : evictable(graph, schedule)) {
    if (!random.chance(percent)) continue;
    // The occurrence is evicted after its first `before` reads. Later reads read what the fetches make.
    const auto before = static_cast<std::size_t>(random.below(std::ssize(one.reads)));
    const std::int64_t used = before == 0 ? one.made : one.reads[before - 1];
    std::int64_t next = one.reads[before];
    core::Evict evict{.value = one.value, .made = one.made};
    evict.finish = random.between(used + 1, next);
    evict.start = random.between(one.made, evict.finish - 1);
    const auto index = static_cast<std::int32_t>(schedule.transfers.evicts.size());
    std::int64_t earliest = evict.finish;  // earliest possible `finish` of the next fetch
    for (std::size_t k = before; k < one.reads.size(); ++k) {
      if (k > before && !random.chance(30)) continue;  // the previous fetch also serves this read
      next = one.reads[k];
      if (k > before) earliest = one.reads[k - 1] + 1;
      core::Fetch fetch{.evict = index};
      fetch.finish = random.between(earliest, next);
      fetch.start = random.between(evict.finish - 1, fetch.finish - 1);
      schedule.transfers.fetches.push_back(fetch);
    }
    schedule.transfers.evicts.push_back(evict);
  }
  return schedule;
}

/// Returns the chain of nodes 0, 1, 2, 3, 4, 5. Nodes 4 and 5 also read node 0, and node 5 is kept. The first four
/// nodes have the most bytes. So while node 0 is on the host, other nodes use its bytes on the device.
inline core::Graph relay() {
  constexpr std::int64_t kBytes = 4096;
  core::Node last = make_node("5", 64, {4, 0});
  last.keep = true;
  return build_graph({make_node("0", kBytes), make_node("1", kBytes, {0}), make_node("2", kBytes, {1}),
                      make_node("3", kBytes, {2}), make_node("4", 64, {3, 0}), last});
}
/// Returns the schedule of relay() in which node 0 is evicted to the host and fetched again.
inline core::Schedule relay_schedule(const core::Evict& evict, std::vector<core::Fetch> fetches) {
  return {{0, 1, 2, 3, 4, 5}, {{evict}, std::move(fetches)}};
}
inline core::Schedule relay_once() { return relay_schedule({0, 0, 1, 2}, {{0, 3, 4}}); }
/// In this schedule, the fetch may start before the evict is complete.
inline core::Schedule relay_touching() { return relay_schedule({0, 0, 0, 3}, {{0, 2, 4}}); }
inline core::Schedule relay_twice() { return relay_schedule({0, 0, 1, 2}, {{0, 2, 4}, {0, 4, 5}}); }

}  // namespace cairn::tests
