#include "cairn/core/support/timeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "cairn/core/support/saturating.h"

namespace cairn::core {
namespace {

/// Computes the times of steps and copies, step by step. When the end of a step is known, serve() computes the times of
/// the copies that start after that step. Everything that they wait for is known by then, because a link serves copies
/// in the order of the steps after which they start.
class Clock {
 public:
  Clock(const Graph& graph, const Schedule& schedule, const Link& link)
      : graph_(graph), schedule_(schedule), moves_(schedule.transfers), link_(link) {
    times_.steps.resize(schedule.steps.size());
    times_.evicts.resize(moves_.evicts.size());
    times_.fetches.resize(moves_.fetches.size());
    order_.resize(moves_.evicts.size() + moves_.fetches.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::sort(order_, {}, [&](std::size_t copy) { return std::tuple(start(copy), finish(copy), copy); });
  }

  Timeline run() {
    due_.assign(schedule_.steps.size() + 1, 0);
    std::int64_t now = 0;
    auto next = order_.begin();
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const std::int64_t begin = std::max(now, due_[i]);
      const std::int64_t cost = graph_.cost(schedule_.steps[i]);
      now = saturating_add(begin, cost);
      times_.compute = saturating_add(times_.compute, cost);
      times_.steps[i] = {begin, now};
      for (; next != order_.end() && start(*next) == static_cast<std::int64_t>(i); ++next) serve(*next, now);
    }
    for (const Span& fetch : times_.fetches) now = std::max(now, fetch.end);
    times_.makespan = now;
    times_.waiting = now - times_.compute;
    return std::move(times_);
  }

 private:
  // Copies are numbered: first the evicts, then the fetches.
  bool is_evict(std::size_t copy) const { return copy < moves_.evicts.size(); }
  std::size_t fetch_of(std::size_t copy) const { return copy - moves_.evicts.size(); }
  std::int64_t start(std::size_t copy) const {
    return is_evict(copy) ? moves_.evicts[copy].start : moves_.fetches[fetch_of(copy)].start;
  }
  std::int64_t finish(std::size_t copy) const {
    return is_evict(copy) ? moves_.evicts[copy].finish : moves_.fetches[fetch_of(copy)].finish;
  }

  void serve(std::size_t copy, std::int64_t now) {
    std::int64_t& free = free_[link_.duplex && !is_evict(copy) ? 1 : 0];
    std::int64_t begin = std::max(now, free);
    ValueId value = kNoValue;
    if (is_evict(copy)) {
      value = moves_.evicts[copy].value;
    } else {
      const std::int32_t source = moves_.fetches[fetch_of(copy)].evict;
      value = moves_.evicts[source].value;
      begin = std::max(begin, times_.evicts[source].end);
    }
    free = saturating_add(begin, copy_cost(link_, graph_.value_size(value), graph_.cost_unit()));
    (is_evict(copy) ? times_.evicts[copy] : times_.fetches[fetch_of(copy)]) = {begin, free};
    std::int64_t& due = due_[finish(copy)];
    due = std::max(due, free);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Transfers& moves_;
  const Link& link_;
  Timeline times_;
  std::vector<std::size_t> order_;  ///< the order in which links serve copies
  std::int64_t free_[2] = {0, 0};   ///< time from which each link is free
  std::vector<std::int64_t> due_;   ///< for each step, the time at which all transfers that it waits for are over
};

}  // namespace

Timeline timeline(const Graph& graph, const Schedule& schedule, const Link& link) {
  return Clock(graph, schedule, link).run();
}

std::int64_t makespan(const Graph& graph, const Schedule& schedule, const Link& link) {
  return timeline(graph, schedule, link).makespan;
}

std::vector<HostCopy> host_copies(const Graph& graph, const Schedule& schedule) {
  std::vector<HostCopy> copies;
  for (const Evict& evict : schedule.transfers.evicts) {
    copies.push_back(
        {static_cast<std::int32_t>(copies.size()), evict.start, evict.start, graph.value_size(evict.value)});
  }
  for (const Fetch& fetch : schedule.transfers.fetches) {
    copies[fetch.evict].last = std::max(copies[fetch.evict].last, fetch.finish - 1);
  }
  return copies;
}

std::vector<std::int64_t> host_profile(const Graph& graph, const Schedule& schedule) {
  std::vector<std::int64_t> bytes(schedule.steps.size() + 1, 0);
  if (schedule.transfers.empty()) return std::vector<std::int64_t>(schedule.steps.size(), 0);
  for (const HostCopy& copy : host_copies(graph, schedule)) {
    bytes[copy.first] += copy.bytes;
    bytes[copy.last + 1] -= copy.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  bytes.pop_back();
  return bytes;
}

std::int64_t host_peak(const Graph& graph, const Schedule& schedule) {
  std::int64_t peak = 0;
  for (const std::int64_t bytes : host_profile(graph, schedule)) peak = std::max(peak, bytes);
  return peak;
}

}  // namespace cairn::core
