// Implements the solver hiremate (hiremate.h). A layer is a set of forward nodes and their backward nodes. A hierarchy
// joins layers to groups, and groups to larger groups. An option is one way to run a layer or a group. A level is one
// group, or the whole graph, whose members are solved together (level.h).

#include "cairn/solvers/remat/hiremate/hiremate.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/hiremate/group_graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/hiremate/partition.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"
#include "cairn/solvers/remat/repair/block_form.h"
#include "cairn/solvers/remat/repair/least_peak.h"
#include "cairn/solvers/remat/repair/retain.h"
#include "cairn/solvers/remat/rotor/rotor.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using core::ValueId;

/// Holds the options of a group, which are ways to run it, the cheapest first. An option is left out if another option
/// costs no more, has no higher peak, and keeps no more memory between the forward and the backward pass.
class OptionList {
 public:
  void add(LayerOption option, const OptionNeeds& needs) {
    const auto covers = [](const OptionNeeds& a, const OptionNeeds& b) {
      return a.cost <= b.cost && a.peak <= b.peak && a.between <= b.between;
    };
    if (std::ranges::any_of(entries_, [&](const Entry& known) { return covers(known.needs, needs); })) return;
    std::erase_if(entries_, [&](const Entry& known) { return covers(needs, known.needs); });
    const auto cost = [](const Entry& known) { return known.needs.cost; };
    entries_.insert(std::ranges::upper_bound(entries_, needs.cost, {}, cost), {needs, std::move(option)});
  }

  /// Selects at most `most` options: first the cheapest option and the option of least memory. Then repeatedly selects
  /// the option whose memory differs most from the memory of every option selected before. Memory here means the sum of
  /// the peak and the bytes between the passes. Returns the options by ascending cost.
  std::vector<LayerOption> spread(std::size_t most) const {
    std::vector<std::int64_t> memory;
    for (const Entry& entry : entries_) memory.push_back(entry.needs.between + entry.needs.peak);
    std::vector<std::size_t> chosen{0};
    if (entries_.size() > 1 && most > 1)
      chosen.push_back(static_cast<std::size_t>(std::min_element(memory.begin() + 1, memory.end()) - memory.begin()));
    while (chosen.size() < std::min(most, entries_.size())) {
      std::size_t best = 0;
      std::int64_t best_distance = -1;
      for (std::size_t i = 0; i < memory.size(); ++i) {
        if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
        std::int64_t distance = std::numeric_limits<std::int64_t>::max();
        for (const std::size_t c : chosen) distance = std::min(distance, std::abs(memory[i] - memory[c]));
        if (distance > best_distance) {
          best_distance = distance;
          best = i;
        }
      }
      chosen.push_back(best);
    }
    std::sort(chosen.begin(), chosen.end());
    std::vector<LayerOption> options;
    for (const std::size_t i : chosen) options.push_back(entries_[i].option);
    return options;
  }

 private:
  struct Entry {
    OptionNeeds needs;
    LayerOption option;
  };
  std::vector<Entry> entries_;
};

/// Runs two other solvers, TWRemat and RK-ROTOR, on a graph within a budget in bytes. Calls take(solution) for each
/// solution. Skips RK-ROTOR if it does not accept the graph.
template <class Take>
void by_others(const Graph& graph, std::int64_t budget, bool retain, const core::Limit& limit, const Take& take) {
  const SolveOptions options{.budget = budget, .limit = limit};
  TwRematOptions tw{options};
  tw.retain = retain;
  take(tw_remat(graph, tw));
  RotorOptions chain{options};
  chain.retain = retain;
  try {
    take(rotor(graph, chain));
  } catch (const core::InputError&) {
    // The graph is no chain of blocks, so RK-ROTOR has no solution.
  }
}

/// Describes a node of the hierarchy of layers. The node is a single layer, or a group of other nodes of the hierarchy
/// (`members`).
struct Group {
  Layer layer;
  std::vector<std::int32_t> members;
  std::int32_t kind = -1;  ///< index in Hierarchy::kinds_; groups of the same kind are equal node by node
};

/// Describes all groups that are equal to the group `representative`. `depth` is the number of levels below this group.
struct Kind {
  std::int32_t representative = 0;
  std::int32_t depth = 0;
  OptionList options;  ///< options of the representative
};

PartitionGraph partition_graph(const Graph& graph, const std::vector<Layer>& layers) {
  std::vector<std::int32_t> layer_of(static_cast<std::size_t>(graph.node_count()));
  for (std::size_t j = 0; j < layers.size(); ++j) {
    for (const auto* nodes : {&layers[j].forward, &layers[j].backward}) {
      for (const NodeId v : *nodes) layer_of[v] = static_cast<std::int32_t>(j);
    }
  }
  PartitionGraph parts{.items = static_cast<std::int32_t>(layers.size())};
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const NodeId maker = graph.producer(x);
    PartitionGraph::Value value{graph.value_size(x), layer_of[maker], {}};
    for (const NodeId reader : graph.readers(x)) {
      if (graph.backward(maker)) {
        // The items of this PartitionGraph are the layers. In a PartitionGraph, values only go from earlier to later
        // items, but gradients go from later to earlier layers. So a gradient becomes a value of 0 bytes in the
        // opposite direction. This still keeps groups convex: no path leaves a group and comes back.
        if (layer_of[reader] != layer_of[maker]) parts.values.push_back({0, layer_of[reader], {layer_of[maker]}});
      } else if (!graph.backward(reader)) {
        value.readers.push_back(layer_of[reader]);
      }
    }
    std::sort(value.readers.begin(), value.readers.end());
    value.readers.erase(std::unique(value.readers.begin(), value.readers.end()), value.readers.end());
    if (!value.readers.empty()) parts.values.push_back(std::move(value));
  }
  return parts;
}

/// Holds one hierarchy of groups. Finds options of its groups, and schedules of its top level.
class Hierarchy {
 public:
  Hierarchy(const Graph& graph, const std::vector<Layer>& layers, const PartitionGraph& parts,
            const HirematOptions& options, bool highs, core::Stopwatch& watch)
      : graph_(graph), options_(options), highs_(highs), watch_(watch) {
    for (const Layer& layer : layers) groups_.push_back({layer, {}, -1});
    const Partition partition =
        options.partition == 1
            ? h_partition(parts, {options_.most_top, options_.most_lower, options_.alpha_pct / 100.0}, watch_)
            : partition_into_runs(parts, options_.most_top, options_.most_lower);
    for (const std::vector<std::int32_t>& members : partition.groups) {
      std::vector<const Layer*> joined;
      for (const std::int32_t member : members) joined.push_back(&groups_[member].layer);
      Layer layer = join(joined);
      groups_.push_back({std::move(layer), members, -1});
    }
    top_ = partition.top;
    find_kinds();
  }

  /// Finds options of all groups, from the lowest level up. Uses the fraction `part` of what is left of the limit.
  void solve_groups(double part) {
    std::int32_t deepest = 0, groups = 0;
    for (const Kind& kind : kinds_) {
      deepest = std::max(deepest, kind.depth);
      groups += kind.depth > 0 ? 1 : 0;
    }
    // Divide the time equally among the programs of all groups. As many programs as there are threads run at once, so
    // each of them gets that many times as long.
    solve_limit_ = watch_.share(part / std::max(1, groups * options_.budgets));
    solve_limit_.seconds = std::max(solve_limit_.seconds * threads(), 0.02);
    const core::Limit limit = watch_.share(part);
    const core::Stopwatch groups_watch(limit);
    for (std::int32_t depth = 0; depth <= deepest; ++depth) {
      std::vector<Kind*> level;
      for (Kind& kind : kinds_) {
        if (kind.depth == depth) level.push_back(&kind);
      }
      core::parallel_blocks(std::ssize(level), 1, threads(), [&](std::int64_t i, std::int64_t, int) {
        solve_kind(*level[static_cast<std::size_t>(i)], groups_watch);
      });
    }
    watch_.charge(work_);
    work_ = 0;
    top_level_.emplace(graph_, level_of(top_, false));
  }

  /// Finds schedules within the budget and passes them to `offer`. First solves the top level without repeated runs of
  /// forward parts, which is faster. Afterwards solves the top level with repeated runs.
  void solve_top(std::int64_t budget, core::Stopwatch& watch, const std::function<void(const core::Schedule&)>& offer) {
    LevelSearch search = search_of(watch.share(0.3));
    search.threads = engine_threads();
    search.again = false;
    const LevelAnswer once = solve(*top_level_, {budget, {}}, search, watch);
    if (once.solved()) offer(schedule_of(once));
    if (watch.passed()) return;
    search.again = true;
    search.limit = watch.rest();
    if (once.solved()) search.hint = &once.runs;
    const LevelAnswer again = solve(*top_level_, {budget, {}}, search, watch);
    if (again.solved()) offer(schedule_of(again));
  }

 private:
  /// Writes the facts of a group's values on which memory depends, besides the structure of the group.
  struct FactsOfGroup {
    const core::Graph& graph;

    void node(NumberText&, NodeId) const {}
    void entering(NumberText&, ValueId) const {}
    void output(NumberText& form, ValueId x, const auto& is_inside) const {
      form.add(graph.value_kept(x) ? 1 : 0);
      form.add(std::ranges::all_of(graph.readers(x), is_inside) ? 0 : 1);
    }
  };

  /// Returns a text that is equal for equal groups, which can share their options. The text lists the group's nodes in
  /// order, with everything on which cost and memory depend.
  std::string signature(const Group& group) const {
    NumberText form = block_form(graph_, {group.layer.forward, group.layer.backward}, FactsOfGroup{graph_});
    for (const std::int32_t member : group.members) form.add(groups_[member].kind);
    return form.text();
  }

  void find_kinds() {
    std::unordered_map<std::string, std::int32_t> known;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto [found, fresh] = known.emplace(signature(groups_[i]), static_cast<std::int32_t>(kinds_.size()));
      groups_[i].kind = found->second;
      if (!fresh) continue;
      std::int32_t depth = 0;
      for (const std::int32_t member : groups_[i].members)
        depth = std::max(depth, kinds_[groups_[member].kind].depth + 1);
      kinds_.push_back({static_cast<std::int32_t>(i), depth, {}});
    }
  }

  /// Returns `bytes * i / budgets` without overflow.
  std::int64_t share_of(std::int64_t bytes, std::int64_t i) const {
    const std::int64_t parts = options_.budgets;
    return bytes / parts * i + bytes % parts * i / parts;
  }

  /// Returns at most `most` options of a group. They are the options of the representative of its kind, with the nodes
  /// replaced by the group's own nodes.
  std::vector<LayerOption> options_of(const Group& group, std::size_t most) const {
    const Kind& kind = kinds_[group.kind];
    const Layer& from = groups_[kind.representative].layer;
    std::unordered_map<NodeId, NodeId> own;
    for (std::size_t i = 0; i < from.forward.size(); ++i) own[from.forward[i]] = group.layer.forward[i];
    for (std::size_t i = 0; i < from.backward.size(); ++i) own[from.backward[i]] = group.layer.backward[i];
    std::vector<LayerOption> options = kind.options.spread(most);
    for (LayerOption& option : options) {
      for (auto* steps : {&option.forward, &option.backward}) {
        for (NodeId& v : *steps) v = own.at(v);
      }
    }
    return options;
  }

  LevelProblem level_of(const std::vector<std::int32_t>& members, bool inner) const {
    LevelProblem problem{.inner = inner};
    std::size_t nodes = 0;
    for (const std::int32_t member : members) nodes += groups_[member].layer.forward.size();
    for (const std::int32_t member : members) {
      const std::size_t share =
          static_cast<std::size_t>(options_.most_options) * groups_[member].layer.forward.size() / nodes;
      problem.parts.push_back({groups_[member].layer, options_of(groups_[member], std::max<std::size_t>(share, 3))});
    }
    return problem;
  }

  void solve_kind(Kind& kind, const core::Stopwatch& watch) {
    const Group& group = groups_[kind.representative];
    const auto offer = [&](LayerOption option) {
      const OptionNeeds needs = needs_of(graph_, group.layer, option);
      kind.options.add(std::move(option), needs);
      return needs;
    };
    if (group.members.empty()) {
      offer({group.layer.forward, group.layer.backward});
      return;
    }
    const Level level(graph_, level_of(group.members, true));
    const OptionNeeds all = offer(level.cheapest());
    if (group.layer.backward.empty()) {
      // Without backward parts, no value stays between the passes. So an option with a higher cost is only useful if it
      // has a lower peak.
      for (OptionNeeds needs = all; !watch.passed();) {
        const LevelAnswer answer =
            solve(level, {needs.peak - std::max<std::int64_t>(needs.peak / 8, 1), {}}, search_of(solve_limit_), watch);
        if (!answer.solved()) return;
        needs = offer(answer.schedule);
      }
      return;
    }
    offer(level.again());
    std::int64_t least = all.between;
    for (int i = options_.budgets - 1; i >= 0 && !watch.passed(); --i) {
      const std::int64_t between = std::min(share_of(all.between, i), least - 1);
      if (between < 0) break;
      LevelAnswer answer = solve(level, {all.peak, between}, search_of(solve_limit_), watch);
      if (!answer.solved()) continue;
      OptionNeeds needs = offer(std::move(answer.schedule));
      least = needs.between;
      for (int lower = 0; lower < 2 && !watch.passed(); ++lower) {
        answer = solve(level, {needs.peak - needs.peak / 4, between}, search_of(solve_limit_), watch);
        if (!answer.solved()) break;
        needs = offer(std::move(answer.schedule));
      }
    }
    // Making a GroupGraph visits the whole graph, which takes too long if there are many kinds. In that case, the other
    // solvers are not called.
    if (!options_.others || kinds_.size() > 2000) return;
    const GroupGraph alone(graph_, group.layer);
    for (int i = 1; i < options_.budgets && !watch.passed(); i += 2) {
      const std::int64_t between = share_of(all.between, i);
      by_others(alone.within(all.peak, between), all.peak, true, solve_limit_, [&](const Solution& solution) {
        work_ += solution.work;
        if (!solution.schedule.steps.empty() && solution.peak <= all.peak) offer(alone.option(solution.schedule));
      });
    }
  }

  LevelAnswer solve(const Level& level, const LevelBudget& budget, LevelSearch search, const core::Stopwatch& watch) {
    search.building = watch.rest();
    search.building.work = core::Limit::kAnyWork;
    search.limit.seconds = std::min(search.limit.seconds, search.building.seconds);
    LevelAnswer answer = level.solve(budget, search);
    work_ += answer.work;
    return answer;
  }
  LevelSearch search_of(const core::Limit& limit) const {
    return {.limit = limit, .seed = options_.seed, .highs = highs_};
  }

  static core::Schedule schedule_of(const LevelAnswer& answer) {
    core::Schedule schedule{answer.schedule.forward};
    schedule.steps.insert(schedule.steps.end(), answer.schedule.backward.begin(), answer.schedule.backward.end());
    return schedule;
  }

  int threads() const { return options_.threads > 0 ? options_.threads : core::thread_count(); }
  /// Returns the number of threads for the engine on the top level. CP-SAT runs a different search on each thread, so a
  /// few more threads than cores find better answers. If the user asks for one thread, the number is one.
  int engine_threads() const { return threads() == 1 ? 1 : std::max(threads(), 4); }

  const Graph& graph_;
  const HirematOptions& options_;
  const bool highs_;
  core::Stopwatch& watch_;
  std::vector<Group> groups_;
  std::vector<Kind> kinds_;
  std::vector<std::int32_t> top_;
  std::optional<Level> top_level_;
  core::Limit solve_limit_;
  std::atomic<std::int64_t> work_{0};
};

/// Makes one or several hierarchies, and offers their schedules to the incumbent, i.e. the best schedule so far.
class HierarchySearch {
 public:
  HierarchySearch(const Graph& graph, const std::vector<Layer>& layers, const HirematOptions& options,
                  Incumbent& incumbent, core::Stopwatch& watch)
      : graph_(graph), layers_(layers), options_(options), incumbent_(incumbent), watch_(watch), improved_(graph) {}

  void run() {
    const bool highs = options_.highs || !cp_sat_missing().empty();
    if (const std::string missing = highs ? highs_missing() : std::string(); !missing.empty())
      throw core::InputError(cp_sat_missing().empty() ? missing : cp_sat_missing());
    if (options_.budget && options_.others) {
      core::within(watch_, 0.2, [&](core::Stopwatch& watch) {
        by_others(graph_, *options_.budget, options_.retain, watch.share(0.5), [&](const Solution& solution) {
          watch.charge(solution.work);
          if (!solution.schedule.steps.empty()) incumbent_.offer(solution.schedule);
        });
      });
    }
    const PartitionGraph parts = partition_graph(graph_, layers_);
    const std::vector<HirematOptions> plans = plans_of();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (incumbent_.cannot_improve() || watch_.expired_now()) return;
      const double part = 1.0 / static_cast<double>(plans.size() - i);
      core::within(watch_, part, [&](core::Stopwatch& watch) {
        Hierarchy hierarchy(graph_, layers_, parts, plans[i], highs, watch);
        hierarchy.solve_groups(0.6);
        options_.budget ? solve_within(*options_.budget, hierarchy, watch) : lower_the_peak(hierarchy, watch);
      });
    }
  }

 private:
  std::vector<HirematOptions> plans_of() const {
    if (options_.partition != 0) return {options_};
    std::vector<HirematOptions> plans(3, options_);
    plans[0].partition = 2;
    plans[1].partition = 2;
    plans[1].most_lower = options_.most_lower * 3 / 2;
    plans[2].partition = 1;
    return plans;
  }

  void solve_within(std::int64_t budget, Hierarchy& hierarchy, core::Stopwatch& watch) {
    hierarchy.solve_top(budget, watch, [&](const core::Schedule& schedule) {
      const core::Evaluation found = incumbent_.offer(schedule);
      if (!options_.retain || found.peak > budget) return;
      improved_.assign(core::drop_unread(graph_, core::run_pinned_once(graph_, schedule)).steps);
      retain_where_it_fits(graph_, improved_, budget);
      incumbent_.offer({improved_.steps()});
    });
  }

  /// Lowers the peak by bisection between the lowest known peak and the highest budget that is known or assumed to be
  /// too small. A budget is assumed to be too small if no schedule was found for it.
  void lower_the_peak(Hierarchy& hierarchy, core::Stopwatch& watch) {
    std::int64_t failed = incumbent_.lower_bound() - 1;
    for (int left = 8; left > 0 && incumbent_.peak() > failed + 1 && !watch.expired_now(); --left) {
      const std::int64_t budget = failed + (incumbent_.peak() - failed) / 2;
      core::within(watch, 1.0 / left, [&](core::Stopwatch& one) { solve_within(budget, hierarchy, one); });
      if (incumbent_.peak() > budget) failed = budget;
    }
  }

  const Graph& graph_;
  const std::vector<Layer>& layers_;
  const HirematOptions& options_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  core::EditableSchedule improved_;
};

}  // namespace

Solution hiremate(const Graph& graph, const HirematOptions& options) {
  core::Stopwatch watch(options.limit);
  // layers_of() throws if the backward marks are inconsistent. So it is called even if there is nothing to search for.
  const std::vector<Layer> layers = layers_of(graph);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.proved_infeasible()) return infeasible_with_least_peak(hiremate, graph, options);
  if (!incumbent.cannot_improve()) HierarchySearch(graph, layers, options, incumbent, watch).run();
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
