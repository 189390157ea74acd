#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/reference/reference.h"

/// These are the definitions of transfers between device and host, written literally and without regard to speed. They
/// extend the definitions of reference.h, and share no code with the functions that they test. Steps count from 0, and
/// T is the number of steps. Moment 2i is step i, and moment 2i + 1 is the gap between steps i and i + 1. Memory is in
/// bytes.
namespace cairn::core::reference {

/// One occurrence of a value on the device, which a step computes or a fetch makes.
struct Occurrence {
  ValueId value = kNoValue;
  std::int64_t made = -1;      ///< step that computes it, or -1 if a fetch makes it
  std::int32_t fetch = -1;     ///< fetch that makes it, or -1 if a step computes it
  std::int64_t available = 0;  ///< first step that can read it: made + 1, or `finish` of the fetch
  std::int32_t evict = -1;     ///< evict that takes it to the host, or -1 if none does
};

/// Returns whether an output of another node overwrites the storage of `value` in place.
inline bool storage_taken(const Graph& graph, ValueId value) {
  for (ValueId other = 0; other < graph.value_count(); ++other) {
    if (graph.inplace(other) == value) return true;
  }
  return false;
}

/// Returns whether transfers are permitted to move `value`.
inline bool movable(const Graph& graph, ValueId value) {
  return !graph.pinned(graph.producer(value)) && !storage_taken(graph, value) && graph.value_size(value) > 0;
}

/// Returns the Defect for a bad transfer with the given index. If `value` exists, the Defect names its node.
inline Defect bad_transfer(const Graph& graph, Defect::Kind kind, ValueId value, std::size_t index,
                           Defect::Reason reason) {
  const bool known = value >= 0 && value < graph.value_count();
  return {kind, -1, known ? graph.producer(value) : kNoNode, kNoNode, static_cast<std::int64_t>(index), reason};
}

/// Returns why an evict is bad even if no other transfer is considered: the first reason in the order of
/// Defect::Reason.
inline Defect::Reason fault(const Graph& graph, const Schedule& schedule, const Evict& evict) {
  using Reason = Defect::Reason;
  if (evict.value < 0 || evict.value >= graph.value_count()) return Reason::unknown_value;
  const NodeId producer = graph.producer(evict.value);
  if (graph.pinned(producer)) return Reason::pinned;
  if (storage_taken(graph, evict.value)) return Reason::in_place;
  if (graph.value_size(evict.value) == 0) return Reason::no_bytes;
  if (evict.made < 0 || evict.made >= schedule.length()) return Reason::not_made;
  if (schedule.steps[static_cast<std::size_t>(evict.made)] != producer) return Reason::not_made;
  if (evict.start < evict.made) return Reason::starts_early;
  if (evict.finish <= evict.start) return Reason::finishes_early;
  if (evict.finish > schedule.length()) return Reason::finishes_late;
  return Reason::none;
}

/// Returns why a fetch is bad: the first reason in the order of Defect::Reason, or none. All evicts must be good.
inline Defect::Reason fault(const Graph& graph, const Schedule& schedule, const Fetch& fetch) {
  using Reason = Defect::Reason;
  const auto& evicts = schedule.transfers.evicts;
  if (fetch.evict < 0 || fetch.evict >= std::ssize(evicts)) return Reason::unknown_value;
  const Evict& evict = evicts[static_cast<std::size_t>(fetch.evict)];
  if (fetch.start < evict.finish - 1) return Reason::starts_early;
  if (fetch.finish <= fetch.start) return Reason::finishes_early;
  if (fetch.finish > schedule.length()) return Reason::finishes_late;
  if (fetch.finish == schedule.length() && !graph.value_kept(evict.value)) return Reason::finishes_late;
  return Reason::none;
}

/// Returns defects of the transfers that can be found without knowing what steps read. If an evict is bad by itself,
/// returns the defect of the first such evict. Otherwise, returns the defects of all evicts whose occurrence is also
/// taken by an evict with a lower index. If there are none of these, returns the defect of the first bad fetch, if
/// there is one.
inline std::vector<Defect> defects_of_places(const Graph& graph, const Schedule& schedule) {
  const auto& [evicts, fetches] = schedule.transfers;
  for (std::size_t k = 0; k < evicts.size(); ++k) {
    const Defect::Reason reason = fault(graph, schedule, evicts[k]);
    if (reason == Defect::Reason::none) continue;
    return {bad_transfer(graph, Defect::Kind::bad_evict, evicts[k].value, k, reason)};
  }
  std::vector<Defect> defects;
  for (std::size_t k = 0; k < evicts.size(); ++k) {
    bool again = false;
    for (std::size_t j = 0; j < k; ++j) {
      again = again || (evicts[j].value == evicts[k].value && evicts[j].made == evicts[k].made);
    }
    if (!again) continue;
    defects.push_back(bad_transfer(graph, Defect::Kind::bad_evict, evicts[k].value, k, Defect::Reason::twice));
  }
  if (!defects.empty()) return defects;
  for (std::size_t k = 0; k < fetches.size(); ++k) {
    const Defect::Reason reason = fault(graph, schedule, fetches[k]);
    if (reason == Defect::Reason::none) continue;
    const bool known = reason != Defect::Reason::unknown_value;
    const ValueId value = known ? evicts[static_cast<std::size_t>(fetches[k].evict)].value : kNoValue;
    return {bad_transfer(graph, Defect::Kind::bad_fetch, value, k, reason)};
  }
  return {};
}

/// Returns all occurrences of all values: first those that steps compute, by step and output, and then those of the
/// fetches.
inline std::vector<Occurrence> occurrences(const Graph& graph, const Schedule& schedule) {
  const auto& [evicts, fetches] = schedule.transfers;
  std::vector<Occurrence> result;
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    for (const ValueId value : graph.outputs(schedule.steps[static_cast<std::size_t>(i)])) {
      Occurrence made{.value = value, .made = i, .available = i + 1};
      for (std::size_t k = 0; k < evicts.size(); ++k) {
        if (evicts[k].value == value && evicts[k].made == i) made.evict = static_cast<std::int32_t>(k);
      }
      result.push_back(made);
    }
  }
  for (std::size_t k = 0; k < fetches.size(); ++k) {
    const Evict& evict = evicts[static_cast<std::size_t>(fetches[k].evict)];
    result.push_back({.value = evict.value, .fetch = static_cast<std::int32_t>(k), .available = fetches[k].finish});
  }
  return result;
}

/// Returns the index of the occurrence of `value` that step i reads or, if i is T, of the last occurrence. It is the
/// latest occurrence that is available at step i. If a computed and a fetched occurrence become available together, the
/// fetched one is later. Of two fetches with the same `finish`, the one with the higher index is later. Returns -1 if
/// no occurrence is available.
inline std::int64_t latest(const std::vector<Occurrence>& all, ValueId value, std::int64_t step) {
  std::int64_t found = -1;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].value != value || all[k].available > step) continue;
    const auto when = [&](std::size_t x) { return std::pair(all[x].available, all[x].fetch); };
    if (found < 0 || when(k) > when(static_cast<std::size_t>(found))) found = static_cast<std::int64_t>(k);
  }
  return found;
}

/// Returns the evict that has taken `occurrence` to the host before step i begins, or -1 if no evict has.
inline std::int32_t taken_before(const Schedule& schedule, const Occurrence& occurrence, std::int64_t step) {
  if (occurrence.evict < 0) return -1;
  const Evict& evict = schedule.transfers.evicts[static_cast<std::size_t>(occurrence.evict)];
  return evict.finish <= step ? occurrence.evict : -1;
}

/// Returns all defects of the first step that has a defect. Before the call, defects_of_places() must have found
/// nothing, and all nodes in the schedule must exist.
inline std::vector<Defect> defects_of_steps(const Graph& graph, const Schedule& schedule) {
  const std::vector<Occurrence> all = occurrences(graph, schedule);
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const NodeId node = schedule.steps[static_cast<std::size_t>(i)];
    std::vector<Defect> defects;
    for (const ValueId input : graph.inputs(node)) {
      const std::int64_t found = latest(all, input, i);
      if (found < 0) {
        defects.push_back({Defect::Kind::missing_input, i, node, graph.producer(input)});
      } else if (taken_before(schedule, all[static_cast<std::size_t>(found)], i) >= 0) {
        defects.push_back({Defect::Kind::input_on_host, i, node, graph.producer(input)});
      }
    }
    if (defects.empty() && graph.pinned(node) && stands(schedule, node, 0, i)) {
      defects.push_back({Defect::Kind::pinned_again, i, node, kNoNode});
    }
    if (!defects.empty()) return defects;
  }
  return {};
}

/// Returns the defects at the end: required nodes that never run or, if there are none, kept values that are on the
/// host.
inline std::vector<Defect> defects_at_end(const Graph& graph, const Schedule& schedule) {
  std::vector<Defect> defects;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    bool wanted = true;
    for (const ValueId output : graph.outputs(node)) wanted = wanted && graph.readers(output).empty();
    for (const ValueId output : graph.outputs(node)) wanted = wanted || graph.value_kept(output);
    if (wanted && !stands(schedule, node, 0, schedule.length())) {
      defects.push_back({Defect::Kind::missing_node, -1, node, kNoNode});
    }
  }
  if (!defects.empty()) return defects;
  const std::vector<Occurrence> all = occurrences(graph, schedule);
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (!graph.value_kept(value)) continue;
    const std::int64_t last = latest(all, value, schedule.length());
    if (taken_before(schedule, all[static_cast<std::size_t>(last)], schedule.length()) < 0) continue;
    defects.push_back({Defect::Kind::kept_on_host, -1, graph.producer(value), kNoNode});
  }
  return defects;
}

/// Returns, for each of occurrences(), the steps that read it, in ascending order. A read at T stands for the end of
/// the schedule, at which a kept value must be on the device. No step may have a defect.
inline std::vector<std::vector<std::int64_t>> reads_of(const Graph& graph, const Schedule& schedule) {
  const std::vector<Occurrence> all = occurrences(graph, schedule);
  std::vector<std::vector<std::int64_t>> reads(all.size());
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    for (const ValueId input : graph.inputs(schedule.steps[static_cast<std::size_t>(i)])) {
      reads[static_cast<std::size_t>(latest(all, input, i))].push_back(i);
    }
  }
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (!graph.value_kept(value)) continue;
    reads[static_cast<std::size_t>(latest(all, value, schedule.length()))].push_back(schedule.length());
  }
  return reads;
}

/// Returns the first fetch whose occurrence nothing reads or, if there is none, the first evict that has no fetch.
inline std::vector<Defect> defects_of_use(const Graph& graph, const Schedule& schedule) {
  const auto& [evicts, fetches] = schedule.transfers;
  const std::vector<Occurrence> all = occurrences(graph, schedule);
  const auto reads = reads_of(graph, schedule);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].fetch < 0 || !reads[k].empty()) continue;
    return {bad_transfer(graph, Defect::Kind::bad_fetch, all[k].value, static_cast<std::size_t>(all[k].fetch),
                         Defect::Reason::unread)};
  }
  for (std::size_t k = 0; k < evicts.size(); ++k) {
    bool fetched = false;
    for (const Fetch& fetch : fetches) fetched = fetched || fetch.evict == static_cast<std::int64_t>(k);
    if (!fetched) return {bad_transfer(graph, Defect::Kind::bad_evict, evicts[k].value, k, Defect::Reason::unread)};
  }
  return {};
}

/// Returns the first defect of a schedule with transfers. If the definition does not say which of several defects is
/// the first, returns all of them. If the schedule is valid, returns an empty vector.
inline std::vector<Defect> find_defects(const Graph& graph, const Schedule& schedule) {
  if (schedule.transfers.empty()) {
    const Defect defect = find_defect(graph, schedule);
    return defect.kind == Defect::Kind::none ? std::vector<Defect>{} : std::vector<Defect>{defect};
  }
  std::vector<Defect> defects = defects_of_places(graph, schedule);
  for (std::int64_t i = 0; i < schedule.length() && defects.empty(); ++i) {
    const NodeId node = schedule.steps[static_cast<std::size_t>(i)];
    if (node < 0 || node >= graph.node_count()) defects = {{Defect::Kind::unknown_node, i, node, kNoNode}};
  }
  if (defects.empty()) defects = defects_of_steps(graph, schedule);
  if (defects.empty()) defects = defects_at_end(graph, schedule);
  if (defects.empty()) defects = defects_of_use(graph, schedule);
  return defects;
}

inline bool valid_with_transfers(const Graph& graph, const Schedule& schedule) {
  return find_defects(graph, schedule).empty();
}

/// Returns the lifetimes of all occurrences(). This function and all below require a valid schedule.
inline std::vector<Lifetime> lifetimes_with_transfers(const Graph& graph, const Schedule& schedule) {
  const std::vector<Occurrence> all = occurrences(graph, schedule);
  const auto reads = reads_of(graph, schedule);
  const auto& [evicts, fetches] = schedule.transfers;
  std::vector<Lifetime> result;
  for (std::size_t k = 0; k < all.size(); ++k) {
    Lifetime life{.node = graph.producer(all[k].value), .output = graph.output_ref(all[k].value).output};
    life.first = all[k].fetch >= 0 ? fetches[static_cast<std::size_t>(all[k].fetch)].start : all[k].made;
    life.last = reads[k].empty() ? life.first : reads[k].back();
    if (all[k].evict >= 0) life.last = evicts[static_cast<std::size_t>(all[k].evict)].finish - 1;
    life.evict = all[k].evict;
    life.fetch = all[k].fetch;
    result.push_back(life);
  }
  return result;
}

/// Returns the memory profile of the device, (0, during(0), after(0), ...). The memory of a step is the sum of all
/// occurrences that are held at the step, plus the scratch of its node. The memory of a gap between two steps is the
/// sum of all occurrences that are held there. An occurrence is held
/// - from the step that computes it, or from the gap after step `start` of its fetch,
/// - to its last read, or to the gap before step `finish` of its evict.
inline std::vector<std::int64_t> profile_with_transfers(const Graph& graph, const Schedule& schedule) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(2 * schedule.length() + 1), 0);
  for (const Lifetime& life : lifetimes_with_transfers(graph, schedule)) {
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      const bool begun = life.first < i || (life.first == i && life.fetch < 0);
      if (begun && i <= life.last) {
        bytes[static_cast<std::size_t>(2 * i + 1)] += graph.value_size(graph.value({life.node, life.output}));
      }
      const bool lasts = i < life.last || (i == life.last && life.evict >= 0);
      if (life.first <= i && lasts) {
        bytes[static_cast<std::size_t>(2 * i + 2)] += graph.value_size(graph.value({life.node, life.output}));
      }
    }
  }
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    bytes[static_cast<std::size_t>(2 * i + 1)] += graph.scratch(schedule.steps[static_cast<std::size_t>(i)]);
  }
  return bytes;
}

inline std::int64_t peak_with_transfers(const Graph& graph, const Schedule& schedule) {
  const std::vector<std::int64_t> bytes = profile_with_transfers(graph, schedule);
  return *std::max_element(bytes.begin(), bytes.end());
}

/// Returns the first step that reaches the peak while it runs or, if the schedule has transfers, in the gap after it.
/// Returns -1 for the empty schedule.
inline std::int64_t peak_step_with_transfers(const Graph& graph, const Schedule& schedule) {
  if (schedule.transfers.empty()) return reference::peak_step(graph, schedule);
  const std::vector<std::int64_t> bytes = profile_with_transfers(graph, schedule);
  const std::int64_t peak = peak_with_transfers(graph, schedule);
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    for (const std::int64_t entry : {2 * i + 1, 2 * i + 2}) {
      if (bytes[static_cast<std::size_t>(entry)] == peak) return i;
    }
  }
  return -1;
}

/// Returns the bytes that all copies move, of evicts and fetches together.
inline std::int64_t moved_bytes(const Graph& graph, const Schedule& schedule) {
  std::int64_t bytes = 0;
  const auto& [evicts, fetches] = schedule.transfers;
  for (const Evict& evict : evicts) bytes += graph.value_size(evict.value);
  for (const Fetch& fetch : fetches) bytes += graph.value_size(evicts[fetch.evict].value);
  return bytes;
}

/// Returns the bytes on the host in the gap after each step. A copy is on the host from the gap after step `start` of
/// its evict to the gap before the last `finish` of its fetches.
inline std::vector<std::int64_t> host_profile(const Graph& graph, const Schedule& schedule) {
  std::vector<std::int64_t> bytes(schedule.steps.size(), 0);
  const auto& [evicts, fetches] = schedule.transfers;
  for (std::size_t k = 0; k < evicts.size(); ++k) {
    for (std::int64_t gap = evicts[k].start; gap < schedule.length(); ++gap) {
      bool wanted = false;
      for (const Fetch& fetch : fetches) {
        wanted = wanted || (fetch.evict == static_cast<std::int64_t>(k) && gap < fetch.finish);
      }
      if (wanted) bytes[static_cast<std::size_t>(gap)] += graph.value_size(evicts[k].value);
    }
  }
  return bytes;
}

inline std::int64_t host_peak(const Graph& graph, const Schedule& schedule) {
  std::int64_t peak = 0;
  for (const std::int64_t bytes : reference::host_profile(graph, schedule)) peak = std::max(peak, bytes);
  return peak;
}

/// Returns the time in which the link copies `bytes`, in the unit of costs: latency + bytes / bandwidth, rounded up
/// once at the end. A unit that is not a unit of time counts as ns. The result is at most the largest int64.
inline std::int64_t copy_cost(const Link& link, std::int64_t bytes, const CostUnit& unit) {
  using Wide = unsigned __int128;
  std::int64_t unit_ns = 1;
  if (unit.name == "us") unit_ns = 1'000;
  if (unit.name == "ms") unit_ns = 1'000'000;
  if (unit.name == "s") unit_ns = 1'000'000'000;
  // Numerator and denominator of the fraction are multiplied by the bandwidth, so that both are integers. All of these
  // integers are below 2^127.
  const Wide wanted = static_cast<Wide>(link.latency_ns) * static_cast<Wide>(link.bytes_per_second) +
                      static_cast<Wide>(bytes) * 1'000'000'000;
  const Wide per_unit = static_cast<Wide>(link.bytes_per_second) * static_cast<Wide>(unit_ns);
  const Wide units = (wanted + per_unit - 1) / per_unit;
  return static_cast<std::int64_t>(std::min<Wide>(units, std::numeric_limits<std::int64_t>::max()));
}

/// A simulation of a schedule by events. Three servers work through lists of jobs in a fixed order: the device, the
/// link for evicts, and the link for fetches. If one link serves both directions, there are only two servers. A job
/// begins at the first event at which its server is idle and everything that it waits for is complete. An event is the
/// end of a job.
class EventSimulation {
 public:
  EventSimulation(const Graph& graph, const Schedule& schedule, const Link& link)
      : evicts_(schedule.transfers.evicts), fetches_(schedule.transfers.fetches) {
    const std::size_t evict_count = evicts_.size(), fetch_count = fetches_.size();
    spans_ = {std::vector<Span>(schedule.steps.size()), std::vector<Span>(evict_count), std::vector<Span>(fetch_count)};
    for (auto& spans : spans_) over_.emplace_back(spans.size(), false);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      servers_[0].jobs.push_back({0, i, graph.cost(schedule.steps[i])});
    using Key = std::tuple<std::int64_t, std::int64_t, int, std::size_t>;
    std::vector<Key> order;
    for (std::size_t k = 0; k < evict_count; ++k) order.push_back({evicts_[k].start, evicts_[k].finish, 1, k});
    for (std::size_t k = 0; k < fetch_count; ++k) order.push_back({fetches_[k].start, fetches_[k].finish, 2, k});
    std::sort(order.begin(), order.end());
    for (const auto& [start, finish, kind, index] : order) {
      const std::size_t evict = kind == 1 ? index : static_cast<std::size_t>(fetches_[index].evict);
      const std::int64_t time = reference::copy_cost(link, graph.value_size(evicts_[evict].value), graph.cost_unit());
      servers_[link.duplex && kind == 2 ? 2 : 1].jobs.push_back({kind, index, time});
    }
    run();
  }

  Timeline timeline() const {
    Timeline result;
    result.steps = spans_[0];
    result.evicts = spans_[1];
    result.fetches = spans_[2];
    for (const Span& span : spans_[0]) {
      result.makespan = std::max(result.makespan, span.end);
      result.compute += span.end - span.begin;
    }
    for (const Span& span : spans_[2]) result.makespan = std::max(result.makespan, span.end);
    result.waiting = result.makespan - result.compute;
    return result;
  }

 private:
  struct Job {
    int kind = 0;  ///< 0: step, 1: evict, 2: fetch
    std::size_t index = 0;
    std::int64_t time = 0;
  };
  struct Server {
    std::vector<Job> jobs;
    std::size_t begun = 0;
    bool busy = false;
  };

  bool step_over(std::int64_t step) const { return over_[0][static_cast<std::size_t>(step)]; }

  bool ready(const Job& job) const {
    if (job.kind == 1) return step_over(evicts_[job.index].start);
    if (job.kind == 2) {
      return step_over(fetches_[job.index].start) && over_[1][static_cast<std::size_t>(fetches_[job.index].evict)];
    }
    const auto step = static_cast<std::int64_t>(job.index);
    for (std::size_t k = 0; k < evicts_.size(); ++k) {
      if (evicts_[k].finish <= step && !over_[1][k]) return false;
    }
    for (std::size_t k = 0; k < fetches_.size(); ++k) {
      if (fetches_[k].finish <= step && !over_[2][k]) return false;
    }
    return step == 0 || step_over(step - 1);
  }

  void run() {
    using Event = std::pair<std::int64_t, std::size_t>;  // time, and the server whose job ends then
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::int64_t now = 0;
    while (true) {
      for (std::size_t s = 0; s < 3; ++s) {
        Server& server = servers_[s];
        if (server.busy || server.begun == server.jobs.size() || !ready(server.jobs[server.begun])) continue;
        const Job& job = server.jobs[server.begun++];
        server.busy = true;
        spans_[static_cast<std::size_t>(job.kind)][job.index] = {now, now + job.time};
        events.push({now + job.time, s});
      }
      if (events.empty()) break;
      const auto [time, s] = events.top();
      events.pop();
      now = time;
      const Job& job = servers_[s].jobs[servers_[s].begun - 1];
      over_[static_cast<std::size_t>(job.kind)][job.index] = true;
      servers_[s].busy = false;
    }
    for (const Server& server : servers_) {
      if (server.begun != server.jobs.size()) throw std::logic_error("the simulation of events waits for ever");
    }
  }

  const std::vector<Evict>& evicts_;
  const std::vector<Fetch>& fetches_;
  Server servers_[3];  ///< [0]: the device; [1]: the link, or the link for evicts; [2]: the link for fetches
  std::vector<std::vector<Span>> spans_;
  std::vector<std::vector<bool>> over_;
};

inline Timeline simulate(const Graph& graph, const Schedule& schedule, const Link& link) {
  return EventSimulation(graph, schedule, link).timeline();
}

}  // namespace cairn::core::reference
