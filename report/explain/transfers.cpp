#include "cairn/report/explain/support/transfers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace cairn::report {
namespace {

/// Holds, for each value that transfers move, the steps that compute or read the value, in ascending order.
class Uses {
 public:
  Uses(const core::Graph& graph, const core::Schedule& schedule) {
    for (const core::Evict& evict : schedule.transfers.evicts) steps_.try_emplace(evict.value);
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      const core::NodeId v = schedule.steps[static_cast<std::size_t>(i)];
      for (const core::ValueId x : graph.inputs(v)) add(x, i);
      for (const core::ValueId x : graph.outputs(v)) add(x, i);
    }
  }

  /// Returns the last step before `step` that computes or reads the value. At least one such step must exist.
  std::int64_t last_before(core::ValueId value, std::int64_t step) const {
    const std::vector<std::int64_t>& steps = steps_.at(value);
    return *std::prev(std::ranges::lower_bound(steps, step));
  }
  /// Returns the first step at or after `step` that computes or reads the value, or `none` if there is no such step.
  std::int64_t first_from(core::ValueId value, std::int64_t step, std::int64_t none) const {
    const std::vector<std::int64_t>& steps = steps_.at(value);
    const auto found = std::ranges::lower_bound(steps, step);
    return found == steps.end() ? none : *found;
  }

 private:
  void add(core::ValueId value, std::int64_t step) {
    if (const auto found = steps_.find(value); found != steps_.end()) found->second.push_back(step);
  }

  std::map<core::ValueId, std::vector<std::int64_t>> steps_;
};

void add_copy(LinkUse& use, std::int64_t bytes, const core::Span& time) {
  ++use.copies;
  use.bytes += bytes;
  use.busy += time.end - time.begin;
}

std::vector<Absence> absences_of(const core::Graph& graph, const core::Schedule& schedule,
                                 const core::Timeline& times) {
  const auto& [evicts, fetches] = schedule.transfers;
  const Uses uses(graph, schedule);
  std::map<core::ValueId, std::vector<core::Lifetime>> lives;
  for (const core::Evict& evict : evicts) lives.try_emplace(evict.value);
  for (const core::Lifetime& life : core::lifetimes(graph, schedule)) {
    if (const auto found = lives.find(graph.value({life.node, life.output})); found != lives.end())
      found->second.push_back(life);
  }
  const auto begin_of = [&](std::int64_t step) {
    return step < schedule.length() ? times.steps[static_cast<std::size_t>(step)].begin : times.makespan;
  };
  const auto end_of = [&](std::int64_t step) { return times.steps[static_cast<std::size_t>(step)].end; };
  std::vector<Absence> absences;
  for (std::size_t k = 0; k < fetches.size(); ++k) {
    const core::Fetch& fetch = fetches[k];
    const core::ValueId value = evicts[static_cast<std::size_t>(fetch.evict)].value;
    Absence one{
        .evict = fetch.evict, .fetch = static_cast<std::int32_t>(k), .value = value, .bytes = graph.value_size(value)};
    one.used = uses.last_before(value, fetch.finish);
    one.needed = uses.first_from(value, fetch.finish, schedule.length());
    one.idle = std::max<std::int64_t>(0, begin_of(one.needed) - end_of(one.used));
    // Before the fetch, several occurrences of the value can be on the device. The value is off the device once the
    // last of them has been freed. Moment 2i is step i, and moment 2i + 1 lies between steps i and i + 1.
    const std::int64_t back = 2 * fetch.start + 1;
    std::int64_t gone = 0;  // last moment at which that last occurrence is on the device
    for (const core::Lifetime& life : lives.at(value)) {
      if (life.fetch != one.fetch && life.first_moment() <= back) gone = std::max(gone, life.last_moment());
    }
    one.returns = fetch.start + 1;
    one.leaves = std::min(gone / 2 + 1, one.returns);
    if (gone < back) one.away = end_of(fetch.start) - (gone % 2 == 0 ? end_of(gone / 2) : begin_of(one.leaves));
    absences.push_back(one);
  }
  std::ranges::stable_sort(absences, {}, [](const Absence& one) { return std::pair(one.leaves, one.fetch); });
  return absences;
}

std::vector<CopyWait> waits_of(const core::Schedule& schedule, const core::Timeline& times) {
  const auto& [evicts, fetches] = schedule.transfers;
  // Maps each step to the copy that ends last among the copies for which the step must wait. If an evict and a fetch
  // end at the same time, the evict is stored.
  std::map<std::int64_t, std::pair<std::int64_t, CopyWait>> latest;
  const auto offer = [&](std::int64_t step, std::int64_t end, std::int32_t evict, std::int32_t fetch) {
    const auto [place, is_new] = latest.try_emplace(step, end, CopyWait{step, 0, evict, fetch});
    if (!is_new && place->second.first < end) place->second = {end, {step, 0, evict, fetch}};
  };
  for (std::size_t k = 0; k < evicts.size(); ++k)
    offer(evicts[k].finish, times.evicts[k].end, static_cast<std::int32_t>(k), -1);
  for (std::size_t k = 0; k < fetches.size(); ++k)
    offer(fetches[k].finish, times.fetches[k].end, -1, static_cast<std::int32_t>(k));
  std::vector<CopyWait> waits;
  for (auto& [step, copy] : latest) {
    const auto i = static_cast<std::size_t>(step);
    const std::int64_t before = i == 0 ? 0 : times.steps[i - 1].end;
    const std::int64_t begin = i < times.steps.size() ? times.steps[i].begin : times.makespan;
    copy.second.time = begin - before;
    if (copy.second.time > 0) waits.push_back(copy.second);
  }
  return waits;
}

}  // namespace

TransferSummary explain_transfers(const core::Graph& graph, const core::Schedule& schedule, const core::Link& link) {
  TransferSummary summary;
  summary.times = core::timeline(graph, schedule, link);
  const auto& [evicts, fetches] = schedule.transfers;
  for (std::size_t k = 0; k < evicts.size(); ++k)
    add_copy(summary.to_host, graph.value_size(evicts[k].value), summary.times.evicts[k]);
  for (std::size_t k = 0; k < fetches.size(); ++k) {
    const core::ValueId value = evicts[static_cast<std::size_t>(fetches[k].evict)].value;
    add_copy(summary.to_device, graph.value_size(value), summary.times.fetches[k]);
  }
  summary.host_peak = core::host_peak(graph, schedule);
  summary.absences = absences_of(graph, schedule, summary.times);
  summary.waits = waits_of(schedule, summary.times);
  return summary;
}

std::vector<std::pair<std::int64_t, std::int64_t>> host_bytes(const core::Graph& graph, const core::Schedule& schedule,
                                                              const core::Timeline& times) {
  const std::size_t steps = schedule.steps.size();
  // Bytes added after the end of each step, and bytes dropped before the begin of each step.
  std::vector<std::int64_t> added(steps, 0), dropped(steps + 1, 0);
  for (const core::HostCopy& held : core::host_copies(graph, schedule)) {
    added[static_cast<std::size_t>(held.first)] += held.bytes;
    dropped[static_cast<std::size_t>(held.last + 1)] += held.bytes;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> points;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i <= steps; ++i) {
    if (dropped[i] > 0) points.emplace_back(i < steps ? times.steps[i].begin : times.makespan, bytes -= dropped[i]);
    if (i < steps && added[i] > 0) points.emplace_back(times.steps[i].end, bytes += added[i]);
  }
  return points;
}

core::ValueId copied_value(const core::Schedule& schedule, std::int32_t evict, std::int32_t fetch) {
  const auto& [evicts, fetches] = schedule.transfers;
  if (evict < 0) evict = fetches[static_cast<std::size_t>(fetch)].evict;
  return evicts[static_cast<std::size_t>(evict)].value;
}

std::string copy_name(const core::Graph& graph, const core::Schedule& schedule, std::int32_t evict,
                      std::int32_t fetch) {
  return graph.value_name(copied_value(schedule, evict, fetch)) + (evict >= 0 ? " to the host" : " to the device");
}

}  // namespace cairn::report
