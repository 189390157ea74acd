#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

/// Represents Algorithm 1 (TWRemat) of Kumar et al. 2019 as a program of procedures. The algorithm recurses on the
/// parts of a separator tree (SeparatorTree). A part is a set of nodes. It consists of its separator and of its
/// children, which are the components that remain without the separator. A call of the algorithm has two arguments: a
/// part, and the *wanted* nodes, which are the nodes of the part whose values the caller needs.
///
/// There is one procedure for each pair of arguments, created when it is first called. A procedure is a list of items:
/// a separator node to run, or a procedure to call. So the length of the schedule is known without writing it out. Its
/// steps can be enumerated in either direction, with memory only for the recursion. A part has at most one procedure
/// for each separator node of a larger part that reads from this part. So all procedures together have at most O(w n
/// log^2 n) items for width w and n nodes.
///
/// The schedule is never longer than the schedule of Algorithm 1 as printed, for two reasons. First, a node runs only
/// if the wanted nodes need it. Second, calls are joined. Algorithm 1 calls a component for the inputs of each
/// separator node, and once more at the end for its wanted nodes. If the wanted nodes can already be computed during
/// one of the earlier calls, this call computes them too, and the call at the end is not made. Wanted values then stay
/// in memory longer. This adds M_in, the largest total size of the inputs of one node, to the peak of Theorem 5.
class TwProgram {
 public:
  /// Graph and separators must outlive the object.
  TwProgram(const core::Graph& graph, const SeparatorTree& separators);

  /// Computes the number of steps of TWRemat(k). The recursion ends at parts of fewer than k bags; the nodes of such a
  /// part run in the input order. A result of kAnyLength stands for this length or more. Returns nothing if the watch
  /// expired.
  std::optional<std::int64_t> length(std::int64_t k, core::Stopwatch& watch);
  static constexpr std::int64_t kAnyLength = std::int64_t{1} << 60;

  /// The schedule of TWRemat(k) without steps whose outputs are never read, and without repeated runs of pinned nodes.
  struct Trimmed {
    std::int64_t k = 0;
    std::int64_t length = 0;  ///< number of steps of TWRemat(k), before trimming
    std::int64_t steps = 0;   ///< number of steps after trimming
    /// Peak in bytes and cost in the graph's unit, after trimming.
    std::int64_t peak = 0, cost = 0;
    std::vector<bool> stays;  ///< whether each step of the untrimmed schedule stays, from the last step to the first
  };
  /// Trims the schedule of TWRemat(k). Takes O(length) time, and one bit of memory for each step before trimming.
  /// Returns nothing if the watch expired.
  std::optional<Trimmed> trim(std::int64_t k, core::Stopwatch& watch);
  /// Calls step(v) in order for the node v of each step that stays, until step() returns false.
  template <class Step>
  void for_each_step(const Trimmed& trimmed, const Step& step) {
    std::size_t left = trimmed.stays.size();
    if (left > 0) walk<false>(root_, trimmed.k, [&](core::NodeId v) { return !trimmed.stays[--left] || step(v); });
  }

  /// Returns a number of bytes p such that for every `bytes <= p`, the schedule of steps_within(bytes) has a peak of at
  /// most p. If the watch expired, the result is correct but higher than necessary.
  std::int64_t least_peak(core::Stopwatch& watch) { return separators_.parts.empty() ? 0 : least_peak(root_, watch); }

  /// Makes the schedule of Algorithm 1 with another rule for ending the recursion. A call does not recurse in two
  /// cases:
  /// - Its nodes, run in the input order, fit into `bytes` bytes together with what its callers hold.
  /// - Recursion would not lower the call's peak.
  ///
  /// The peak is at most max(`bytes`, least_peak()). Graphs with pinned nodes, which must run only once, are an
  /// exception: the schedule runs them as often as other nodes. If the caller removes their repeated runs, values are
  /// kept for longer, which can raise the peak.
  /// Returns nothing if the schedule would have more than `most_steps` steps or the watch expired.
  std::optional<std::vector<core::NodeId>> steps_within(std::int64_t bytes, std::int64_t most_steps,
                                                        core::Stopwatch& watch);

 private:
  /// Describes an item of a procedure: a node to run, or ~p for a call of procedure p. `released` is the number of
  /// bytes that the procedure can free after this item, because this item is the last one to read them.
  struct Item {
    std::int32_t what;
    std::int64_t released;
  };
  struct Procedure {
    std::int32_t part;
    std::int32_t outputs_begin, outputs_end;  ///< range in outputs_ of the wanted nodes, ascending
    /// Range in reads_ of those nodes outside of the part from which the procedure reads. The callers of the procedure
    /// hold the values of these nodes.
    std::int32_t reads_begin, reads_end;
    std::int64_t output_bytes = 0;
    std::int64_t node_count = 0;  ///< number of different nodes that run in the procedure
    /// Peak in bytes if the procedure's nodes run once each, in the input order. Values that callers hold do not count.
    std::int64_t direct_peak = 0;
    /// Peak in bytes if the procedure recurses wherever that lowers the peak; -1: not computed yet.
    std::int64_t least_peak = -1;
    std::int64_t items_begin = -1, items_end = -1;  ///< range of the procedure's items in items_; -1: not computed yet
  };

  bool inside(const SeparatorTree::Part& part, core::NodeId v) const {
    return separators_.home[v] >= part.begin && separators_.home[v] < part.end;
  }
  bool is_leaf(const Procedure& procedure, std::int64_t k) const {
    const auto& part = separators_.parts[procedure.part];
    return part.bags < k || part.children.empty();
  }
  std::span<const core::NodeId> outputs(const Procedure& procedure) const {
    return std::span(outputs_).subspan(procedure.outputs_begin, procedure.outputs_end - procedure.outputs_begin);
  }

  std::int32_t find(std::int32_t part, std::vector<core::NodeId> outputs);
  void needed(const Procedure& procedure, std::vector<core::NodeId>& nodes);
  void measure(Procedure& procedure);
  void expand(std::int32_t number);
  /// Computes `released` of each item. A node of the procedure's separator stays in memory until the last item that
  /// reads it or, if it is in `wanted`, until the end.
  void note_releases(const std::vector<core::NodeId>& run, const std::vector<core::NodeId>& wanted,
                     std::int32_t separator, std::vector<Item>& items);
  std::optional<std::int64_t> length_of(std::int32_t number, std::int64_t k, core::Stopwatch& watch,
                                        std::vector<std::int64_t>& known);
  /// Returns Procedure::least_peak, which it computes if necessary, or direct_peak if the watch expired.
  std::int64_t least_peak(std::int32_t number, core::Stopwatch& watch);
  struct Emission;
  void emit_within(std::int32_t number, std::int64_t held, Emission& emission);

  /// Calls step(v) for every node v that the procedure with this number runs, in order, until step() returns false. The
  /// recursion ends at parts of fewer than k bags. Returns whether all nodes were visited. Requires a graph with nodes.
  template <bool kBackwards, class Step>
  bool walk(std::int32_t number, std::int64_t k, const Step& step) {
    if (is_leaf(procedures_[number], k)) {
      std::vector<core::NodeId> nodes;
      needed(procedures_[number], nodes);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!step(nodes[kBackwards ? nodes.size() - 1 - i : i])) return false;
      }
      return true;
    }
    expand(number);
    const std::int64_t begin = procedures_[number].items_begin, count = procedures_[number].items_end - begin;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t what = items_[begin + (kBackwards ? count - 1 - i : i)].what;
      if (!(what >= 0 ? step(what) : walk<kBackwards>(~what, k, step))) return false;
    }
    return true;
  }

  const core::Graph& graph_;
  const SeparatorTree& separators_;
  std::vector<std::int32_t> rank_;  ///< index of each node in the input order
  std::vector<Procedure> procedures_;
  /// Finds the number of a procedure by a hash of its part and its wanted nodes.
  std::unordered_multimap<std::uint64_t, std::int32_t> numbers_;
  std::vector<core::NodeId> outputs_, reads_;
  std::vector<Item> items_;
  std::int32_t root_ = 0;
  // The next members are temporary data.
  std::vector<std::int64_t> stamp_;  ///< for each node, the number (current_) of the last search that visited it
  std::int64_t current_ = 0;
  std::vector<core::NodeId> nodes_;
  /// Indexed by node. Each function gives these numbers its own meaning, such as the last item that reads the node.
  std::vector<std::int32_t> last_;
};

}  // namespace cairn::solvers
