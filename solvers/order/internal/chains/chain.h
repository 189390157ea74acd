#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Stores sequences of nodes (ropes). A sequence is a binary tree, and its subtrees can be shared with other sequences,
/// so that concatenation takes O(1).
class Ropes {
 public:
  using Id = std::int32_t;
  static constexpr Id kEmpty = -1;

  Id leaf(core::NodeId node) { return add(~node, kEmpty); }
  Id concatenate(Id a, Id b) {
    if (a == kEmpty) return b;
    return b == kEmpty ? a : add(a, b);
  }
  void flatten(Id rope, std::vector<core::NodeId>& out) const;

 private:
  Id add(Id left, Id right) {
    ropes_.emplace_back(left, right);
    return static_cast<Id>(ropes_.size() - 1);
  }
  /// The two sequences of which each sequence consists; (~node, kEmpty) for a sequence of one node.
  std::vector<std::pair<Id, Id>> ropes_;
};

struct ChainSegment : core::Segment {
  Ropes::Id nodes = Ropes::kEmpty;
};
/// Stores a path by the segments of its memory profile, each a rise to a peak followed by a drop (core::Segment). The
/// path is a path of the graph, or a part of the graph that was turned into a path (Lemma 5.4 of Jin et al.).
using Chain = std::vector<ChainSegment>;

/// Appends the segment `next` to a chain. Merges it with the segments before it as long as they form one segment of the
/// profile.
void append(Chain& chain, const ChainSegment& next, Ropes& ropes);
void append(Chain& chain, const Chain& rest, Ropes& ropes);

/// Merges parallel chains into one in their dominant order, i.e. the order whose memory profile dominates all others
/// (Theorem 6.8 of Jin et al.; core/dominance.h). Takes O(s log s + t) time, where s is the number of segments of all
/// chains but the longest, and t the number of segments of the longest chain that come after the first inserted
/// segment.
Chain merge(std::vector<Chain> parts, Ropes& ropes);

std::vector<core::NodeId> nodes_of(const Chain& chain, const Ropes& ropes);

}  // namespace cairn::solvers
