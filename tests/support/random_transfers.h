#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/reference/transfers.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes random transfers between device and host, both valid and invalid ones, and random links.
namespace cairn::tests {

/// Adds an evict of a random occurrence, and fetches of it, each of which some step reads. Half of the fetches begin as
/// early as possible. If the result is not valid, returns false and leaves the schedule unchanged.
inline bool add_transfers(Random& random, const core::Graph& graph, core::Schedule& schedule) {
  namespace reference = core::reference;
  const std::vector<reference::Occurrence> all = reference::occurrences(graph, schedule);
  const auto reads = reference::reads_of(graph, schedule);
  const std::size_t chosen = random.place(all);
  const reference::Occurrence& occurrence = all[chosen];
  if (occurrence.fetch >= 0 || occurrence.evict >= 0 || !reference::movable(graph, occurrence.value)) return false;
  // Only the readers of this occurrence need a fetch. Sometimes, one later step gets a fetch, too, which may then serve
  // readers of later occurrences.
  std::vector<std::int64_t> left = reads[chosen];
  const std::int64_t end = graph.value_kept(occurrence.value) ? schedule.length() : schedule.length() - 1;
  if (random.chance(20)) left.push_back(random.between(occurrence.made, std::max(occurrence.made, end)));
  std::sort(left.begin(), left.end());
  if (left.empty() || left.back() <= occurrence.made) return false;
  core::Schedule changed = schedule;
  auto& [evicts, fetches] = changed.transfers;
  core::Evict evict{.value = occurrence.value, .made = occurrence.made};
  evict.start = random.chance(50) ? evict.made : random.between(evict.made, left.back() - 1);
  evict.finish = random.between(evict.start + 1, left.back());
  evicts.push_back(evict);
  std::int64_t from = evict.finish;  // the next fetch serves reads from this step on
  do {
    const auto first = std::lower_bound(left.begin(), left.end(), from);
    if (first == left.end()) break;
    core::Fetch fetch{.evict = static_cast<std::int32_t>(evicts.size() - 1)};
    fetch.start = random.chance(50) ? evict.finish - 1 : random.between(evict.finish - 1, *first - 1);
    fetch.finish = std::max(from, random.between(fetch.start + 1, *first));
    fetches.push_back(fetch);
    from = *first + 1;
  } while (random.chance(50));
  if (!reference::valid_with_transfers(graph, changed)) return false;
  schedule = std::move(changed);
  return true;
}

/// Returns the schedule with up to six evicts and their fetches, in random orders. The schedule stays valid.
inline core::Schedule with_random_transfers(Random& random, const core::Graph& graph, core::Schedule schedule) {
  for (std::int64_t tries = random.between(0, 12), made = 0; tries > 0 && made < 6; --tries) {
    made += add_transfers(random, graph, schedule);
  }
  auto& [evicts, fetches] = schedule.transfers;
  std::vector<core::NodeId> order = numbers_below(static_cast<core::NodeId>(evicts.size()));
  random.shuffle(order);
  std::vector<core::Evict> shuffled;
  for (const core::NodeId k : order) shuffled.push_back(evicts[static_cast<std::size_t>(k)]);
  for (core::Fetch& fetch : fetches) {
    fetch.evict = static_cast<std::int32_t>(std::find(order.begin(), order.end(), fetch.evict) - order.begin());
  }
  evicts = shuffled;
  random.shuffle(fetches);
  return schedule;
}

/// Makes one random change of the transfers or of the steps. In most cases, the result is not valid.
inline core::Schedule with_changed_transfers(Random& random, const core::Graph& graph, core::Schedule schedule) {
  if (schedule.steps.empty()) return schedule;
  auto& [evicts, fetches] = schedule.transfers;
  const auto moved = [&](std::int64_t place) {
    if (random.chance(10))
      return random.pick(std::vector<std::int64_t>{-1, INT64_MIN, INT64_MAX, schedule.length() + 1});
    return random.chance(70) ? place + random.pick(std::vector<std::int64_t>{-1, 1})
                             : random.between(-1, schedule.length() + 1);
  };
  const auto value = [&] { return static_cast<core::ValueId>(random.between(-1, graph.value_count())); };
  if (evicts.empty() || fetches.empty() || random.chance(15)) {
    const std::int64_t made = random.below(schedule.length());
    const core::NodeId node = schedule.steps[static_cast<std::size_t>(made)];
    if (node < 0 || node >= graph.node_count()) return schedule;  // an earlier change has made the steps invalid
    const core::ValueId output = graph.value({node, static_cast<std::int32_t>(random.below(graph.output_count(node)))});
    evicts.push_back({output, made, made, random.between(made, schedule.length())});
    if (random.chance(70)) {
      fetches.push_back({static_cast<std::int32_t>(evicts.size() - 1), evicts.back().finish - random.between(0, 1),
                         random.between(made, schedule.length())});
    }
    return schedule;
  }
  core::Evict& evict = random.pick(evicts);
  const std::size_t f = random.place(fetches);
  switch (random.below(10)) {
    case 0:
      evict.value = value();
      break;
    case 1:
      evict.made = moved(evict.made);
      break;
    case 2:
      evict.start = moved(evict.start);
      break;
    case 3:
      evict.finish = moved(evict.finish);
      break;
    case 4:
      evicts.push_back(core::Evict(evict));
      break;
    case 5:
      fetches[f].evict = static_cast<std::int32_t>(random.between(-1, std::ssize(evicts)));
      break;
    case 6:
      fetches[f].start = moved(fetches[f].start);
      break;
    case 7:
      fetches[f].finish = moved(fetches[f].finish);
      break;
    case 8:
      fetches.erase(fetches.begin() + static_cast<std::ptrdiff_t>(f));
      break;
    default:
      return invalidated(random, graph, std::move(schedule));
  }
  return schedule;
}

inline core::Link random_link(Random& random) {
  // The links range from far slower to far faster than the steps of a random graph.
  return {.bytes_per_second = random.pick(std::vector<std::int64_t>{1, 7, 100'000'000, 1'000'000'000, 30'000'000'000}),
          .latency_ns = random.chance(50) ? 0 : random.between(0, 20),
          .duplex = random.chance(50)};
}

/// Returns the transfers as text for messages.
inline std::string show(const core::Transfers& transfers) {
  std::string text = "\n";
  for (const core::Evict& evict : transfers.evicts) {
    text += fmt::format("  evict {} made {} start {} finish {}\n", evict.value, evict.made, evict.start, evict.finish);
  }
  for (const core::Fetch& fetch : transfers.fetches) {
    text += fmt::format("  fetch {} start {} finish {}\n", fetch.evict, fetch.start, fetch.finish);
  }
  return text;
}

}  // namespace cairn::tests
