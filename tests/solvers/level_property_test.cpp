// H-ILP on small levels against trying every choice of its class, by the definitions (core/reference.h).
//
// A schedule of the class is what its header describes: phases in order; in those of backward parts (all where there
// are none) any set of forward parts runs again first, each in the forward part of any of its options; each backward
// part runs once, in any option. Memory is freed as early as it can be, and of parts of several nodes steps that
// nothing reads are left out. Which run saves for the backward part, and what stays in memory, follows from that; the
// program must choose it as well and counts parts as a whole, so its optimum may be dearer, never cheaper. Where every
// part is one forward node and at most one backward node there is nothing to count as a whole, and both are equal.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/reference.h"
#include "cairn/solvers/remat/internal/layers.h"
#include "cairn/solvers/remat/internal/level.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/solvers/training_graphs.h"
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
    for (std::int64_t made = 0; made < middle_; ++made) {
      for (const ValueId x : graph_.outputs(steps_[made])) {
        if (read(made, x, middle_)) needs.between += graph_.value_size(x);
      }
    }
    return needs;
  }

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
    count *= options;
    if (!backward) count *= again;
    again *= 1 + options;
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

/// Nothing of the forward part is read elsewhere or kept: a run that saves nothing has nothing to do.
bool only_backward_reads(const Graph& graph, const Layer& layer) {
  const auto inside = [&](NodeId v) {
    return std::find(layer.forward.begin(), layer.forward.end(), v) != layer.forward.end() ||
           std::find(layer.backward.begin(), layer.backward.end(), v) != layer.backward.end();
  };
  return std::all_of(layer.forward.begin(), layer.forward.end(), [&](NodeId v) {
    const auto readers = graph.successors(v);
    return !graph.required(v) && std::all_of(readers.begin(), readers.end(), inside);
  });
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
    if (forward && only_backward_reads(level.graph, parts[own].layer) && !pinned(own)) with({}, phase + 1, 0);
    if (forward && backward) return;
    for (std::size_t again = j; again < (forward ? phase : count); ++again) {
      if (pinned(again)) continue;
      for (const LayerOption& option : parts[again].options) with(option.forward, phase, again + 1);
    }
  };
  run(0, 0);
  return all;
}

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
    const Case level = random_case(random, false, true, 1200);
    check_level(random, level, 2, tally);
  });
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 50);
}

TEST_CASE("H-ILP over single nodes of an inner level: the cheapest of its class, between as asked for", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(600, [&](Random& random) {
    const Case level = random_case(random, true, true, 1200);
    check_level(random, level, 2, tally);
  });
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 30);
}

TEST_CASE("H-ILP over parts of several nodes and options: never below the cheapest of its class", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(300, [&](Random& random) {
    const Case level = random_case(random, false, false, 4000);
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
    const Case level = random_case(random, true, false, 2000);
    check_level(random, level, 2, tally);
  });
  CAPTURE(tally.pairs, tally.infeasible, tally.missed, tally.equal, tally.dearer, tally.again);
  CHECK(tally.missed < tally.pairs / 10);
  CHECK(tally.dearer < tally.equal / 5);
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

}  // namespace
}  // namespace cairn::solvers
