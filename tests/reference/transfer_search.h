#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/reference/transfers.h"

/// Brute force over all schedules with transfers of a small graph, with any amount of recomputation.
namespace cairn::core::reference {

/// The limits that a schedule must keep. Memory is in bytes.
struct TransferLimits {
  std::int64_t device = 0;
  std::int64_t host = 0;
};

struct FastestSchedule {
  std::int64_t makespan = 0;
  Schedule schedule;  ///< has this makespan, and is within the limits
};

/// Searches for a schedule of least makespan in the order of makespans. A state is what is true right after a step has
/// ended: what has run, what is on the device and on the host, which copies are in flight, and until when. A move
/// decides everything about one gap, and runs a node. The moves of a gap are
/// - to drop occurrences and copies on the host;
/// - to start copies, in the order in which the link carries them;
/// - to choose the copies in flight that must be over before the next step begins (those whose `finish` is this step).
///
/// The search covers all schedules, except for these, which are never better than others that it covers:
/// - Nothing is dropped that would fit into the gap and the step behind it, because it can be dropped in the next gap.
///   What is computed again or fetched replaces what it supersedes.
/// - What nothing reads is dropped at once. A fetched occurrence is dropped only after a step has read it, and a copy
///   on the host only after a fetch of it has started: the others are not valid.
/// - The host never holds two copies of one value. Let e1 and e2 be evicts of one value, in the order of the link,
///   whose copies are on the host in one gap. If e1.finish <= e2.finish, the fetches of e2 can fetch the copy of e1
///   instead: it is over earlier. If e1.finish > e2.finish, the fetches of e1 can fetch the copy of e2: it is over
///   before step e2.finish begins, and they start after that step, so they wait no longer. In both cases one evict is
///   deleted. Its occurrence is held no longer than before, every other copy begins no later, and the copy that remains
///   is on the host only in gaps in which one of the two was there.
/// - Of the occurrences of a value that were superseded before their evict starts, only the newest is held. It can be
///   evicted in place of an older one: it is read before it is superseded, and it is held in no gap in which the older
///   one was not held.
/// - At most two fetches of a value are in flight together. Let F1, F2 and F3, by `finish`, be in flight together. By
///   the rule above, all of them fetch one copy, and no evict of the value starts before F3.finish. So the readers of
///   F2 can read the occurrence before F2 instead: F1, or what was computed since. It is on the device after F2 starts,
///   and no evict takes it away before F3 supersedes F2. Then F2 is deleted.
///
/// Of two states that differ only in times, one is left out if none of its times is earlier: the same moves lead to
/// times that are no earlier. Of times before the end of the last step, only this end matters, because copies and steps
/// begin no earlier. So times that come back to the same state are never better, and the search ends.
class TransferSearch {
 public:
  /// Searches for schedules whose makespan is below `bound`. Without a link, costs and copies take no time. Then each
  /// copy is over in the gap in which it starts: an evict that starts later holds nothing longer on the device, and
  /// what a fetch makes is held shorter.
  TransferSearch(const Graph& graph, const TransferLimits& limits, const std::optional<Link>& link, std::int64_t bound,
                 std::int64_t& work)
      : graph_(graph),
        limits_(limits),
        instant_(!link),
        duplex_(!link || link->duplex),
        least_end_(bound),
        work_(work) {
    if (graph.node_count() > 10 || graph.value_count() > kMost) {
      throw std::invalid_argument("the search over transfers is for at most 10 nodes and 16 values");
    }
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      wanted_[at(value)] = !graph.readers(value).empty() || graph.value_kept(value);
      movable_[at(value)] =
          wanted_[at(value)] && reference::movable(graph, value) && graph.value_size(value) <= limits.host;
      if (link) copy_time_[at(value)] = reference::copy_cost(*link, graph.value_size(value), graph.cost_unit());
    }
  }

  /// Returns nothing if there is no such schedule. Throws std::runtime_error after as many decisions about gaps
  /// as the constructor's `work` says, and counts it down.
  std::optional<FastestSchedule> run() {
    push(State{}, 0);
    while (!queue_.empty()) {
      const auto [bound, order, place] = queue_.top();
      queue_.pop();
      if (goals_.contains(place)) return FastestSchedule{bound, goals_.at(place)};
      Gap gap{std::move(states_[place])};
      if (!superseded(gap.state)) choose_drops(gap, 0);
    }
    return std::nullopt;
  }
  std::int64_t states() const { return static_cast<std::int64_t>(states_.size()); }
  /// If run() has found nothing, no makespan is below this.
  std::int64_t next_end() const { return next_end_; }

 private:
  static constexpr ValueId kMost = 16;

  /// What a step would read of a value.
  enum class Latest : std::uint8_t { none, computed, fetched, leaving };
  /// A value between two steps.
  struct Place {
    Latest latest = Latest::none;
    bool spare = false;        ///< a superseded computed occurrence is held, so that it can be evicted
    bool leaves = false;       ///< a superseded occurrence is held, because its evict is in flight
    bool on_host = false;      ///< a copy is complete
    bool unserved = false;     ///< no fetch of the copy on the host, or of the one on its way there, has started
    bool unread = false;       ///< the latest occurrence is a fetched one, and nothing has read it
    std::uint8_t fetches = 0;  ///< fetches in flight
  };
  /// A copy in flight.
  struct Job {
    bool fetch = false;
    ValueId value = kNoValue;
    std::int64_t start = 0;  ///< step after which it starts
    std::int64_t end = 0;    ///< time
    std::size_t index = 0;   ///< in the schedule's evicts or fetches
  };
  struct State {
    std::uint32_t ran = 0;
    std::array<Place, kMost> places{};
    std::vector<Job> jobs;               ///< in flight, in the order of the link
    std::int64_t now = 0;                ///< end of the last step
    std::array<std::int64_t, 2> free{};  ///< when the links for evicts and for fetches are free
    // The schedule so far, and where its values come from. They do not matter for what is possible.
    Schedule schedule;
    std::array<std::int64_t, kMost> made{}, spare_made{};
    std::array<std::int32_t, kMost> copy{};  ///< evict of the copy on the host
  };
  /// A state and the decisions in the gap behind it so far.
  struct Gap {
    State state;
    std::vector<std::pair<ValueId, bool>> dropped{};  ///< from the device: value, whether a spare
    std::uint32_t host_dropped = 0;                   ///< values
    std::uint32_t evicted = 0;                        ///< values whose evict starts in this gap
    std::uint32_t must_finish = 0;                    ///< values whose evict must be over before the next step
  };

  static std::size_t at(ValueId value) { return static_cast<std::size_t>(value); }
  std::int64_t size(ValueId value) const { return graph_.value_size(value); }

  std::int64_t device_bytes(const State& state) const {
    std::int64_t bytes = 0;
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const Place& place = state.places[at(value)];
      bytes += size(value) * ((place.latest != Latest::none) + place.spare + place.leaves + place.fetches);
    }
    return bytes;
  }
  std::int64_t host_bytes(const State& state) const {
    std::int64_t bytes = 0;
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const Place& place = state.places[at(value)];
      bytes += size(value) * (place.on_host || place.leaves || place.latest == Latest::leaving);
    }
    return bytes;
  }

  /// Chooses for each value from `value` on what is dropped of it right after the step.
  void choose_drops(const Gap& gap, ValueId value) {
    if (value == graph_.value_count()) {
      choose_starts(gap);
      return;
    }
    const Place& place = gap.state.places[at(value)];
    const bool latest = (place.latest == Latest::computed || place.latest == Latest::fetched) && !place.unread;
    choose_drops(gap, value + 1);
    for (int what = 1; what < 8; ++what) {
      if (((what & 1) != 0 && !(latest && size(value) > 0)) || ((what & 2) != 0 && !place.spare) ||
          ((what & 4) != 0 && !(place.on_host && place.fetches == 0 && !place.unserved))) {
        continue;
      }
      Gap next = gap;
      Place& left = next.state.places[at(value)];
      if ((what & 1) != 0) {
        left.latest = Latest::none;
        next.dropped.emplace_back(value, false);
      }
      if ((what & 2) != 0) {
        left.spare = false;
        next.dropped.emplace_back(value, true);
      }
      if ((what & 4) != 0) {
        left.on_host = false;
        next.host_dropped |= 1U << value;
      }
      choose_drops(next, value + 1);
    }
  }

  /// Chooses the copies that start now, one after another. Without a common link, evicts come first. If copies take no
  /// time, their order is that of the values.
  void choose_starts(const Gap& gap) {
    if (device_bytes(gap.state) > limits_.device || host_bytes(gap.state) > limits_.host) return;
    choose_finishes(gap);
    if (gap.state.schedule.steps.empty()) return;
    const std::int64_t step = gap.state.schedule.length() - 1;
    const bool after_copy = !gap.state.jobs.empty() && gap.state.jobs.back().start == step;
    const bool after_fetch = after_copy && gap.state.jobs.back().fetch;
    const ValueId last = after_copy && instant_ ? gap.state.jobs.back().value : kNoValue;
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (!movable_[at(value)]) continue;
      const Place& place = gap.state.places[at(value)];
      const bool leaving = place.latest == Latest::leaving || place.leaves;
      if (!place.on_host && !leaving && !(duplex_ && after_fetch) && value > last) {
        if (place.latest == Latest::computed) start(with_evict(gap, value, false));
        if (place.spare) start(with_evict(gap, value, true));
      }
      const int most = instant_ ? 1 : 2;
      if ((place.on_host || leaving) && place.fetches < most && !(after_fetch && value <= last)) {
        start(with_fetch(gap, value));
      }
    }
  }

  /// Goes on after a copy was started, if all fetches that must follow can be over early enough: that of a copy in
  /// flight, and at least one of each other copy on the host.
  void start(const Gap& gap) {
    const State& state = gap.state;
    std::int64_t end = std::max(state.free[1], state.now);
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      end += state.places[at(value)].unserved ? copy_time_[at(value)] : 0;
    }
    const Job& job = state.jobs.back();
    if (!job.fetch) end = std::max(end, job.end + copy_time_[at(job.value)]);
    if (early(end)) choose_starts(gap);
  }

  Gap with_evict(const Gap& gap, ValueId value, bool spare) const {
    Gap next = gap;
    State& state = next.state;
    Place& place = state.places[at(value)];
    if (spare) {
      place.spare = false;
      place.leaves = true;
    } else {
      place.latest = Latest::leaving;
    }
    place.unserved = true;
    next.evicted |= 1U << value;
    const std::int64_t step = state.schedule.length() - 1;
    auto& evicts = state.schedule.transfers.evicts;
    std::int64_t& free = state.free[0];
    free = std::max(free, state.now) + copy_time_[at(value)];
    if (!duplex_) state.free[1] = free;
    state.jobs.push_back({false, value, step, free, evicts.size()});
    state.copy[at(value)] = static_cast<std::int32_t>(evicts.size());
    evicts.push_back({value, spare ? state.spare_made[at(value)] : state.made[at(value)], step, -1});
    return next;
  }

  Gap with_fetch(const Gap& gap, ValueId value) const {
    Gap next = gap;
    State& state = next.state;
    const std::int64_t step = state.schedule.length() - 1;
    auto& fetches = state.schedule.transfers.fetches;
    std::int64_t begin = std::max(state.free[1], state.now);
    for (const Job& job : state.jobs) {
      if (job.fetch || job.value != value) continue;
      begin = std::max(begin, job.end);
      next.must_finish |= 1U << value;
    }
    state.free[1] = begin + copy_time_[at(value)];
    if (!duplex_) state.free[0] = state.free[1];
    state.jobs.push_back({true, value, step, state.free[1], fetches.size()});
    ++state.places[at(value)].fetches;
    state.places[at(value)].unserved = false;
    fetches.push_back({state.copy[at(value)], step, -1});
    return next;
  }

  /// Returns whether two copies that start after the same step may be carried in this order, if the first one is still
  /// in flight when the second one is over, or both are over before the same step.
  bool in_order(const Job& first, const Job& second, bool first_over) const {
    const bool same_link = !duplex_ || first.fetch == second.fetch;
    if (instant_ || !same_link || first.start != second.start) return true;
    return first_over && !(first.fetch && !second.fetch);
  }

  /// Chooses the copies that are over before the next step begins. Then runs any node, or ends the schedule.
  void choose_finishes(const Gap& gap) {
    const auto& jobs = gap.state.jobs;
    for (std::uint32_t over = instant_ ? (1U << jobs.size()) - 1 : 0; over < 1U << jobs.size(); ++over) {
      const auto is_over = [&](std::size_t k) { return (over >> k & 1U) != 0; };
      if (--work_ < 0) throw std::runtime_error("the search over transfers takes too long");
      bool possible = true;
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        if (!jobs[k].fetch && (gap.must_finish >> jobs[k].value & 1U) != 0 && !is_over(k)) possible = false;
        for (std::size_t j = 0; j < k && is_over(k); ++j) possible = possible && in_order(jobs[j], jobs[k], is_over(j));
      }
      if (possible) finish(gap, over);
    }
  }

  void finish(const Gap& gap, std::uint32_t over) {
    State state = gap.state;
    const std::int64_t step = state.schedule.length();
    std::int64_t begin = state.now, fetched = state.now;
    state.jobs.clear();
    for (const bool fetch : {false, true}) {  // a fetched occurrence supersedes one that leaves at the same time
      for (std::size_t k = 0; k < gap.state.jobs.size(); ++k) {
        const Job& job = gap.state.jobs[k];
        if (job.fetch != fetch || (over >> k & 1U) == 0) continue;
        begin = std::max(begin, job.end);
        if (fetch) fetched = std::max(fetched, job.end);
        Place& place = state.places[at(job.value)];
        if (fetch) {
          state.schedule.transfers.fetches[job.index].finish = step;
          if (place.unread) return;
          arrive(state, job.value, Latest::fetched);
          place.unread = true;
          --place.fetches;
          continue;
        }
        state.schedule.transfers.evicts[job.index].finish = step;
        if (place.leaves) {
          place.leaves = false;
        } else {
          place.latest = Latest::none;
        }
        place.on_host = true;
      }
    }
    for (std::size_t k = 0; k < gap.state.jobs.size(); ++k) {
      if ((over >> k & 1U) == 0) state.jobs.push_back(gap.state.jobs[k]);
    }
    if (state.jobs.empty()) end(state, fetched);
    for (NodeId node = 0; node < graph_.node_count(); ++node) step_to(gap, state, begin, node);
  }

  /// Makes an occurrence of a value the latest one.
  void arrive(State& state, ValueId value, Latest how) const {
    Place& place = state.places[at(value)];
    if (place.latest == Latest::leaving) place.leaves = true;
    if (place.latest == Latest::computed && movable_[at(value)]) {
      place.spare = true;
      state.spare_made[at(value)] = state.made[at(value)];
    }
    place.latest = how;
  }

  void end(const State& state, std::int64_t makespan) {
    for (NodeId node = 0; node < graph_.node_count(); ++node) {
      if (graph_.required(node) && (state.ran >> node & 1U) == 0) return;
    }
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const Place& place = state.places[at(value)];
      if (graph_.value_kept(value) && place.latest == Latest::none) return;
      if (place.unserved || (place.unread && !graph_.value_kept(value))) return;
    }
    if (!early(makespan)) return;
    least_end_ = makespan;
    goals_[states_.size()] = state.schedule;
    states_.push_back({});
    queue_.push({makespan, std::numeric_limits<std::int64_t>::min(), states_.size() - 1});
  }

  /// Runs a node behind the gap, if it can run.
  void step_to(const Gap& gap, const State& before, std::int64_t begin, NodeId node) {
    if (graph_.pinned(node) && (before.ran >> node & 1U) != 0) return;
    for (const ValueId input : graph_.inputs(node)) {
      if (before.places[at(input)].latest == Latest::none) return;
    }
    for (const ValueId value : graph_.outputs(node)) {
      const Place& place = before.places[at(value)];
      // What a new occurrence replaces must have been dropped, unless it can still be evicted or leaves.
      if (size(value) == 0) continue;
      if (place.latest == Latest::fetched || (place.latest == Latest::computed && !movable_[at(value)])) return;
      if (place.latest == Latest::computed && place.spare) return;
    }
    const std::int64_t during = device_bytes(before) + graph_.size(node) + graph_.scratch(node);
    if (during > limits_.device) return;
    const std::int64_t between = device_bytes(gap.state);
    for (const auto& [value, spare] : gap.dropped) {
      const bool fits = std::max(during, between) + size(value) <= limits_.device;
      const bool replaced = graph_.producer(value) == node || before.places[at(value)].spare ||
                            gap.state.places[at(value)].fetches > before.places[at(value)].fetches;
      if (fits && !replaced) return;
    }
    const std::int64_t host = host_bytes(gap.state);
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if ((gap.host_dropped >> value & 1U) == 0 || (gap.evicted >> value & 1U) != 0) continue;
      if (host + size(value) <= limits_.host) return;
    }
    State state = before;
    const std::int64_t step = state.schedule.length();
    state.schedule.steps.push_back(node);
    state.ran |= 1U << node;
    for (const ValueId input : graph_.inputs(node)) state.places[at(input)].unread = false;
    for (const ValueId value : graph_.outputs(node)) {
      if (!wanted_[at(value)]) continue;
      arrive(state, value, Latest::computed);
      state.made[at(value)] = step;
    }
    state.now = begin + (instant_ ? 0 : graph_.cost(node));
    push(std::move(state), remaining_cost(node, before.ran));
  }

  /// Returns whether a schedule that lasts at least until `time` may be below the bound.
  bool early(std::int64_t time) {
    if (time >= least_end_) next_end_ = std::min(next_end_, time);
    return time < least_end_;
  }

  std::int64_t remaining_cost(NodeId node, std::uint32_t ran) const {
    std::int64_t cost = 0;
    if (instant_) return cost;
    for (NodeId other = 0; other < graph_.node_count(); ++other) {
      const bool done = other == node || (ran >> other & 1U) != 0;
      if (!done) cost += graph_.cost(other);
    }
    return cost;
  }

  using Times = std::vector<std::int64_t>;

  std::string key_of(const State& state) const {
    std::string key(reinterpret_cast<const char*>(&state.ran), sizeof state.ran);
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const Place& place = state.places[at(value)];
      key.push_back(static_cast<char>(static_cast<int>(place.latest) | place.spare << 2 | place.leaves << 3 |
                                      place.on_host << 4 | place.fetches << 5));
      key.back() = static_cast<char>(key.back() | place.unread << 7);
      key.push_back(static_cast<char>(place.unserved));
    }
    for (std::size_t k = 0; k < state.jobs.size(); ++k) {
      const Job& job = state.jobs[k];
      const bool together = k > 0 && state.jobs[k - 1].start == job.start;
      key.push_back(static_cast<char>(job.value | job.fetch << 5 | together << 6));
    }
    return key;
  }
  static Times times_of(const State& state) {
    Times times{state.now, state.free[0], state.free[1]};
    for (const Job& job : state.jobs) times.push_back(job.end);
    return times;
  }
  static bool no_later(const Times& a, const Times& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](std::int64_t x, std::int64_t y) { return x <= y; });
  }

  /// Returns whether another state with the same key has times that are nowhere later, and somewhere earlier.
  bool superseded(const State& state) {
    const Times times = times_of(state);
    const auto& all = arrivals_.at(key_of(state));
    return std::none_of(all.begin(), all.end(), [&](const Times& other) { return other == times; });
  }

  void push(State state, std::int64_t remaining) {
    for (std::int64_t& free : state.free) free = std::max(free, state.now);
    for (Job& job : state.jobs) job.end = std::max(job.end, state.now);
    if (!early(state.now + remaining)) return;
    const Times times = times_of(state);
    std::vector<Times>& all = arrivals_[key_of(state)];
    if (std::any_of(all.begin(), all.end(), [&](const Times& other) { return no_later(other, times); })) return;
    std::erase_if(all, [&](const Times& other) { return no_later(times, other); });
    all.push_back(times);
    queue_.push({state.now + remaining, -static_cast<std::int64_t>(states_.size()), states_.size()});
    states_.push_back(std::move(state));
  }

  const Graph& graph_;
  const TransferLimits limits_;
  const bool instant_;  ///< nothing takes time
  const bool duplex_;
  std::int64_t least_end_;  ///< the makespan must be below this
  std::int64_t& work_;      ///< number of decisions about gaps that are left
  std::int64_t next_end_ = std::numeric_limits<std::int64_t>::max();
  std::array<bool, kMost> wanted_{}, movable_{};
  std::array<std::int64_t, kMost> copy_time_{};
  using Entry = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // bound of the makespan, order, place in states_
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<State> states_;
  std::map<std::size_t, Schedule> goals_;
  std::map<std::string, std::vector<Times>> arrivals_;
};

/// Returns a schedule whose peak on the device is at most `limits.device`, or nothing if there is none.
inline std::optional<Schedule> any_within(const Graph& graph, const TransferLimits& limits,
                                          std::int64_t work = 2'000'000) {
  const auto found = TransferSearch(graph, limits, std::nullopt, 1, work).run();
  return found ? std::optional(found->schedule) : std::nullopt;
}

/// Returns the least peak on the device of all schedules with transfers whose peak on the host is at most `host`.
inline std::int64_t least_peak_with_transfers(const Graph& graph, std::int64_t host) {
  std::int64_t low = 0, high = least_peak_without_recomputation(graph);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (any_within(graph, {middle, host})) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Returns a schedule with transfers of least makespan within the limits, or nothing if there is none. Searches below
/// bounds on the makespan that grow, up to that of the cheapest schedule without transfers.
inline std::optional<FastestSchedule> fastest_within(const Graph& graph, const TransferLimits& limits, const Link& link,
                                                     std::int64_t work = 2'000'000) {
  if (!any_within(graph, limits, work)) return std::nullopt;
  const std::optional<Schedule> plain = cheapest_within(graph, limits.device);
  std::int64_t bound = 1;
  for (NodeId node = 0; node < graph.node_count(); ++node) bound += graph.cost(node);
  while (true) {
    if (plain) bound = std::min(bound, reference::cost(graph, *plain));
    TransferSearch search(graph, limits, link, bound, work);
    if (auto found = search.run()) return found;
    if (plain && bound == reference::cost(graph, *plain)) return FastestSchedule{bound, *plain};
    bound = search.next_end() + search.next_end() / 8 + 1;
  }
}

}  // namespace cairn::core::reference
