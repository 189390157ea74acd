#pragma once

#include <algorithm>

#include "cairn/core/limit.h"

namespace cairn::fit {

/// Learns from earlier calls by how many seconds searches and plans of one graph end later than their limit. On large
/// graphs, each call has parts that cannot be interrupted.
class Overrun {
 public:
  double seconds() const { return seconds_; }
  /// Returns the limit to give to the next call, so that it ends within `limit`.
  core::Limit before(core::Limit limit) const {
    limit.seconds = std::max(0.0, limit.seconds - seconds_);
    return limit;
  }
  void learn(const core::Limit& told, double took) { seconds_ = std::max(seconds_, took - told.seconds); }
  /// Adds time that is spent after each call on work without a limit of its own, in seconds.
  void add(double seconds) { seconds_ += seconds; }

 private:
  double seconds_ = 0;
};

}  // namespace cairn::fit
