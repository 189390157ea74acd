#pragma once

#include <cstdint>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/device/graph_tables.h"

namespace cairn::sim::device {

/// Finds the segments (core::Segment) of a schedule's internal profile (sim/undominated.h) while rewind()
/// (sim/device/candidate_profile.h) goes through the steps from the last to the first. So no profile is stored. The
/// segments found so far are those of the part of the profile from the present step on; each earlier entry of the
/// profile is joined to the first of them as core::append_segment would join later entries to the last one. Takes
/// amortised O(1) time per step.
template <class Id>
class InternalSegments {
 public:
  /// `room` must have an entry for each step of the schedule.
  CAIRN_HD InternalSegments(const TablesView<Id>& graph, const Id* steps, std::int32_t length, core::Segment* room)
      : graph_(graph), steps_(steps), last_(length - 1), room_(room) {}

  /// Takes the memory during and after step i. Must be called for all steps, from the last to the first.
  CAIRN_HD void take(std::int32_t i, std::int64_t during, std::int64_t after) {
    if (i == last_) {
      later_ = after + freed_at_end();
    } else {
      meet(after);
    }
    if (i > 0) meet(during);  // the profile begins after the first step
  }
  /// Ends the search. Then `room` holds count() segments, the last one first, and start() is the first entry of the
  /// profile.
  CAIRN_HD void end() {
    if (count_ > 0) room_[count_ - 1] = front_;
  }
  CAIRN_HD std::int32_t count() const { return count_; }
  CAIRN_HD std::int64_t start() const { return later_; }

 private:
  /// Returns the bytes of the last step's outputs that are not kept, which the internal profile contains at its end.
  CAIRN_HD std::int64_t freed_at_end() const {
    const std::int32_t v = static_cast<std::int32_t>(steps_[last_]);
    std::int64_t bytes = graph_.keep[v] != 0 ? 0 : graph_.in_bytes.size[v];
    if (graph_.single_output()) return bytes;
    for (std::int32_t x = graph_.further_begin[v]; x < graph_.further_begin[v + 1]; ++x) {
      bytes += graph_.keep[x] != 0 ? 0 : graph_.in_bytes.size[x];
    }
    return bytes;
  }
  CAIRN_HD void meet(std::int64_t value) {
    if (value < later_) put_first({later_ - value, 0});
    if (value > later_) put_first({0, value - later_});
    // The canonical form of a profile that ends with several lowest entries has a segment for them, of height 0.
    if (value == later_ && count_ == 0) put_first({0, 0});
    later_ = value;
  }
  CAIRN_HD void put_first(core::Segment next) {
    while (count_ > 0 && core::belong_together(next, front_)) {
      next = core::joined(next, front_);
      --count_;
      if (count_ > 0) front_ = room_[count_ - 1];
    }
    if (count_ > 0) room_[count_ - 1] = front_;
    front_ = next;
    ++count_;
  }

  const TablesView<Id>& graph_;
  const Id* steps_;
  std::int32_t last_, count_ = 0;
  core::Segment* room_;
  core::Segment front_;     ///< the first of the segments found so far; the others are in room_
  std::int64_t later_ = 0;  ///< the entry of the profile that was taken last
};

}  // namespace cairn::sim::device
