#pragma once

#include <cstdint>
#include <memory>

#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/rewind.h"

namespace cairn::sim {

/// A candidate's steps, all of them nodes of the graph.
template <class Id>
struct Row {
  const Id* steps = nullptr;
  std::int32_t length = 0;
};

/// Evaluates as many candidates at once as fit side by side into the processor's vectors. A position in a vector, the
/// lane, belongs to one candidate.
///
/// For each node the positions of all lanes' occurrences of it lie side by side; so for all lanes at once the last read
/// of an occurrence is a maximum over the readers' positions. Scalar code remains where lanes touch different places:
/// where a node stands, and adding what an occurrence frees at the step of its last read. O(T + m) a lane.
///
/// Keeps work arrays of some lanes * (n + T) * 40 bytes: use one a thread.
template <class Id>
class Lockstep {
 public:
  virtual ~Lockstep() = default;
  /// Candidates that run() takes.
  virtual int lanes() const = 0;
  /// Every candidate has as many steps as there are nodes: no recomputation, or invalid.
  virtual void run_orders(const Row<Id>* rows, int count, device::Outcome* outcomes) = 0;
  /// Any schedules. Those with more than kMostOccurrences of one node are left out: false in `done`.
  virtual void run(const Row<Id>* rows, int count, device::Outcome* outcomes, bool* done) = 0;

  static constexpr int kMostOccurrences = 8;
};

/// The fastest for this processor and graph, for schedules of up to `longest` steps; nullptr where its arrays would not
/// fit into a cache, or sums of costs not into 64 bits.
template <class Id>
std::unique_ptr<Lockstep<Id>> make_lockstep(const device::TablesView<Id>& graph, std::int64_t longest);

}  // namespace cairn::sim
