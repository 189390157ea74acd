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

/// A path of an in-forest. It begins at the source, or where other branches meet, and ends where it meets others, or at
/// the sink. Its first step is a key node (Theorem 7.6), which runs after all branches that end at it.
struct TreeBranch {
  Chain before;  ///< path from the source to the key; does not affect when the source's output is freed
  ChainSegment key;
  Chain rest;                      ///< path behind the key
  std::vector<BranchId> children;  ///< branches that end at the key
  bool reads_source = false;       ///< whether the key reads the source; only keys without children do
  /// Whether there is a key; false: the branch is only `before`; a key may run no node, only release.
  bool has_key = false;
};

/// The part of the graph that an edge of the reduced graph stands for: everything between its source and its sink
/// (Definition 7.3, without the two ends), as the branches that end at the sink. It becomes a path only when this is
/// the source's only remaining edge: its dominant schedule depends on when the source's output is freed, and other
/// edges may still read that.
struct InForest {
  std::vector<BranchId> branches;
  bool direct = false;    ///< whether the sink reads the source itself
  bool released = false;  ///< whether the branches already free the source's output
};

/// Turns in-forests into paths by their dominant schedules (Lemma 5.4). Uses Liu's merge where they do not free the
/// source, the table of Theorem 8.2 for parallel chains, and key orders (Theorem 7.6) otherwise; where these are too
/// many, Algorithm 2 with the exact search over cuts as its oracle.
class Linearizer {
 public:
  /// Prepares for linearizations within `watch`. `tick`, if given, is called now and then in long work. The
  /// accelerator, if given, takes over large tables; `memory_bytes` and `threads` are limits of the host.
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
  /// when the last reader among the branches has run (0: no bytes are freed). Empty if the table of a pumpkin would
  /// need more memory than allowed; the work is not started in this case, and needed_bytes() says how much memory the
  /// table would need.
  std::optional<Chain> linearize(const InForest& forest, std::int64_t released);
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Merges all branches and their children into one chain (Liu 1987). None of them may free the source. The branches
  /// give up their chains.
  Chain merge_branches(const std::vector<BranchId>& branches);

  /// Whether the watch ended the search of the last linearize(), so that its chain is some schedule, not the dominant
  /// one.
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
