#pragma once

#include <algorithm>

#include "cairn/core/limit.h"

namespace cairn::fit {

/// Learns by how many seconds calls of a solver on one graph exceed their limits. On large graphs, this excess can be
/// long, because parts of each call cannot be interrupted.
class Overrun {
 public:
  double seconds() const { return seconds_; }
  /// Returns the limit to give to the next call, so that the call ends within `limit`.
  core::Limit before(core::Limit limit) const {
    limit.seconds = std::max(0.0, limit.seconds - seconds_);
    return limit;
  }
  void learn(const core::Limit& told, double took) { seconds_ = std::max(seconds_, took - told.seconds); }
  /// Adds the time of work that follows every call and cannot be given a limit, such as planning the schedule found.
  void add(double seconds) { seconds_ += seconds; }

 private:
  double seconds_ = 0;
};

}  // namespace cairn::fit
