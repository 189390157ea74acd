#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/tests/reference/kumar2019/decompositions.h"
#include "cairn/tests/reference/kumar2019/schedules.h"

/// This file has section 3 of Kumar et al. (2019): rematerialization by a tree decomposition.
namespace cairn::tests::kumar2019 {

/// Does what Lemma 1 says: merges two adjacent bags if one contains the other, until there are no such bags.
inline Decomposition lemma1(Decomposition decomposition) {
  for (std::size_t e = 0; e < decomposition.tree.size();) {
    auto [keep, drop] = decomposition.tree[e];
    if (decomposition.bags[keep].size() < decomposition.bags[drop].size()) std::swap(keep, drop);
    if (!less(decomposition.bags[drop], decomposition.bags[keep]).empty()) {
      ++e;
      continue;
    }
    decomposition.tree.erase(decomposition.tree.begin() + static_cast<std::ptrdiff_t>(e));
    decomposition.bags.erase(decomposition.bags.begin() + static_cast<std::ptrdiff_t>(drop));
    const auto renamed = [keep = keep, drop = drop](std::size_t bag) {
      const std::size_t to = bag == drop ? keep : bag;
      return to > drop ? to - 1 : to;
    };
    for (auto& [a, b] : decomposition.tree) {
      a = renamed(a);
      b = renamed(b);
    }
    e = 0;
  }
  return decomposition;
}

/// Removes the bag `separator`, and removes its nodes from all other bags. Returns the components of the tree that
/// remain.
inline std::vector<Decomposition> without(const Decomposition& decomposition, std::size_t separator) {
  std::set<std::size_t> others;
  for (std::size_t i = 0; i < decomposition.bags.size(); ++i) others.insert(i);
  others.erase(separator);
  std::vector<Decomposition> result;
  for (const std::vector<std::size_t>& part : components(decomposition, others)) {
    Decomposition component;
    for (const std::size_t bag : part) {
      component.bags.push_back(less(decomposition.bags[bag], decomposition.bags[separator]));
    }
    for (const auto& [a, b] : decomposition.tree) {
      const auto at_a = std::lower_bound(part.begin(), part.end(), a);
      const auto at_b = std::lower_bound(part.begin(), part.end(), b);
      if (at_a == part.end() || *at_a != a || at_b == part.end() || *at_b != b) continue;
      component.tree.push_back(
          {static_cast<std::size_t>(at_a - part.begin()), static_cast<std::size_t>(at_b - part.begin())});
    }
    result.push_back(std::move(component));
  }
  return result;
}

inline bool is_balanced_separator(const Decomposition& decomposition, std::size_t bag) {
  for (const Decomposition& component : without(decomposition, bag)) {
    if (2 * component.bags.size() > decomposition.bags.size()) return false;
  }
  return true;
}

/// A function that chooses the bag of a decomposition that becomes the separator.
using ChooseSeparator = std::function<std::size_t(const Decomposition&)>;

/// Returns the bag of Lemma 3: the first bag whose removal leaves components of at most half of the bags.
inline std::size_t lemma3(const Decomposition& decomposition) {
  std::size_t bag = 0;
  while (!is_balanced_separator(decomposition, bag)) ++bag;  // Theorem 2 says that such a bag exists
  return bag;
}

/// A step of an annotated schedule. In it, a node runs and stays in memory or, if `free` is set, is freed.
struct Step {
  NodeId node = core::kNoNode;
  bool free = false;
};

/// Errors of Algorithm 1 as printed. Each error can be turned on for the counterexample that shows it.
struct AsPrinted {
  bool whole_separator = false;  ///< schedules all nodes of X*, even nodes that S does not need
  bool free_elsewhere = false;   ///< frees all inputs of v outside of X*, even those in separators of the callers
};

/// Runs Algorithm 1 without Lemma 1: appends the annotated schedule that computes `outputs` (S) in the subgraph of
/// `nodes` (V'). If there are fewer than `stop` bags (k in TWRemat(k)) or no bag, the needed nodes run in topological
/// order. Only nodes that S needs are scheduled, as in the base case of Lemma 4's proof, because other nodes may have
/// inputs that have not run. After a node of the separator, only its inputs in the components are freed.
inline void algorithm1(const Graph& graph, const Nodes& nodes, const Decomposition& decomposition, const Nodes& outputs,
                       std::size_t stop, const ChooseSeparator& choose, AsPrinted as_printed,
                       std::vector<Step>& steps) {
  const Nodes needed = as_printed.whole_separator ? nodes : needed_for(graph, outputs, nodes);
  const bool last = decomposition.bags.size() < std::max<std::size_t>(stop, 1);
  const std::size_t bag = last ? 0 : choose(decomposition);
  const Nodes separator = last ? nodes : decomposition.bags[bag];
  const std::vector<Decomposition> parts = last ? std::vector<Decomposition>() : without(decomposition, bag);
  const auto call = [&](const Decomposition& part, const Nodes& of) {
    const Nodes within = common(nodes, all_of(part.bags));
    algorithm1(graph, within, part, common(of, within), stop, choose, as_printed, steps);
  };
  for (const NodeId v : topological(graph)) {
    if (!separator.contains(v) || !needed.contains(v)) continue;
    for (const Decomposition& part : parts) call(part, in(graph, v));
    steps.push_back({v});
    const Nodes elsewhere = less(in(graph, v), separator);
    for (const NodeId u : as_printed.free_elsewhere ? elsewhere : common(elsewhere, nodes)) steps.push_back({u, true});
  }
  for (const Decomposition& part : parts) call(part, less(outputs, separator));
  for (const NodeId v : less(common(separator, needed), outputs)) steps.push_back({v, true});
}

/// Returns the schedule of TWRemat(k) for all outputs of the graph.
inline std::vector<Step> tw_remat(const Graph& graph, const Decomposition& decomposition, std::size_t k = 1,
                                  const ChooseSeparator& choose = lemma3, AsPrinted as_printed = {}) {
  std::vector<Step> steps;
  algorithm1(graph, all_of(graph), decomposition, outputs(graph), k, choose, as_printed, steps);
  return steps;
}

inline Sequence without_annotations(const std::vector<Step>& steps) {
  Sequence sigma;
  for (const Step& step : steps) {
    if (!step.free) sigma.push_back(step.node);
  }
  return sigma;
}

/// Returns the largest total size of the nodes that are in memory at one time, i.e. have run and are not yet freed.
/// Returns nothing if a node runs without all its inputs in memory, if a node is freed that is not in memory, or if the
/// nodes in memory at the end are not `left_at_end`.
inline std::optional<std::int64_t> annotated_memory(const Graph& graph, const std::vector<Step>& steps,
                                                    const Nodes& left_at_end) {
  Nodes content;
  std::int64_t most = 0;
  for (const Step& step : steps) {
    if (step.free) {
      if (content.erase(step.node) == 0) return std::nullopt;
    } else {
      if (!less(in(graph, step.node), content).empty()) return std::nullopt;
      content.insert(step.node);
      most = std::max(most, size_of(graph, content));
    }
  }
  if (content != left_at_end) return std::nullopt;
  return most;
}

/// The bounds of Theorem 5 for a tree decomposition of width w, with the constants of the proof. Each level of
/// Algorithm 1's recursion halves the number of bags |X|, so there are at most floor(log2 |X|) + 1 levels.
struct Theorem5 {
  int levels = 0;
  std::int64_t length = 0;  ///< cost of all nodes * (w + 2)^(levels - 1): each level except the last makes w + 2 calls
  std::int64_t memory = 0;  ///< each level holds a separator and the inputs of one node, and the outputs are added
};
inline Theorem5 theorem5(const Graph& graph, const Decomposition& decomposition) {
  const std::int64_t w = width(decomposition.bags);
  Theorem5 bound{.levels = static_cast<int>(std::bit_width(decomposition.bags.size()))};
  for (NodeId v = 0; v < graph.node_count(); ++v) bound.length += graph.cost(v);
  for (int level = 1; level < bound.levels; ++level) bound.length *= w + 2;
  bound.memory =
      bound.levels * (largest_inputs(graph) + (w + 1) * largest_size(graph)) + size_of(graph, outputs(graph));
  return bound;
}

}  // namespace cairn::tests::kumar2019
