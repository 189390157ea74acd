#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "solvers/limit.h"
#include "solvers/order/internal/chain.h"
#include "solvers/order/internal/segment_caduceus.h"

namespace cairn::solvers {

/// An in-tree between a source and a sink, by its limbs.
struct KeyTree {
  struct Key {
    core::Segment key;
    const Chain* rest = nullptr;
    std::int32_t parent = -1;  ///< -1: the sink
    std::int32_t children = 0;
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

/// Theorem 7.6: tries the orders of the keys that respect the tree. A prefix of such an order is a caduceus graph once
/// the rest is relaxed: what still must come runs in chains side by side that join nobody, and one of the keys that
/// must still read the source releases it. Its peak is a bound; its dominant schedule, where the best one so far
/// dominates it, another. Orders with the lower bound are tried first. 2^O(d log d) orders for d readers of the source.
class KeyOrders {
 public:
  KeyOrders(const KeyTree& tree, Stopwatch& watch);

  /// Searches all orders; false if the watch expired first. There is a best one in any case.
  bool search();

  /// The dominant schedule found: which segment of which part comes when. Part k < keys: the key itself (segment -1) or
  /// segment i of its rest; part keys + f: segment i of free chain f.
  struct Step {
    std::int32_t part, segment;
  };
  const std::vector<Step>& best() const { return best_steps_; }

 private:
  struct Child {
    std::int64_t peak;
    std::int32_t key;
  };
  void build(bool keep_steps);
  void descend();
  void offer();
  std::vector<core::Segment> segments_of(const std::vector<SegmentCaduceus::Id>& order) const;
  core::Segment key_segment(std::int32_t key, bool releases) const;

  const KeyTree& tree_;
  Stopwatch& watch_;
  SegmentCaduceus caduceus_;
  std::vector<std::int32_t> order_;     ///< of the keys placed so far
  std::vector<std::int32_t> position_;  ///< of a key in order_, -1 for none
  std::vector<std::int32_t> waiting_;   ///< children of a key not yet placed
  std::int32_t unread_ = 0;             ///< keys that read the source and are not yet placed
  std::vector<Step> steps_;             ///< by id of the caduceus
  std::vector<Step> best_steps_;
  std::vector<core::Segment> best_;  ///< canonical
  std::int64_t best_peak_ = std::numeric_limits<std::int64_t>::max();
  bool complete_ = true;
};

}  // namespace cairn::solvers
