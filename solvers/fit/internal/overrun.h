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
  /// Adds the seconds of the work after each call that has no limit of its own.
  void add(double seconds) { seconds_ += seconds; }

 private:
  double seconds_ = 0;
};

}  // namespace cairn::fit
