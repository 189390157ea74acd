#include "cairn/solvers/remat/hiremate.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/remat/internal/level.h"
#include "cairn/solvers/remat/internal/partition.h"
#include "cairn/solvers/remat/internal/refine.h"
#include <cstdio>
#include <cstdlib>

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using core::ValueId;

/// An item of the hierarchy: one forward node with its backward nodes, or a group.
struct Group {
  Layer layer;
  std::vector<std::int32_t> members;
  std::int32_t kind = -1;  ///< items of one kind are alike, node by node
};

/// The options of a kind, by the nodes of its representative.
struct Kind {
  std::int32_t representative = 0;
  std::vector<LayerOption> options;  ///< the cheapest first
  std::vector<OptionNeeds> needs;
};

/// Of options in order of what they save, at most `most`: the first and the last, then those farthest from the others.
std::vector<std::size_t> spread(const std::vector<OptionNeeds>& needs, std::size_t most) {
  std::vector<std::size_t> chosen;
  const auto memory = [&](std::size_t i) { return needs[i].between + needs[i].peak; };
  while (chosen.size() < std::min(most, needs.size())) {
    std::size_t best = 0;
    std::int64_t best_distance = -1;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
      std::int64_t distance = std::numeric_limits<std::int64_t>::max();
      if (chosen.empty()) distance = i == 0 ? distance : -1;
      if (chosen.size() == 1) distance = -memory(i) + (std::int64_t{1} << 61);
      if (chosen.size() > 1) {
        for (const std::size_t c : chosen) distance = std::min(distance, std::abs(memory(i) - memory(c)));
      }
      if (distance > best_distance) {
        best_distance = distance;
        best = i;
      }
    }
    chosen.push_back(best);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

class Hierarchy {
 public:
  Hierarchy(const Graph& graph, const HirematOptions& options, Incumbent& incumbent, core::Stopwatch& watch)
      : graph_(graph), options_(options), incumbent_(incumbent), watch_(watch) {}

  void run() {
    build();
    find_kinds();
    const double t0 = watch_.seconds();
    for (std::size_t i = 0; i < kinds_.size(); ++i) solve_kind(kinds_[i]);
    std::fprintf(stderr, "partition+kinds %.2f solve kinds %.2f: %zu kinds, top %zu, items %zu\n", t0, watch_.seconds() - t0, kinds_.size(), top_.size(), items_.size());
    solve_top();
  }

 private:
  void build() {
    const std::vector<Layer> layers = layers_of(graph_);
    std::vector<std::int32_t> layer_of(static_cast<std::size_t>(graph_.node_count()));
    for (std::size_t j = 0; j < layers.size(); ++j) {
      for (const auto* nodes : {&layers[j].forward, &layers[j].backward}) {
        for (const NodeId v : *nodes) layer_of[v] = static_cast<std::int32_t>(j);
      }
      items_.push_back({layers[j], {}, -1});
    }
    PartitionGraph parts;
    parts.items = static_cast<std::int32_t>(layers.size());
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      const NodeId maker = graph_.producer(x);
      PartitionGraph::Value value{graph_.value_size(x), layer_of[maker], {}};
      if (graph_.backward(maker)) {
        // Against the order of the forward nodes; no bytes of theirs.
        for (const NodeId reader : graph_.readers(x)) {
          if (layer_of[reader] != layer_of[maker])
            parts.values.push_back({0, layer_of[reader], {layer_of[maker]}});
        }
        continue;
      }
      for (const NodeId reader : graph_.readers(x)) {
        if (!graph_.backward(reader)) value.readers.push_back(layer_of[reader]);
      }
      std::sort(value.readers.begin(), value.readers.end());
      value.readers.erase(std::unique(value.readers.begin(), value.readers.end()), value.readers.end());
      parts.values.push_back(std::move(value));
    }
    const Partition partition = h_partition(
        parts, {options_.most_top, options_.most_lower, static_cast<double>(options_.alpha_pct) / 100}, watch_);
    for (const std::vector<std::int32_t>& group : partition.groups) {
      std::vector<const Layer*> members;
      for (const std::int32_t item : group) members.push_back(&items_[item].layer);
      Layer joined = join(members);
      items_.push_back({std::move(joined), group, -1});
    }
    top_ = partition.top;
  }

  /// What an item is, so that options carry over: nodes in order, with all that cost and memory depend on.
  std::string signature(const Group& item) const {
    std::string text;
    const auto add = [&](std::int64_t number) { text.append(reinterpret_cast<const char*>(&number), sizeof number); };
    std::unordered_map<NodeId, std::int64_t> place;
    std::unordered_map<ValueId, std::int64_t> entering;
    std::int64_t next = 0;
    for (const auto* nodes : {&item.layer.forward, &item.layer.backward}) {
      add(static_cast<std::int64_t>(nodes->size()));
      for (const NodeId v : *nodes) place[v] = next++;
    }
    for (const auto* nodes : {&item.layer.forward, &item.layer.backward}) {
      for (const NodeId v : *nodes) {
        add(graph_.cost(v));
        add(graph_.scratch(v));
        add(graph_.pinned(v));
        add(static_cast<std::int64_t>(graph_.inputs(v).size()));
        for (const ValueId x : graph_.inputs(v)) {
          const auto maker = place.find(graph_.producer(x));
          if (maker != place.end()) {
            add(maker->second);
            add(graph_.output_ref(x).output);
          } else {
            add(-1 - entering.emplace(x, static_cast<std::int64_t>(entering.size())).first->second);
            add(graph_.value_size(x));
          }
        }
        add(graph_.output_count(v));
        for (const ValueId x : graph_.outputs(v)) {
          add(graph_.value_size(x));
          add(graph_.value_kept(x));
          const auto readers = graph_.readers(x);
          add(std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !place.contains(r); }));
        }
      }
    }
    for (const std::int32_t member : item.members) add(items_[member].kind);
    return text;
  }

  void find_kinds() {
    std::map<std::string, std::int32_t> known;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const auto [found, fresh] = known.emplace(signature(items_[i]), static_cast<std::int32_t>(kinds_.size()));
      items_[i].kind = found->second;
      if (fresh) kinds_.push_back({static_cast<std::int32_t>(i), {}, {}});
    }
  }

  /// The options of an item, at most so many.
  std::vector<LayerOption> options_of(const Group& item, std::size_t most) const {
    const Kind& kind = kinds_[item.kind];
    const Layer& from = items_[kind.representative].layer;
    std::unordered_map<NodeId, NodeId> translated;
    for (std::size_t i = 0; i < from.forward.size(); ++i) translated[from.forward[i]] = item.layer.forward[i];
    for (std::size_t i = 0; i < from.backward.size(); ++i) translated[from.backward[i]] = item.layer.backward[i];
    std::vector<LayerOption> options;
    for (const std::size_t i : spread(kind.needs, most)) {
      LayerOption option = kind.options[i];
      for (auto* steps : {&option.forward, &option.backward}) {
        for (NodeId& v : *steps) v = translated[v];
      }
      options.push_back(std::move(option));
    }
    return options;
  }

  LevelProblem level_of(const std::vector<std::int32_t>& members, bool inner) const {
    LevelProblem problem;
    problem.inner = inner;
    std::size_t nodes = 0;
    for (const std::int32_t member : members) nodes += items_[member].layer.forward.size();
    for (const std::int32_t member : members) {
      const std::size_t share =
          static_cast<std::size_t>(options_.most_options) * items_[member].layer.forward.size() / nodes;
      problem.parts.push_back({items_[member].layer, options_of(items_[member], std::max<std::size_t>(share, 3))});
    }
    return problem;
  }

  void solve_kind(Kind& kind) {
    const Group& item = items_[kind.representative];
    const auto offer = [&](LayerOption option) {
      if (std::find(kind.options.begin(), kind.options.end(), option) != kind.options.end()) return false;
      kind.needs.push_back(needs_of(graph_, item.layer, option));
      kind.options.push_back(std::move(option));
      return true;
    };
    if (item.members.empty()) {
      offer({item.layer.forward, item.layer.backward});
      return;
    }
    const Level level(graph_, level_of(item.members, true));
    offer(level.cheapest());
    const OptionNeeds all = kind.needs.front();
    LevelSearch search;
    const double t0 = watch_.seconds();
    std::string log;
    int solves = 0;
    const auto solve = [&](std::int64_t peak, std::int64_t between) {
      search.limit = watch_.share(0.02);
      search.limit.seconds = std::min(search.limit.seconds, 2.0);
      LevelBudget budget{peak, between};
      const double t = watch_.seconds();
      LevelAnswer answer = level.solve(budget, search);
      ++solves;
      if (std::getenv("HL")) std::fprintf(stderr, "    S %.1f%% M %.1f%%: %d cost +%.2f%% %.2fs\n", 100.0 * double(between) / double(all.between+1), 100.0*double(peak)/double(all.peak), int(answer.status), 100.0 * double(answer.cost - all.cost) / double(all.cost), watch_.seconds() - t);
      return answer;
    };
    std::int64_t least = all.between;
    for (int i = options_.budgets - 1; i >= 0; --i) {
      const std::int64_t between = std::min(all.between * i / options_.budgets, least - 1);
      if (between < 0) break;
      LevelAnswer answer = solve(all.peak, between);
      if (!answer.solved()) continue;
      offer(answer.schedule);
      OptionNeeds needs = needs_of(graph_, item.layer, answer.schedule);
      least = needs.between;
      for (int lower = 0; lower < 2; ++lower) {
        answer = solve(needs.peak * 3 / 4, between);
        if (!answer.solved()) break;
        offer(answer.schedule);
        needs = needs_of(graph_, item.layer, answer.schedule);
      }
    }
    if (std::getenv("HL")) std::fprintf(stderr, "  kind of %zu members, %zu nodes: %d solves, %zu options, %.2f s; terms %ld\n", item.members.size(), item.layer.forward.size(), solves, kind.options.size(), watch_.seconds() - t0, long(level.terms()));
  }

  void solve_top() {
    const Level level(graph_, level_of(top_, false));
    std::fprintf(stderr, "top terms %ld\n", long(level.terms()));
    LevelSearch search;
    search.threads = 2;
    search.limit = watch_.share(0.3);
    search.again = false;
    const LevelAnswer once = level.solve({*options_.budget, {}}, search);
    std::fprintf(stderr, "top once: status %d cost %ld bound %ld at %.2f\n", int(once.status), long(once.cost), long(once.bound), watch_.seconds());
    search.again = true;
    if (once.solved()) search.hint = &once.runs;
    search.limit = watch_.rest();
    const LevelAnswer answer = level.solve({*options_.budget, {}}, search);
    std::fprintf(stderr, "top: status %d cost %ld bound %ld at %.2f\n", int(answer.status), long(answer.cost), long(answer.bound), watch_.seconds());
    if (!answer.solved()) return;
    core::Schedule schedule{answer.schedule.forward};
    schedule.steps.insert(schedule.steps.end(), answer.schedule.backward.begin(), answer.schedule.backward.end());
    const auto measures = incumbent_.offer(schedule);
    std::fprintf(stderr, "  evaluated peak %.2f%% of budget, cost %ld\n", 100.0 * double(measures.peak) / double(*options_.budget), long(measures.cost));
    if (!options_.retain) return;
    core::EditableSchedule work(graph_);
    work.assign(core::drop_unread(graph_, schedule).steps);
    retain_where_it_fits(graph_, work, *options_.budget);
    const auto better = incumbent_.offer({work.steps()});
    std::fprintf(stderr, "  retained: %ld\n", long(better.cost));
  }

  const Graph& graph_;
  const HirematOptions& options_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  std::vector<Group> items_;
  std::vector<Kind> kinds_;
  std::vector<std::int32_t> top_;
};

}  // namespace

Solution hiremate(const Graph& graph, const HirematOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  Hierarchy(graph, options, incumbent, watch).run();
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
