#pragma once

#include <algorithm>

#include "cairn/core/limit.h"

namespace cairn::fit {

/// By how much searches and plans of one graph end later than they are told, learnt from those that were made: on
/// large graphs each has parts that take as long as they take.
class Overrun {
 public:
  double seconds() const { return seconds_; }
  /// What to tell the next one, so that it ends with this limit.
  core::Limit before(core::Limit limit) const {
    limit.seconds = std::max(0.0, limit.seconds - seconds_);
    return limit;
  }
  void learn(const core::Limit& told, double took) { seconds_ = std::max(seconds_, took - told.seconds); }
  /// What follows each, and is told nothing.
  void add(double seconds) { seconds_ += seconds; }

 private:
  double seconds_ = 0;
};

}  // namespace cairn::fit
