#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/decomposition/spine.h"
#include "cairn/solvers/remat/kumar/interleaved.h"

namespace cairn::solvers {

/// Stores a schedule so that repeated parts are stored only once. The schedule consists of lists. An entry of a list is
/// either a node or a call of another list, which stands for the steps of that list.
class CompressedSchedule {
 public:
  /// Appends a list and returns its number. The lists that its entries call must have been added before.
  std::int32_t add(const std::vector<std::int32_t>& entries);
  static constexpr std::int32_t call(std::int32_t list) { return ~list; }
  /// Returns the number of steps of a list when all calls are expanded, but at most 2^61.
  std::int64_t length(std::int32_t list) const { return lengths_[list]; }
  std::int64_t entry_count() const { return static_cast<std::int64_t>(entries_.size()); }
  std::int32_t list_count() const { return static_cast<std::int32_t>(lengths_.size()); }
  /// Calls visit(node) for each step of the list, from the last to the first. O(steps + calls).
  template <class Visit>
  void for_each_backwards(std::int32_t list, const Visit& visit) const {
    std::vector<std::pair<std::size_t, std::size_t>> open{{begin_[list], begin_[list + 1]}};
    while (!open.empty()) {
      auto& [begin, end] = open.back();
      if (begin == end) {
        open.pop_back();
        continue;
      }
      const std::int32_t entry = entries_[--end];
      if (entry >= 0) {
        visit(entry);
      } else {
        open.emplace_back(begin_[~entry], begin_[~entry + 1]);
      }
    }
  }

 private:
  std::vector<std::int32_t> entries_;
  std::vector<std::size_t> begin_{0};
  std::vector<std::int64_t> lengths_;
};

struct PathScheduleMeasures {
  std::int64_t length = 0;
  std::int64_t cost = 0;
  std::int64_t peak = 0;  ///< bytes
};

/// Builds schedules by Algorithm 3 (PWRemat) of Kumar et al. 2019 on a path decomposition with a spine (spine.h). A
/// path decomposition is a sequence of bags, which are sets of nodes. Each node is in an interval of consecutive bags.
/// A spine is a topological order of all nodes in which consecutive nodes share a bag. The algorithm divides the
/// sequence of bags at a middle bag and recurses on the bags before it and on the bags after it. docs/treewidth.md says
/// how Cairn reads the algorithm.
///
/// A call of compute() computes the values of some nodes, its targets. It runs only nodes that the targets need and
/// whose values are not in memory. In this class, a node is given by its index on the spine. Uses one thread.
class PathScheduler {
 public:
  /// Prepares build() for a graph. `spine` may contain any topological order and any path decomposition of the graph.
  /// If the decomposition was not made by Algorithm 2 of Kumar et al., the schedules are valid but may be longer than
  /// their theorem says.
  PathScheduler(const core::Graph& graph, const Spine& spine);

  /// Builds the schedule of PWRemat(k), whose recursion stops at fewer than k bags. Of b bags, the paper takes X_{b/2}
  /// as the middle bag. This function instead takes the bag of fewest bytes among the bags at most `slack * b` bags
  /// away from X_{b/2}. Returns the number of the list of the whole schedule in program(). Returns nothing if the watch
  /// expired or the lists would have more than `most_entries` entries in total.
  std::optional<std::int32_t> build(std::int64_t k, double slack, std::int64_t most_entries, core::Stopwatch& watch);
  const CompressedSchedule& program() const { return program_; }

  /// Measures a schedule by going through it from its end to its start. If `drop_unread`, leaves out each step whose
  /// outputs are not read later. If `steps` is not null, stores the remaining steps there. Takes O(length * in-degree)
  /// time and, apart from `steps`, O(n) memory for n nodes.
  PathScheduleMeasures measure(std::int32_t list, bool drop_unread, std::vector<core::NodeId>* steps = nullptr) const;

 private:
  /// Describes a node x of the set X of an interleaved schedule. `also` lists nodes that x does not read, but whose
  /// values must be in memory when x runs.
  struct Item {
    std::int32_t node;
    std::vector<std::int32_t> also;
  };
  /// Holds the items of a call of interleaved(), divided for the recursion at a middle bag. The bags between the middle
  /// bag and the bag that contains X form the inner side. The bags beyond the middle bag form the outer side.
  /// - before: the nodes of the middle bag, and all items up to the last node of `outer`. Before each of them, a call
  ///   of compute() makes the node's missing inputs on the inner side.
  /// - lower: the items after the last node of `outer`, for a recursive call on the inner side.
  /// - outer: the nodes of the middle bag, and the items in that bag, for a recursive call on the outer side.
  struct Halves {
    std::vector<Item> before, lower, outer;
  };
  /// Stands for the bags lo + 1 ... hi - 1, which lie on one side of the bag that contains X. A middle bag divides a
  /// side into an inner part, next to the bag that contains X, and an outer part.
  struct Side {
    std::int32_t lo, hi;
    bool right;  ///< whether the bag that contains X is at `lo`; otherwise it is at `hi`
    bool holds(const BagInterval& interval) const { return lo < interval.first && interval.last < hi; }
    Side inner(std::int32_t middle) const { return right ? Side{lo, middle, true} : Side{middle, hi, false}; }
    Side outer(std::int32_t middle) const { return right ? Side{middle, hi, true} : Side{lo, middle, false}; }
  };
  /// Describes the decomposition with only some of the nodes in its bags. A bag is left out if its remaining nodes are
  /// a subset of another bag. `places` has the indices of the remaining bags, ascending.
  struct Bags {
    std::vector<std::int32_t> places;
    std::vector<std::int64_t> bytes;  ///< total bytes of the nodes of each bag
    std::int64_t most_bytes = 0;
  };

  bool stop();
  Bags bags_of(const std::vector<std::int32_t>& nodes);
  std::vector<std::int32_t> at(const std::vector<std::int32_t>& nodes, std::int32_t bag) const;
  /// Returns the given nodes and their ancestors on the given side, ascending. Leaves out ancestors whose values are in
  /// memory.
  std::vector<std::int32_t> with_ancestors(std::vector<std::int32_t> nodes, const Side& side);
  std::int32_t compute(const std::vector<std::int32_t>& targets);
  std::vector<std::int32_t> steps_for(const std::vector<std::int32_t>& targets, const std::vector<std::int32_t>& nodes);
  InterleavedSchedule interleaved(const std::vector<Item>& items, const Side& side);
  Halves divide(const std::vector<Item>& items, const std::vector<std::int32_t>& in_middle, std::int32_t middle,
                const Side& outer) const;
  std::int64_t bytes_in_order(const std::vector<std::int32_t>& nodes, const std::vector<Item>& items);
  void forget(const std::vector<std::int32_t>& nodes);

  const core::Graph& graph_;
  std::vector<core::NodeId> order_;
  /// Interval of the bags that contain a node. All arrays of this class with one entry per node are indexed by the
  /// node's index on the spine.
  std::vector<BagInterval> intervals_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int32_t> input_begin_, inputs_;
  std::int32_t bag_count_ = 0;

  std::int64_t k_ = 1, most_entries_ = 0;
  double slack_ = 0;
  core::Stopwatch* watch_ = nullptr;
  bool stopped_ = false;
  CompressedSchedule program_;
  /// Whether the node's value is in memory at the current point of the construction.
  std::vector<std::uint8_t> known_;
  std::vector<std::int32_t> wanted_;  ///< number of calls in progress that need the node's value in memory at their end
  std::vector<std::uint32_t> stamp_;
  std::uint32_t current_ = 0;
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  /// Maps a call of compute() to the number of its list. The key is a hash of the nodes that the call runs and of its
  /// targets.
  std::unordered_map<Key, std::int32_t, KeyHash> lists_;
  // The next members are temporary data.
  /// Pairs of the position at which an interval begins or ends, and the bytes of its node.
  std::vector<std::pair<std::int32_t, std::int64_t>> begins_, ends_;
  std::vector<std::int32_t> last_reader_;
};

}  // namespace cairn::solvers
