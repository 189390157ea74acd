#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/timeline.h"

/// These functions explain the transfers of a schedule: which values leave the device and for how long, how busy the
/// link is, and which steps wait for copies. Sizes are in bytes, times in the graph's unit of cost, steps count from 0.
namespace cairn::report {

/// Describes one stay of a value on the host, between two uses of the value on the device. There is one Absence for
/// each fetch, because one copy on the host can be fetched several times.
struct Absence {
  std::int32_t evict = -1;  ///< index in core::Transfers::evicts
  std::int32_t fetch = -1;  ///< index in core::Transfers::fetches
  core::ValueId value = core::kNoValue;
  std::int64_t bytes = 0;
  std::int64_t leaves = 0;   ///< first step that finds no bytes of the value on the device
  std::int64_t returns = 0;  ///< first step that finds the bytes of the value on the device again
  std::int64_t used = 0;     ///< last step before the absence that computes or reads the value
  std::int64_t needed = 0;   ///< first step after the absence that reads the value, or the number of steps
  std::int64_t idle = 0;     ///< time from the end of step `used` to the begin of step `needed`
  /// Part of `idle` in which the device holds no bytes of the value. In the rest of `idle`, the value is copied, or its
  /// bytes are held on the device until the link is free.
  std::int64_t away = 0;
};

/// A step that begins late because a copy is not over.
struct CopyWait {
  std::int64_t step = 0;    ///< the number of steps if the end of the schedule waits
  std::int64_t time = 0;    ///< how long the step waits; > 0
  std::int32_t evict = -1;  ///< the evict that the step waits for, or -1
  std::int32_t fetch = -1;  ///< the fetch that the step waits for, or -1
};

/// Sums up the copies in one direction of the link.
struct LinkUse {
  std::int64_t copies = 0;
  std::int64_t bytes = 0;
  std::int64_t busy = 0;  ///< time in which this direction carries copies
};

struct TransferSummary {
  core::Timeline times;
  LinkUse to_host, to_device;
  std::int64_t host_peak = 0;     ///< largest number of bytes on the host
  std::vector<Absence> absences;  ///< in the order of `leaves`
  std::vector<CopyWait> waits;    ///< in the order of the steps; the times add up to times.waiting
};
/// Explains the transfers of a valid schedule. O((steps + edges + k) log k) for k transfers.
TransferSummary explain_transfers(const core::Graph& graph, const core::Schedule& schedule, const core::Link& link);

/// Returns the bytes on the host over time, as pairs of a time and the bytes from this time on. Times ascend. Several
/// entries can have the same time, because steps can have cost 0. O(steps + transfers).
std::vector<std::pair<std::int64_t, std::int64_t>> host_bytes(const core::Graph& graph, const core::Schedule& schedule,
                                                              const core::Timeline& times);

/// Returns the name of a copy, such as "conv1 to the host".
std::string copy_name(const core::Graph& graph, const core::Schedule& schedule, std::int32_t evict, std::int32_t fetch);
/// Returns the value that a copy moves; exactly one of `evict` and `fetch` is not -1.
core::ValueId copied_value(const core::Schedule& schedule, std::int32_t evict, std::int32_t fetch);

}  // namespace cairn::report
