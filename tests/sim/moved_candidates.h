#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes random candidates with transfers, and computes their outcomes with the plain evaluator.
namespace cairn::tests {

/// Returns the graph with a random link between device and host.
inline core::Graph with_random_link(Random& random, const core::Graph& graph) {
  core::HostMemory host;
  host.link.bytes_per_second = random.pick(std::vector<std::int64_t>{1'000'000'000, 300'000'000, 40'000'000'000});
  host.link.latency_ns = random.pick(std::vector<std::int64_t>{0, 1, 7, 100});
  host.link.duplex = random.chance(50);
  return graph.with_host_memory(host);
}

/// The steps that read one occurrence of a value. `end` is the next step that computes the value again, or the length
/// of the schedule if there is no such step.
struct Reads {
  std::vector<std::int64_t> steps;
  std::int64_t end = 0;
};
inline Reads reads_of(const core::Graph& graph, const core::Schedule& schedule, core::ValueId x, std::int64_t made) {
  Reads reads{.end = schedule.length()};
  for (std::int64_t i = made + 1; i < schedule.length(); ++i) {
    const core::NodeId v = schedule.steps[i];
    if (std::ranges::count(graph.inputs(v), x) > 0) reads.steps.push_back(i);
    if (v == graph.producer(x)) {
      reads.end = i;
      break;
    }
  }
  return reads;
}

/// Adds an evict of an occurrence that step `made` computes, and fetches of it before some of its later reads. Most of
/// the resulting schedules are valid.
inline void add_round_trip(Random& random, const core::Graph& graph, core::Schedule& schedule, std::int64_t made) {
  const auto outputs = graph.outputs(schedule.steps[made]);
  const core::ValueId x = outputs[random.below(std::ssize(outputs))];
  auto& [evicts, fetches] = schedule.transfers;
  const Reads reads = reads_of(graph, schedule, x, made);
  std::vector<std::int64_t> steps{made};
  steps.insert(steps.end(), reads.steps.begin(), reads.steps.end());
  if (graph.value_kept(x) && reads.end == schedule.length()) steps.push_back(reads.end);
  if (steps.size() < 2) return;
  std::size_t at = 1 + static_cast<std::size_t>(random.below(std::ssize(steps) - 1));
  const std::int64_t finish = random.between(steps[at - 1] + 1, steps[at]);
  const std::int64_t start = random.chance(40) ? std::max(made, finish - 1) : random.between(made, finish - 1);
  const auto evict = static_cast<std::int32_t>(evicts.size());
  evicts.push_back({x, made, start, finish});
  for (std::int64_t from = finish; at < steps.size(); ++at) {
    const std::int64_t until = random.between(from, steps[at]);
    fetches.push_back({evict, random.between(finish - 1, until - 1), until});
    from = steps[at] + 1;
    if (random.chance(70)) return;
  }
}

/// Changes one number of a random transfer, which often makes the schedule invalid.
inline void spoil(Random& random, core::Transfers& transfers) {
  const auto change = [&](std::int64_t& number) {
    number = random.chance(10) ? random.pick(std::vector<std::int64_t>{-1, INT64_MAX, INT64_MIN, std::int64_t{1} << 32})
                               : number + random.between(-3, 3);
  };
  if (random.chance(50) || transfers.fetches.empty()) {
    core::Evict& evict = random.pick(transfers.evicts);
    switch (random.below(5)) {
      case 0:
        return change(evict.made);
      case 1:
        return change(evict.start);
      case 2:
        return change(evict.finish);
      case 3:
        evict.value += static_cast<std::int32_t>(random.between(-2, 2));
        return;
      default:
        transfers.evicts.push_back(evict);
        return;
    }
  }
  core::Fetch& fetch = random.pick(transfers.fetches);
  switch (random.below(4)) {
    case 0:
      return change(fetch.start);
    case 1:
      return change(fetch.finish);
    case 2:
      fetch.evict += static_cast<std::int32_t>(random.between(-1, 1));
      return;
    default:
      transfers.fetches.erase(transfers.fetches.begin() + static_cast<std::ptrdiff_t>(random.place(transfers.fetches)));
  }
}

/// Returns a random candidate schedule, which has transfers in most cases. A third of the candidates is invalid,
/// because of their steps or their transfers.
inline core::Schedule moved_candidate(Random& random, const core::Graph& graph) {
  core::Schedule schedule = random.chance(40) ? random_schedule(random, graph, 0) : random_schedule(random, graph);
  if (random.chance(10)) return schedule;
  for (std::int64_t k = random.between(1, 5); k > 0; --k) {
    add_round_trip(random, graph, schedule, random.below(schedule.length()));
  }
  random.shuffle(schedule.transfers.fetches);
  if (random.chance(20) && !schedule.transfers.empty()) spoil(random, schedule.transfers);
  if (random.chance(10)) schedule = invalidated(random, graph, std::move(schedule));
  return schedule;
}

inline sim::Outcomes moved_by_evaluator(const core::Graph& graph, const std::vector<core::Schedule>& schedules) {
  core::Evaluator evaluator(graph);
  const bool any = std::ranges::any_of(schedules, [](const auto& schedule) { return !schedule.transfers.empty(); });
  sim::Outcomes outcomes;
  outcomes.resize(static_cast<std::int64_t>(schedules.size()), any);
  for (std::size_t c = 0; c < schedules.size(); ++c) {
    const core::Evaluation evaluation = evaluator.evaluate(schedules[c]);
    outcomes.valid[c] = evaluation.valid() ? 1 : 0;
    outcomes.peak[c] = evaluation.valid() ? evaluation.peak : 0;
    outcomes.cost[c] = evaluation.valid() ? evaluation.cost : 0;
    outcomes.peak_step[c] = evaluation.valid() ? static_cast<std::int32_t>(evaluation.peak_step) : -1;
    if (!any) continue;
    outcomes.host_peak[c] = evaluation.valid() ? evaluation.host_peak : 0;
    outcomes.defect[c] = evaluation.defect.kind;
  }
  return outcomes;
}

inline sim::ScheduleBatch moved_batch(const core::Graph& graph, const std::vector<core::Schedule>& schedules) {
  sim::ScheduleBatch batch(graph.node_count());
  for (const core::Schedule& schedule : schedules) batch.add(schedule);
  return batch;
}

/// Returns a random graph. It may have nodes with several outputs, kept values, in-place nodes and pinned nodes, and in
/// most cases it has a link to the host.
inline core::Graph moved_graph(Random& random, RandomGraphOptions options = {}) {
  const core::Graph graph = random_graph(random, any_graph(random, options));
  return random.chance(85) ? with_random_link(random, graph) : graph;
}

}  // namespace cairn::tests
