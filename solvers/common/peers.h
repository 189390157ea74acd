#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/schedule.h"

namespace cairn::solvers {

/// Other processes that run the same search with other seeds, for example the ranks of mpirun. They exchange only the
/// best schedules that they have found. A schedule belongs to a graph, which is named by a key: the number that
/// core::Graph::fingerprint() writes in hexadecimal digits. No function waits for another process.
class Peers {
 public:
  virtual ~Peers() = default;

  /// Sends the steps of a schedule of a graph to all peers. Steps that were passed before and could not be sent yet are
  /// forgotten.
  virtual void send(std::uint64_t graph, const std::vector<core::NodeId>& steps) = 0;
  /// Returns the steps of the schedules of this graph that have arrived since the last call. Forgets those of other
  /// graphs.
  virtual std::vector<std::vector<core::NodeId>> received(std::uint64_t graph) = 0;
};

}  // namespace cairn::solvers
