// Improves windows of a schedule by an exact search (window.h). A window is a range of consecutive steps.

#include "cairn/solvers/remat/exact/window.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/costs.h"

namespace cairn::solvers {

using core::NodeId;
using core::ValueId;

WindowSearch::WindowSearch(const core::Graph& graph, const Scope& scope, std::int64_t budget, std::uint64_t seed,
                           std::int64_t memory_bytes)
    : graph_(graph),
      scope_(scope),
      budget_(budget),
      memory_bytes_(memory_bytes),
      random_(seed),
      length_(24),
      most_states_(2'000) {
  if (scope.order == OrderRule::stages)
    throw std::logic_error("WindowSearch: a stage cannot be re-optimised by itself");
  const auto n = static_cast<std::size_t>(graph.node_count()), m = static_cast<std::size_t>(graph.value_count());
  first_.resize(n);
  count_.resize(n);
  life_of_.resize(m);
  is_before_.assign(m, 0);
  is_after_.assign(m, 0);
  inside_.assign(n, 0);
  allowed_.assign(n, 0);
  in_rest_.assign(n, 0);
  barred_.assign(n, 0);
  number_.assign(m, -1);
  node_number_.assign(n, -1);
}

void WindowSearch::analyse(const std::vector<NodeId>& steps) {
  if (steps == steps_ && !lives_.empty()) return;
  steps_ = steps;
  const auto length = static_cast<std::int32_t>(steps.size());
  lives_.clear();
  recomputed_.clear();
  std::fill(first_.begin(), first_.end(), -1);
  std::fill(count_.begin(), count_.end(), 0);
  during_.assign(steps.size() + 1, 0);
  for (std::int32_t i = 0; i < length; ++i) {
    const NodeId v = steps[i];
    for (const ValueId x : graph_.inputs(v)) lives_[life_of_[x]].last = i;
    for (const ValueId x : graph_.outputs(v)) {
      life_of_[x] = static_cast<std::int32_t>(lives_.size());
      lives_.push_back({x, i, i});
    }
    if (count_[v]++ == 0) {
      first_[v] = i;
    } else {
      recomputed_.push_back(i);
    }
  }
  for (ValueId x = 0; x < graph_.value_count(); ++x) {
    if (graph_.value_kept(x)) lives_[life_of_[x]].last = length;
  }
  for (const Life& life : lives_) {
    during_[life.made] += graph_.value_size(life.value);
    if (life.last + 1 < length) during_[life.last + 1] -= graph_.value_size(life.value);
  }
  for (std::int32_t i = 1; i < length; ++i) during_[i] += during_[i - 1];
  for (std::int32_t i = 0; i < length; ++i) during_[i] += graph_.scratch(steps[i]);
}

void WindowSearch::find_ends(std::int32_t begin, std::int32_t end) {
  for (const ValueId x : ends_.before) is_before_[x] = 0;
  for (const ValueId x : ends_.after) is_after_[x] = 0;
  for (std::int32_t i = ends_.begin; i < ends_.end; ++i) inside_[ends_.nodes[i - ends_.begin]] = 0;
  ends_.begin = begin;
  ends_.end = end;
  ends_.nodes.assign(steps_.begin() + begin, steps_.begin() + end);
  ends_.before.clear();
  ends_.after.clear();
  for (const Life& life : lives_) {
    if (life.made >= end) break;
    if (life.made < begin && life.last >= begin) {
      ends_.before.push_back(life.value);
      is_before_[life.value] = 1;
    }
    if (life.last >= end) {
      ends_.after.push_back(life.value);
      is_after_[life.value] = 1;
    }
  }
  ends_.cost = cost_of(graph_, ends_.nodes);
  for (const NodeId v : ends_.nodes) ++inside_[v];
  ends_.peak = *std::max_element(during_.begin() + begin, during_.begin() + end);
}

/// Returns whether the first run of v is in the window and the order rule fixes its position among first runs.
bool WindowSearch::in_order(NodeId v) const { return scope_.order == OrderRule::input && first_[v] >= ends_.begin; }

/// Returns whether some step of the window must run v. There are two reasons: the order rule requires it, or the
/// schedule must run v and does so only in the window.
bool WindowSearch::is_goal(NodeId v) const {
  return in_order(v) || (count_[v] == inside_[v] && graph_.required(v) && !graph_.keep(v));
}

/// Finds the nodes that every solution runs in the window, and stores them in in_rest_. Returns their total cost.
std::int64_t WindowSearch::find_rest() {
  std::fill(in_rest_.begin(), in_rest_.end(), 0);
  std::int64_t cost = 0;
  stack_.clear();
  const auto want = [&](NodeId v) {
    if (in_rest_[v] != 0) return;
    in_rest_[v] = 1;
    cost = core::saturating_add(cost, graph_.cost(v));
    stack_.push_back(v);
  };
  for (const NodeId v : ends_.nodes) {
    if (is_goal(v)) want(v);
  }
  for (const ValueId x : ends_.after) {
    if (is_before_[x] == 0) want(graph_.producer(x));
  }
  while (!stack_.empty()) {
    const NodeId v = stack_.back();
    stack_.pop_back();
    for (const ValueId x : graph_.inputs(v)) {
      if (is_before_[x] == 0) want(graph_.producer(x));
    }
  }
  return cost;
}

/// Allows the search to run the producer of x, and the nodes that make the missing inputs of this producer. Allows them
/// only if all of them may run again and cost at most `most_cost` in total. Returns whether they were allowed.
bool WindowSearch::allow_producer(ValueId x, std::int64_t most_cost) {
  constexpr std::size_t kMostNodes = 6;
  const std::size_t begin = nodes_.size();
  std::int64_t cost = 0;
  const auto allow = [&](NodeId v) {
    if (allowed_[v] != 0) return true;
    if (graph_.pinned(v) || (scope_.max_occurrences > 0 && count_[v] >= scope_.max_occurrences)) return false;
    if (nodes_.size() - begin >= kMostNodes || graph_.cost(v) > most_cost - cost) return false;
    cost += graph_.cost(v);
    allowed_[v] = 1;
    nodes_.push_back(v);
    return true;
  };
  bool possible = allow(graph_.producer(x));
  for (std::size_t i = begin; i < nodes_.size() && possible; ++i) {
    for (const ValueId input : graph_.inputs(nodes_[i])) {
      possible = possible && (is_before_[input] != 0 || allow(graph_.producer(input)));
    }
  }
  if (possible) return true;
  while (nodes_.size() > begin) {
    allowed_[nodes_.back()] = 0;
    nodes_.pop_back();
  }
  return false;
}

/// Chooses the nodes that the search may run. These are the window's nodes and some producers of values that are in
/// memory before the window. Producers of least cost per byte are preferred. The number of producers is random, and
/// small enough that all nodes and values fit into a Set128. Returns false if the window's nodes alone do not fit.
bool WindowSearch::allow_nodes(std::int64_t slack) {
  for (const NodeId v : nodes_) allowed_[v] = 0;
  nodes_.clear();
  for (const NodeId v : ends_.nodes) {
    if (allowed_[v] == 0) nodes_.push_back(v);
    allowed_[v] = 1;
  }
  if (!number_values()) return false;
  candidates_.clear();
  for (const ValueId x : ends_.before) {
    const NodeId v = graph_.producer(x);
    if (allowed_[v] != 0 || graph_.value_size(x) == 0 || graph_.cost(v) > slack) continue;
    const double cost = static_cast<double>(graph_.cost(v)) * (0.5 + random_.uniform());
    candidates_.push_back({cost / static_cast<double>(graph_.value_size(x)), x});
  }
  std::sort(candidates_.begin(), candidates_.end());
  std::size_t fits = nodes_.size();
  // Each additional node makes the search much longer. Half of the windows get no additional nodes, so that these
  // windows can be longer.
  constexpr double kMostMore = 8;
  const auto more = static_cast<std::size_t>(kMostMore * std::max(2 * random_.uniform() - 1, 0.0));
  const std::size_t most = nodes_.size() + more;
  for (const auto& [score, x] : candidates_) {
    if (nodes_.size() >= most) break;
    if (!allow_producer(x, slack)) continue;
    if (!number_values()) break;
    fits = nodes_.size();
  }
  for (; nodes_.size() > fits; nodes_.pop_back()) allowed_[nodes_.back()] = 0;
  return number_values();
}

/// Collects in values_ the values that matter to the search: those that an allowed node reads, and those that must be
/// in memory after the window. Leaves out values that are in memory before and after the window and that no allowed
/// node makes, because they stay in memory. fixed_bytes_ becomes the sum of their sizes. Returns false if there are
/// more nodes or values than a Set128 can hold.
bool WindowSearch::number_values() {
  constexpr auto kMost = static_cast<std::size_t>(kMostInSet<Set128>);
  for (const ValueId x : values_) number_[x] = -1;
  values_.clear();
  fixed_bytes_ = 0;
  if (nodes_.size() > kMost) return false;
  const auto take = [&](ValueId x) {
    if (number_[x] >= 0 || (is_before_[x] != 0 && is_after_[x] != 0 && allowed_[graph_.producer(x)] == 0)) return;
    number_[x] = 0;
    values_.push_back(x);
  };
  for (const ValueId x : ends_.after) {
    take(x);
    if (number_[x] < 0) fixed_bytes_ += graph_.value_size(x);
  }
  for (const NodeId v : nodes_) {
    for (const ValueId x : graph_.inputs(v)) take(x);
  }
  return values_.size() <= kMost;
}

template <class Set>
void WindowSearch::state_problem(LiveSetProblem<Set>& problem) {
  problem.clear();
  std::sort(nodes_.begin(), nodes_.end(), [&](NodeId a, NodeId b) { return first_[a] < first_[b]; });
  std::sort(values_.begin(), values_.end(), [&](ValueId a, ValueId b) {
    return graph_.value_size(a) != graph_.value_size(b) ? graph_.value_size(a) > graph_.value_size(b) : a < b;
  });
  for (std::size_t i = 0; i < nodes_.size(); ++i) node_number_[nodes_[i]] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const ValueId x = values_[i];
    number_[x] = static_cast<std::int32_t>(i);
    problem.sizes.push_back(graph_.value_size(x));
    const NodeId producer = graph_.producer(x);
    problem.producers.push_back(allowed_[producer] != 0 ? node_number_[producer] : -1);
    if (is_before_[x] != 0) problem.start |= single<Set>(number_[x]);
    if (is_after_[x] != 0) problem.target |= single<Set>(number_[x]);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeId v = nodes_[i];
    typename LiveSetProblem<Set>::Node node{.during = graph_.size(v) + graph_.scratch(v), .cost = graph_.cost(v)};
    for (const ValueId x : graph_.inputs(v)) {
      if (number_[x] >= 0) node.inputs |= single<Set>(number_[x]);
    }
    for (const ValueId x : graph_.outputs(v)) {
      if (number_[x] >= 0) node.outputs |= single<Set>(number_[x]);
    }
    problem.nodes.push_back(node);
    const std::int32_t outside = count_[v] - inside_[v];
    const bool last_chance = scope_.max_occurrences > 0 && outside + 1 >= scope_.max_occurrences;
    if (graph_.pinned(v) || last_chance || barred_[v] != 0) problem.once |= single<Set>(static_cast<std::int32_t>(i));
    if (inside_[v] > 0 && is_goal(v)) problem.goals |= single<Set>(static_cast<std::int32_t>(i));
    if (inside_[v] > 0 && in_order(v)) problem.in_order |= single<Set>(static_cast<std::int32_t>(i));
  }
}

/// Finds nodes that would run more often than Scope::max_occurrences allows if found_ replaced the window. Allows each
/// of them only one run in the window. Returns false if there are no such nodes.
bool WindowSearch::bar_what_runs_too_often() {
  if (scope_.max_occurrences == 0) return false;
  std::vector<std::int32_t> count(static_cast<std::size_t>(graph_.node_count()), 0);
  bool any = false;
  for (const NodeId v : found_) {
    if (++count[v] + count_[v] - inside_[v] <= scope_.max_occurrences) continue;
    barred_[v] = 1;
    any = true;
  }
  return any;
}

template <class Set>
void WindowSearch::solve(Engine<Set>& engine, const LiveSetLimits& limits, core::Stopwatch& watch) {
  std::fill(barred_.begin(), barred_.end(), 0);
  do {
    state_problem(engine.problem);
    const auto result = engine.search.run(engine.problem, limits, watch);
    states_ += result.states;
    found_any_ = result.found;
    proved_ = result.proved;
    found_cost_ = result.cost;
    found_.clear();
    for (const std::int32_t i : result.steps) found_.push_back(nodes_[i]);
  } while (found_any_ && bar_what_runs_too_often());
}

void WindowSearch::solve(std::int64_t budget, std::int64_t most_cost, std::int64_t most_states,
                         core::Stopwatch& watch) {
  const LiveSetLimits limits{.budget = budget - fixed_bytes_,
                             .most_cost = most_cost,
                             .most_states = most_states,
                             .memory_bytes = memory_bytes_,
                             .anytime = true,
                             .seed = random_.next() | 1};
  ++windows_;
  const auto fits = static_cast<std::size_t>(kMostInSet<Set64>);
  if (nodes_.size() <= fits && values_.size() <= fits) {
    solve(small_, limits, watch);
  } else {
    solve(large_, limits, watch);
  }
}

/// Replaces the window by the steps in found_. Also drops steps whose values are no longer read, unless the Scope of
/// the search does not allow the shorter schedule.
void WindowSearch::replace(std::vector<NodeId>& steps) {
  core::Schedule schedule;
  schedule.steps.assign(steps.begin(), steps.begin() + ends_.begin);
  schedule.steps.insert(schedule.steps.end(), found_.begin(), found_.end());
  schedule.steps.insert(schedule.steps.end(), steps.begin() + ends_.end, steps.end());
  core::Schedule shorter = core::drop_unread(graph_, schedule);
  if (scope_.contains(graph_, shorter)) schedule = std::move(shorter);
  steps = std::move(schedule.steps);
}

WindowSearch::Outcome WindowSearch::improve_window(std::vector<NodeId>& steps, std::size_t begin, std::size_t end,
                                                   std::int64_t most_states, core::Stopwatch& watch) {
  analyse(steps);
  find_ends(static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end));
  if (ends_.peak > budget_) return lower_window(steps, most_states, watch);
  slack_ = ends_.cost - find_rest();
  proved_ = false;
  if (!allow_nodes(slack_)) return Outcome::cut_short;
  // If slack_ is 0, the window costs no more than the nodes that must run in it. Then the search can only change the
  // order of the nodes, and gets only few states.
  constexpr std::int64_t kStatesForAnOrder = 2'000;
  if (slack_ == 0) most_states = std::min(most_states, kStatesForAnOrder);
  solve(budget_, ends_.cost, most_states, watch);
  const bool cheaper = found_any_ && found_cost_ < ends_.cost;
  const bool other = found_any_ && found_.size() <= ends_.nodes.size() && found_ != ends_.nodes;
  if (!cheaper && !other) return proved_ || slack_ == 0 ? Outcome::proved : Outcome::cut_short;
  const std::int64_t before = cost_of(graph_, steps);
  replace(steps);
  return cost_of(graph_, steps) < before ? Outcome::improved : Outcome::moved;
}

/// Improves a window that exceeds the budget. Looks for steps within the budget. If there are none, tries a few higher
/// budgets below the window's peak, in ascending order, and takes the steps for the first one that is feasible.
WindowSearch::Outcome WindowSearch::lower_window(std::vector<NodeId>& steps, std::int64_t most_states,
                                                 core::Stopwatch& watch) {
  slack_ = kAnyCost;
  proved_ = false;
  if (!allow_nodes(slack_)) return Outcome::cut_short;
  bool proved = true;
  for (std::int64_t most = budget_; most < ends_.peak && !watch.expired(); most += (ends_.peak - most + 1) / 2) {
    solve(most, kAnyCost, most_states, watch);
    if (found_any_) {
      replace(steps);
      return Outcome::improved;
    }
    proved = proved && proved_;
  }
  return proved ? Outcome::proved : Outcome::cut_short;
}

std::pair<std::size_t, std::size_t> WindowSearch::pick() {
  const std::size_t total = steps_.size();
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random_.uniform() * static_cast<double>(n));
  };
  const auto length = std::min(total, static_cast<std::size_t>(std::lround(length_ * (0.6 + 0.6 * random_.uniform()))));
  std::size_t step = below(total);
  const double kind = random_.uniform();
  constexpr double kAbove = 0.9;
  std::vector<std::size_t> above;
  for (std::size_t i = 0; i < total; ++i) {
    if (during_[i] > budget_) above.push_back(i);
  }
  if (!above.empty() && kind < kAbove) {
    step = above[below(above.size())];
  } else if (kind < 0.6 && !recomputed_.empty()) {
    step = static_cast<std::size_t>(recomputed_[below(recomputed_.size())]);
  } else if (kind < 0.8) {
    for (int i = 0; i < 3; ++i) {
      const std::size_t other = below(total);
      if (during_[other] > during_[step]) step = other;
    }
  }
  const std::size_t begin = std::min(step - std::min(step, below(length)), total - length);
  return {begin, begin + length};
}

bool WindowSearch::improve(std::vector<NodeId>& steps, core::Stopwatch& watch) {
  constexpr double kShortest = 6, kLongest = 120;
  constexpr double kFewestStates = 2'000, kMostStates = 200'000;
  if (steps.empty()) return false;
  analyse(steps);
  const auto [begin, end] = pick();
  const Outcome outcome = improve_window(steps, begin, end, static_cast<std::int64_t>(most_states_), watch);
  // If slack_ is 0, the search only finds other orders of the same cost. Such a search does not show which length of
  // windows is best, so length_ is not changed.
  if (slack_ > 0) length_ = std::clamp(proved_ ? length_ * 1.02 : length_ * 0.97, kShortest, kLongest);
  if (outcome == Outcome::improved) {
    most_states_ = std::max(most_states_ * 0.7, kFewestStates);
  } else if (slack_ > 0) {
    most_states_ = std::min(most_states_ * 1.01, kMostStates);
  }
  return outcome == Outcome::improved;
}

}  // namespace cairn::solvers
