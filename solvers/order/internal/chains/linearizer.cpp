// Turns in-forests into paths (linearizer.h). An in-forest is the part of a graph between a source and a sink; its
// paths can join but not branch. It consists of branches. The key of a branch is one of its steps: either the step at
// which other branches (its children) end, or the step that reads the source.

#include "cairn/solvers/order/internal/chains/linearizer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cairn/solvers/order/internal/chains/dominant.h"
#include "cairn/solvers/order/internal/chains/pumpkin_merge.h"
#include "cairn/solvers/order/internal/reduction/expansion.h"
#include "cairn/solvers/order/internal/search/exact.h"

namespace cairn::solvers {

/// Merges a branch, its children, their children and so on into one chain. Uses a stack instead of recursion, because
/// trees can be deep.
Chain Linearizer::flat(BranchId root) {
  struct Visit {
    BranchId branch;
    std::vector<Chain> parts;
    std::size_t next = 0;
  };
  std::vector<Visit> stack;
  stack.push_back({root, {}, 0});
  for (;;) {
    Visit& visit = stack.back();
    TreeBranch& branch = branches_[visit.branch];
    if (visit.next < branch.children.size()) {
      stack.push_back({branch.children[visit.next++], {}, 0});
      continue;
    }
    visit.parts.push_back(std::move(branch.before));
    Chain chain = merge(std::move(visit.parts), ropes_);
    if (branch.has_key) append(chain, branch.key, ropes_);
    append(chain, branch.rest, ropes_);
    stack.pop_back();
    if (stack.empty()) return chain;
    stack.back().parts.push_back(std::move(chain));
  }
}

Chain Linearizer::merge_branches(const std::vector<BranchId>& branches) {
  std::vector<Chain> chains;
  for (const BranchId id : branches) chains.push_back(flat(id));
  return merge(std::move(chains), ropes_);
}

std::optional<Chain> Linearizer::linearize(const InForest& forest, std::int64_t released) {
  cut_short_ = false;
  if (forest.released || released == 0 || forest.branches.empty()) return merge_branches(forest.branches);
  if (forest.branches.size() == 1) {
    // All paths of the forest meet at the key of its only branch. The branches that end at this key form a smaller
    // forest. The chain made from that forest comes first, followed by the key and the rest of the branch.
    const TreeBranch& branch = branches_[forest.branches.front()];
    Chain chain = branch.before;
    ChainSegment key = branch.key;
    if (branch.reads_source) {
      key.drop += released;
    } else {
      std::optional<Chain> below = linearize({branch.children}, released);
      if (!below) return std::nullopt;
      chain = std::move(*below);
    }
    append(chain, key, ropes_);
    append(chain, branch.rest, ropes_);
    return chain;
  }
  const bool chains = std::all_of(forest.branches.begin(), forest.branches.end(), [&](BranchId id) {
    return branches_[id].children.empty() && branches_[id].before.empty();
  });
  return chains ? pumpkin(forest, released) : starborescence(forest, released);
}

std::optional<Chain> Linearizer::pumpkin(const InForest& forest, std::int64_t released) {
  const auto is_key_alone = [&](BranchId id) { return branches_[id].rest.empty(); };
  if (std::all_of(forest.branches.begin(), forest.branches.end(), is_key_alone)) {
    // No branch has steps after its key. So in every order, the source's output is freed at the end, after all keys,
    // and Liu's merge finds the best order of the keys.
    std::vector<Chain> keys;
    for (const BranchId id : forest.branches) keys.push_back({branches_[id].key});
    Chain chain = merge(std::move(keys), ropes_);
    append(chain, {{0, released}, Ropes::kEmpty}, ropes_);
    return chain;
  }
  std::vector<PumpkinBranch> branches;
  for (const BranchId id : forest.branches) branches.push_back({branches_[id].key, branches_[id].rest});
  if (watch_.expired_now()) return some_chain(forest, released);
  PumpkinMerge table(branches, released);
  if (accelerator_ != nullptr && table.is_large()) {
    const PumpkinAnswer::End end = table.solve_on(*accelerator_, watch_, tick_);
    if (end == PumpkinAnswer::End::solved) return table.chain(ropes_);
    if (end == PumpkinAnswer::End::stopped) return some_chain(forest, released);
  }
  needed_bytes_ = table.needed_bytes();
  if (needed_bytes_ > memory_bytes_) return std::nullopt;
  if (table.solve(watch_, threads_, tick_)) return table.chain(ropes_);
  return some_chain(forest, released);
}

/// Finds the dominant schedule by Algorithm 2 of Jin et al. This algorithm needs an exact search for the least peak
/// (exact.h). Unlike the search over the orders of the branches' keys, it does not take longer if there are more such
/// orders. Returns nothing if the forest is too large or the search ends without a proof.
std::optional<Chain> Linearizer::by_cuts(const InForest& forest, std::int64_t released) {
  Expander expander(branches_);
  expander.add_forest(forest, expander.add({0, 0, released}, Ropes::kEmpty), Expander::kOutside);
  const Expansion expansion = expander.finish();
  if (expansion.graph.step_count() > kMostExactSteps) return std::nullopt;
  ExactOptions options;
  options.memory_bytes = memory_bytes_ / 2;
  const auto order = find_schedule_general(expansion.graph, exact_oracle(options, watch_));
  if (!order) return std::nullopt;
  return chain_of(expansion, *order, ropes_);
}

struct Linearizer::Tree {
  KeyTree keys;
  std::vector<BranchId> branches;
  std::vector<BranchId> free;  ///< for each free path of `keys`, the branch whose `before` is this path
  std::int32_t readers = 0;
};

/// Converts the forest to a key tree (KeyTree in device/key_orders.h), in which keys come before their children.
Linearizer::Tree Linearizer::key_tree(const InForest& forest, std::int64_t released) const {
  const auto segments_of = [](const Chain& chain) { return std::vector<core::Segment>(chain.begin(), chain.end()); };
  Tree tree;
  tree.keys.released = released;
  std::vector<std::pair<BranchId, std::int32_t>> waiting;  // each branch, and its parent in the tree
  for (const BranchId id : forest.branches) waiting.emplace_back(id, -1);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const auto [id, parent] = waiting[i];
    const TreeBranch& branch = branches_[id];
    tree.branches.push_back(id);
    tree.keys.keys.push_back({branch.key, segments_of(branch.rest), parent, branch.reads_source});
    tree.readers += branch.reads_source ? 1 : 0;
    if (!branch.before.empty()) {
      tree.keys.free.push_back({segments_of(branch.before), static_cast<std::int32_t>(i)});
      tree.free.push_back(id);
    }
    for (const BranchId child : branch.children) waiting.emplace_back(child, static_cast<std::int32_t>(i));
  }
  return tree;
}

/// Returns a valid schedule without a search. Runs one branch after another; the children of a branch run before its
/// key.
Chain Linearizer::some_chain(const InForest& forest, std::int64_t released) {
  cut_short_ = true;
  const Tree tree = key_tree(forest, released);
  std::int32_t unread = tree.readers;
  Chain chain;
  for (auto id = tree.branches.rbegin(); id != tree.branches.rend(); ++id) {
    const TreeBranch& branch = branches_[*id];
    ChainSegment key = branch.key;
    if (branch.reads_source && --unread == 0) key.drop += released;
    append(chain, branch.before, ropes_);
    append(chain, key, ropes_);
    append(chain, branch.rest, ropes_);
  }
  return chain;
}

/// Searches the orders of the keys (Theorem 7.6). The limit of work is small, because by_cuts() can be faster if there
/// are many orders.
KeyOrdersFound Linearizer::search(const KeyTree& tree) {
  constexpr std::int64_t kQuickWork = 1 << 22;
  core::Limit quick = watch_.rest();
  quick.work = std::min(quick.work, kQuickWork);
  core::Stopwatch quick_watch(quick);
  KeyOrderOptions options;
  const auto keys = static_cast<std::int64_t>(tree.keys.size());
  options.stop = [&](std::int64_t relaxations) { return quick_watch.charge(relaxations * keys).expired(); };
  KeyOrdersFound found;
  if (accelerator_ != nullptr) {
    found = accelerator_->key_orders(tree, options);
  } else {
    core::HostMachine machine(threads_);
    found = search_key_orders(tree, options, machine);
  }
  watch_.charge(quick_watch.work());
  return found;
}

Chain Linearizer::starborescence(const InForest& forest, std::int64_t released) {
  constexpr std::size_t kMostKeys = 200;
  const Tree tree = key_tree(forest, released);
  const auto keys = static_cast<std::int32_t>(tree.keys.keys.size());
  KeyOrdersFound found;
  const bool searched = !watch_.expired_now() && tree.branches.size() <= kMostKeys;
  if (searched) found = search(tree.keys);
  if (!found.complete && !watch_.expired_now()) {
    if (auto chain = by_cuts(forest, released)) return std::move(*chain);
  }
  if (!searched) return some_chain(forest, released);
  cut_short_ = cut_short_ || !found.complete;

  Chain chain;
  std::int32_t unread = tree.readers;
  for (const KeyOrdersFound::Place& step : found.steps) {
    if (step.part >= keys) {
      append(chain, branches_[tree.free[step.part - keys]].before[step.segment], ropes_);
      continue;
    }
    const TreeBranch& branch = branches_[tree.branches[step.part]];
    if (step.segment >= 0) {
      append(chain, branch.rest[step.segment], ropes_);
    } else {
      ChainSegment key = branch.key;
      if (branch.reads_source && --unread == 0) key.drop += released;
      append(chain, key, ropes_);
    }
  }
  return chain;
}

}  // namespace cairn::solvers
