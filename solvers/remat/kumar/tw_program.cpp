// Represents Algorithm 1 (TWRemat) of Kumar et al. as a program of procedures (tw_program.h). A part of the graph
// consists of a separator and of components, which are smaller parts. A procedure computes the wanted nodes of a part.
// Its callers hold the values that it reads from outside the part.

#include "cairn/solvers/remat/kumar/tw_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cairn/core/support/saturating.h"
#include "cairn/solvers/remat/repair/input_ranks.h"

namespace cairn::solvers {

using core::NodeId;

TwProgram::TwProgram(const core::Graph& graph, const SeparatorTree& separators)
    : graph_(graph),
      separators_(separators),
      rank_(input_ranks(graph)),
      stamp_(graph.node_count(), 0),
      last_(graph.node_count(), 0) {
  std::vector<NodeId> wanted;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.required(v)) wanted.push_back(v);
  }
  root_ = find(0, std::move(wanted));
}

std::int32_t TwProgram::find(std::int32_t part, std::vector<NodeId> wanted) {
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::uint64_t hash = static_cast<std::uint64_t>(part) + 1;
  for (const NodeId v : wanted) hash = (hash ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15u + (hash >> 29);
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Procedure& known = procedures_[it->second];
    if (known.part == part && std::ranges::equal(outputs(known), wanted)) return it->second;
  }
  const auto number = static_cast<std::int32_t>(procedures_.size());
  Procedure procedure{.part = part,
                      .outputs_begin = static_cast<std::int32_t>(outputs_.size()),
                      .outputs_end = static_cast<std::int32_t>(outputs_.size() + wanted.size()),
                      .reads_begin = 0,
                      .reads_end = 0};
  outputs_.insert(outputs_.end(), wanted.begin(), wanted.end());
  if (!separators_.parts.empty()) measure(procedure);
  procedures_.push_back(procedure);
  numbers_.emplace(hash, number);
  return number;
}

/// Finds the wanted nodes and their ancestors, and sorts them by the input order. Leaves out nodes outside of the part,
/// because the callers hold their values.
void TwProgram::needed(const Procedure& procedure, std::vector<NodeId>& nodes) {
  const auto& part = separators_.parts[procedure.part];
  ++current_;
  nodes.clear();
  const auto visit = [&](NodeId v) {
    if (!inside(part, v) || std::exchange(stamp_[v], current_) == current_) return;
    nodes.push_back(v);
  };
  for (const NodeId v : outputs(procedure)) visit(v);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const NodeId u : graph_.predecessors(nodes[i])) visit(u);
  }
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
}

void TwProgram::measure(Procedure& procedure) {
  needed(procedure, nodes_);
  const auto& part = separators_.parts[procedure.part];
  procedure.node_count = static_cast<std::int64_t>(nodes_.size());
  procedure.reads_begin = static_cast<std::int32_t>(reads_.size());
  constexpr std::int32_t kEnd = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes_.size()); ++i) {
    last_[nodes_[i]] = i;
    for (const NodeId u : graph_.predecessors(nodes_[i])) {
      if (inside(part, u)) {
        last_[u] = i;
      } else if (std::exchange(stamp_[u], current_) != current_) {
        reads_.push_back(u);
      }
    }
  }
  procedure.reads_end = static_cast<std::int32_t>(reads_.size());
  for (const NodeId v : outputs(procedure)) {
    last_[v] = kEnd;
    procedure.output_bytes += graph_.size(v);
  }
  std::int64_t live = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes_.size()); ++i) {
    const NodeId v = nodes_[i];
    procedure.direct_peak = std::max(procedure.direct_peak, live + graph_.size(v) + graph_.scratch(v));
    if (last_[v] != i) live += graph_.size(v);
    for (const NodeId u : graph_.predecessors(v)) {
      if (inside(part, u) && last_[u] == i) live -= graph_.size(u);
    }
  }
}

void TwProgram::expand(std::int32_t number) {
  if (procedures_[number].items_begin >= 0) return;
  const auto& part = separators_.parts[procedures_[number].part];
  std::vector<NodeId> run;
  needed(procedures_[number], run);
  const std::vector<NodeId> wanted(outputs(procedures_[number]).begin(), outputs(procedures_[number]).end());
  const auto in_separator = [&](NodeId v) { return separators_.home[v] == part.begin; };
  const auto component_of = [&](NodeId v) {
    return *(std::upper_bound(part.children.begin(), part.children.end(), separators_.home[v]) - 1);
  };
  // Indexed by component: the wanted nodes in it, and how many separator nodes must have run before all of these can be
  // computed.
  struct Wanted {
    std::int32_t ready = 0;
    std::vector<NodeId> nodes;  // ascending
  };
  std::map<std::int32_t, Wanted> wanted_of;
  std::int32_t position = 0;
  for (const NodeId v : run) {
    if (in_separator(v)) {
      last_[v] = ++position;
      continue;
    }
    last_[v] = 0;
    for (const NodeId u : graph_.predecessors(v)) {
      if (inside(part, u)) last_[v] = std::max(last_[v], last_[u]);
    }
  }
  for (const NodeId v : wanted) {
    if (in_separator(v)) continue;
    Wanted& there = wanted_of[component_of(v)];
    there.ready = std::max(there.ready, last_[v]);
    there.nodes.push_back(v);
  }
  std::erase_if(run, [&](NodeId v) { return !in_separator(v); });

  std::vector<Item> items;
  std::int32_t done = 0;
  for (const NodeId v : run) {
    std::map<std::int32_t, std::vector<NodeId>> inputs_of;
    for (const NodeId u : graph_.predecessors(v)) {
      if (inside(part, u) && !in_separator(u)) inputs_of[component_of(u)].push_back(u);
    }
    std::int64_t freed = 0;
    for (auto& [component, nodes] : inputs_of) {
      for (const NodeId u : nodes) freed += graph_.size(u);
      if (const auto at = wanted_of.find(component); at != wanted_of.end() && at->second.ready <= done) {
        const std::vector<NodeId>& outputs_there = at->second.nodes;
        for (const NodeId u : nodes) {
          if (std::binary_search(outputs_there.begin(), outputs_there.end(), u)) freed -= graph_.size(u);
        }
        nodes.insert(nodes.end(), outputs_there.begin(), outputs_there.end());
        wanted_of.erase(at);
      }
      items.push_back({~find(component, std::move(nodes)), 0});
    }
    items.push_back({v, freed});
    ++done;
  }
  for (auto& [component, there] : wanted_of) items.push_back({~find(component, std::move(there.nodes)), 0});

  note_releases(run, wanted, part.begin, items);
  procedures_[number].items_begin = static_cast<std::int64_t>(items_.size());
  items_.insert(items_.end(), items.begin(), items.end());
  procedures_[number].items_end = static_cast<std::int64_t>(items_.size());
}

void TwProgram::note_releases(const std::vector<NodeId>& run, const std::vector<NodeId>& wanted, std::int32_t separator,
                              std::vector<Item>& items) {
  for (const NodeId v : run) last_[v] = -1;
  const auto note = [&](NodeId u, std::size_t item) {
    if (separators_.home[u] == separator) last_[u] = static_cast<std::int32_t>(item);
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].what >= 0) {
      last_[items[i].what] = std::max(last_[items[i].what], static_cast<std::int32_t>(i));
      for (const NodeId u : graph_.predecessors(items[i].what)) note(u, i);
    } else {
      const Procedure& called = procedures_[~items[i].what];
      for (std::int32_t r = called.reads_begin; r < called.reads_end; ++r) note(reads_[r], i);
    }
  }
  for (const NodeId v : run) {
    if (!std::binary_search(wanted.begin(), wanted.end(), v)) items[last_[v]].released += graph_.size(v);
  }
}

std::optional<std::int64_t> TwProgram::length(std::int64_t k, core::Stopwatch& watch) {
  if (separators_.parts.empty()) return 0;
  std::vector<std::int64_t> known;
  return length_of(root_, k, watch, known);
}

std::optional<std::int64_t> TwProgram::length_of(std::int32_t number, std::int64_t k, core::Stopwatch& watch,
                                                 std::vector<std::int64_t>& known) {
  if (is_leaf(procedures_[number], k)) return procedures_[number].node_count;
  if (static_cast<std::size_t>(number) < known.size() && known[number] > 0) return known[number];
  if (watch.charge(procedures_[number].node_count).expired()) return std::nullopt;
  expand(number);
  std::int64_t sum = 0;
  for (std::int64_t i = procedures_[number].items_begin; i < procedures_[number].items_end; ++i) {
    const std::int32_t what = items_[i].what;
    const auto steps = what >= 0 ? std::optional<std::int64_t>(1) : length_of(~what, k, watch, known);
    if (!steps) return std::nullopt;
    sum = std::min(sum + *steps, kAnyLength);
  }
  if (known.size() < procedures_.size()) known.resize(procedures_.size(), 0);
  return known[number] = sum;
}

std::optional<TwProgram::Trimmed> TwProgram::trim(std::int64_t k, core::Stopwatch& watch) {
  Trimmed trimmed{.k = k};
  if (separators_.parts.empty()) return trimmed;
  // A pinned node runs only at its first occurrence. The walk goes backwards, so it reaches the first occurrence last,
  // and must know how many occurrences are still to come.
  std::vector<std::int64_t> to_come;
  bool stopped = false;
  if (graph_.has_pinned()) {
    to_come.resize(graph_.node_count(), 0);
    walk<true>(root_, k, [&](NodeId v) {
      ++to_come[v];
      return !(stopped = watch.charge().expired());
    });
  }
  // - needed_later[x]: whether value x is kept or read at a step that the walk has passed, so that it is in memory now.
  // - live: total bytes of these values.
  std::vector<std::uint8_t> needed_later(graph_.value_count(), 0), required(graph_.node_count());
  std::int64_t live = 0;
  const auto need = [&](core::ValueId x) {
    if (std::exchange(needed_later[x], 1) == 0) live += graph_.value_size(x);
  };
  for (NodeId v = 0; v < graph_.node_count(); ++v) {
    required[v] = graph_.required(v);
    for (const core::ValueId x : graph_.outputs(v)) {
      if (graph_.value_kept(x)) need(x);
    }
  }
  if (stopped) return std::nullopt;
  walk<true>(root_, k, [&](NodeId v) {
    stopped = watch.charge().expired();
    bool stays = required[v] != 0;
    for (const core::ValueId x : graph_.outputs(v)) stays = stays || needed_later[x] != 0;
    if (!to_come.empty() && graph_.pinned(v) && --to_come[v] > 0) stays = false;
    trimmed.stays.push_back(stays);
    if (!stays) return !stopped;
    required[v] = 0;
    for (const core::ValueId x : graph_.outputs(v)) {
      if (std::exchange(needed_later[x], 0) != 0) live -= graph_.value_size(x);
    }
    for (const core::ValueId x : graph_.inputs(v)) need(x);
    trimmed.peak = std::max(trimmed.peak, live + graph_.size(v) + graph_.scratch(v));
    trimmed.cost = core::saturating_add(trimmed.cost, graph_.cost(v));
    ++trimmed.steps;
    return !stopped;
  });
  if (stopped) return std::nullopt;
  trimmed.length = static_cast<std::int64_t>(trimmed.stays.size());
  return trimmed;
}

std::int64_t TwProgram::least_peak(std::int32_t number, core::Stopwatch& watch) {
  if (procedures_[number].least_peak >= 0) return procedures_[number].least_peak;
  const std::int64_t direct = procedures_[number].direct_peak;
  if (is_leaf(procedures_[number], 1)) return procedures_[number].least_peak = direct;
  if (watch.charge(procedures_[number].node_count).expired()) return direct;
  expand(number);
  std::int64_t peak = 0, held = 0;
  for (std::int64_t i = procedures_[number].items_begin; i < procedures_[number].items_end; ++i) {
    const auto [what, released] = items_[i];
    if (what >= 0) {
      peak = std::max(peak, held + graph_.size(what) + graph_.scratch(what));
      held += graph_.size(what) - released;
    } else {
      peak = std::max(peak, held + least_peak(~what, watch));
      held += procedures_[~what].output_bytes - released;
    }
  }
  return procedures_[number].least_peak = std::min(peak, direct);
}

struct TwProgram::Emission {
  std::int64_t bytes, most_steps;
  core::Stopwatch& watch;
  std::vector<NodeId> steps;
  std::vector<NodeId> nodes;
  bool stopped = false;
};

std::optional<std::vector<NodeId>> TwProgram::steps_within(std::int64_t bytes, std::int64_t most_steps,
                                                           core::Stopwatch& watch) {
  Emission emission{bytes, most_steps, watch, {}, {}};
  if (!separators_.parts.empty()) emit_within(root_, 0, emission);
  if (emission.stopped) return std::nullopt;
  return std::move(emission.steps);
}

void TwProgram::emit_within(std::int32_t number, std::int64_t held, Emission& emission) {
  // Every node that the procedure needs runs at least once. So the whole schedule has at least this number of steps.
  const std::int64_t at_least = static_cast<std::int64_t>(emission.steps.size()) + procedures_[number].node_count;
  if (emission.stopped || emission.watch.charge(procedures_[number].node_count).expired() ||
      at_least > emission.most_steps) {
    emission.stopped = true;
    return;
  }
  const std::int64_t direct = procedures_[number].direct_peak;
  if (held + direct <= emission.bytes || direct <= least_peak(number, emission.watch)) {
    needed(procedures_[number], emission.nodes);
    emission.steps.insert(emission.steps.end(), emission.nodes.begin(), emission.nodes.end());
    return;
  }
  expand(number);
  for (std::int64_t i = procedures_[number].items_begin; i < procedures_[number].items_end; ++i) {
    const auto [what, released] = items_[i];
    if (what >= 0) {
      emission.steps.push_back(what);
      held += graph_.size(what);
    } else {
      emit_within(~what, held, emission);
      held += procedures_[~what].output_bytes;
    }
    held -= released;
  }
}

}  // namespace cairn::solvers
