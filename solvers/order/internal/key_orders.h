#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/device/accelerator.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/internal/chain.h"

namespace cairn::solvers {

/// An in-tree between a source and a sink, by its limbs. Parents come before their children.
struct KeyTree {
  struct Key {
    core::Segment key;
    const Chain* rest = nullptr;
    std::int32_t parent = -1;  ///< -1: the sink
    bool reads_source = false;
  };
  /// A path from the source to a key (-1: to the sink) that the source does not wait for.
  struct Free {
    const Chain* chain = nullptr;
    std::int32_t parent = -1;
  };
  std::vector<Key> keys;
  std::vector<Free> free;
  std::int64_t released = 0;  ///< once all keys that read the source have run

  std::int32_t reader_count() const;  ///< keys that read the source
};

/// Theorem 7.6 on such a tree: sim::search_key_orders under a watch.
class KeyOrders {
 public:
  /// On `threads` threads, or on the accelerator if there is one, once the search is wide enough.
  KeyOrders(const KeyTree& tree, core::Stopwatch& watch, int threads, sim::Accelerator* accelerator);

  /// Searches all orders; false if the watch expired first. There is a best one in any case.
  bool search();

  /// The dominant schedule found: which segment of which part comes when.
  using Step = sim::KeyOrdersFound::Step;
  const std::vector<Step>& best() const { return found_.steps; }

 private:
  sim::KeyTree tree_;
  core::Stopwatch& watch_;
  int threads_;
  sim::Accelerator* accelerator_;
  sim::KeyOrdersFound found_;
};

}  // namespace cairn::solvers
