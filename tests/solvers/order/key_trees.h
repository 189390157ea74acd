#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/tests/support/random_graph.h"

/// These functions make random trees of keys (KeyTree), for tests and benchmarks. A key is a node at which paths meet.
namespace cairn::tests {

/// Returns a random tree of keys without sizes. `readers` paths start at the source. Up to `meetings` times, two or
/// three paths meet at a key and continue as one path. The remaining paths end at the sink. A parent has a lower number
/// than its children.
inline solvers::KeyTree key_tree_shape(Random& random, int readers, int meetings) {
  std::vector<std::int32_t> parents(static_cast<std::size_t>(readers), -1), ends;
  for (int k = 0; k < readers; ++k) ends.push_back(k);
  for (int i = 0; i < meetings && ends.size() > 1; ++i) {
    const auto meeting = static_cast<std::int32_t>(parents.size());
    parents.push_back(-1);
    random.shuffle(ends);
    for (std::size_t count = random.chance(25) && ends.size() > 2 ? 3 : 2; count > 0; --count) {
      parents[static_cast<std::size_t>(ends.back())] = meeting;
      ends.pop_back();
    }
    ends.push_back(meeting);
  }
  // The numbers are reversed, because parents were made after their children but must come before them.
  const auto count = static_cast<std::int32_t>(parents.size());
  solvers::KeyTree tree;
  tree.keys.resize(parents.size());
  for (std::int32_t k = 0; k < count; ++k) {
    solvers::KeyTree::Key& key = tree.keys[static_cast<std::size_t>(count - 1 - k)];
    const std::int32_t parent = parents[static_cast<std::size_t>(k)];
    key.parent = parent < 0 ? -1 : count - 1 - parent;
    key.reads_source = k < readers;
  }
  return tree;
}

/// Returns a random tree of keys with sizes as in a computation graph. The path after a key has at most `longest_path`
/// nodes. A key reads the last outputs of its children's paths and frees them.
inline solvers::KeyTree random_key_tree(Random& random, int readers, int meetings, std::int64_t longest_path) {
  solvers::KeyTree tree = key_tree_shape(random, readers, meetings);
  tree.released = random.between(1, 100);
  // Holds, for each key, the bytes of the last outputs of its children's paths.
  std::vector<std::int64_t> left(tree.keys.size(), 0);
  for (std::size_t k = tree.keys.size(); k-- > 0;) {
    solvers::KeyTree::Key& key = tree.keys[k];
    std::int64_t size = random.between(1, 100);
    key.key = {size, left[k]};
    for (std::int64_t nodes = random.between(0, longest_path); nodes > 0; --nodes) {
      const std::int64_t next = random.between(1, 100);
      core::append_segment(key.rest, {next, size});
      size = next;
    }
    if (key.parent >= 0) left[static_cast<std::size_t>(key.parent)] += size;
  }
  return tree;
}

}  // namespace cairn::tests
