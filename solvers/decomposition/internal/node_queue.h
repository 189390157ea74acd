#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Keeps nodes in a binary heap, in which their keys can change. The node with the least key comes first; among equal
/// keys, the node of lowest rank. update() and erase() take O(log n) for n nodes.
class NodeQueue {
 public:
  using Key = std::pair<std::int64_t, std::int64_t>;

  /// Makes a heap of the nodes v from 0 to n - 1 with the keys key_of(v). `rank` has one entry per node.
  template <class KeyOf>
  NodeQueue(core::NodeId n, const KeyOf& key_of, std::vector<core::NodeId> rank)
      : keys_(n), rank_(std::move(rank)), heap_(n), place_(n) {
    for (core::NodeId v = 0; v < n; ++v) {
      keys_[v] = key_of(v);
      heap_[v] = place_[v] = v;
    }
    for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
  }

  bool empty() const { return heap_.empty(); }
  core::NodeId top() const { return heap_.front(); }

  void update(core::NodeId v, Key key) {
    if (keys_[v] == key) return;
    const bool lower = key < keys_[v];
    keys_[v] = key;
    lower ? rise(place_[v]) : sink(place_[v]);
  }

  void erase(core::NodeId v) {
    const std::size_t at = place_[v];
    const core::NodeId last = heap_.back();
    heap_.pop_back();
    if (last == v) return;
    put(at, last);
    rise(at);
    sink(place_[last]);
  }

 private:
  bool before(core::NodeId a, core::NodeId b) const {
    return std::tie(keys_[a], rank_[a]) < std::tie(keys_[b], rank_[b]);
  }
  void put(std::size_t at, core::NodeId v) {
    heap_[at] = v;
    place_[v] = static_cast<core::NodeId>(at);
  }
  void rise(std::size_t at) {
    const core::NodeId v = heap_[at];
    for (; at > 0 && before(v, heap_[(at - 1) / 2]); at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
    put(at, v);
  }
  void sink(std::size_t at) {
    const core::NodeId v = heap_[at];
    for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], v)) break;
      put(at, heap_[child]);
    }
    put(at, v);
  }

  std::vector<Key> keys_;
  std::vector<core::NodeId> rank_;
  std::vector<core::NodeId> heap_;
  std::vector<core::NodeId> place_;
};

}  // namespace cairn::solvers
