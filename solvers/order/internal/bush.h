#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/device/accelerator.h"
#include "cairn/solvers/order/internal/chain.h"

namespace cairn::solvers {

using LimbId = std::int32_t;

/// A path in an in-tree that grows from a source to a sink: it begins where other paths meet, or at the source, and
/// ends where it meets others, or at the sink. Its first step, the key node of Theorem 7.6, must wait for all of them.
struct Limb {
  Chain before;  ///< from the source to the key, without a say in when the source is released
  Piece key;
  Chain rest;                    ///< behind the key
  std::vector<LimbId> children;  ///< that end at the key
  bool reads_source = false;     ///< the key reads the source; only limbs without children do
};

/// What an edge of the reduced graph stands for: everything between its source and its sink, as the limbs that end at
/// the sink (a starborescence without its ends, Definition 7.3). It cannot be one path yet, as the source may have
/// other edges, and only when all of its readers are known is it known when it is released.
struct Bush {
  std::vector<LimbId> limbs;
  bool direct = false;    ///< the sink reads the source itself
  bool released = false;  ///< the limbs release the source already
};

/// Turns bushes into paths by their dominant schedules (Lemma 5.4): Liu's merge where no source is to be released, the
/// table of Theorem 8.2 for parallel chains, key orders (Theorem 7.6) otherwise; where these are too many, the exact
/// search over cuts as the oracle of Algorithm 2.
class Linearizer {
 public:
  /// `tick`, if there is one, is called now and then in long work. The accelerator, if there is one, takes over tables
  /// that are large; `memory_bytes` and `threads` are the host's.
  Linearizer(std::int64_t memory_bytes, int threads, core::Stopwatch& watch, std::function<void()> tick,
             Accelerator* accelerator)
      : memory_bytes_(memory_bytes),
        threads_(threads),
        watch_(watch),
        tick_(std::move(tick)),
        accelerator_(accelerator) {}

  Ropes& ropes() { return ropes_; }
  Limb& limb(LimbId id) { return limbs_[id]; }
  const std::vector<Limb>& limbs() const { return limbs_; }
  LimbId add(Limb limb) {
    limbs_.push_back(std::move(limb));
    return static_cast<LimbId>(limbs_.size() - 1);
  }

  /// The dominant schedule of everything between the source and the sink, whose `released` bytes go when the last
  /// reader among the limbs has run (0: none do). Nothing if the table of a pumpkin would need more memory than
  /// allowed; needed_bytes() says how much, and nothing has been started then.
  std::optional<Chain> linearize(const Bush& bush, std::int64_t released);
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// All limbs and their children as one chain where no release is to be waited for (Liu 1987). Nothing is left of
  /// them.
  Chain merge_limbs(const std::vector<LimbId>& limbs);

  /// Has the watch ended the search of the last linearize()? Then its chain is some schedule, not the dominant one.
  bool cut_short() const { return cut_short_; }

 private:
  Chain flat(LimbId id);
  std::optional<Chain> pumpkin(const Bush& bush, std::int64_t released);
  KeyOrdersFound search(const KeyTree& tree);
  Chain starborescence(const Bush& bush, std::int64_t released);
  Chain some_chain(const Bush& bush, std::int64_t released);
  struct Tree;
  Tree key_tree(const Bush& bush, std::int64_t released) const;
  std::optional<Chain> by_cuts(const Bush& bush, std::int64_t released);

  std::int64_t memory_bytes_;
  int threads_;
  core::Stopwatch& watch_;
  std::function<void()> tick_;
  Accelerator* accelerator_;
  Ropes ropes_;
  std::vector<Limb> limbs_;
  std::int64_t needed_bytes_ = 0;
  bool cut_short_ = false;
};

}  // namespace cairn::solvers
