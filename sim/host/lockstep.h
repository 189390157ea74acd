#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/rewind.h"

/// The part of the host's simulator that handles several candidates at once, side by side in the processor's vectors.
namespace cairn::sim {

/// The steps of a candidate, all of them nodes of the graph.
template <class Id>
struct Row {
  const Id* steps = nullptr;
  std::int32_t length = 0;
};

/// Evaluates as many candidates at once as fit side by side into the processor's vectors. A position in a vector, the
/// lane, belongs to one candidate.
///
/// The positions of all lanes' occurrences of a node lie side by side. So the last read of an occurrence is a maximum
/// over the readers' positions, for all lanes at once. Scalar code remains where lanes touch different places: to note
/// where a node occurs, and to add what an occurrence frees at the step of its last read. O(T + m) per lane.
///
/// Holds work arrays of some lanes * (n + T) * 40 bytes, so each thread needs its own.
template <class Id>
class Lockstep {
 public:
  virtual ~Lockstep() = default;
  /// Number of candidates that run() takes.
  virtual int lanes() const = 0;
  /// Evaluates candidates that have as many steps as there are nodes: without recomputation, or invalid.
  virtual void run_orders(const Row<Id>* rows, int count, device::Outcome* outcomes) = 0;
  /// Evaluates any schedules. Leaves out those with more than kMostOccurrences of one node: false in `done`.
  virtual void run(const Row<Id>* rows, int count, device::Outcome* outcomes, bool* done) = 0;

  static constexpr int kMostOccurrences = 8;
};

/// Returns the fastest Lockstep for this processor and graph, for schedules of up to `longest` steps; nullptr if its
/// arrays would not fit into a cache, or sums of costs not into 64 bits.
template <class Id>
std::unique_ptr<Lockstep<Id>> make_lockstep(const device::TablesView<Id>& graph, std::int64_t longest);

/// Computes the keys by which sim/generator.h sorts nodes, for as many candidates at once as there are lanes. Holds
/// work arrays of some lanes * n words, so each thread needs its own.
class DrawKeys {
 public:
  virtual ~DrawKeys() = default;
  virtual int lanes() const = 0;
  /// Draws candidates first .. first + lanes() - 1.
  virtual void draw(std::uint64_t seed, std::int64_t first) = 0;
  /// Returns the keys of one lane by node, valid until the next call.
  virtual const std::uint32_t* keys(int lane) = 0;
};

/// Returns the fastest DrawKeys for this processor.
template <class Id>
std::unique_ptr<DrawKeys> make_draw_keys(const device::TablesView<Id>& graph);

/// Functions compiled once for each family of processors; the caller must make sure that this processor belongs to it.
struct ProcessorFamily {
  template <class Id>
  using MakeLockstep = std::unique_ptr<Lockstep<Id>> (*)(const device::TablesView<Id>& graph, std::int32_t longest);
  template <class Id>
  using MakeDrawKeys = std::unique_ptr<DrawKeys> (*)(const device::TablesView<Id>& graph);

  int vector_bytes;
  MakeLockstep<std::uint16_t> lockstep16;
  MakeLockstep<std::uint32_t> lockstep32;
  MakeDrawKeys<std::uint16_t> draw_keys16;
  MakeDrawKeys<std::uint32_t> draw_keys32;
};

ProcessorFamily any_processor();
ProcessorFamily avx2();
ProcessorFamily avx512();

/// Returns the families that this processor belongs to, the fastest first.
std::span<const ProcessorFamily> families();

}  // namespace cairn::sim
