#include "cairn/solvers/order/internal/bush.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cairn/solvers/order/internal/dominant.h"
#include "cairn/solvers/order/internal/exact.h"
#include "cairn/solvers/order/internal/expansion.h"
#include "cairn/solvers/order/internal/pumpkin_table.h"

namespace cairn::solvers {

/// The limb and all below it, where no release is to be waited for. Deep trees are walked with a stack of our own.
Chain Linearizer::flat(LimbId root) {
  struct Visit {
    LimbId limb;
    std::vector<Chain> parts;
    std::size_t next = 0;
  };
  std::vector<Visit> stack;
  stack.push_back({root, {}, 0});
  for (;;) {
    Visit& visit = stack.back();
    Limb& limb = limbs_[visit.limb];
    if (visit.next < limb.children.size()) {
      stack.push_back({limb.children[visit.next++], {}, 0});
      continue;
    }
    visit.parts.push_back(std::move(limb.before));
    Chain chain = merge(std::move(visit.parts), ropes_);
    if (limb.key.nodes != Ropes::kEmpty) append(chain, limb.key, ropes_);
    append(chain, limb.rest, ropes_);
    stack.pop_back();
    if (stack.empty()) return chain;
    stack.back().parts.push_back(std::move(chain));
  }
}

Chain Linearizer::merge_limbs(const std::vector<LimbId>& limbs) {
  std::vector<Chain> chains;
  for (const LimbId id : limbs) chains.push_back(flat(id));
  return merge(std::move(chains), ropes_);
}

std::optional<Chain> Linearizer::linearize(const Bush& bush, std::int64_t released) {
  cut_short_ = false;
  if (bush.released || released == 0 || bush.limbs.empty()) return merge_limbs(bush.limbs);
  if (bush.limbs.size() == 1) {
    // All paths meet at this key, so what is before it is one bush, and it alone is followed by the rest.
    const Limb& limb = limbs_[bush.limbs.front()];
    Chain chain = limb.before;
    Piece key = limb.key;
    if (limb.reads_source) {
      key.drop += released;
    } else {
      std::optional<Chain> below = linearize({limb.children}, released);
      if (!below) return std::nullopt;
      chain = std::move(*below);
    }
    const Limb& same = limbs_[bush.limbs.front()];
    append(chain, key, ropes_);
    append(chain, same.rest, ropes_);
    return chain;
  }
  const bool chains = std::all_of(bush.limbs.begin(), bush.limbs.end(),
                                  [&](LimbId id) { return limbs_[id].children.empty() && limbs_[id].before.empty(); });
  return chains ? pumpkin(bush, released) : starborescence(bush, released);
}

std::optional<Chain> Linearizer::pumpkin(const Bush& bush, std::int64_t released) {
  const auto is_key_alone = [&](LimbId id) { return limbs_[id].rest.empty(); };
  if (std::all_of(bush.limbs.begin(), bush.limbs.end(), is_key_alone)) {
    // Every order releases the source at its end.
    std::vector<Chain> keys;
    for (const LimbId id : bush.limbs) keys.push_back({limbs_[id].key});
    Chain chain = merge(std::move(keys), ropes_);
    append(chain, {{0, released}, Ropes::kEmpty}, ropes_);
    return chain;
  }
  std::vector<Branch> branches;
  for (const LimbId id : bush.limbs) branches.push_back({limbs_[id].key, limbs_[id].rest});
  if (watch_.expired_now()) return some_chain(bush, released);
  PumpkinTable table(branches, released);
  if (accelerator_ != nullptr && table.is_large()) {
    const PumpkinAnswer::End end = table.solve_on(*accelerator_, watch_, tick_);
    if (end == PumpkinAnswer::End::solved) return table.chain(ropes_);
    if (end == PumpkinAnswer::End::stopped) return some_chain(bush, released);
  }
  needed_bytes_ = table.needed_bytes();
  if (needed_bytes_ > memory_bytes_) return std::nullopt;
  if (table.solve(watch_, threads_, tick_)) return table.chain(ropes_);
  return some_chain(bush, released);
}

/// Algorithm 2 with the exact search, which does not care in which order the keys come.
std::optional<Chain> Linearizer::by_cuts(const Bush& bush, std::int64_t released) {
  Expander expander(limbs_);
  expander.add_bush(bush, expander.add({0, 0, released}, Ropes::kEmpty), Expander::kOutside);
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
  std::vector<LimbId> limbs;  ///< of each key
  std::vector<LimbId> free;   ///< whose `before` each free path is
  std::int32_t readers = 0;   ///< keys that read the source
};

/// Parents before children.
Linearizer::Tree Linearizer::key_tree(const Bush& bush, std::int64_t released) const {
  const auto segments_of = [](const Chain& chain) { return std::vector<core::Segment>(chain.begin(), chain.end()); };
  Tree tree;
  tree.keys.released = released;
  std::vector<std::pair<LimbId, std::int32_t>> waiting;  // and the parent's place
  for (const LimbId id : bush.limbs) waiting.emplace_back(id, -1);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const auto [id, parent] = waiting[i];
    const Limb& limb = limbs_[id];
    tree.limbs.push_back(id);
    tree.keys.keys.push_back({limb.key, segments_of(limb.rest), parent, limb.reads_source});
    tree.readers += limb.reads_source ? 1 : 0;
    if (!limb.before.empty()) {
      tree.keys.free.push_back({segments_of(limb.before), static_cast<std::int32_t>(i)});
      tree.free.push_back(id);
    }
    for (const LimbId child : limb.children) waiting.emplace_back(child, static_cast<std::int32_t>(i));
  }
  return tree;
}

/// Limb by limb, those that others wait for first: what there is without a search.
Chain Linearizer::some_chain(const Bush& bush, std::int64_t released) {
  cut_short_ = true;
  const Tree tree = key_tree(bush, released);
  std::int32_t unread = tree.readers;
  Chain chain;
  for (auto id = tree.limbs.rbegin(); id != tree.limbs.rend(); ++id) {
    const Limb& limb = limbs_[*id];
    Piece key = limb.key;
    if (limb.reads_source && --unread == 0) key.drop += released;
    append(chain, limb.before, ropes_);
    append(chain, key, ropes_);
    append(chain, limb.rest, ropes_);
  }
  return chain;
}

/// Theorem 7.6 while it is quick.
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

Chain Linearizer::starborescence(const Bush& bush, std::int64_t released) {
  constexpr std::size_t kMostKeys = 200;  // far beyond what key orders can be tried for
  const Tree tree = key_tree(bush, released);
  const auto keys = static_cast<std::int32_t>(tree.keys.keys.size());
  KeyOrdersFound found;
  const bool searched = !watch_.expired_now() && tree.limbs.size() <= kMostKeys;
  if (searched) found = search(tree.keys);
  if (!found.complete && !watch_.expired_now()) {
    if (auto chain = by_cuts(bush, released)) return std::move(*chain);
  }
  if (!searched) return some_chain(bush, released);
  cut_short_ = cut_short_ || !found.complete;

  Chain chain;
  std::int32_t unread = tree.readers;
  for (const KeyOrdersFound::Step& step : found.steps) {
    if (step.part >= keys) {
      append(chain, limbs_[tree.free[step.part - keys]].before[step.segment], ropes_);
      continue;
    }
    const Limb& limb = limbs_[tree.limbs[step.part]];
    if (step.segment >= 0) {
      append(chain, limb.rest[step.segment], ropes_);
    } else {
      Piece key = limb.key;
      if (limb.reads_source && --unread == 0) key.drop += released;
      append(chain, key, ropes_);
    }
  }
  return chain;
}

}  // namespace cairn::solvers
