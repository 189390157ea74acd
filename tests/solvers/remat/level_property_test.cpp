// H-ILP on small levels against trying every choice of its class, by the definitions (tests/reference/reference.h).
//
// A schedule of the class is what its header describes: phases in order; in those of backward parts (all where there
// are none) any set of forward parts runs again first, each in the forward part of any of its options; each backward
// part runs once, in any option. Memory is freed as early as it can be, and of parts of several nodes steps that
// nothing reads are left out. Which run saves for the backward part, and what stays in memory, follows from that; the
// program must choose it as well and counts parts as a whole, so its optimum may be dearer, never cheaper. Where every
// part is one forward node and at most one backward node there is nothing to count as a whole, and both are equal.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/solvers/remat/hiremate/group_graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/rotor/layers.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/solvers/remat/training_graphs.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using core::ValueId;
using tests::no_engine;
using tests::Random;
namespace reference = core::reference;

using Steps = std::vector<NodeId>;

void append(Steps& to, const Steps& more) { to.insert(to.end(), more.begin(), more.end()); }

// --- A layer's option by itself, by the definitions.

/// Both passes of an option in one sequence, as the rest of the graph sees it.
class Passes {
 public:
  Passes(const Graph& graph, const Layer& layer, const LayerOption& option) : graph_(graph), steps_(option.forward) {
    middle_ = static_cast<std::int64_t>(steps_.size());
    append(steps_, option.backward);
    inside_.assign(static_cast<std::size_t>(graph.node_count()), false);
    for (const Steps* part : {&layer.forward, &layer.backward}) {
      for (const NodeId v : *part) inside_[static_cast<std::size_t>(v)] = true;
    }
  }

  /// Every node runs, after what it reads of the layer, pinned ones once.
  bool valid() const {
    std::set<NodeId> run;
    for (const NodeId v : steps_) {
      if (!inside(v)) return false;
      for (const NodeId u : graph_.predecessors(v)) {
        if (inside(u) && run.count(u) == 0) return false;
      }
      if (!run.insert(v).second && graph_.pinned(v)) return false;
    }
    return static_cast<std::ptrdiff_t>(run.size()) == std::count(inside_.begin(), inside_.end(), true);
  }

  /// Leaves out what nothing reads: neither a later step, nor the rest, nor the end.
  LayerOption pruned() {
    for (bool any = true; any;) {
      any = false;
      for (std::int64_t i = length() - 1; i >= 0; --i) {
        if (!removable(i)) continue;
        steps_.erase(steps_.begin() + i);
        if (i < middle_) --middle_;
        any = true;
      }
    }
    return {Steps(steps_.begin(), steps_.begin() + middle_), Steps(steps_.begin() + middle_, steps_.end())};
  }

  OptionNeeds needs() const {
    OptionNeeds needs;
    for (std::int64_t i = 0; i < length(); ++i) {
      const NodeId v = steps_[i];
      needs.cost += graph_.cost(v);
      needs.peak = std::max(needs.peak, held(i) + reference::output_bytes(graph_, v) + graph_.scratch(v));
      needs.peak = std::max(needs.peak, held(i));
    }
    needs.between = between(true);
    return needs;
  }
  /// Bytes that stay between the passes and that nobody else reads.
  std::int64_t between_beside_rest() const { return between(false); }

 private:
  std::int64_t length() const { return static_cast<std::int64_t>(steps_.size()); }
  bool inside(NodeId v) const { return inside_[static_cast<std::size_t>(v)]; }
  bool leaves(ValueId x) const {
    const auto readers = graph_.readers(x);
    return graph_.value_kept(x) || std::any_of(readers.begin(), readers.end(), [&](NodeId v) { return !inside(v); });
  }
  /// A step from `from` on reads this value before its node runs again.
  bool read(std::int64_t made, ValueId x, std::int64_t from) const {
    for (std::int64_t i = made + 1; i < length(); ++i) {
      if (steps_[i] == steps_[made]) return false;
      if (i >= from && reference::reads(graph_, steps_[i], x)) return true;
    }
    return false;
  }
  std::int64_t between(bool with_leaving) const {
    std::int64_t bytes = 0;
    for (std::int64_t made = 0; made < middle_; ++made) {
      for (const ValueId x : graph_.outputs(steps_[made])) {
        if (read(made, x, middle_) && (with_leaving || !leaves(x))) bytes += graph_.value_size(x);
      }
    }
    return bytes;
  }
  /// The last of its pass.
  bool last(std::int64_t made) const {
    const std::int64_t end = made < middle_ ? middle_ : length();
    return std::find(steps_.begin() + made + 1, steps_.begin() + end, steps_[made]) == steps_.begin() + end;
  }
  /// What the rest or the end wants of it: values of forward nodes are given in the forward pass.
  bool given(std::int64_t made, ValueId x) const {
    return leaves(x) && last(made) && (made < middle_) == !graph_.backward(steps_[made]);
  }
  bool removable(std::int64_t made) const {
    const NodeId v = steps_[made];
    if (std::count(steps_.begin(), steps_.end(), v) == 1) return false;
    for (const ValueId x : graph_.outputs(v)) {
      if (read(made, x, made) || given(made, x)) return false;
    }
    return true;
  }
  /// Bytes of the layer in memory before step i beside what it makes: read later, or given in this pass.
  std::int64_t held(std::int64_t i) const {
    std::int64_t bytes = 0;
    for (std::int64_t made = 0; made < i; ++made) {
      const bool same_pass = (made < middle_) == (i < middle_);
      for (const ValueId x : graph_.outputs(steps_[made])) {
        if (read(made, x, i) || (same_pass && given(made, x))) bytes += graph_.value_size(x);
      }
    }
    return bytes;
  }

  const Graph& graph_;
  Steps steps_;
  std::int64_t middle_ = 0;
  std::vector<bool> inside_;
};

// --- Levels.

struct Case {
  Graph graph;
  LevelProblem problem;
  Layer whole;
  /// Every part: a forward node of which nothing is kept, at most one backward node, one option; no node makes room
  /// while it runs (negative scratch), so that memory is never higher between steps.
  bool single = true;
};

/// A part's nodes once, and now and then some forward nodes again.
LayerOption random_option(Random& random, const Graph& graph, const Layer& layer) {
  LayerOption option;
  for (const NodeId v : layer.forward) {
    for (const NodeId u : option.forward) {
      if (!random.chance(6) || graph.pinned(u)) continue;
      option.forward.push_back(u);
      break;
    }
    option.forward.push_back(v);
  }
  for (const NodeId v : layer.backward) {
    for (const NodeId u : layer.forward) {
      if (random.chance(40) && !graph.pinned(u)) option.backward.push_back(u);
    }
    option.backward.push_back(v);
  }
  return option;
}

std::int64_t cost_of(const Graph& graph, const LayerOption& option) {
  return reference::cost(graph, {option.forward}) + reference::cost(graph, {option.backward});
}

/// How many sequences of runs all_choices() tries.
std::int64_t choices(const LevelProblem& problem) {
  double count = 1, again = 1;
  bool backward = false;
  for (const LevelProblem::Part& part : problem.parts) backward = backward || !part.layer.backward.empty();
  for (const LevelProblem::Part& part : problem.parts) {
    const auto options = static_cast<double>(part.options.size());
    count *= options + 1;
    if (!backward) count *= again;
    again *= 2 + options;
    if (!part.layer.backward.empty()) count *= options;
  }
  for (const LevelProblem::Part& part : problem.parts) count *= part.layer.backward.empty() ? 1 : again;
  return static_cast<std::int64_t>(std::min(count, 1e9));
}

/// A random level of a training graph, or of a graph without backward nodes; the whole of it or, inner, some
/// consecutive layers.
Case random_case(Random& random, bool inner, bool single, std::int64_t most_choices) {
  for (;;) {
    Case made;
    tests::TrainingOptions options{.forward = tests::any_graph(random)};
    options.forward.min_nodes = 2;
    options.forward.max_nodes = single ? (inner ? 5 : 4) : 6;
    options.forward.keep = random.chance(40);
    options.without_backward = random.chance(50) ? 0 : 40;
    options.two_backward = single ? 0 : 20;
    if (random.chance(20)) options.without_backward = 100;
    made.graph = tests::training_graph(random, options);
    std::vector<Layer> layers = layers_of(made.graph);
    if (inner) {
      const auto count = static_cast<std::int64_t>(layers.size());
      const std::int64_t begin = random.below(count), end = random.between(begin + 1, count);
      layers = std::vector<Layer>(layers.begin() + begin, layers.begin() + end);
    }
    made.problem.inner = inner;
    made.single = single;
    for (const Layer& layer : layers) {
      made.single = made.single && !made.graph.keep(layer.forward[0]);
      for (const Steps* part : {&layer.forward, &layer.backward}) {
        for (const NodeId v : *part) made.single = made.single && made.graph.scratch(v) >= 0;
      }
    }
    std::vector<const Layer*> all;
    for (std::size_t i = 0; i < layers.size();) {
      const std::size_t size = single ? 1 : static_cast<std::size_t>(random.between(1, 3));
      std::vector<const Layer*> joined;
      for (; i < layers.size() && joined.size() < size; ++i) joined.push_back(&layers[i]);
      all.insert(all.end(), joined.begin(), joined.end());
      LevelProblem::Part part{join(joined), {}};
      part.options.push_back({part.layer.forward, part.layer.backward});
      for (std::int64_t more = single ? 0 : random.below(3); more > 0; --more) {
        const LayerOption option = random_option(random, made.graph, part.layer);
        if (std::find(part.options.begin(), part.options.end(), option) == part.options.end())
          part.options.push_back(option);
      }
      made.problem.parts.push_back(std::move(part));
    }
    made.whole = join(all);
    if (made.problem.parts.size() > 4 || choices(made.problem) > most_choices) continue;
    return made;
  }
}

// --- Its class, all of it.

using Measures = std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;  ///< peak, between, cost

std::optional<std::int64_t> least_cost(const Measures& all, const LevelBudget& budget) {
  std::optional<std::int64_t> least;
  for (const auto& [peak, between, cost] : all) {
    if (peak <= budget.peak && (!budget.between || between <= *budget.between))
      least = std::min(least.value_or(cost), cost);
  }
  return least;
}

/// What the schedule of a level needs; nothing where it is not valid.
std::optional<OptionNeeds> measure(const Case& level, LayerOption schedule, bool prune) {
  if (level.problem.inner) {
    Passes passes(level.graph, level.whole, schedule);
    if (!passes.valid()) return std::nullopt;
    if (prune) passes.pruned();
    return passes.needs();
  }
  Schedule flat{schedule.forward};
  append(flat.steps, schedule.backward);
  if (!core::evaluate(level.graph, flat).valid()) return std::nullopt;
  if (prune) flat = core::drop_unread(level.graph, flat);
  const core::Evaluation found = core::evaluate(level.graph, flat);
  return OptionNeeds{found.peak, 0, found.cost};
}

/// Drops further runs of pinned nodes.
void run_pinned_once(const Graph& graph, LayerOption& schedule) {
  std::set<NodeId> run;
  for (Steps* pass : {&schedule.forward, &schedule.backward}) {
    pass->erase(
        std::remove_if(pass->begin(), pass->end(), [&](NodeId v) { return graph.pinned(v) && !run.insert(v).second; }),
        pass->end());
  }
}

/// What a run of the forward part that saves nothing must do: what is read elsewhere or kept, and what that needs.
Steps for_others(const Graph& graph, const Layer& layer) {
  Steps chosen;
  for (auto v = layer.forward.rbegin(); v != layer.forward.rend(); ++v) {
    const auto inside = [&](NodeId reader) {
      return std::find(layer.backward.begin(), layer.backward.end(), reader) != layer.backward.end() ||
             (std::find(layer.forward.begin(), layer.forward.end(), reader) != layer.forward.end() &&
              std::find(chosen.begin(), chosen.end(), reader) == chosen.end());
    };
    const auto readers = graph.successors(*v);
    if (graph.keep(*v) || !std::all_of(readers.begin(), readers.end(), inside)) chosen.push_back(*v);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

Measures all_choices(const Case& level) {
  const std::vector<LevelProblem::Part>& parts = level.problem.parts;
  const std::size_t count = parts.size();
  bool backward = false;
  for (const LevelProblem::Part& part : parts) backward = backward || !part.layer.backward.empty();
  const auto pinned = [&](std::size_t part) {
    const Steps& nodes = parts[part].layer.forward;
    return level.single && level.graph.pinned(nodes[0]);
  };
  Measures all;
  LayerOption schedule;
  // Phase t < count: the forward part t; then the backward parts in reverse. `j`: the next part that may run again.
  const std::function<void(std::size_t, std::size_t)> run = [&](std::size_t phase, std::size_t j) {
    if (phase == (backward ? 2 * count : count)) {
      LayerOption complete = schedule;
      run_pinned_once(level.graph, complete);
      if (const auto needs = measure(level, complete, !level.single))
        all.insert({needs->peak, needs->between, needs->cost});
      return;
    }
    const bool forward = phase < count;
    const std::size_t own = forward ? phase : 2 * count - 1 - phase;
    Steps& pass = forward ? schedule.forward : schedule.backward;
    const std::size_t length = pass.size();
    const auto with = [&](const Steps& more, std::size_t next_phase, std::size_t next) {
      append(pass, more);
      run(next_phase, next);
      pass.resize(length);
    };
    if (!forward && parts[own].layer.backward.empty()) return run(phase + 1, 0);
    for (const LayerOption& option : parts[own].options) with(forward ? option.forward : option.backward, phase + 1, 0);
    if (forward && !parts[own].layer.backward.empty() && !pinned(own))
      with(for_others(level.graph, parts[own].layer), phase + 1, 0);
    if (forward && backward) return;
    for (std::size_t again = j; again < (forward ? phase : count); ++again) {
      if (pinned(again)) continue;
      for (const LayerOption& option : parts[again].options) with(option.forward, phase, again + 1);
      if (!level.single) with(for_others(level.graph, parts[again].layer), phase, again + 1);
    }
  };
  run(0, 0);
  return all;
}

/// The same optimum for single nodes by dynamic programming over what is in memory after each run: for more nodes than
/// all_choices() can try. Any value may be freed at any time.
std::optional<std::int64_t> cheapest_of_single(const Case& level, std::int64_t budget) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  const Graph& graph = level.graph;
  const auto masks = std::size_t{1} << graph.value_count();
  const auto bit = [](ValueId x) { return std::size_t{1} << x; };
  std::vector<std::int64_t> bytes(masks, 0), cost(masks, kNever);
  for (std::size_t mask = 1; mask < masks; ++mask) {
    for (ValueId x = 0; x < graph.value_count(); ++x) bytes[mask] += (mask & bit(x)) != 0 ? graph.value_size(x) : 0;
  }
  cost[0] = 0;
  const auto run = [&](NodeId v, bool may_skip) {
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      for (std::size_t mask = 0; mask < masks; ++mask) {
        if ((mask & bit(x)) != 0) cost[mask ^ bit(x)] = std::min(cost[mask ^ bit(x)], cost[mask]);
      }
    }
    std::size_t inputs = 0, outputs = 0;
    for (const ValueId x : graph.inputs(v)) inputs |= bit(x);
    for (const ValueId x : graph.outputs(v)) outputs |= bit(x);
    std::vector<std::int64_t> next = may_skip ? cost : std::vector<std::int64_t>(masks, kNever);
    for (std::size_t mask = 0; mask < masks; ++mask) {
      if (cost[mask] == kNever || (mask & inputs) != inputs || (mask & outputs) != 0) continue;
      if (bytes[mask] + bytes[outputs] + graph.scratch(v) > budget) continue;
      next[mask | outputs] = std::min(next[mask | outputs], cost[mask] + graph.cost(v));
    }
    cost = std::move(next);
  };
  const auto& parts = level.problem.parts;
  const bool backward = !level.whole.backward.empty();
  const auto again = [&](std::size_t before) {
    for (std::size_t j = 0; j < before; ++j) {
      if (!graph.pinned(parts[j].layer.forward[0])) run(parts[j].layer.forward[0], true);
    }
  };
  for (std::size_t j = 0; j < parts.size(); ++j) {
    const Layer& layer = parts[j].layer;
    if (!backward) again(j);
    const bool for_backward = !layer.backward.empty() && for_others(graph, layer).empty();
    run(layer.forward[0], for_backward && !graph.pinned(layer.forward[0]));
  }
  for (std::size_t j = parts.size(); j-- > 0;) {
    if (parts[j].layer.backward.empty()) continue;
    again(parts.size());
    run(parts[j].layer.backward[0], false);
  }
  std::size_t kept = 0;
  for (ValueId x = 0; x < graph.value_count(); ++x) kept |= graph.value_kept(x) ? bit(x) : 0;
  std::int64_t least = kNever;
  for (std::size_t mask = 0; mask < masks; ++mask) least = (mask & kept) == kept ? std::min(least, cost[mask]) : least;
  return least == kNever ? std::nullopt : std::optional(least);
}

// --- The same class as the program counts it (the paper's B.3): parts as a whole.

/// Every schedule of a level, told which run saves: what a compute node's run needs beside what others hold, values
/// between parts while somebody will read them, what saving runs saved. Corrections: what a run reads last is free from
/// there on if nobody reads it later; without them (equation 10) after the run.
class Accounting {
 public:
  Accounting(const Case& level, bool corrections, bool again)
      : graph_(level.graph), parts_(level.problem.parts), corrections_(corrections), again_(again) {
    const auto count = static_cast<std::int32_t>(parts_.size());
    for (std::int32_t j = 0; j < count; ++j) nodes_.push_back({j, false, {}, {}});
    if (level.problem.inner) {
      loss_ = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({-1, false, {}, {}});
    }
    first_again_ = 0;
    backward_of_.assign(parts_.size(), -1);
    for (std::int32_t j = count; j-- > 0;) {
      if (parts_[j].layer.backward.empty()) continue;
      if (first_again_ == 0) first_again_ = static_cast<std::int32_t>(nodes_.size());
      backward_of_[j] = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({j, true, {}, {}});
    }
    for (std::int32_t j = 0; j < count; ++j) {
      for (const NodeId v : parts_[j].layer.forward) home_[v] = j;
      for (const NodeId v : parts_[j].layer.backward) home_[v] = backward_of_[j];
    }
    find_data();
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(nodes_.size()); ++k) find_ways(k);
    for (auto& [x, datum] : data_) {
      for (std::int32_t k = 0; k < static_cast<std::int32_t>(nodes_.size()); ++k) {
        for (const Way& way : nodes_[k].all()) {
          if (way.last_read.count(x) > 0) datum.last = std::max(datum.last, k);
        }
      }
    }
  }

  Measures all() {
    saved_.assign(parts_.size(), -1);
    saving_run_.assign(parts_.size(), -1);
    run(0, 0);
    return std::move(found_);
  }

 private:
  struct Way {
    Steps steps;
    std::int64_t cost = 0;
    std::int32_t saves = -1;  ///< the option whose backward part it saves for
    std::int64_t saved_bytes = 0;
    std::map<ValueId, std::int64_t> last_read;  ///< values that it does not make before
    std::vector<std::int64_t> inside;           ///< bytes at each step beside what others hold
  };
  struct Compute {
    std::int32_t part = -1;
    bool backward = false;
    std::vector<Way> first, again;  ///< of a backward node, `first` by option
    std::vector<Way> all() const {
      std::vector<Way> both = first;
      both.insert(both.end(), again.begin(), again.end());
      return both;
    }
  };
  struct Datum {
    std::int32_t maker = 0, last = -1;
    bool to_end = false, to_loss = false, constant = false;
  };
  struct Run {
    std::int32_t phase, node;
    const Way* way;
  };

  void find_data() {
    for (const auto& [v, k] : home_) {
      for (const ValueId x : graph_.outputs(v)) {
        bool outside = false, shared = graph_.value_kept(x);
        for (const NodeId reader : graph_.readers(x)) {
          const auto there = home_.find(reader);
          outside = outside || there == home_.end();
          shared = shared || there == home_.end() || nodes_[there->second].part != nodes_[k].part;
        }
        if (!shared) continue;
        Datum& datum = data_[x];
        datum.maker = k;
        datum.to_loss = outside && !nodes_[k].backward && !graph_.value_kept(x);
        datum.to_end = graph_.value_kept(x) || (outside && nodes_[k].backward);
        datum.constant = nodes_[k].backward || datum.to_end;
      }
    }
  }

  Way measured(std::int32_t k, const Steps& steps, const std::set<ValueId>& stock, const std::set<ValueId>& saved) {
    Way way;
    way.steps = steps;
    way.cost = reference::cost(graph_, {steps});
    const auto length = static_cast<std::int64_t>(steps.size());
    std::set<ValueId> made;
    std::map<ValueId, std::int64_t> outside;  // reads of what is not made before
    for (std::int64_t i = 0; i < length; ++i) {
      for (const ValueId x : graph_.inputs(steps[i])) {
        if (made.count(x) == 0) outside[x] = i;
      }
      for (const ValueId x : graph_.outputs(steps[i])) made.insert(x);
    }
    for (const auto& [x, last] : outside) {
      if (data_.count(x) > 0) way.last_read[x] = last;
    }
    for (std::int64_t i = 0; i < length; ++i) {
      std::int64_t bytes = reference::output_bytes(graph_, steps[i]) + graph_.scratch(steps[i]);
      for (const ValueId x : stock) bytes += outside.count(x) > 0 && outside[x] >= i ? graph_.value_size(x) : 0;
      for (std::int64_t j = 0; j < i; ++j) {
        for (const ValueId x : graph_.outputs(steps[j])) {
          const auto known = data_.find(x);
          bool held = (known != data_.end() && known->second.maker == k) || saved.count(x) > 0;
          for (std::int64_t later = j + 1; later < length; ++later) {
            if (later >= i && reference::reads(graph_, steps[later], x)) held = true;
            if (steps[later] != steps[j]) continue;
            held = false;
            for (std::int64_t between = i; between <= later; ++between)
              held = held || (between < later && reference::reads(graph_, steps[between], x));
            break;
          }
          if (held) bytes += graph_.value_size(x);
        }
      }
      way.inside.push_back(bytes);
    }
    return way;
  }

  bool pinned(const Steps& steps) const {
    return std::any_of(steps.begin(), steps.end(), [&](NodeId v) { return graph_.pinned(v); });
  }

  void find_ways(std::int32_t k) {
    Compute& node = nodes_[k];
    if (node.part < 0) return;
    const LevelProblem::Part& part = parts_[node.part];
    // What others need of the forward part, in a run that saves nothing.
    std::set<NodeId> wanted;
    for (auto v = part.layer.forward.rbegin(); v != part.layer.forward.rend(); ++v) {
      bool of_use = false;
      for (const ValueId x : graph_.outputs(*v)) of_use = of_use || data_.count(x) > 0;
      for (const NodeId reader : graph_.successors(*v)) {
        const auto& own = part.layer.forward;
        of_use = of_use || (wanted.count(reader) > 0 && std::find(own.begin(), own.end(), reader) != own.end());
      }
      if (of_use) wanted.insert(*v);
    }
    const auto fewer = [&](Steps steps) {
      steps.erase(std::remove_if(steps.begin(), steps.end(), [&](NodeId v) { return wanted.count(v) == 0; }),
                  steps.end());
      return steps;
    };
    const bool pairs = backward_of_[node.part] >= 0;
    if (pairs && !node.backward && !pinned(part.layer.forward))
      node.first.push_back(measured(k, fewer(part.layer.forward), {}, {}));
    for (std::size_t o = 0; o < part.options.size(); ++o) {
      const LayerOption& option = part.options[o];
      if (!pairs) {
        node.first.push_back(measured(k, option.forward, {}, {}));
        if (!pinned(fewer(option.forward))) node.again.push_back(measured(k, fewer(option.forward), {}, {}));
        continue;
      }
      std::set<ValueId> made, saved;
      for (const NodeId v : option.backward) {
        for (const ValueId x : graph_.inputs(v)) {
          const auto maker = home_.find(graph_.producer(x));
          const bool own = maker != home_.end() && maker->second == node.part;
          if (made.count(x) == 0 && own && data_.count(x) == 0) saved.insert(x);
        }
        for (const ValueId x : graph_.outputs(v)) made.insert(x);
      }
      if (node.backward) {
        node.first.push_back(measured(k, option.backward, saved, {}));
        continue;
      }
      Way way = measured(k, option.forward, {}, saved);
      way.saves = static_cast<std::int32_t>(o);
      for (const ValueId x : saved) way.saved_bytes += graph_.value_size(x);
      node.first.push_back(std::move(way));
    }
    if (pairs && !node.backward && !pinned(part.layer.forward)) node.again = node.first;
  }

  void run(std::int32_t phase, std::int32_t j) {
    if (phase == static_cast<std::int32_t>(nodes_.size())) return measure();
    const Compute& node = nodes_[phase];
    const auto with = [&](std::int32_t k, const Way& way, std::int32_t next_phase, std::int32_t next) {
      const std::int32_t part = nodes_[k].part;
      if (way.saves >= 0 && !nodes_[k].backward) {
        if (saved_[part] >= 0 || phase > backward_of_[part]) return;
        saved_[part] = way.saves;
        saving_run_[part] = static_cast<std::int32_t>(runs_.size());
      }
      runs_.push_back({phase, k, &way});
      run(next_phase, next);
      runs_.pop_back();
      if (way.saves >= 0 && !nodes_[k].backward) saved_[part] = -1;
    };
    if (node.part < 0) {
      run(phase + 1, 0);
    } else if (node.backward) {
      if (saved_[node.part] >= 0) with(phase, node.first[static_cast<std::size_t>(saved_[node.part])], phase + 1, 0);
    } else {
      for (const Way& way : node.first) with(phase, way, phase + 1, 0);
    }
    if (!again_ || phase < first_again_ || node.part < 0) return;
    for (std::int32_t k = j; k < std::min(phase, static_cast<std::int32_t>(parts_.size())); ++k) {
      for (const Way& way : nodes_[k].again) with(k, way, phase, k + 1);
    }
  }

  /// Somebody reads x after run r, before its maker runs again.
  bool read_later(ValueId x, const Datum& datum, std::size_t r) const {
    for (std::size_t later = r + 1; later < runs_.size(); ++later) {
      if (runs_[later].way->last_read.count(x) > 0) return true;
      if (runs_[later].node == datum.maker) return false;
    }
    return false;
  }

  bool held(ValueId x, const Datum& datum, std::size_t r, std::int64_t step) const {
    const Run& run = runs_[r];
    const auto read = run.way->last_read.find(x);
    const bool still = read != run.way->last_read.end() && read->second >= step;
    if (run.phase <= datum.maker) return false;
    if (datum.to_loss && loss_ >= 0 && run.phase <= loss_) return true;
    if (run.node == datum.maker) return false;
    if (!datum.constant) return (still && made_before(datum, r)) || (made_before(datum, r) && read_later(x, datum, r));
    return datum.to_end || datum.last > run.phase || (datum.last == run.phase && (run.node != run.phase || still));
  }
  bool made_before(const Datum& datum, std::size_t r) const {
    return std::any_of(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(r),
                       [&](const Run& run) { return run.node == datum.maker; });
  }

  void measure() {
    OptionNeeds needs;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const Way& way = *runs_[r].way;
      needs.cost += way.cost;
      std::int64_t phantoms = 0;
      for (std::size_t j = 0; j < parts_.size(); ++j) {
        if (backward_of_[j] < 0) continue;
        const auto saving = static_cast<std::size_t>(saving_run_[j]);
        if (r > saving && runs_[r].phase <= backward_of_[j] && runs_[r].node != backward_of_[j])
          phantoms += runs_[saving].way->saved_bytes;
      }
      const std::int64_t most = way.inside.empty() ? 0 : *std::max_element(way.inside.begin(), way.inside.end());
      for (std::size_t i = 0; i < std::max<std::size_t>(way.inside.size(), 1); ++i) {
        const auto step = corrections_ ? static_cast<std::int64_t>(i) : 0;
        std::int64_t bytes = phantoms + (corrections_ && i < way.inside.size() ? way.inside[i] : most);
        for (const auto& [x, datum] : data_) bytes += held(x, datum, r, step) ? graph_.value_size(x) : 0;
        needs.peak = std::max(needs.peak, bytes);
        if (!corrections_) break;
      }
    }
    if (loss_ >= 0) {
      std::size_t last = 0;  // runs before the loss
      while (last < runs_.size() && runs_[last].phase < loss_) ++last;
      for (const auto& [x, datum] : data_) {
        if (datum.maker < loss_ && (datum.constant || (last > 0 && read_later(x, datum, last - 1))))
          needs.between += graph_.value_size(x);
      }
      for (std::size_t j = 0; j < parts_.size(); ++j) {
        if (backward_of_[j] >= 0 && static_cast<std::size_t>(saving_run_[j]) < last)
          needs.between += runs_[static_cast<std::size_t>(saving_run_[j])].way->saved_bytes;
      }
    }
    found_.insert({needs.peak, needs.between, needs.cost});
  }

  const Graph& graph_;
  const std::vector<LevelProblem::Part>& parts_;
  const bool corrections_, again_;
  std::vector<Compute> nodes_;
  std::int32_t loss_ = -1, first_again_ = 0;
  std::vector<std::int32_t> backward_of_;
  std::map<NodeId, std::int32_t> home_;
  std::map<ValueId, Datum> data_;
  std::vector<Run> runs_;
  std::vector<std::int32_t> saved_, saving_run_;  ///< of each part: option, run
  Measures found_;
};

// --- Answers.

LevelSearch search_of(Random& random) {
  LevelSearch search;
  search.seed = static_cast<std::uint64_t>(random.below(100));
  return search;
}

/// Mostly what some schedule of the class needs, and less than running all once does.
LevelBudget some_budget(Random& random, const Case& level, const Measures& all) {
  std::set<std::int64_t> peaks, betweens;
  const OptionNeeds once = *measure(level, {level.whole.forward, level.whole.backward}, false);
  for (const auto& [peak, between, cost] : all) {
    if (peak <= once.peak) peaks.insert(peak);
    if (between <= once.between) betweens.insert(between);
  }
  const auto one_of = [&](const std::set<std::int64_t>& some) {
    return random.pick(std::vector<std::int64_t>(some.begin(), some.end())) + (random.chance(15) ? -1 : 0);
  };
  LevelBudget budget{peaks.empty() ? once.peak : one_of(peaks), {}};
  if (random.chance(15)) budget.peak = once.peak + random.below(3);
  if (level.problem.inner && !betweens.empty() && random.chance(70)) {
    budget.between = one_of(betweens);
    if (random.chance(50)) budget.peak = std::get<0>(*all.rbegin());
  }
  return budget;
}

std::string show(const Case& level) {
  std::string text = tests::show(level.graph);
  for (NodeId v = 0; v < level.graph.node_count(); ++v) {
    for (const ValueId x : level.graph.outputs(v)) {
      text += fmt::format("  {}value {} of {}: {}{} readers {}\n", level.graph.pinned(v) ? "pinned " : "", x, v,
                          level.graph.value_size(x), level.graph.value_kept(x) ? " keep" : "",
                          tests::show(level.graph.readers(x)));
    }
  }
  for (const LevelProblem::Part& part : level.problem.parts) {
    text += "part\n";
    for (const LayerOption& option : part.options)
      text += "  " + tests::show(option.forward) + " / " + tests::show(option.backward) + "\n";
  }
  return text;
}

/// Each compute node runs in its phase, last; before it, from the phase of the first backward part on (or from the
/// first one), forward parts at most once each, in order; nothing runs in the phase of the rest.
void check_runs(const Case& level, const std::vector<LevelAnswer::Run>& runs) {
  const auto parts = static_cast<std::int32_t>(level.problem.parts.size());
  const auto pairs = static_cast<std::int32_t>(
      std::count_if(level.problem.parts.begin(), level.problem.parts.end(),
                    [](const LevelProblem::Part& part) { return !part.layer.backward.empty(); }));
  const std::int32_t inner = level.problem.inner ? 1 : 0, phases = parts + inner + pairs;
  std::size_t r = 0;
  for (std::int32_t phase = 0; phase < phases; ++phase) {
    const bool rest = inner == 1 && phase == parts;
    std::int32_t before = -1;
    for (; r < runs.size() && runs[r].phase == phase; ++r) {
      REQUIRE(runs[r].node > before);
      before = runs[r].node;
      if (before == phase) continue;
      REQUIRE(before < std::min(parts, phase));
      REQUIRE((pairs == 0 || phase >= parts + inner));
    }
    if (!rest) REQUIRE(before == phase);
  }
  REQUIRE(r == runs.size());
}

/// All that holds of any answer: a valid schedule within the budget, of the cost that is said.
void check_answer(const Case& level, const LevelBudget& budget, const LevelAnswer& answer) {
  if (!answer.solved()) {
    REQUIRE(answer.status == LevelAnswer::Status::infeasible);
    return;
  }
  CAPTURE(tests::show(answer.schedule.forward), tests::show(answer.schedule.backward), budget.peak);
  const auto needs = measure(level, answer.schedule, false);
  REQUIRE(needs);
  REQUIRE(needs->cost == answer.cost);
  REQUIRE(needs->peak <= budget.peak);
  if (budget.between) REQUIRE(needs->between <= *budget.between);
  check_runs(level, answer.runs);
  REQUIRE(answer.bound <= answer.cost);
  if (answer.status == LevelAnswer::Status::optimal) REQUIRE(answer.bound == answer.cost);
}

struct Tally {
  int pairs = 0, infeasible = 0, again = 0, equal = 0, dearer = 0, missed = 0;
};

void check_level(Random& random, const Case& level, int budgets, Tally& tally) {
  CAPTURE(show(level));
  const Measures all = all_choices(level);
  REQUIRE_FALSE(all.empty());
  const Level solver(level.graph, level.problem);
  const LayerOption once = solver.cheapest(), again = solver.again();
  for (const LayerOption* option : {&once, &again}) REQUIRE(measure(level, *option, false));
  REQUIRE(cost_of(level.graph, once) == cost_of(level.graph, {level.whole.forward, level.whole.backward}));
  const bool pinned = std::any_of(level.whole.forward.begin(), level.whole.forward.end(),
                                  [&](NodeId v) { return level.graph.pinned(v); });
  if (pinned) REQUIRE(again == once);
  if (level.problem.inner && !pinned) {
    REQUIRE(needs_of(level.graph, level.whole, again).between == 0);
    REQUIRE(again.forward == for_others(level.graph, level.whole));
  }
  for (int k = 0; k < budgets; ++k) {
    const LevelBudget budget = some_budget(random, level, all);
    CAPTURE(budget.peak, budget.between.value_or(-1));
    std::string best;
    for (const auto& [peak, between, cost] : all) best += fmt::format("({} {} {}) ", peak, between, cost);
    CAPTURE(best);
    const LevelSearch search = search_of(random);
    const LevelAnswer answer = solver.solve(budget, search);
    check_answer(level, budget, answer);
    REQUIRE((answer.status == LevelAnswer::Status::optimal || answer.status == LevelAnswer::Status::infeasible));
    const std::optional<std::int64_t> least = least_cost(all, budget);
    if (level.single) {
      CAPTURE(answer.cost, least.value_or(-1));
      REQUIRE(answer.solved() == least.has_value());
      if (least) REQUIRE(answer.cost == *least);
    } else if (answer.solved()) {
      REQUIRE(least);
      REQUIRE(answer.cost >= *least);
    }
    ++tally.pairs;
    tally.infeasible += !answer.solved();
    tally.missed += !answer.solved() && least;
    if (answer.solved()) {
      tally.equal += answer.cost == *least;
      tally.dearer += answer.cost > *least;
      tally.again += answer.cost > cost_of(level.graph, once);
    }
  }
}

TEST_CASE("H-ILP over single nodes: the cheapest schedule of its class", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(800, [&](Random& random) {
    const Case level = random_case(random, false, true, 20000);
    check_level(random, level, 2, tally);
  });
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 10);
}

TEST_CASE("H-ILP over more single nodes: the cheapest schedule of its class, by dynamic programming", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(700, [&](Random& random) {
    tests::TrainingOptions kind{.forward = tests::any_graph(random)};
    kind.forward.min_nodes = 4;
    kind.forward.max_nodes = 6;
    kind.forward.keep = kind.forward.in_place = false;
    kind.without_backward = random.chance(70) ? 0 : random.chance(50) ? 30 : 100;
    kind.two_backward = 0;
    Case level;
    level.graph = tests::training_graph(random, kind);
    if (level.graph.value_count() > 13) return;
    const std::vector<Layer> layers = layers_of(level.graph);
    std::vector<const Layer*> all;
    for (const Layer& layer : layers) {
      // One that nobody reads would have to run some time, at the latest before its backward node.
      if (!layer.backward.empty() && level.graph.successors(layer.forward[0]).empty()) return;
      level.problem.parts.push_back({layer, {{layer.forward, layer.backward}}});
      all.push_back(&layer);
    }
    level.whole = join(all);
    CAPTURE(show(level));
    const Level solver(level.graph, level.problem);
    const OptionNeeds once = *measure(level, solver.cheapest(), false);
    for (int k = 0; k < 3; ++k) {
      LevelBudget budget{random.between(core::peak_lower_bound(level.graph), once.peak), {}};
      CAPTURE(budget.peak);
      const LevelAnswer answer = solver.solve(budget, search_of(random));
      check_answer(level, budget, answer);
      const std::optional<std::int64_t> least = cheapest_of_single(level, budget.peak);
      REQUIRE(answer.solved() == least.has_value());
      if (least) REQUIRE(answer.cost == *least);
      ++tally.pairs;
      tally.infeasible += !answer.solved();
      tally.again += answer.solved() && answer.schedule.forward.size() + answer.schedule.backward.size() >
                                            static_cast<std::size_t>(level.graph.node_count());
      // And the cheapest of all schedules is no dearer.
      SolveOptions any;
      any.budget = budget.peak;
      any.limit.work = 20'000;
      if (answer.solved()) REQUIRE(exact_remat(level.graph, any).cost_bound.value <= answer.cost);
    }
  });
  CAPTURE(tally.pairs, tally.infeasible, tally.again);
  CHECK(tally.pairs > 500);
  CHECK(tally.infeasible > 50);
  CHECK(tally.again > 100);
}

TEST_CASE("H-ILP over single nodes of an inner level: the cheapest of its class, between as asked for", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(600, [&](Random& random) {
    const Case level = random_case(random, true, true, 10000);
    check_level(random, level, 2, tally);
  });
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 5);
}

TEST_CASE("H-ILP over parts of several nodes and options: never below the cheapest of its class", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(300, [&](Random& random) {
    const Case level = random_case(random, false, false, 8000);
    check_level(random, level, 2, tally);
  });
  CAPTURE(tally.pairs, tally.infeasible, tally.missed, tally.equal, tally.dearer, tally.again);
  CHECK(tally.missed < tally.pairs / 10);
  CHECK(tally.dearer < tally.equal / 5);
}

TEST_CASE("H-ILP over parts of several nodes of an inner level: never below the cheapest of its class", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(300, [&](Random& random) {
    const Case level = random_case(random, true, false, 5000);
    check_level(random, level, 2, tally);
  });
  CAPTURE(tally.pairs, tally.infeasible, tally.missed, tally.equal, tally.dearer, tally.again);
  CHECK(tally.missed < tally.pairs / 10);
  CHECK(tally.dearer < tally.equal / 5);
}

TEST_CASE("H-ILP with sizes near the limit, whose differences are single bytes", "[level]") {
  if (no_engine()) return;
  int by_one = 0;
  tests::for_each_seed(150, [&](Random& random) {
    tests::TrainingOptions kind;
    kind.forward = {.min_nodes = 3, .max_nodes = 4, .scratch = false, .in_place = false, .keep = false};
    kind.two_backward = kind.without_backward = 0;
    std::vector<core::Node> nodes = tests::training_nodes(random, kind);
    const int shift = random.pick(std::vector<int>{30, 45, 58});
    for (core::Node& node : nodes) {
      node.size = (std::int64_t{1} << shift) + random.below(3);
      node.cost = random.between(1, 9);
    }
    Case level;
    level.graph = tests::build_graph(nodes);
    std::vector<const Layer*> all;
    const std::vector<Layer> layers = layers_of(level.graph);
    for (const Layer& layer : layers) {
      if (level.graph.successors(layer.forward[0]).empty()) return;
      level.problem.parts.push_back({layer, {{layer.forward, layer.backward}}});
      all.push_back(&layer);
    }
    level.whole = join(all);
    CAPTURE(show(level), shift);
    const Level solver(level.graph, level.problem);
    const std::int64_t once = measure(level, solver.cheapest(), false)->peak;
    const std::int64_t least = core::peak_lower_bound(level.graph);
    for (const std::int64_t peak : {once, once - 1, once - 2, least, least + 1, least + 2}) {
      const LevelBudget budget{peak, {}};
      const LevelAnswer answer = solver.solve(budget, search_of(random));
      CAPTURE(peak);
      check_answer(level, budget, answer);
      const std::optional<std::int64_t> optimum = cheapest_of_single(level, peak);
      REQUIRE(answer.solved() == optimum.has_value());
      if (optimum) REQUIRE(answer.cost == *optimum);
      by_one += peak == once - 1 && optimum;
    }
  });
  CHECK(by_one > 20);
}

TEST_CASE("H-ILP keeps to limits", "[level]") {
  if (no_engine()) return;
  tests::for_each_seed(20, [](Random& random) {
    const Case level = random_case(random, false, false, 1'000'000'000);
    const Level solver(level.graph, level.problem);
    const LevelBudget budget{std::int64_t{1} << 40, {}};
    const std::atomic<bool> stop = true;
    for (const core::Limit& limit : {core::Limit{.seconds = 0}, core::Limit{.work = 0}, core::Limit{.stop = &stop}}) {
      for (const bool highs : {false, true}) {
        LevelSearch search;
        search.limit = limit;
        search.highs = highs;
        const LevelAnswer answer = solver.solve(budget, search);
        if (answer.solved()) check_answer(level, budget, answer);
        REQUIRE(answer.status != LevelAnswer::Status::infeasible);
      }
    }
  });
}

TEST_CASE("H-ILP is the optimum of what it counts, with corrections and without", "[level]") {
  if (no_engine()) return;
  int pairs = 0, infeasible = 0, dearer = 0;
  tests::for_each_seed(700, [&](Random& random) {
    const Case level = random_case(random, random.chance(50), random.chance(20), 1500);
    CAPTURE(show(level), level.problem.inner);
    const Measures flat = all_choices(level);
    const Measures exact = Accounting(level, true, true).all(), coarse = Accounting(level, false, true).all(),
                   once = Accounting(level, true, false).all();
    const Level solver(level.graph, level.problem);
    for (int k = 0; k < 2; ++k) {
      const LevelBudget budget = some_budget(random, level, k == 0 ? exact : coarse);
      CAPTURE(budget.peak, budget.between.value_or(-1));
      LevelSearch search = search_of(random);
      const std::optional<std::int64_t> least = least_cost(flat, budget);
      for (const Measures* counted : {&exact, &coarse, &once}) {
        search.corrections = counted != &coarse;
        search.again = counted != &once;
        search.highs = random.chance(20);
        const LevelAnswer answer = solver.solve(budget, search);
        check_answer(level, budget, answer);
        const std::optional<std::int64_t> optimum = least_cost(*counted, budget);
        CAPTURE(search.corrections, search.again, search.highs, answer.cost, optimum.value_or(-1), least.value_or(-1));
        REQUIRE(answer.solved() == optimum.has_value());
        ++pairs;
        infeasible += !optimum;
        if (!optimum) continue;
        REQUIRE(answer.cost == *optimum);
        dearer += answer.cost > *least_cost(once, {std::int64_t{1} << 40, {}});
        REQUIRE((least && answer.cost >= *least));
        search.hint = &answer.runs;
        REQUIRE(solver.solve(budget, search).cost == answer.cost);
        search.hint = nullptr;
      }
    }
  });
  CAPTURE(pairs, infeasible, dearer);
  CHECK(pairs > 4000);
  CHECK(infeasible > 500);
  CHECK(dearer > 40);
}

TEST_CASE("what an option of a layer needs, by the definition", "[level]") {
  tests::for_each_seed(1500, [](Random& random) {
    const Case level = random_case(random, true, false, 1'000'000'000);
    const LayerOption option = random_option(random, level.graph, level.whole);
    CAPTURE(show(level), tests::show(option.forward), tests::show(option.backward));
    const OptionNeeds literal = Passes(level.graph, level.whole, option).needs();
    const OptionNeeds needs = needs_of(level.graph, level.whole, option);
    REQUIRE(needs.cost == literal.cost);
    REQUIRE(needs.between == literal.between);
    REQUIRE(needs.peak == literal.peak);
  });
}

/// Options of a layer that solvers and chance find on the layer as a graph of its own.
TEST_CASE("schedules of a layer as a graph of its own are options of the layer", "[level]") {
  int within = 0, recomputing = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    tests::TrainingOptions kind{.forward = tests::any_graph(random)};
    kind.forward.min_nodes = 2;
    kind.forward.max_nodes = 9;
    kind.without_backward = random.chance(20) ? 100 : random.chance(50) ? 0 : 30;
    const Graph graph = tests::training_graph(random, kind);
    const std::vector<Layer> layers = layers_of(graph);
    const auto count = static_cast<std::int64_t>(layers.size());
    const std::int64_t begin = random.below(count), end = random.between(begin + 1, count);
    std::vector<const Layer*> before, inside, after;
    for (std::int64_t i = 0; i < count; ++i) (i < begin ? before : i < end ? inside : after).push_back(&layers[i]);
    const Layer first = join(before), layer = join(inside), last = join(after);
    CAPTURE(tests::show(graph), tests::show(layer.forward), tests::show(layer.backward));
    const auto in_whole = [&](const LayerOption& option) {
      Schedule whole;
      for (const Steps* steps :
           {&first.forward, &option.forward, &last.forward, &last.backward, &option.backward, &first.backward})
        append(whole.steps, *steps);
      return whole;
    };
    const bool keeps = std::any_of(layer.forward.begin(), layer.forward.end(), [&](NodeId v) { return graph.keep(v); });
    const GroupGraph alone(graph, layer);
    const OptionNeeds once = Passes(graph, layer, {layer.forward, layer.backward}).needs();
    const auto check = [&](const LayerOption& option) {
      CAPTURE(tests::show(option.forward), tests::show(option.backward));
      for (const NodeId v : option.forward) REQUIRE_FALSE(graph.backward(v));
      REQUIRE(Passes(graph, layer, option).valid());
      REQUIRE(reference::valid(graph, in_whole(option)));
    };
    for (int k = 0; k < 3; ++k) {
      const std::int64_t peak = random.between(once.peak / 3, once.peak), between = random.between(0, once.between);
      const Graph limited = alone.within(peak, between);
      for (const char* name : {"none", "greedy", "tw", ""}) {
        CAPTURE(name, peak, between);
        Schedule found = tests::random_schedule(random, limited);
        if (name[0] != '\0') {
          SolveOptions options;
          options.budget = peak;
          found = find_solver(name).solve(limited, options).schedule;
        }
        if (found.steps.empty()) continue;
        const core::Evaluation measured = core::evaluate(limited, found);
        REQUIRE(measured.valid());
        const LayerOption option = alone.option(found);
        check(option);
        const OptionNeeds needs = needs_of(graph, layer, option);
        REQUIRE(needs.cost == measured.cost);
        if (measured.peak > peak) continue;
        ++within;
        recomputing += needs.cost > once.cost;
        REQUIRE(Passes(graph, layer, option).between_beside_rest() <= between);
        // A kept value that is made again later need not stay; an option's does.
        if (!keeps) REQUIRE(needs.peak <= peak);
      }
    }
  });
  CHECK(within > 500);
  CHECK(recomputing > 50);
}

}  // namespace
}  // namespace cairn::solvers
