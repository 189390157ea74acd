// Makes random changes to the steps of a schedule with transfers (steps.h).

#include "cairn/solvers/offload/internal/steps.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace cairn::solvers::offloading {
namespace {

using core::NodeId;
using core::Schedule;

/// Returns `from` without the steps whose entry in `kept` is 0.
Schedule without_steps(const Schedule& from, const std::vector<std::uint8_t>& kept) {
  Schedule result;
  std::vector<std::int64_t> number;  // for each step, how many steps before it are kept
  for (std::int64_t i = 0; i < from.length(); ++i) {
    number.push_back(result.length());
    if (kept[i] != 0) result.steps.push_back(from.steps[i]);
  }
  number.push_back(result.length());
  // A copy that started after a dropped step now starts after the last kept step before it.
  const auto before = [&](std::int64_t step) { return kept[step] != 0 ? number[step] : number[step] - 1; };
  for (const core::Evict& evict : from.transfers.evicts) {
    result.transfers.evicts.push_back(
        {evict.value, kept[evict.made] != 0 ? number[evict.made] : -1, before(evict.start), number[evict.finish]});
  }
  for (const core::Fetch& fetch : from.transfers.fetches) {
    result.transfers.fetches.push_back({fetch.evict, before(fetch.start), number[fetch.finish]});
  }
  return result;
}

/// Returns `from` with `node` as an additional step at `place`.
Schedule with_step(const Schedule& from, std::int64_t place, NodeId node) {
  Schedule result = from;
  result.steps.insert(result.steps.begin() + place, node);
  const auto moved = [&](std::int64_t step) { return step >= place ? step + 1 : step; };
  for (core::Evict& evict : result.transfers.evicts) {
    evict = {evict.value, moved(evict.made), moved(evict.start), moved(evict.finish)};
  }
  for (core::Fetch& fetch : result.transfers.fetches) fetch = {fetch.evict, moved(fetch.start), moved(fetch.finish)};
  return result;
}

std::optional<Schedule> drop_recomputation(const core::Graph& graph, const Schedule& from, core::Random& random) {
  std::vector<std::uint8_t> ran(graph.node_count(), 0);
  std::vector<std::int64_t> again;
  for (std::int64_t i = 0; i < from.length(); ++i) {
    if (ran[from.steps[i]] != 0) again.push_back(i);
    ran[from.steps[i]] = 1;
  }
  if (again.empty()) return std::nullopt;
  std::vector<std::uint8_t> kept(from.steps.size(), core::kIfRead);
  // Neighbouring recomputations often belong together, so several of them can be dropped at once.
  const std::size_t first = random.next() % again.size();
  const std::size_t count = 1 + random.next() % (random.next() % 3 == 0 ? 8 : 1);
  for (std::size_t k = first; k < std::min(again.size(), first + count); ++k) kept[again[k]] = core::kDropped;
  core::clear_unread(graph, from.steps, kept);
  return without_steps(from, kept);
}

std::optional<Schedule> recompute_fetched(const core::Graph& graph, const Schedule& from, core::Random& random,
                                          std::int32_t most) {
  const std::vector<core::Fetch>& fetches = from.transfers.fetches;
  if (fetches.empty()) return std::nullopt;
  const core::Fetch& fetch = fetches[random.next() % fetches.size()];
  const NodeId v = graph.producer(from.transfers.evicts[fetch.evict].value);
  const auto runs = std::ranges::count(from.steps, v);
  if (graph.pinned(v) || fetch.finish >= from.length() || (most > 0 && runs >= most)) return std::nullopt;
  Schedule result = with_step(from, fetch.finish, v);
  // The recomputed value takes the place of the fetched value. State::assign() drops the fetch, because the gap for
  // which it was made no longer exists.
  return result;
}

/// Returns whether the steps `first` and `second`, in this order, must keep their order: the later one reads or
/// computes what the earlier one computes, or the earlier one reads what the later one computes again.
bool depend(const core::Graph& graph, NodeId first, NodeId second) {
  const auto reads = [&](NodeId reader, NodeId of) {
    return std::ranges::find(graph.predecessors(reader), of) != graph.predecessors(reader).end();
  };
  return first == second || reads(second, first) || reads(first, second);
}

/// Moves a random step to another place at which all steps still read the same results.
std::optional<Schedule> move_step(const core::Graph& graph, const Schedule& from, core::Random& random) {
  if (from.length() < 2) return std::nullopt;
  const auto length = static_cast<std::uint64_t>(from.length());
  const auto here = static_cast<std::int64_t>(random.next() % length);
  const auto distance = static_cast<std::int64_t>(1 + random.next() % (std::uint64_t{1} << random.next() % 9));
  const bool later = random.next() % 2 == 0;
  const std::int64_t by = later ? 1 : -1;
  std::int64_t to = here;
  while (to + by >= 0 && to + by < from.length() && std::abs(to - here) < distance) {
    const NodeId moved = from.steps[here], passed = from.steps[to + by];
    if (depend(graph, later ? moved : passed, later ? passed : moved)) break;
    to += by;
  }
  if (to == here) return std::nullopt;
  Schedule result = from;
  result.steps.erase(result.steps.begin() + here);
  result.steps.insert(result.steps.begin() + to, from.steps[here]);
  const auto place = [&](std::int64_t step) {
    if (step == here) return to;
    if (later) return step > here && step <= to ? step - 1 : step;
    return step >= to && step < here ? step + 1 : step;
  };
  for (core::Evict& evict : result.transfers.evicts) {
    evict = {evict.value, place(evict.made), place(evict.start), place(evict.finish)};
  }
  for (core::Fetch& fetch : result.transfers.fetches) fetch = {fetch.evict, place(fetch.start), place(fetch.finish)};
  return result;
}

}  // namespace

std::optional<core::Schedule> change_steps(const core::Graph& graph, const Schedule& from, core::Random& random,
                                           const StepRules& rules) {
  const std::uint64_t kind = random.next() % 3;
  if (kind == 0) return drop_recomputation(graph, from, random);
  if (kind == 1) return recompute_fetched(graph, from, random, rules.max_occurrences);
  return rules.any_order ? move_step(graph, from, random) : std::nullopt;
}

}  // namespace cairn::solvers::offloading
