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

/// A schedule in which repeated parts are stored once. It consists of lists; an entry of a list is a node or a call of
/// another list.
class CompressedSchedule {
 public:
  /// Appends a list and returns its number. All lists that its entries call must have been added before.
  std::int32_t add(const std::vector<std::int32_t>& entries);
  /// Returns the entry that calls a list.
  static constexpr std::int32_t call(std::int32_t list) { return ~list; }
  /// Returns the number of steps of a list with all calls expanded. Returns at most 2^61.
  std::int64_t length(std::int32_t list) const { return lengths_[list]; }
  /// Returns the number of stored entries of all lists.
  std::int64_t entry_count() const { return static_cast<std::int64_t>(entries_.size()); }
  std::int32_t list_count() const { return static_cast<std::int32_t>(lengths_.size()); }
  /// Calls visit(node) for each step of the list, from the last to the first. O(length + lists visited).
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

/// Measures of a compressed schedule.
struct PathScheduleMeasures {
  std::int64_t length = 0;
  std::int64_t cost = 0;
  std::int64_t peak = 0;  ///< bytes
};

/// Builds schedules by Algorithm 3 (PWRemat) of Kumar et al. 2019 on a path decomposition with a spine (spine.h).
/// docs/treewidth.md says how Cairn reads the algorithm. A schedule runs a node only if its outputs need the node and
/// the node's value is not in memory. A node is given by its index on the spine. Uses one thread.
class PathScheduler {
 public:
  /// Prepares the schedules of a graph. `spine` may have any topological order and any path decomposition of the graph.
  /// If the decomposition was not made by Algorithm 2, the schedules are valid but their length is not bounded.
  PathScheduler(const core::Graph& graph, const Spine& spine);

  /// Builds the schedule of PWRemat(k), whose recursion stops at fewer than k bags. The algorithm divides at the middle
  /// bag X_{b/2}. This function instead takes the bag of fewest bytes among the bags at most `slack` * b bags away from
  /// the middle. Returns the number of the list of the whole schedule. Returns nothing if the watch expired or the
  /// lists would have more than `most_entries` entries in total.
  std::optional<std::int32_t> build(std::int64_t k, double slack, std::int64_t most_entries, core::Stopwatch& watch);
  /// Returns the lists that the last build() made.
  const CompressedSchedule& program() const { return program_; }

  /// Measures a schedule by going through it from its end to its start. If `drop_unread`, leaves out every step whose
  /// values are not read later. If `steps` is given, stores the remaining steps there. O(length * in-degree) time. O(n)
  /// memory, not counting `steps`.
  PathScheduleMeasures measure(std::int32_t list, bool drop_unread, std::vector<core::NodeId>* steps = nullptr) const;

 private:
  /// A node x of the set X (Algorithm 3). `also` lists nodes that x does not read, but whose values must be in memory
  /// when x runs.
  struct Item {
    std::int32_t node;
    std::vector<std::int32_t> also;
  };
  /// Items divided by where their nodes run.
  /// - before: items that run up to the last node of the middle bag.
  /// - lower: items that run after that last node.
  /// - outer: items that run on the outer side of the middle bag.
  struct Halves {
    std::vector<Item> before, lower, outer;
  };
  /// The bags lo + 1 ... hi - 1. They lie on one side of the bag that contains X.
  struct Side {
    std::int32_t lo, hi;
    bool right;  ///< whether the bag that contains X is at lo; otherwise it is at hi
    bool holds(const BagInterval& interval) const { return lo < interval.first && interval.last < hi; }
    Side inner(std::int32_t middle) const { return right ? Side{lo, middle, true} : Side{middle, hi, false}; }
    Side outer(std::int32_t middle) const { return right ? Side{middle, hi, true} : Side{lo, middle, false}; }
  };
  /// A decomposition restricted to some nodes. Bags that are contained in another bag are left out. `places` are the
  /// indices of the remaining bags, ascending.
  struct Bags {
    std::vector<std::int32_t> places;
    std::vector<std::int64_t> bytes;  ///< bytes of the nodes of each bag
    std::int64_t most_bytes = 0;
  };

  bool stop();
  Bags bags_of(const std::vector<std::int32_t>& nodes);
  std::vector<std::int32_t> at(const std::vector<std::int32_t>& nodes, std::int32_t bag) const;
  /// Returns those of `nodes` and of their ancestors within the side whose values are not in memory, ascending.
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
  /// Interval of bags of each node, by index on the spine. The arrays below are indexed in the same way.
  std::vector<BagInterval> intervals_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int32_t> input_begin_, inputs_;
  std::int32_t bag_count_ = 0;

  std::int64_t k_ = 1, most_entries_ = 0;
  double slack_ = 0;
  core::Stopwatch* watch_ = nullptr;
  bool stopped_ = false;
  CompressedSchedule program_;
  std::vector<std::uint8_t> known_;
  std::vector<std::int32_t> wanted_;  ///< number of pending calls that need the node's value in memory at their end
  std::vector<std::uint32_t> stamp_;
  std::uint32_t current_ = 0;
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  /// Number of the list for a call, by a hash of the call's nodes and targets.
  std::unordered_map<Key, std::int32_t, KeyHash> lists_;
  // Scratch memory.
  /// begins_, ends_: bags, each with the bytes of an interval that begins or ends there.
  std::vector<std::pair<std::int32_t, std::int64_t>> begins_, ends_;
  std::vector<std::int32_t> last_reader_;
};

}  // namespace cairn::solvers
