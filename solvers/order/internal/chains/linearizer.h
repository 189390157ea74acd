#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/accelerator.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/internal/chains/chain.h"

namespace cairn::solvers {

using BranchId = std::int32_t;

/// Describes a branch of an in-forest (see InForest): a path that begins at the source or at a node where other
/// branches meet, and ends at the sink or at the next node where branches meet. One step of the branch can be its key
/// (a key node of Theorem 7.6 of Jin et al.). The key is one of two steps: the step at which other branches (the
/// children of this branch) end, or the step that reads the source.
struct TreeBranch {
  Chain before;  ///< steps before the key, which do not decide when the source's output is freed
  ChainSegment key;
  Chain rest;                      ///< steps after the key
  std::vector<BranchId> children;  ///< branches that end at the key
  bool reads_source = false;       ///< whether the key reads the source; if so, it has no children
  /// Whether there is a key; if not, the branch consists of `before` alone. A key need not be a node: it can be a step
  /// that only frees memory.
  bool has_key = false;
};

/// The part of the graph that an edge of the reduced graph (reduction.h) stands for: everything between the edge's
/// source and sink (Definition 7.3 of Jin et al.). The paths of this forest can meet, but do not branch again. The
/// forest is stored as the branches that end at the sink. The forest is turned into a path only when its edge is the
/// only outgoing edge of the source that is left. Until then, other edges can stand for readers of the source's output.
/// When that output is freed would then not be known, and the dominant schedule (the one whose memory profile dominates
/// all others, core/dominance.h) depends on it.
struct InForest {
  std::vector<BranchId> branches;
  bool direct = false;    ///< whether the sink reads the source itself
  bool released = false;  ///< whether the branches' segments already contain the freeing of the source's output
};

/// Turns in-forests into paths that run their nodes in a dominant order (Lemma 5.4 of Jin et al.). The method depends
/// on the forest:
/// - If no branch decides when the source's output is freed, the method is Liu's merge of chains (chain.h).
/// - If the forest consists of parallel chains, the method is the table of Theorem 8.2 (pumpkin_merge.h).
/// - In all other cases, the method is a search over the orders in which the keys (see TreeBranch) can run (Theorem
///   7.6; device/key_orders.h). If there are too many of these orders, Algorithm 2 of Jin et al. with the exact search
///   is used instead (dominant.h).
class Linearizer {
 public:
  /// Creates a Linearizer that has no branches yet; add() adds them. All work keeps to the limit of `watch`.
  /// `memory_bytes` is the largest size of a table on the host, and `threads` the number of host threads. `tick`, if
  /// given, is called several times during long work, so that the caller can report progress. `accelerator`, if given,
  /// computes the tables of Theorem 8.2 that have many states, and searches over the orders of the keys.
  Linearizer(std::int64_t memory_bytes, int threads, core::Stopwatch& watch, std::function<void()> tick,
             Accelerator* accelerator)
      : memory_bytes_(memory_bytes),
        threads_(threads),
        watch_(watch),
        tick_(std::move(tick)),
        accelerator_(accelerator) {}

  Ropes& ropes() { return ropes_; }
  TreeBranch& branch(BranchId id) { return branches_[id]; }
  const std::vector<TreeBranch>& branches() const { return branches_; }
  BranchId add(TreeBranch branch) {
    branches_.push_back(std::move(branch));
    return static_cast<BranchId>(branches_.size() - 1);
  }

  /// Finds the dominant schedule of a forest. `released` is the number of bytes of the source's output, which are freed
  /// after all branches that read the source have read it; 0 if the forest frees no bytes. If the table for parallel
  /// chains would need more memory than allowed, returns nothing at once, and needed_bytes() is the size of this table.
  std::optional<Chain> linearize(const InForest& forest, std::int64_t released);
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Merges branches and their children into one chain (Liu 1987). No branch may decide when the source's output is
  /// freed. Moves data out of the branches, so they cannot be used afterwards.
  Chain merge_branches(const std::vector<BranchId>& branches);

  /// Returns whether the limit ended the search of the last linearize(). If so, the chain that linearize() returned is
  /// a valid schedule, but need not be dominant.
  bool cut_short() const { return cut_short_; }

 private:
  Chain flat(BranchId id);
  std::optional<Chain> pumpkin(const InForest& forest, std::int64_t released);
  KeyOrdersFound search(const KeyTree& tree);
  Chain starborescence(const InForest& forest, std::int64_t released);
  Chain some_chain(const InForest& forest, std::int64_t released);
  struct Tree;
  Tree key_tree(const InForest& forest, std::int64_t released) const;
  std::optional<Chain> by_cuts(const InForest& forest, std::int64_t released);

  std::int64_t memory_bytes_;
  int threads_;
  core::Stopwatch& watch_;
  std::function<void()> tick_;
  Accelerator* accelerator_;
  Ropes ropes_;
  std::vector<TreeBranch> branches_;
  std::int64_t needed_bytes_ = 0;
  bool cut_short_ = false;
};

}  // namespace cairn::solvers
