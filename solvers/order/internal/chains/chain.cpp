// Merges parallel chains into one chain in their dominant order, i.e. the order that dominates all others (chain.h). An
// order dominates another one if the two memory profiles can be walked at such speeds that the first is never above the
// second (core/dominance.h). A chain is stored by the segments of its memory profile.

#include "cairn/solvers/order/internal/chains/chain.h"

#include <algorithm>

namespace cairn::solvers {

void Ropes::flatten(Id rope, std::vector<core::NodeId>& out) const {
  if (rope == kEmpty) return;
  std::vector<Id> pending{rope};
  while (!pending.empty()) {
    const auto [left, right] = ropes_[pending.back()];
    pending.pop_back();
    if (right == kEmpty) {
      out.push_back(~left);
    } else {
      pending.push_back(right);
      pending.push_back(left);
    }
  }
}

void append(Chain& chain, const ChainSegment& next, Ropes& ropes) {
  core::append_segment(chain, next, [&](ChainSegment& a, const ChainSegment& b) {
    static_cast<core::Segment&>(a) = core::joined(a, b);
    a.nodes = ropes.concatenate(a.nodes, b.nodes);
  });
}

void append(Chain& chain, const Chain& rest, Ropes& ropes) {
  for (const ChainSegment& piece : rest) append(chain, piece, ropes);
}

Chain merge(std::vector<Chain> parts, Ropes& ropes) {
  const auto before = [](const ChainSegment& a, const ChainSegment& b) { return core::sorts_before(a, b); };
  const auto shorter = [](const Chain& a, const Chain& b) { return a.size() < b.size(); };
  const auto longest = std::max_element(parts.begin(), parts.end(), shorter);
  if (longest == parts.end()) return {};
  Chain merged = std::move(*longest);
  longest->clear();
  // Sorting keeps the order of segments within each chain, because every segment of a chain sorts before the next one
  // (Lemma 6.7 of Jin et al.).
  Chain others;
  for (const Chain& part : parts) others.insert(others.end(), part.begin(), part.end());
  if (others.empty()) return merged;
  std::stable_sort(others.begin(), others.end(), before);
  // Some segments of the longest chain come before all segments of the other chains; these are not touched. So merging
  // short chains into a long one again and again, as in deep trees, takes little time.
  const auto touched = std::upper_bound(merged.begin(), merged.end(), others.front(), before);
  const Chain tail(touched, merged.end());
  merged.erase(touched, merged.end());
  auto next = others.begin();
  for (const ChainSegment& piece : tail) {
    while (next != others.end() && before(*next, piece)) append(merged, *next++, ropes);
    append(merged, piece, ropes);
  }
  while (next != others.end()) append(merged, *next++, ropes);
  return merged;
}

std::vector<core::NodeId> nodes_of(const Chain& chain, const Ropes& ropes) {
  std::vector<core::NodeId> nodes;
  for (const ChainSegment& piece : chain) ropes.flatten(piece.nodes, nodes);
  return nodes;
}

}  // namespace cairn::solvers
