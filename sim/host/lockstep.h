#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/rewind.h"
#include "cairn/sim/device/walk.h"

/// The part of the host's simulator that evaluates several candidates at once in the vector registers of the processor.
namespace cairn::sim {

/// The steps of a candidate. All of them must be nodes of the graph.
template <class Id>
struct Row {
  const Id* steps = nullptr;
  std::int32_t length = 0;
};

/// Evaluates as many candidates at once as a vector register has elements. A lane is one element position of all
/// vectors; each candidate has a lane.
///
/// For each node and each k, one vector holds, for every lane, the step at which the node runs for the k-th time. So
/// one maximum of the vectors of an output's readers gives the last read of the output in all lanes. Two parts are
/// scalar code, because lanes access different addresses: recording where a node occurs, and adding the bytes of an
/// output to those that are freed after its last read. Takes O(T + m) time per lane for T steps and m inputs of nodes.
///
/// Holds work arrays of about lanes * (n + T) * 40 bytes for n nodes, so each thread needs its own object.
template <class Id>
class Lockstep {
 public:
  virtual ~Lockstep() = default;
  /// Returns the number of lanes, which is the largest number of candidates in one call of run().
  virtual int lanes() const = 0;
  /// Returns whether all steps are nodes of the graph.
  virtual bool knows(const Row<Id>& row) const = 0;
  /// Evaluates candidates that have as many steps as there are nodes. Such a candidate either recomputes nothing or is
  /// invalid.
  virtual void run_orders(const Row<Id>* rows, int count, device::Outcome* outcomes) = 0;
  /// Evaluates any schedules. A candidate in which a node occurs more than kMostOccurrences times is not evaluated, and
  /// its entry of `done` is set to false.
  virtual void run(const Row<Id>* rows, int count, device::Outcome* outcomes, bool* done) = 0;

  /// Evaluates schedules with transfers. If the Lockstep is for schedules without recomputation, the candidates must
  /// have none. The entries of `done` are set to false for candidates that are not evaluated: those that run() would
  /// not evaluate, and all invalid ones. Takes O(reads of the moved values + k) more for k transfers.
  virtual void run_moved(const device::MovedRow<Id>* rows, int count, const device::MovesView& moves,
                         device::MovedOutcome* outcomes, bool* done) = 0;

  static constexpr int kMostOccurrences = 8;
};

/// Returns the fastest Lockstep for this processor and graph, for schedules of up to `longest` steps. Returns nullptr
/// if its arrays would not fit into a cache, or if sums of costs would not fit into 64 bits.
template <class Id>
std::unique_ptr<Lockstep<Id>> make_lockstep(const device::TablesView<Id>& graph, std::int64_t longest);

/// Draws the orders of candidates (sim/generator.h), one per lane, and evaluates them. Holds work arrays of about
/// lanes * n * 12 bytes for n nodes, so each thread needs its own object.
class DrawOrders {
 public:
  virtual ~DrawOrders() = default;
  virtual int lanes() const = 0;
  /// Draws candidates first .. first + lanes() - 1: computes the key of each node, which is the time by which the
  /// candidate's order sorts it. Takes O(n + m) time per lane for n nodes and m edges.
  virtual void draw(std::uint64_t seed, std::int64_t first) = 0;
  /// Returns the keys of one lane, indexed by node. They are valid until the next call of draw().
  virtual const std::uint32_t* keys(int lane) = 0;
  /// Evaluates the candidates of the first `count` lanes. Takes O(n + m) time per lane on average; the nodes are not
  /// sorted.
  virtual void evaluate(int count, device::Outcome* outcomes) = 0;
};

/// Returns the fastest implementation of DrawOrders that this processor can run.
template <class Id>
std::unique_ptr<DrawOrders> make_draw_orders(const device::TablesView<Id>& graph);

/// Functions that are compiled for one family of processors. The caller must make sure that the processor on which they
/// run belongs to that family.
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
