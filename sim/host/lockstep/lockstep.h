#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/transfers/transfer_profile.h"

/// The classes of this file are the part of the host's simulator that evaluates several candidates (schedules) at once
/// in the vector registers of the processor.
namespace cairn::sim {

/// The steps of a candidate: the numbers of the nodes that it runs. Each must be the number of a node of the graph,
/// except in Lockstep::knows().
template <class Id>
struct Row {
  const Id* steps = nullptr;
  std::int32_t length = 0;
};

/// Evaluates as many candidates at once as a vector register has elements. Each candidate has a lane, which is one
/// element position in all vectors.
///
/// For each node and each k, one vector holds, for every lane, the step at which the node runs for the k-th time. So
/// the elementwise maximum of the vectors of all readers of an output gives the last read of the output in all lanes.
/// Two parts are scalar code, because different lanes access different addresses: recording at which steps a node
/// occurs, and adding the bytes of an output to the sum of bytes that are freed after the step of its last read. Takes
/// O(T + m) time per lane for T steps and m inputs of nodes.
///
/// Holds work arrays of about lanes * (n + T) * 40 bytes for n nodes, so each thread needs its own object.
template <class Id>
class Lockstep {
 public:
  virtual ~Lockstep() = default;
  /// Returns the number of lanes, which is the largest number of candidates in one call of run().
  virtual int lanes() const = 0;
  /// Returns whether all steps of the row are nodes of the graph.
  virtual bool knows(const Row<Id>& row) const = 0;
  /// Evaluates candidates that have as many steps as there are nodes. Such a candidate either recomputes nothing or is
  /// invalid.
  virtual void run_orders(const Row<Id>* rows, int count, device::Outcome* outcomes) = 0;
  /// Evaluates schedules that may recompute. Sets done[i] to false if a node occurs more than kMostOccurrences times in
  /// rows[i]; that candidate is not evaluated.
  virtual void run(const Row<Id>* rows, int count, device::Outcome* outcomes, bool* done) = 0;

  /// Evaluates schedules with transfers. If `longest` (make_lockstep()) was the number of nodes, every candidate must
  /// run each node once. Sets done[i] to false if rows[i] was not evaluated: if a node occurs in it more than
  /// kMostOccurrences times, if it is invalid, or if its times could exceed 64 bits. In addition to the time of run(),
  /// takes O(reads of the moved values + k) time for k transfers.
  virtual void run_moved(const device::MovedRow<Id>* rows, int count, const device::MovesView& moves,
                         device::MovedOutcome* outcomes, bool* done) = 0;

  static constexpr int kMostOccurrences = 8;
};

/// Returns the fastest Lockstep for this processor and graph, for schedules of up to `longest` steps. Returns nullptr
/// if its arrays would not fit into a cache, or if sums of costs would not fit into 64 bits.
template <class Id>
std::unique_ptr<Lockstep<Id>> make_lockstep(const device::TablesView<Id>& graph, std::int64_t longest);

/// Draws the orders of random candidates (sim/generator.h), one per lane, and evaluates them. Holds work arrays of
/// about lanes * n * 12 bytes for n nodes, so each thread needs its own object.
class DrawOrders {
 public:
  virtual ~DrawOrders() = default;
  virtual int lanes() const = 0;
  /// Draws candidates first .. first + lanes() - 1: computes the key of each node in each lane. The key is the random
  /// time at which the node runs, and sorting the nodes by it gives the candidate's order. Takes O(n + m) time per lane
  /// for n nodes and m edges.
  virtual void draw(std::uint64_t seed, std::int64_t first) = 0;
  /// Returns the keys of one lane, indexed by node. They are valid until the next call of draw().
  virtual const std::uint32_t* keys(int lane) = 0;
  /// Evaluates the candidates of the first `count` lanes that draw() has drawn. Does not sort the nodes, and so takes
  /// O(n + m) time per lane on average for n nodes and m edges.
  virtual void evaluate(int count, device::Outcome* outcomes) = 0;
};

/// Returns the fastest implementation of DrawOrders that this processor can run.
template <class Id>
std::unique_ptr<DrawOrders> make_draw_orders(const device::TablesView<Id>& graph);

/// Functions that are compiled for one family of processors, such as processors with AVX-512. They may be called only
/// on a processor of that family.
struct ProcessorFamily {
  template <class Id>
  using MakeLockstep = std::unique_ptr<Lockstep<Id>> (*)(const device::TablesView<Id>& graph, std::int32_t longest);
  template <class Id>
  using MakeDrawOrders = std::unique_ptr<DrawOrders> (*)(const device::TablesView<Id>& graph);

  int vector_bytes;
  MakeLockstep<std::uint16_t> lockstep16;
  MakeLockstep<std::uint32_t> lockstep32;
  MakeDrawOrders<std::uint16_t> draw_orders16;
  MakeDrawOrders<std::uint32_t> draw_orders32;
};

ProcessorFamily any_processor();
ProcessorFamily avx2();
ProcessorFamily avx512();

/// Returns the families to which this processor belongs, the fastest first.
std::span<const ProcessorFamily> families();

}  // namespace cairn::sim
