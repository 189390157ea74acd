#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"

namespace cairn::solvers {

/// Describes a starborescence (Definition 7.3 of Jin et al.): a part of a graph whose paths leave its source, meet one
/// after another, and end in a single path to its sink. The starborescence is given by its keys. A key is a node where
/// paths meet, or a node that reads the source. A key is stored with the path after it, which ends before the next key
/// or the sink. Paths are given by their segments, in bytes, which must be canonical (core::CanonicalProfile).
struct KeyTree {
  struct Key {
    core::Segment key;
    std::vector<core::Segment> rest;  ///< path after the key
    /// Number of the key at which the path after this key ends, which must be lower than the number of this key. -1:
    /// the path ends at the sink.
    std::int32_t parent = -1;
    bool reads_source = false;
  };
  /// A path from the source to the key `parent`, or to the sink if `parent` is -1. Such a path does not decide when the
  /// source's bytes are freed.
  struct Free {
    std::vector<core::Segment> segments;
    std::int32_t parent = -1;
  };
  std::vector<Key> keys;
  std::vector<Free> free;
  std::int64_t released = 0;  ///< bytes that are freed once all keys that read the source have run
};

struct KeyOrderOptions {
  /// Least number of prefixes of orders that are extended at once, if `memory_bytes` allows it. The number extended at
  /// once also grows by one for every 256 prefixes tried. With 1, the search begins as a depth-first search. With much
  /// larger numbers, good orders are found later; with small ones, threads can be idle. Any number gives a dominant
  /// order (search_key_orders()).
  std::int64_t least_width = 1;
  std::int64_t most_width = 1 << 13;
  /// Largest number of bytes for waiting prefixes and their data.
  std::int64_t memory_bytes = std::int64_t{256} << 20;
  std::int64_t least_batch = 512;  ///< batches of fewer candidates (prefixes to evaluate) run on the caller's thread
  /// Called on the caller's thread with the work done since the last call. If the function returns true, the search
  /// ends. A relaxation (search_key_orders()) counts as 1, a dominant schedule as 16.
  std::function<bool(std::int64_t work)> stop;
};

struct KeyOrdersFound {
  /// A segment of a part, where the parts are the keys and the free paths. With K keys, part k < K is key k. Its
  /// segment -1 is the key itself; its segment i >= 0 is segment i of `rest`. Part K + f is free path f, with the
  /// segments i >= 0.
  struct Place {
    std::int32_t part, segment;
    bool operator==(const Place&) const = default;
  };
  bool complete = false;           ///< whether `steps` is dominant; if not, `steps` is the best schedule found
  std::vector<std::int32_t> keys;  ///< the keys, in the order that was found
  std::vector<Place> steps;        ///< every segment of every part, in the order found
  std::int64_t peak = 0;           ///< peak in bytes above the memory at the beginning
  std::int64_t relaxations = 0;    ///< number of prefixes whose least peak was computed
  std::int64_t dominant = 0;       ///< number of prefixes and whole orders whose dominant schedule was computed
};

/// Finds a dominant schedule (Theorem 7.6 of Jin et al.), i.e. one that dominates all other schedules. A schedule
/// dominates another one if the two memory profiles can be walked at such speeds that the first is never above the
/// second (core/dominance.h). Tries the orders of the keys that respect the tree, of which there are 2^O(d log d) for d
/// readers of the source. Orders are built from prefixes. The relaxation of a prefix is a caduceus graph in which the
/// keys that are not in the prefix run in parallel chains that do not join. In this graph, one of the keys outside the
/// prefix frees the source's bytes, even if several of them must still read the source. A prefix is dropped in each of
/// these cases:
///
/// - The least peak of the relaxation is above the best known peak.
/// - The best known schedule dominates the dominant schedule of the relaxation. That schedule of the relaxation in turn
/// dominates every schedule that begins with the prefix.
/// - Two equal subtrees have the same parent, and the prefix starts the second before the first. Exchanging the two
/// subtrees gives an order with the same profile, which is not dropped.
///
/// Many prefixes of one length are extended at once, the prefixes with the lowest bounds first. The search continues
/// with the children of these prefixes before it returns to other prefixes of that length. The same options give the
/// same answer on every machine and with any number of threads. Throws InputError if the number of a parent is not
/// lower than the number of its child, or if there are too many segments.
///
/// Prefixes of the same keys are not compared with each other by their relaxations, because the next key can run at any
/// point of an unfinished path, and a prefix would have to be better at each of these points.
KeyOrdersFound search_key_orders(const KeyTree& tree, const KeyOrderOptions& options, core::HostMachine& machine);

}  // namespace cairn::solvers
