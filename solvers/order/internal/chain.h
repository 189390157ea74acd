#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Sequences of nodes, stored as trees that share their parts. Concatenation takes O(1). The nodes of a sequence are
/// listed only at the end.
class Ropes {
 public:
  using Id = std::int32_t;
  static constexpr Id kEmpty = -1;

  Id leaf(core::NodeId node) { return add(~node, kEmpty); }
  Id concatenate(Id a, Id b) {
    if (a == kEmpty) return b;
    return b == kEmpty ? a : add(a, b);
  }
  /// Appends the nodes of `rope` to `out`. O(number of nodes).
  void flatten(Id rope, std::vector<core::NodeId>& out) const;

 private:
  Id add(Id left, Id right) {
    ropes_.emplace_back(left, right);
    return static_cast<Id>(ropes_.size() - 1);
  }
  /// The two halves of each sequence. A sequence of one node is stored as (~node, kEmpty).
  std::vector<std::pair<Id, Id>> ropes_;
};

/// A segment of a chain's profile, and the nodes that run during that segment.
struct ChainSegment : core::Segment {
  Ropes::Id nodes = Ropes::kEmpty;
};
/// A path of the graph, given by the segments of its profile. The path can also stand for a part of the graph that was
/// turned into a path (Lemma 5.4).
using Chain = std::vector<ChainSegment>;

void append(Chain& chain, const ChainSegment& next, Ropes& ropes);
void append(Chain& chain, const Chain& rest, Ropes& ropes);

/// Merges parallel chains into one (Theorem 6.8 of Jin et al.). Let s be the number of segments in all chains except
/// the longest. Takes O(s log s), plus the number of segments of the longest chain behind the first position at which
/// another chain's segment is inserted.
Chain merge(std::vector<Chain> parts, Ropes& ropes);

std::vector<core::NodeId> nodes_of(const Chain& chain, const Ropes& ropes);

}  // namespace cairn::solvers
