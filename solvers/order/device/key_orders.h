#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"

namespace cairn::solvers {

/// A starborescence between its source and its sink (Definition 7.3 of Jin et al.), given by its keys. A key is a node
/// where paths meet or a node that reads the source; it is stored with the path behind it, up to the next key or the
/// sink. Paths are given by their segments, in bytes, which must be canonical (core::CanonicalProfile).
struct KeyTree {
  struct Key {
    core::Segment key;
    std::vector<core::Segment> rest;  ///< path behind the key
    std::int32_t parent = -1;         ///< the key that waits for this one; its number is lower; -1: the sink waits
    bool reads_source = false;
  };
  /// A path from the source to a key (-1: to the sink) that does not delay the source's release.
  struct Free {
    std::vector<core::Segment> segments;
    std::int32_t parent = -1;
  };
  std::vector<Key> keys;
  std::vector<Free> free;
  std::int64_t released = 0;  ///< bytes freed once all keys that read the source have run
};

struct KeyOrderOptions {
  /// Least number of prefixes that are taken at a time, within what `memory_bytes` allows. At first one is taken, which
  /// is a depth-first search, later one for every 256 tried so far: much larger numbers find good orders later, much
  /// smaller ones are not worth starting threads for. Every number ends with a dominant order.
  std::int64_t least_width = 1;
  std::int64_t most_width = 1 << 13;
  std::int64_t memory_bytes = std::int64_t{256} << 20;  ///< most bytes of waiting prefixes and their data
  std::int64_t least_batch = 512;                       ///< smaller batches of candidates run on the caller's thread
  /// Called on the caller's thread with the work since the last call, in relaxations (a dominant schedule counts as
  /// 16); true ends the search.
  std::function<bool(std::int64_t work)> stop;
};

struct KeyOrdersFound {
  /// A segment of a part. Part k < keys is key k: segment -1 is the key itself, segment i >= 0 is segment i of its
  /// rest. Part keys + f is free path f, of which it names segment i.
  struct Place {
    std::int32_t part, segment;
    bool operator==(const Place&) const = default;
  };
  bool complete = false;           ///< whether `steps` are dominant; if not, they are the best schedule found
  std::vector<std::int32_t> keys;  ///< keys in the order found
  std::vector<Place> steps;        ///< every segment of every part, in the order found
  std::int64_t peak = 0;           ///< peak in bytes above the memory at the beginning
  std::int64_t relaxations = 0;    ///< number of prefixes whose least peak was computed
  std::int64_t dominant = 0;       ///< number of prefixes and whole orders whose dominant schedule was computed
};

/// Finds a dominant schedule (Theorem 7.6 of Jin et al.): tries the orders of the keys that respect the tree, 2^O(d log
/// d) for d readers of the source. A prefix of such an order is a caduceus graph once the rest is relaxed: keys still
/// to come run in parallel chains that do not join, and one of the keys that must still read the source releases it. A
/// prefix is dropped
///
///   - if its least peak is above the best one known, or
///   - if the best schedule known dominates its dominant one, which dominates all that the prefix can lead to, or
///   - if it starts on one of two equal subtrees of one parent before an earlier one: exchanging the two maps any order
///     to one that is not dropped and has the same profiles, level by level of the tree.
///
/// Many prefixes of one length are tried at once, those of the lowest bound first; the search goes on with their
/// children of the lowest bound before it comes back to other prefixes of that length. The same options give the same
/// answer whatever the machine and its number of threads. Throws InputError if a parent's number is not lower, or if
/// there are too many segments.
///
/// (Prefixes of the same keys cannot be compared by their relaxations: an open path may be cut anywhere when the next
/// key comes, and one prefix would have to be better for each of these cuts.)
KeyOrdersFound search_key_orders(const KeyTree& tree, const KeyOrderOptions& options, core::HostMachine& machine);

}  // namespace cairn::solvers
