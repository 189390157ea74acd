// Finds an order of least peak by an exact search (exact.h). A cut is a set of steps that have run. CutSearch explores
// the cuts that can be reached with a peak of at most a threshold, which rises until an order is found.

#include "cairn/solvers/order/internal/search/exact.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/solvers/order/internal/reduction/cut_problem.h"
#include "cairn/solvers/order/internal/reduction/cut_search.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"
#include "cairn/solvers/order/internal/search/exchange_rules.h"

namespace cairn::solvers {
namespace {

struct Found {
  std::vector<StepId> order;
  std::int64_t lower_bound = 0;
  /// Whether the search was completed. If so, either the peak of `order` is at most lower_bound, or it is proved that
  /// the peak of every order is above the upper bound.
  bool ended = false;
  std::int64_t states = 0;
};

/// Searches for an order in turn from its beginning and from its end, with one threshold for the peak in bytes. If the
/// search from one end proves that no order keeps to the threshold, the threshold rises for both searches. `floor` is a
/// known lower bound on the peak.
template <std::int32_t kWords>
Found search(const ExchangeRules& reduction, std::int64_t floor, const ExactOptions& options, core::Stopwatch& watch) {
  constexpr std::int64_t kBatch = 64;
  const CutProblem forward = reduction.forward(), backward = reduction.backward();
  CutSearch<kWords> from_start(forward), from_end(backward);
  const std::int64_t most =
      std::min(options.upper_bound, std::max(floor, std::min(from_start.greedy_peak(), from_end.greedy_peak())));
  from_start.limit(most);
  from_end.limit(most);
  Found found;
  found.lower_bound = floor;
  const auto finish = [&](std::vector<std::int32_t> order, bool reversed) {
    if (reversed) std::reverse(order.begin(), order.end());
    found.order = reduction.restore(order);
  };
  while (found.lower_bound <= options.upper_bound) {
    const bool reversed = from_end.work() < from_start.work();
    auto& side = reversed ? from_end : from_start;
    const auto status = side.advance(found.lower_bound, kBatch, watch);
    found.states = from_start.states() + from_end.states();
    if (status == CutSearch<kWords>::Status::reached) {
      finish(side.path(), reversed);
      found.ended = true;
      return found;
    }
    // While an array grows, its old and its new copy need memory at once, so only half of the allowed memory is used.
    if (watch.expired_now() || from_start.bytes() + from_end.bytes() > options.memory_bytes / 2) {
      finish(side.completed_path(), reversed);
      return found;
    }
    if (status == CutSearch<kWords>::Status::exhausted) {
      const std::int64_t next = side.next_threshold();
      if (next == kNever) break;
      found.lower_bound = std::max(found.lower_bound, next);
    }
  }
  // The search has ended without an order, so every order has a peak above the upper bound. If a greedy order has a
  // peak below the upper bound, this is a contradiction.
  if (found.lower_bound <= options.upper_bound) {
    if (most < options.upper_bound) throw std::logic_error("exact_order: the search lost the way");
    found.lower_bound = options.upper_bound + 1;
  }
  found.ended = true;
  return found;
}

Found solve_part(const StepGraph& graph, const Cut& from, const Cut& to, std::int64_t floor,
                 const ExactOptions& options, core::Stopwatch& watch) {
  if (const std::int64_t count = to.count() - from.count();
      count > kMostExactSteps || count * (count + 63) > options.memory_bytes) {
    // The tables of the search would take too much time or memory, so the result is any valid order.
    Found found;
    for (const StepId s : graph.any_order()) {
      if (to.contains(s) && !from.contains(s)) found.order.push_back(s);
    }
    found.lower_bound = floor;
    return found;
  }
  const ExchangeRules reduction(graph, from, to);
  const std::int32_t words = reduction.words();
  if (words == 1) return search<1>(reduction, floor, options, watch);
  if (words == 2) return search<2>(reduction, floor, options, watch);
  return search<0>(reduction, floor, options, watch);
}

}  // namespace

ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch) {
  ExactResult result;
  // Computing the bound gets at most an eighth of the limit, because a bound rarely saves more time than that.
  result.lower_bound = core::within(
      watch, 0.125, [&](core::Stopwatch& bound_watch) { return cut_lower_bound(graph, from, to, bound_watch); });
  result.proved = true;
  std::vector<Cut> stations{from};
  if (Cut valley = min_memory_cut(graph, from, to); !(valley == from) && !(valley == to)) {
    stations.push_back(std::move(valley));
  }
  stations.push_back(to);
  for (std::size_t k = 0; k + 1 < stations.size() && result.lower_bound <= options.upper_bound; ++k) {
    Found found = solve_part(graph, stations[k], stations[k + 1], result.lower_bound, options, watch);
    result.lower_bound = found.lower_bound;
    result.proved = result.proved && found.ended;
    result.states += found.states;
    result.order.insert(result.order.end(), found.order.begin(), found.order.end());
  }
  result.peak = result.lower_bound > options.upper_bound ? kNever : peak(graph, result.order, from);
  if (result.peak > options.upper_bound) {
    result.order.clear();
    result.peak = 0;
  } else {
    result.proved = result.proved || result.peak == result.lower_bound;
  }
  return result;
}

ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch) {
  return exact_order(graph, Cut(graph.step_count()), Cut(graph.step_count(), true), options, watch);
}

PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch) {
  return
      [options, &watch](const StepGraph& graph, const Cut& from, const Cut& to) -> std::optional<std::vector<StepId>> {
        ExactResult result = exact_order(graph, from, to, options, watch);
        if (!result.proved || result.lower_bound > options.upper_bound) return std::nullopt;
        return std::move(result.order);
      };
}

void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found) {
  ExactOptions options;
  options.memory_bytes = memory_bytes;
  options.upper_bound = incumbent.least_peak() - 1;
  const ExactResult result = exact_order(steps, options, watch);
  if (!result.order.empty()) found(result.order);
  const bool none_better = result.proved && result.order.empty();
  incumbent.raise_lower_bound(none_better ? incumbent.least_peak() : result.lower_bound);
}

void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch) {
  const StepGraph steps(graph);
  exact_search(steps, incumbent, memory_bytes, watch,
               [&](const std::vector<StepId>& order) { incumbent.offer({nodes_among(order, graph)}); });
}

}  // namespace cairn::solvers
