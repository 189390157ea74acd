// Builds the integer program of checkmate() (stage_model.h). Stage t of a schedule ends with the first run of node t. A
// value is retained into a stage if it is in memory when the stage begins.

#include "cairn/solvers/remat/stages/stage_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/remat/repair/input_ranks.h"

namespace cairn::solvers {

StageModel::StageModel(const core::Graph& graph, const StageAim& aim, std::size_t most_terms, core::Stopwatch& watch)
    : graph_(graph), aim_(aim), n_(graph.node_count()) {
  describe_graph();
  find_last_uses();
  const std::int32_t first_stage = first_full_stage();
  std::size_t pairs = 0;
  for (std::int32_t v = 0; v < n_; ++v) {
    nodes_[v].first_stage = std::max(v + 1, first_stage);
    pairs += static_cast<std::size_t>(std::max(nodes_[v].last + 1 - nodes_[v].first_stage, 0));
  }
  const auto check_size = [&](std::size_t terms) {
    if (terms <= most_terms) return;
    throw core::InputError(
        fmt::format("the program of checkmate for this graph ({} nodes, {} inputs) and budget has more than the {} "
                    "terms that fit into {}; use solver auto, tw, greedy or chen",
                    n_, graph_.edge_count(), most_terms, core::option("memory")));
  };
  check_size(3 * pairs);
  for (Value& x : values_) {
    if (x.surely < n_) x.surely = std::max(x.surely, std::min(x.last, first_stage - 1));
    x.first_stage = std::max(x.producer, x.surely) + 1;
  }
  add_variables();
  needed_.resize(values_.size());
  for (std::int32_t stage = first_stage; stage < n_; ++stage) {
    if (watch.expired_now()) return;
    const std::size_t before = program_.term_count();
    add_needs(stage);
    add_memory_rows(stage);
    check_size(program_.term_count());
    watch.charge(n_ + static_cast<std::int64_t>(program_.term_count() - before));
  }
  complete_ = true;
}

void StageModel::describe_graph() {
  memory_unit_ = size_unit(graph_);
  const std::vector<std::int32_t> ranks = input_ranks(graph_);
  std::vector<std::int32_t> index(static_cast<std::size_t>(graph_.value_count()), -1);
  for (const core::NodeId v : graph_.input_order()) {
    Node node{.scratch = graph_.scratch(v) / memory_unit_, .value_begin = static_cast<std::int32_t>(values_.size())};
    for (const core::ValueId x : graph_.outputs(v)) {
      if (graph_.value_size(x) == 0) continue;  // a value of 0 bytes always stays in memory
      index[x] = static_cast<std::int32_t>(values_.size());
      Value value{.id = x, .size = graph_.value_size(x) / memory_unit_, .producer = ranks[v]};
      for (const core::NodeId reader : graph_.readers(x)) value.readers.push_back(ranks[reader]);
      std::sort(value.readers.begin(), value.readers.end());
      values_.push_back(std::move(value));
    }
    node.value_end = static_cast<std::int32_t>(values_.size());
    for (const core::ValueId x : graph_.inputs(v)) {
      if (index[x] >= 0) node.inputs.push_back(index[x]);
    }
    nodes_.push_back(std::move(node));
  }
  capacity_ = aim_.budget.value_or(aim_.most_peak) / memory_unit_;
  floor_ = aim_.budget.value_or(aim_.least_peak) / memory_unit_;
}

void StageModel::find_last_uses() {
  for (std::int32_t v = n_; v-- > 0;) {
    Node& node = nodes_[v];
    node.last = v;
    const bool pinned = graph_.pinned(graph_.input_order()[v]);
    for (std::int32_t i = node.value_begin; i < node.value_end; ++i) {
      Value& x = values_[i];
      x.last = v;
      for (const std::int32_t reader : x.readers) x.last = std::max(x.last, nodes_[reader].last);
      if (graph_.value_kept(x.id)) x.last = n_;
      if (!pinned) node.last = std::max(node.last, std::min(x.last, n_ - 1));
      if (pinned && !x.readers.empty()) x.surely = x.readers.back();
      if (pinned && graph_.value_kept(x.id)) x.surely = n_;
    }
  }
}

std::int32_t StageModel::first_full_stage() const {
  // useless[t] is the total size, in units of memory_unit_, of the values that no stage after t can need.
  std::vector<std::int64_t> useless(static_cast<std::size_t>(n_) + 1, 0);
  std::int64_t bytes = 0;
  for (std::int32_t v = 0; v < n_; ++v) {
    bytes += nodes_[v].scratch;
    for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) {
      bytes += values_[i].size;
      useless[values_[i].last] += values_[i].size;
    }
    if (bytes > floor_) return v;
    bytes -= nodes_[v].scratch + useless[v];
  }
  return n_;
}

void StageModel::add_variables() {
  if (!aim_.budget) {
    // Costs get no weight, so the objective is the peak.
    unit_ = memory_unit_;
    peak_ = program_.add({floor_, capacity_, 1, true});
  } else {
    unit_ = cost_unit(graph_);
    fixed_ = cost_of(graph_, graph_.input_order());
  }
  Sum occurrences;
  for (std::int32_t v = 0; v < n_; ++v) {
    Node& node = nodes_[v];
    const std::int64_t cost = aim_.budget ? graph_.cost(graph_.input_order()[v]) / unit_ : 0;
    node.first_variable = static_cast<Entry>(program_.columns().size());
    for (std::int32_t stage = node.first_stage; stage <= node.last; ++stage)
      occurrences.add(program_.add_binary(cost), 1);
    if (aim_.max_occurrences > 0 && static_cast<std::int32_t>(occurrences.terms.size()) >= aim_.max_occurrences)
      add_row(occurrences, -LinearModel::kInfinity, aim_.max_occurrences - 1);
    occurrences.terms.clear();
    for (std::int32_t i = node.value_begin; i < node.value_end; ++i) {
      Value& x = values_[i];
      x.first_variable = static_cast<Entry>(program_.columns().size());
      for (std::int32_t stage = x.first_stage; stage <= std::min(x.last, n_ - 1); ++stage) program_.add_binary();
    }
  }
}

StageModel::Entry StageModel::run(std::int32_t stage, std::int32_t v) const {
  if (stage == v) return kOne;
  const Node& node = nodes_[v];
  return stage < node.first_stage || stage > node.last ? kZero : node.first_variable + stage - node.first_stage;
}

StageModel::Entry StageModel::retained(std::int32_t stage, const Value& x) const {
  if (stage <= x.producer || stage > x.last) return kZero;
  return stage <= x.surely || stage == n_ ? kOne : x.first_variable + stage - x.first_stage;
}

StageModel::Entry StageModel::either(Entry a, Entry b) {
  if (a == kOne || b == kZero || a == b) return a;
  if (b == kOne || a == kZero) return b;
  const Entry result = program_.add({.whole = false});
  ors_.push_back({result, a, b});
  for (const Entry least : {a, b}) {
    const LinearTerm terms[] = {{result, 1}, {least, -1}};
    program_.add_row(terms, 0, LinearModel::kInfinity);
  }
  return result;
}

void StageModel::add_row(Sum sum, std::int64_t lower, std::int64_t upper) {
  sum.merge();
  program_.add_sum(sum, lower, upper);
}

void StageModel::add_needs(std::int32_t stage) {
  for (std::size_t i = 0; i < values_.size() && values_[i].producer <= stage; ++i) {
    const Value& x = values_[i];
    std::vector<Entry>& needed = needed_[i];
    needed.assign(1, retained(stage + 1, x));
    for (auto reader = x.readers.rbegin(); reader != x.readers.rend(); ++reader) {
      if (*reader <= stage && run(stage, *reader) != kZero)
        needed.push_back(either(run(stage, *reader), needed.back()));
    }
    if (x.producer == stage) continue;
    // A needed value is either retained into this stage or made in it, but not both.
    const Entry before = retained(stage, x), made = run(stage, x.producer);
    Sum sources;
    sources.add(before, 1);
    sources.add(made, 1);
    if (sources.terms.size() == 2) add_row(sources, -LinearModel::kInfinity, 1);
    sources.add(needed.back(), -1);
    if (before != kOne && needed.back() != kZero) add_row(std::move(sources), 0, LinearModel::kInfinity);
  }
  for (std::int32_t v = 0; v < stage; ++v) {
    const Entry again = run(stage, v);
    if (again == kZero) continue;
    Sum uses;
    for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) uses.add(needed_[i].back(), 1);
    uses.add(again, -1);
    if (uses.fixed == 0) add_row(std::move(uses), 0, LinearModel::kInfinity);
  }
}

void StageModel::add_memory_rows(std::int32_t stage) {
  // Number of values whose producers come before this stage's node.
  const auto values = static_cast<std::size_t>(nodes_[stage].value_begin);
  // The loops below go through the steps of the stage. For each value, now[] has the Entry (a variable or a constant of
  // the program) that says whether the value is in memory at the current step.
  std::vector<Entry> now(values);
  std::int64_t most = 0;  // total size of the values that can be in memory at that step, in units
  for (std::size_t i = 0; i < values; ++i) {
    now[i] = retained(stage, values_[i]);
    if (now[i] != kZero) most += values_[i].size;
  }
  const auto change = [&](std::int32_t i, Entry to) {
    most += (to != kZero ? values_[i].size : 0) - (now[i] != kZero ? values_[i].size : 0);
    now[i] = to;
  };
  for (std::int32_t v = 0; v <= stage; ++v) {
    const Entry runs = run(stage, v);
    const bool has_row = v == stage || (runs != kZero && !aim_.rows.empty() && aim_.rows[step(stage, v)]);
    std::int64_t own = nodes_[v].scratch, replaced = 0;
    for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) {
      own += values_[i].size;
      if (v < stage && now[i] != kZero) replaced += values_[i].size;
    }
    if (has_row && most - replaced + std::max(own, replaced) > floor_) {
      Sum row;
      for (std::size_t i = 0; i < values; ++i) row.add(now[i], values_[i].size);
      row.add(runs, own);
      row.add(peak_, -1);
      add_row(std::move(row), -LinearModel::kInfinity, aim_.budget ? capacity_ : 0);
    }
    if (v == stage) break;
    for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) change(i, needed_[i].back());
    if (runs == kZero) continue;
    for (const std::int32_t i : nodes_[v].inputs) {
      needed_[i].pop_back();
      change(i, needed_[i].back());
    }
  }
}

std::vector<std::size_t> StageModel::missing_rows(std::span<const double> values, double bytes) const {
  constexpr double kTolerance = 1e-6;
  const auto get = [&](Entry entry) { return entry >= 0 ? values[entry] : entry == kOne ? 1.0 : 0.0; };
  const double allowed = bytes / static_cast<double>(memory_unit_) * (1 + kTolerance);
  std::vector<std::size_t> missing;
  std::vector<std::vector<double>> needed(values_.size());
  for (std::int32_t stage = 0; stage < n_; ++stage) {
    std::vector<double> now(static_cast<std::size_t>(nodes_[stage].value_begin));
    double memory = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Value& x = values_[i];
      now[i] = get(retained(stage, x));
      memory += now[i] * static_cast<double>(x.size);
      needed[i].assign(1, get(retained(stage + 1, x)));
      for (auto reader = x.readers.rbegin(); reader != x.readers.rend(); ++reader) {
        if (*reader <= stage) needed[i].push_back(std::max(get(run(stage, *reader)), needed[i].back()));
      }
    }
    const auto change = [&](std::int32_t i) {
      memory += (needed[i].back() - now[i]) * static_cast<double>(values_[i].size);
      now[i] = needed[i].back();
    };
    for (std::int32_t v = 0; v < stage; ++v) {
      const double runs = get(run(stage, v));
      double own = static_cast<double>(nodes_[v].scratch);
      for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i)
        own += static_cast<double>(values_[i].size);
      const bool has_row = !aim_.rows.empty() && aim_.rows[step(stage, v)];
      if (runs > kTolerance && !has_row && memory + runs * own > allowed) missing.push_back(step(stage, v));
      for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) change(i);
      for (const std::int32_t i : nodes_[v].inputs) {
        needed[i].pop_back();
        change(i);
      }
    }
  }
  return missing;
}

std::vector<std::vector<std::int32_t>> StageModel::reruns(const core::Schedule& schedule) const {
  const std::vector<std::int32_t> ranks = input_ranks(graph_);
  std::vector<std::vector<std::int32_t>> runs(static_cast<std::size_t>(n_));
  std::int32_t stage = 0;
  for (const core::NodeId v : schedule.steps) {
    if (ranks[v] == stage) {
      ++stage;
    } else if (run(stage, ranks[v]) != kZero) {
      runs[stage].push_back(ranks[v]);
    }
  }
  return runs;
}

std::vector<std::int64_t> StageModel::values_of(const core::Schedule& schedule) const {
  std::vector<std::int64_t> values(program_.columns().size(), 0);
  const auto set = [&](Entry entry, bool to) {
    if (entry >= 0) values[entry] = to ? 1 : 0;
  };
  std::vector<bool> needed(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i) needed[i] = values_[i].last == n_;
  const std::vector<std::vector<std::int32_t>> runs = reruns(schedule);
  for (std::int32_t stage = n_; stage-- > 0;) {
    const auto pass = [&](std::int32_t v) {
      for (std::int32_t i = nodes_[v].value_begin; i < nodes_[v].value_end; ++i) needed[i] = false;
      for (const std::int32_t i : nodes_[v].inputs) needed[i] = true;
    };
    pass(stage);
    for (auto v = runs[stage].rbegin(); v != runs[stage].rend(); ++v) {
      set(run(stage, *v), true);
      pass(*v);
    }
    for (std::size_t i = 0; i < values_.size(); ++i) set(retained(stage, values_[i]), needed[i]);
  }
  const auto get = [&](Entry entry) { return entry >= 0 ? values[entry] : entry == kOne ? 1 : 0; };
  for (const Or& either : ors_) values[either.result] = std::max(get(either.a), get(either.b));
  if (peak_ >= 0) values[peak_] = core::evaluate(graph_, schedule).peak / memory_unit_;
  return values;
}

core::Schedule StageModel::schedule(std::span<const double> values) const {
  core::Schedule schedule;
  for (std::int32_t stage = 0; stage < n_; ++stage) {
    for (std::int32_t v = 0; v <= stage; ++v) {
      const Entry runs = run(stage, v);
      if (runs == kOne || (runs >= 0 && values[runs] > 0.5)) schedule.steps.push_back(graph_.input_order()[v]);
    }
  }
  return schedule;
}

core::Schedule StageModel::least_runs(std::span<const double> values,
                                      const std::function<bool(double)>& retains) const {
  const auto decide = [&](std::int32_t stage) {
    std::vector<bool> decided(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Entry entry = retained(stage, values_[i]);
      decided[i] = entry == kOne || (entry >= 0 && retains(values[entry]));
    }
    return decided;
  };
  core::Schedule schedule;
  std::vector<bool> there = decide(0);
  for (std::int32_t stage = 0; stage < n_; ++stage) {
    const std::vector<bool> then = decide(stage + 1);
    std::vector<bool> runs(static_cast<std::size_t>(stage) + 1, false);
    runs[stage] = true;
    for (std::size_t i = 0; i < values_.size() && values_[i].producer < stage; ++i) {
      if (then[i] && !there[i]) runs[values_[i].producer] = true;
    }
    for (std::int32_t v = stage; v >= 0; --v) {
      if (!runs[v]) continue;
      for (const std::int32_t i : nodes_[v].inputs) {
        if (!there[i]) runs[values_[i].producer] = true;
      }
    }
    for (std::int32_t v = 0; v <= stage; ++v) {
      if (runs[v]) schedule.steps.push_back(graph_.input_order()[v]);
    }
    there = then;
  }
  return schedule;
}

}  // namespace cairn::solvers
