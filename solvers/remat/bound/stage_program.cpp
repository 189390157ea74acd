// Builds a linear program that bounds the cost of schedules (stage_program.h). The first run of the chain's node c_t
// ends stage t of a schedule.

#include "cairn/solvers/remat/bound/stage_program.h"

#include <algorithm>
#include <cstddef>

#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/remat/bound/stage_prices.h"

namespace cairn::solvers {
namespace {

std::int64_t bytes_while_running(const core::Graph& graph, core::NodeId v) {
  std::int64_t bytes = graph.size(v) + graph.scratch(v);
  for (const core::ValueId x : graph.inputs(v)) bytes += graph.value_size(x);
  return bytes;
}

}  // namespace

std::vector<core::NodeId> longest_chain(const core::Graph& graph) {
  const auto n = static_cast<std::size_t>(graph.node_count());
  struct Best {
    std::int32_t nodes = 1;
    std::int64_t bytes = 0;
    core::NodeId before = core::kNoNode;
  };
  std::vector<Best> best(n);
  core::NodeId last = core::kNoNode;
  const auto better = [&](core::NodeId a, core::NodeId b) {
    return b == core::kNoNode || best[a].nodes > best[b].nodes ||
           (best[a].nodes == best[b].nodes && best[a].bytes > best[b].bytes);
  };
  for (const core::NodeId v : graph.input_order()) {
    for (const core::NodeId u : graph.predecessors(v)) {
      if (better(u, best[v].before)) best[v].before = u;
    }
    if (best[v].before != core::kNoNode) {
      best[v].nodes = best[best[v].before].nodes + 1;
      best[v].bytes = best[best[v].before].bytes;
    }
    best[v].bytes += bytes_while_running(graph, v) / static_cast<std::int64_t>(n);
    if (better(v, last)) last = v;
  }
  std::vector<core::NodeId> chain;
  for (core::NodeId v = last; v != core::kNoNode; v = best[v].before) chain.push_back(v);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::vector<core::NodeId> thin_chain(const core::Graph& graph, std::vector<core::NodeId> chain, std::size_t most) {
  if (chain.size() <= most) return chain;
  std::vector<core::NodeId> thinned;
  for (std::size_t part = 0; part < most; ++part) {
    const auto begin = chain.begin() + static_cast<std::ptrdiff_t>(part * chain.size() / most);
    const auto end = chain.begin() + static_cast<std::ptrdiff_t>((part + 1) * chain.size() / most);
    const auto bytes = [&](core::NodeId v) { return bytes_while_running(graph, v); };
    thinned.push_back(*std::ranges::max_element(begin, end, {}, bytes));
  }
  return thinned;
}

std::vector<core::NodeId> chain_for(const core::Graph& graph, OrderRule order) {
  if (order == OrderRule::free) return longest_chain(graph);
  return {graph.input_order().begin(), graph.input_order().end()};
}

std::optional<FirstRunStages> stages_of_size(const core::Graph& graph, std::vector<core::NodeId> chain,
                                             std::int64_t budget, std::int64_t known_cost, std::int64_t allowed,
                                             core::Stopwatch& watch) {
  while (!watch.expired_now()) {
    FirstRunStages stages(graph, chain, budget, known_cost);
    const std::int64_t size = stages.size();
    if (size <= allowed || chain.empty()) {
      watch.charge(graph.node_count() + size);
      return stages;
    }
    const auto part = static_cast<double>(allowed) / static_cast<double>(size);
    chain = thin_chain(graph, chain, static_cast<std::size_t>(static_cast<double>(chain.size()) * part * 0.9));
  }
  return std::nullopt;
}

FirstRunStages::FirstRunStages(const core::Graph& graph, std::vector<core::NodeId> chain, std::int64_t budget,
                               std::int64_t known_cost)
    : graph_(graph),
      chain_(std::move(chain)),
      budget_(budget),
      base_cost_(cost_of(graph, graph.input_order())),
      cost_unit_(solvers::cost_unit(graph)),
      place_(static_cast<std::size_t>(graph.node_count()), -1),
      topological_(graph.input_order().begin(), graph.input_order().end()),
      nodes_(static_cast<std::size_t>(graph.node_count())),
      values_(static_cast<std::size_t>(graph.value_count())) {
  for (std::int32_t t = 0; t < chain_length(); ++t) place_[chain_[t]] = t;
  find_first_runs();
  find_last_uses(known_cost);
}

void FirstRunStages::find_first_runs() {
  for (const core::NodeId v : topological_) {
    Node& node = nodes_[v];
    for (const core::NodeId u : graph_.predecessors(v))
      node.first = std::max(node.first, nodes_[u].first + (place_[u] >= 0 ? 1 : 0));
    if (place_[v] >= 0) node.first = place_[v];
  }
  for (auto v = topological_.rbegin(); v != topological_.rend(); ++v) {
    Node& node = nodes_[*v];
    node.due = chain_length();
    for (const core::NodeId reader : graph_.successors(*v)) node.due = std::min(node.due, nodes_[reader].due);
    if (place_[*v] >= 0) node.due = place_[*v];
  }
}

void FirstRunStages::find_last_uses(std::int64_t known_cost) {
  const std::int32_t end = chain_length();
  for (auto next = topological_.rbegin(); next != topological_.rend(); ++next) {
    const core::NodeId v = *next;
    Node& node = nodes_[v];
    node.once = graph_.pinned(v) || (known_cost != kUnknownCost && graph_.cost(v) >= known_cost - base_cost_);
    node.last = node.due;
    for (const core::ValueId x : graph_.outputs(v)) {
      Value& value = values_[x];
      value.from = node.first;
      if (place_[v] >= 0) value.until = place_[v];
      value.surely_from = node.due;
      for (const core::NodeId reader : graph_.readers(x)) {
        const Node& by = nodes_[reader];
        const std::int32_t at_first_run = place_[reader] >= 0 ? place_[reader] : by.first - 1;
        value.until = std::max({value.until, by.last - 1, at_first_run});
        if (node.once) value.surely_until = std::max(value.surely_until, at_first_run);
        if (!node.once) node.last = std::max(node.last, by.last);
      }
      if (graph_.value_kept(x)) {
        value.until = end;
        if (node.once) value.surely_until = end;
        if (!node.once) node.last = end;
      }
    }
  }
}

std::int64_t FirstRunStages::size() const {
  std::int64_t pairs = 0;
  for (const Node& node : nodes_) pairs += node.last - node.first + 1;
  for (const Value& value : values_) pairs += std::max(value.until - value.from + 1, 0);
  return pairs;
}

bool FirstRunStages::forced(std::int32_t t, core::ValueId x) const {
  const Value& value = values_[x];
  if (value.surely_from <= t && t <= value.surely_until) return true;
  if (t == chain_length()) return graph_.value_kept(x);
  const auto inputs = graph_.inputs(chain_[t]);
  return graph_.producer(x) == chain_[t] || std::find(inputs.begin(), inputs.end(), x) != inputs.end();
}

bool FirstRunStages::fits() const {
  const std::int32_t end = chain_length();
  // Both vectors are indexed by t.
  // - change: the bytes of the values that are surely in memory during the run of c_t, minus the bytes of the values
  //   that are surely in memory during the run of c_(t-1).
  // - more: the bytes that the run of c_t needs in addition to the values that are surely in memory.
  std::vector<std::int64_t> change(static_cast<std::size_t>(end) + 2, 0), more(change);
  const auto surely = [&](std::int32_t t, const Value& value) {
    return value.surely_from <= t && t <= value.surely_until;
  };
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    const Value& value = values_[x];
    if (value.surely_from <= value.surely_until) {
      change[value.surely_from] += graph_.value_size(x);
      change[static_cast<std::size_t>(value.surely_until) + 1] -= graph_.value_size(x);
    }
    if (graph_.value_kept(x) && !surely(end, value)) more[end] += graph_.value_size(x);
  }
  for (std::int32_t t = 0; t < end; ++t) {
    more[t] += graph_.scratch(chain_[t]);
    for (const core::ValueId x : graph_.inputs(chain_[t])) more[t] += surely(t, values_[x]) ? 0 : graph_.value_size(x);
    for (const core::ValueId x : graph_.outputs(chain_[t])) more[t] += surely(t, values_[x]) ? 0 : graph_.value_size(x);
  }
  std::int64_t there = 0;
  for (std::int32_t t = 0; t <= end; ++t) {
    there += change[t];
    if (there + more[t] > budget_) return false;
  }
  return true;
}

StageProgram::StageProgram(const FirstRunStages& stages, const StagePrices* prices, std::int64_t most_extra)
    : stages_(stages), prices_(prices), most_extra_(most_extra), graph_(stages.graph()) {
  add_variables();
  add_links();
  add_memory_rows();
}

void StageProgram::add_variables() {
  for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
    const FirstRunStages::Node& node = stages_.node(v);
    run_begin_.push_back(static_cast<Entry>(model_.columns().size()));
    const bool fixed = node.first == node.due;
    if (fixed || node.once) fixed_cost_ += graph_.cost(v);
    Sum runs;
    for (std::int32_t t = node.first + (fixed ? 1 : 0); t <= node.last; ++t) {
      const Entry entry = model_.add_binary(node.once ? 0 : graph_.cost(v) / stages_.cost_unit());
      if (t <= node.due) runs.add(entry, 1);
    }
    if (!fixed) model_.add_sum(runs, 1, node.once ? 1 : LinearModel::kInfinity);
  }
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    held_begin_.push_back(static_cast<Entry>(model_.columns().size()));
    const FirstRunStages::Value& value = stages_.value(x);
    for (std::int32_t t = value.from; t <= value.until; ++t) model_.add_binary();
  }
}

StageProgram::Entry StageProgram::run(std::int32_t stage, core::NodeId v) const {
  const FirstRunStages::Node& node = stages_.node(v);
  if (stage < node.first || stage > node.last) return kZero;
  const bool fixed = node.first == node.due;
  if (fixed && stage == node.first) return kOne;
  if (prices_ != nullptr && prices_->never_run(stage, v, most_extra_)) return kZero;
  return run_begin_[v] + stage - node.first - (fixed ? 1 : 0);
}

StageProgram::Entry StageProgram::held(std::int32_t stage, core::ValueId x) const {
  const FirstRunStages::Value& value = stages_.value(x);
  if (stage < value.from || stage > value.until) return kZero;
  if (stages_.forced(stage, x)) return kOne;
  if (prices_ != nullptr && prices_->never_held(stage, x, most_extra_)) return kZero;
  return held_begin_[x] + stage - value.from;
}

void StageProgram::add_links() {
  const auto at_most_sources = [&](Entry used, std::int32_t stage, core::ValueId x) {
    const Entry made = run(stage, graph_.producer(x));
    const Entry before = stage == 0 ? kZero : held(stage - 1, x);
    if (used == kZero || made == kOne || before == kOne) return;
    Sum sum;
    sum.add(made, 1);
    sum.add(before, 1);
    sum.add(used, -1);
    model_.add_sum(sum, 0, LinearModel::kInfinity);
  };
  for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
    for (std::int32_t t = stages_.node(v).first; t <= stages_.node(v).last; ++t) {
      for (const core::ValueId x : graph_.inputs(v)) at_most_sources(run(t, v), t, x);
    }
    for (const core::ValueId x : graph_.outputs(v)) {
      for (std::int32_t t = stages_.value(x).from; t <= stages_.value(x).until; ++t) at_most_sources(held(t, x), t, x);
    }
  }
}

void StageProgram::add_memory_rows() {
  const std::int64_t unit = size_unit(graph_);
  const std::int32_t end = stages_.chain_length();
  std::vector<Sum> bytes(static_cast<std::size_t>(end) + 1);
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    if (graph_.value_size(x) == 0) continue;
    for (std::int32_t t = stages_.value(x).from; t <= stages_.value(x).until; ++t)
      bytes[t].add(held(t, x), graph_.value_size(x) / unit);
  }
  for (std::int32_t t = 0; t <= end; ++t) {
    if (t < end) bytes[t].add(kOne, graph_.scratch(stages_.chain(t)) / unit);
    model_.add_sum(bytes[t], -LinearModel::kInfinity, stages_.budget() / unit);
  }
}

core::Schedule StageProgram::schedule(std::span<const double> values) const {
  const auto holds = [&](Entry entry) { return entry == kOne || (entry >= 0 && values[entry] > 0.5); };
  std::vector<std::vector<core::NodeId>> stages(static_cast<std::size_t>(stages_.chain_length()) + 1);
  for (const core::NodeId v : graph_.input_order()) {
    for (std::int32_t t = stages_.node(v).first; t <= stages_.node(v).last; ++t) {
      if (stages_.place(v) != t && holds(run(t, v))) stages[t].push_back(v);
    }
  }
  core::Schedule schedule;
  for (std::int32_t t = 0; t <= stages_.chain_length(); ++t) {
    schedule.steps.insert(schedule.steps.end(), stages[t].begin(), stages[t].end());
    if (t < stages_.chain_length()) schedule.steps.push_back(stages_.chain(t));
  }
  return schedule;
}

}  // namespace cairn::solvers
