#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/accelerator.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/internal/chain.h"

namespace cairn::solvers {

using BranchId = std::int32_t;

/// A path of an in-forest. It begins at the source or where other branches meet. It ends where it meets other branches,
/// or at the sink. One of its steps is the key (a key node of Theorem 7.6). The key runs after all branches that end at
/// it.
struct TreeBranch {
  Chain before;  ///< path from the source to the key; it does not affect when the source's output is freed
  ChainSegment key;
  Chain rest;                      ///< path after the key
  std::vector<BranchId> children;  ///< branches that end at the key
  bool reads_source = false;       ///< whether the key reads the source; only keys without children do
  /// Whether there is a key. Without a key, the branch consists of `before` alone. A key can also run no node and only
  /// release memory.
  bool has_key = false;
};

/// The part of the graph that an edge of the reduced graph stands for: everything between the edge's source and sink,
/// without the source and the sink (Definition 7.3). It is stored as the branches that end at the sink. The part
/// becomes a path only when the edge is the source's only remaining one. The reason is that the part's dominant
/// schedule depends on when the source's output is freed, and other edges might still read that output.
struct InForest {
  std::vector<BranchId> branches;
  bool direct = false;    ///< whether the sink reads the source itself
  bool released = false;  ///< whether the branches already free the source's output
};

/// Turns in-forests into paths by their dominant schedules (Lemma 5.4). The method depends on the forest:
/// - Liu's merge, if the forest does not free the source's output;
/// - the table of Theorem 8.2 for parallel chains;
/// - otherwise a search over key orders (Theorem 7.6);
/// - if there are too many key orders, Algorithm 2 with the exact search over cuts as its oracle.
class Linearizer {
 public:
  /// Prepares for turning in-forests into paths within the limit of `watch`. `tick`, if given, is called now and then
  /// during long work. `accelerator`, if given, takes over large tables. `memory_bytes` and `threads` are limits on the
  /// host.
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

  /// Finds the dominant schedule of everything between the source and the sink. The source's `released` bytes are freed
  /// when the last reader among the branches has run; 0: no bytes are freed. Returns nothing if the table for parallel
  /// chains would need more memory than allowed. In that case no work was done, and needed_bytes() returns the bytes
  /// that the table would need.
  std::optional<Chain> linearize(const InForest& forest, std::int64_t released);
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Merges all branches and their children into one chain (Liu 1987). No branch may free the source's output.
  /// Afterwards the branches' own chains are empty, because their contents are moved.
  Chain merge_branches(const std::vector<BranchId>& branches);

  /// Returns whether the watch ended the search of the last linearize(). If so, the returned chain is a valid schedule,
  /// but not the dominant one.
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
