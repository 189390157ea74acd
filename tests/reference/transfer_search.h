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

/// This is a brute-force search over all schedules of a small graph with transfers and any amount of recomputation.
namespace cairn::core::reference {

/// The limits within which a schedule must stay. Memory is in bytes.
struct TransferLimits {
  std::int64_t device = 0;
  std::int64_t host = 0;
};

struct FastestSchedule {
  std::int64_t makespan = 0;
  Schedule schedule;  ///< a schedule that has this makespan and is within the limits
};

/// Searches for a schedule of least makespan. It visits states in the order of a lower bound on the makespan. A state
/// is what holds right after a step has ended: which nodes have run, which values are on the device and on the host,
/// which copies are in flight, and when they end. A move decides everything about the gap between this step and the
/// next one, and then runs a node. The decisions in a gap are
/// - which occurrences on the device and which copies on the host are dropped;
/// - which transfers start, in the order in which the link carries them;
/// - which of the transfers in flight must be complete before the next step begins (their `finish` is this step).
///
/// An occurrence of a value is superseded when a newer occurrence takes its place for all later readers. The search
/// covers all schedules except the following ones, each of which is no better than some schedule that the search
/// covers:
/// - A schedule that drops an occurrence although it would fit into memory in the gap and in the next step. The
///   occurrence can be dropped in the next gap instead. The rule does not apply if the next step computes the value
///   again, or if a fetch of the value ends in the gap. The same is true of a copy on the host, unless an evict of its
///   value starts in the gap.
/// - A schedule that holds what nothing reads. A fetched occurrence is dropped only after a step has read it, and a
///   copy on the host only after a fetch of it has started, because otherwise the schedule would not be valid.
/// - A schedule in which the host holds two copies of one value. Let e1 and e2 be evicts of one value, in the order of
///   the link, whose copies are on the host in the same gap. If e1.finish <= e2.finish, the fetches of e2 can fetch the
///   copy of e1 instead, because it is complete earlier. If e1.finish > e2.finish, the fetches of e1 can fetch the copy
///   of e2 instead: that copy is complete before step e2.finish begins, and these fetches start after that step, so
///   they wait no longer. In both cases, the evict without fetches is deleted. Then its occurrence is held no longer
///   than before, every other copy begins no later, and the remaining copy is on the host only in gaps in which one of
///   the two copies was.
/// - A schedule that holds several occurrences of a value which were superseded before their evict starts. The newest
///   of them can be evicted in place of an older one: it was read before it was superseded, and it is held only in gaps
///   in which the older one was held.
/// - A schedule with more than two fetches of a value in flight. Let F1, F2 and F3, in the order of `finish`, be in
///   flight together. By the rule about copies on the host, all three fetch the same copy, and no evict of the value
///   starts before F3.finish. So the readers of F2 can read the occurrence that is the newest before F2.finish, i.e.
///   that of F1 or one that was computed since. It is on the device after F2 starts, and no evict takes it away before
///   F3 supersedes F2. Then F2 is deleted.
///
/// If two states differ only in times and none of the second one's times is earlier, the second state is left out: the
/// same moves from it lead to times that are no earlier. Times before the end of the last step are replaced by this
/// end, because copies and steps cannot begin before it. So a sequence of moves that returns to the same state with
/// later times is never better, and the search ends.
class TransferSearch {
 public:
  /// Prepares a search for schedules whose makespan is below `bound`. Without a `link`, costs and copies take no time.
  /// Then it suffices to try copies that are complete in the gap in which they start. Any other copy can start in the
  /// gap in which it is complete instead: with an evict, nothing is held longer, and with a fetch, the fetched
  /// occurrence is held for a shorter time.
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

  /// Returns a fastest schedule, or nothing if no schedule is below the bound. Each decision about a gap counts down
  /// the variable `work` that was given to the constructor. Throws std::runtime_error once it is used up.
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
  /// Returns a lower bound on all makespans, if run() has found nothing.
  std::int64_t next_end() const { return next_end_; }

 private:
  static constexpr ValueId kMost = 16;

  /// Says which occurrence of a value a step would read: none, a computed one, a fetched one, or one whose evict is in
  /// flight.
  enum class Latest : std::uint8_t { none, computed, fetched, leaving };
  /// Says where a value is, in the gap between two steps.
  struct Place {
    Latest latest = Latest::none;
    bool spare = false;        ///< the device holds a superseded computed occurrence, so that it can be evicted
    bool leaves = false;       ///< the device holds a superseded occurrence, because its evict is in flight
    bool on_host = false;      ///< the host holds a complete copy
    bool unserved = false;     ///< no fetch has started of the copy that is on the host or on its way there
    bool unread = false;       ///< the latest occurrence was fetched, and no step has read it
    std::uint8_t fetches = 0;  ///< number of fetches in flight
  };
  /// A transfer in flight.
  struct Job {
    bool fetch = false;
    ValueId value = kNoValue;
    std::int64_t start = 0;  ///< step after which the transfer starts
    std::int64_t end = 0;    ///< time at which the transfer ends
    std::size_t index = 0;   ///< index in the schedule's evicts or fetches
  };
  struct State {
    std::uint32_t ran = 0;
    std::array<Place, kMost> places{};
    std::vector<Job> jobs;               ///< transfers in flight, in the order in which the link carries them
    std::int64_t now = 0;                ///< time at which the last step ends
    std::array<std::int64_t, 2> free{};  ///< times from which the links for evicts and for fetches are free
    // The remaining fields are the schedule so far, and where its values come from. Which moves are possible does not
    // depend on them.
    Schedule schedule;
    std::array<std::int64_t, kMost> made{}, spare_made{};
    std::array<std::int32_t, kMost> copy{};  ///< the evict that made the copy on the host
  };
  /// A state, and the decisions that were made so far in the gap after it.
  struct Gap {
    State state;
    /// Occurrences that are dropped from the device: the value, and whether the occurrence was a spare.
    std::vector<std::pair<ValueId, bool>> dropped{};
    std::uint32_t host_dropped = 0;  ///< values whose copy on the host is dropped
    std::uint32_t evicted = 0;       ///< values whose evict starts in this gap
    std::uint32_t must_finish = 0;   ///< values whose evict must be complete before the next step
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

  /// For each value from `value` on, chooses what is dropped of it right after the step. Then goes on with
  /// choose_starts().
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

  /// Chooses the transfers that start in this gap, one after another. If each direction has its own link, evicts are
  /// started before fetches. If copies take no time, they are started in the order of their values.
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

  /// Calls choose_starts() again after a transfer was started, unless fetches would end too late. Each copy that is on
  /// the host, or on its way there, must be fetched at least once, and all these fetches must end before the bound on
  /// the makespan.
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

  /// Returns whether the link can carry `first` before `second`. `second` must be complete before the next step begins;
  /// `first_over` says whether `first` is complete by then, too. A schedule carries transfers that start after the same
  /// step in the order of `finish`, and evicts before fetches if these are equal.
  bool in_order(const Job& first, const Job& second, bool first_over) const {
    const bool same_link = !duplex_ || first.fetch == second.fetch;
    if (instant_ || !same_link || first.start != second.start) return true;
    return first_over && !(first.fetch && !second.fetch);
  }

  /// Chooses the transfers that are complete before the next step begins. Then runs any node, or ends the schedule.
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
    // Evicts come first, because a fetched occurrence supersedes one that leaves at the same time.
    for (const bool fetch : {false, true}) {
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

  /// Makes a new occurrence of the value the latest one. `how` says whether it was computed or fetched.
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

  /// Runs a node after the gap, unless the node cannot run there.
  void step_to(const Gap& gap, const State& before, std::int64_t begin, NodeId node) {
    if (graph_.pinned(node) && (before.ran >> node & 1U) != 0) return;
    for (const ValueId input : graph_.inputs(node)) {
      if (before.places[at(input)].latest == Latest::none) return;
    }
    for (const ValueId value : graph_.outputs(node)) {
      const Place& place = before.places[at(value)];
      // The occurrence that a new one replaces must have been dropped, unless it can still be evicted or is being
      // evicted.
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

  /// Returns whether a schedule that ends at `time` or later can have a makespan below the bound.
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

  /// Returns whether another state, which differs only in times, has no later times and some earlier time than this
  /// state.
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
  const bool instant_;  ///< whether costs and copies take no time
  const bool duplex_;
  std::int64_t least_end_;  ///< the makespan must be below this time
  std::int64_t& work_;      ///< number of decisions about gaps that may still be made
  std::int64_t next_end_ = std::numeric_limits<std::int64_t>::max();
  std::array<bool, kMost> wanted_{}, movable_{};
  std::array<std::int64_t, kMost> copy_time_{};
  // An Entry has a lower bound on the makespan, a number that decides between equal bounds, and an index in states_.
  using Entry = std::tuple<std::int64_t, std::int64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<State> states_;
  std::map<std::size_t, Schedule> goals_;
  std::map<std::string, std::vector<Times>> arrivals_;
};

/// Returns a schedule whose peaks on the device and on the host are within `limits`, or nothing if there is no such
/// schedule. `work` is the largest number of decisions of the search (TransferSearch::run()).
inline std::optional<Schedule> any_within(const Graph& graph, const TransferLimits& limits,
                                          std::int64_t work = 2'000'000) {
  const auto found = TransferSearch(graph, limits, std::nullopt, 1, work).run();
  return found ? std::optional(found->schedule) : std::nullopt;
}

/// Returns the least peak on the device, over all schedules with transfers whose peak on the host is at most `host`
/// bytes.
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

/// Returns a schedule of least makespan within the limits, with transfers over `link`, or nothing if no schedule fits.
/// It searches with growing bounds on the makespan, up to the makespan of the cheapest schedule without transfers.
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
