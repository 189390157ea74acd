#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/device/transfer.h"

namespace cairn::sim::device {

/// One node as the backward pass of sim/device/rewind.h reads it: two to a cache line.
struct NodeRecord {
  std::uint64_t held;  ///< bytes of its first output while in memory for later steps, and kMark
  std::int64_t extra;  ///< bytes that are added while the node runs: all its outputs, and scratch
  std::int64_t cost;
  std::int32_t begin;  ///< indices of its inputs in TablesView::inputs
  std::int32_t end;
};
/// Tells "in memory, of size 0" from "not in memory". Sums of marks vanish modulo 2^64, or are this bit again.
inline constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

/// Amounts of memory, in bytes or in units of several bytes.
template <class Sum>
struct Amounts {
  const Sum* size = nullptr;     ///< size of each value
  const Sum* outputs = nullptr;  ///< size of all values of each node; only if there are further outputs
  const Sum* scratch = nullptr;  ///< scratch of each node
};

/// A graph as plain arrays of a Machine, for the simulator's inner loops. Id is std::uint16_t or std::uint32_t, as in
/// ScheduleBatch.
///
/// Value v is the first output of node v, for each of the n nodes. The second and further outputs of all nodes follow
/// from n on, by node. If every node has one output, there are none of those.
template <class Id>
struct TablesView {
  std::int32_t node_count = 0, value_count = 0;
  std::int32_t edge_count = 0;  ///< number of predecessors of all nodes
  std::int32_t level_count = 0, pinned_count = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t cost_once = 0;  ///< cost of running every node once
  const NodeRecord* nodes = nullptr;
  const std::int32_t* predecessor_begin = nullptr;
  const Id* predecessors = nullptr;
  const Id* edge_reader = nullptr;  ///< node that each entry of `predecessors` belongs to
  const Id* by_level = nullptr;     ///< nodes by the longest path to them, then by number
  const std::int32_t* level_begin = nullptr;
  const std::uint8_t* pinned = nullptr;
  const std::int64_t* cost = nullptr;
  // Per value:
  const std::uint64_t* at_end = nullptr;  ///< NodeRecord::held of a value; 0 if it is kept, or a schedule must make it
  const std::int32_t* reader_begin = nullptr;
  const Id* readers = nullptr;
  const std::uint8_t* keep = nullptr;
  // Set only if there are further outputs; else values are nodes.
  const std::int32_t* further_begin = nullptr;  ///< for each node, the place where its values except the first start
  const Id* producer = nullptr;                 ///< node that makes each value
  const std::int32_t* inputs = nullptr;         ///< values that nodes read; NodeRecord says where those of a node begin
  std::int64_t unit = 0;  ///< common divisor of all sizes and scratches, if sums of them in it take 31 bits; else 0
  Amounts<std::int32_t> in_units;
  Amounts<std::int64_t> in_bytes;
  std::uint32_t wait_shift = 0;  ///< `shift` of waiting_time()

  CAIRN_HD bool single_output() const { return value_count == node_count; }
  /// Returns entry `place` of the inputs that NodeRecord refers to.
  template <bool kSingle>
  CAIRN_HD std::uint32_t input(std::int32_t place) const {
    if constexpr (kSingle) {
      return predecessors[place];
    } else {
      return static_cast<std::uint32_t>(inputs[place]);
    }
  }
  /// Returns amounts in units if Sum has 32 bits, else in bytes.
  template <class Sum>
  CAIRN_HD const Amounts<Sum>& amounts() const {
    if constexpr (sizeof(Sum) == sizeof(std::int32_t)) {
      return in_units;
    } else {
      return in_bytes;
    }
  }
};

/// Returns, for each node, the number of nodes before it on the longest path to it. O(n + m).
std::vector<std::int32_t> node_levels(const core::Graph& graph);

/// The arrays that a TablesView points to.
template <class Id, template <class> class ArrayOf>
struct TableArrays {
  ArrayOf<NodeRecord> nodes;
  ArrayOf<std::uint64_t> at_end;
  ArrayOf<std::int32_t> predecessor_begin, reader_begin, level_begin, further_begin, inputs;
  ArrayOf<Id> predecessors, readers, edge_reader, by_level, producer;
  ArrayOf<std::uint8_t> keep, pinned;
  ArrayOf<std::int32_t> unit_size, unit_outputs, unit_scratch;
  ArrayOf<std::int64_t> size, outputs, scratch, cost;
};

/// Calls take(array, its copy, the pointer to be set to it) for all arrays.
template <class Id, class From, class To, class Take>
void for_all_tables(const From& from, To& to, TablesView<Id>& view, const Take& take) {
  take(from.nodes, to.nodes, view.nodes);
  take(from.predecessor_begin, to.predecessor_begin, view.predecessor_begin);
  take(from.predecessors, to.predecessors, view.predecessors);
  take(from.edge_reader, to.edge_reader, view.edge_reader);
  take(from.by_level, to.by_level, view.by_level);
  take(from.level_begin, to.level_begin, view.level_begin);
  take(from.pinned, to.pinned, view.pinned);
  take(from.cost, to.cost, view.cost);
  take(from.at_end, to.at_end, view.at_end);
  take(from.reader_begin, to.reader_begin, view.reader_begin);
  take(from.readers, to.readers, view.readers);
  take(from.keep, to.keep, view.keep);
  take(from.further_begin, to.further_begin, view.further_begin);
  take(from.producer, to.producer, view.producer);
  take(from.inputs, to.inputs, view.inputs);
  take(from.unit_size, to.unit_size, view.in_units.size);
  take(from.unit_outputs, to.unit_outputs, view.in_units.outputs);
  take(from.unit_scratch, to.unit_scratch, view.in_units.scratch);
  take(from.size, to.size, view.in_bytes.size);
  take(from.outputs, to.outputs, view.in_bytes.outputs);
  take(from.scratch, to.scratch, view.in_bytes.scratch);
}

/// The tables of a graph in the host's memory. O(n + m).
template <class Id>
class Tables {
 public:
  explicit Tables(const core::Graph& graph);
  TablesView<Id> view() const;

  /// The tables in the memory of a Machine.
  template <class Machine>
  struct Copy {
    TablesView<Id> view;
    TableArrays<Id, Machine::template ArrayOf> arrays;
  };
  template <class Machine>
  Copy<Machine> upload(Machine& machine) const {
    Copy<Machine> copy{scalars_, {}};
    for_all_tables(arrays_, copy.arrays, copy.view, [&](const auto& from, auto& to, auto& pointer) {
      to = uploaded(machine, std::span(from));
      pointer = to.data();
    });
    return copy;
  }

 private:
  template <class T>
  using Vector = std::vector<T>;

  TablesView<Id> scalars_;
  TableArrays<Id, Vector> arrays_;
};

}  // namespace cairn::sim::device
