#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/schedule.h"

namespace cairn::solvers {

/// Connects the search to other processes that run the same search with other seeds, for example the ranks of mpirun.
/// The processes send one another only the best schedules that they have found. Each schedule is sent with a key of its
/// graph: the number that core::Graph::fingerprint() writes in hexadecimal digits. No function waits for another
/// process.
class Peers {
 public:
  virtual ~Peers() = default;

  /// Sends the steps of a schedule of a graph to all peers. If the steps of an earlier call have not been sent yet,
  /// they are dropped.
  virtual void send(std::uint64_t graph, const std::vector<core::NodeId>& steps) = 0;
  /// Returns the steps of the schedules of this graph that have arrived since the last call. Drops the schedules of
  /// other graphs that have arrived.
  virtual std::vector<std::vector<core::NodeId>> received(std::uint64_t graph) = 0;
};

}  // namespace cairn::solvers
