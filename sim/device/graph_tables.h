#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/device/transfers/transfer.h"

namespace cairn::sim::device {

/// One node, as rewind() in sim/device/candidate_profile.h reads it. A GPU reads a record by two loads of 128 bits,
/// because it is aligned to 32 bytes and consists of 64-bit words. Two records fit into a cache line.
struct alignas(32) NodeRecord {
  std::uint64_t held;  ///< size of the node's first output in bytes, plus kMark; 0 bytes if nothing reads or keeps it
  std::int64_t extra;  ///< bytes that are added while the node runs: those of all its outputs, and its scratch
  std::int64_t cost;
  std::uint64_t inputs;  ///< begin() in the lower half, end() in the upper half

  static std::uint64_t range(std::int32_t begin, std::int32_t end) {
    return static_cast<std::uint64_t>(end) << 32 | static_cast<std::uint32_t>(begin);
  }
  /// Returns the index in TablesView::inputs of the node's first input.
  CAIRN_HD std::int32_t begin() const { return static_cast<std::int32_t>(inputs & 0xFFFFFFFFU); }
  /// Returns the index after that of the node's last input.
  CAIRN_HD std::int32_t end() const { return static_cast<std::int32_t>(inputs >> 32); }
};
/// A bit that ValueWords (sim/device/candidate_profile.h) adds to the bytes of a value that is not in memory, so that
/// the value's word is not 0 even if the value has 0 bytes. Sums of 64-bit words are modulo 2^64. So in a sum of such
/// words, an even number of marks vanishes, and an odd number of marks leaves one mark, which the reader of the sum
/// masks out.
inline constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

/// Four ids of nodes, which are read in one load. A list of ids whose length is not a multiple of four is filled up
/// with copies of its last id.
template <class Id>
struct alignas(4 * sizeof(Id)) FourIds {
  Id id[4];
};

/// One value, as OrderLanes in sim/device/drawing/order_lanes.h reads it.
template <class Sum>
struct alignas(4 * sizeof(Sum)) ValueRecord {
  std::int32_t begin;  ///< index in TablesView::reader_fours of the value's first readers
  std::int32_t end;    ///< index after that of its last readers
  Sum taken;           ///< for a first output, the sizes of all the node's outputs plus its scratch; else 0
  Sum freed;           ///< size of the value; 0 if it is kept
};

/// The memory that values and nodes take, in bytes or in units of TablesView::unit bytes.
template <class Sum>
struct Amounts {
  const ValueRecord<Sum>* values = nullptr;
  const Sum* size = nullptr;     ///< size of each value
  const Sum* outputs = nullptr;  ///< total size of the outputs of each node; only if some node has several outputs
  const Sum* scratch = nullptr;  ///< scratch of each node
};

/// A graph as plain arrays in a Machine's memory, for the simulator's inner loops. Id is std::uint16_t or
/// std::uint32_t, as in ScheduleBatch.
///
/// For each of the n nodes, value v is the first output of node v. The second and further outputs of all nodes are the
/// values from n on, ordered by node. If every node has one output, there are no such values.
template <class Id>
struct TablesView {
  std::int32_t node_count = 0, value_count = 0;
  std::int32_t edge_count = 0;  ///< sum over all nodes of the number of predecessors
  std::int32_t level_count = 0, pinned_count = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t cost_once = 0;  ///< cost of running every node once
  const NodeRecord* nodes = nullptr;
  const std::int32_t* predecessor_begin = nullptr;
  const Id* predecessors = nullptr;
  const Id* edge_reader = nullptr;  ///< for each entry of `predecessors`, the node that has this predecessor
  /// Nodes sorted by level, then by number. The level of a node is the number of edges on the longest path that ends at
  /// it.
  const Id* by_level = nullptr;
  const std::int32_t* level_begin = nullptr;
  // The predecessors of all nodes, node by node in the order of by_level. In draw_inputs, the predecessors of node
  // by_level[i] begin at index draw_begin[i].
  const std::int32_t* draw_begin = nullptr;
  const FourIds<Id>* draw_inputs = nullptr;
  const FourIds<Id>* reader_fours = nullptr;  ///< the readers of all values; see ValueRecord
  const std::uint8_t* pinned = nullptr;
  const std::int64_t* cost = nullptr;
  // Per value:
  // Word with which ValueWords (sim/device/candidate_profile.h) starts for this value: 0 if the value counts as in
  // memory after the last step, else its bytes plus kMark. A value counts as in memory then in two cases: it is kept,
  // or it is the first output of a node that every schedule must run although its outputs are neither read nor kept.
  const std::uint64_t* at_end = nullptr;
  /// A bit per value, 32 in a word: whether the value counts as in memory after the last step.
  const std::uint32_t* bits_at_end = nullptr;
  const std::int32_t* reader_begin = nullptr;
  const Id* readers = nullptr;
  const std::uint8_t* keep = nullptr;
  // further_begin, producer and inputs are set only if some node has several outputs. Otherwise value v is the output
  // of node v.
  const std::int32_t* further_begin = nullptr;  ///< for each node, the first of its further outputs
  const Id* producer = nullptr;                 ///< node that makes each value
  /// The values that nodes read. The NodeRecord of a node says which of these entries belong to it.
  const std::int32_t* inputs = nullptr;
  /// Common divisor, in bytes, of all sizes and all scratch; in_units counts in this unit. 0 if sums of amounts in this
  /// unit do not fit into 31 bits; then only in_bytes may be used.
  std::int64_t unit = 0;
  Amounts<std::int32_t> in_units;
  Amounts<std::int64_t> in_bytes;
  bool has_scratch = false;       ///< whether some node has scratch
  bool negative_scratch = false;  ///< whether some node has negative scratch
  std::uint32_t wait_shift = 0;   ///< argument `shift` of waiting_time() (sim/device/drawing/random_order.h)

  CAIRN_HD bool single_output() const { return value_count == node_count; }
  /// Returns the value at index `place` of the list of inputs; NodeRecord::begin() and end() are indices into this
  /// list.
  template <bool kSingle>
  CAIRN_HD std::uint32_t input(std::int32_t place) const {
    if constexpr (kSingle) {
      return predecessors[place];
    } else {
      return static_cast<std::uint32_t>(inputs[place]);
    }
  }
  template <class Sum>
  CAIRN_HD const Amounts<Sum>& amounts() const {
    if constexpr (sizeof(Sum) == sizeof(std::int32_t)) {
      return in_units;
    } else {
      return in_bytes;
    }
  }
};

/// Returns, for each node, its level: the number of nodes before it on the longest path that ends at it. O(nodes +
/// edges).
std::vector<std::int32_t> node_levels(const core::Graph& graph);

/// Returns all nodes sorted by level, then by number, for the levels that node_levels() returns. O(n log n).
std::vector<core::NodeId> nodes_by_level(const std::vector<std::int32_t>& levels);

/// The arrays that a TablesView points to.
template <class Id, template <class> class ArrayOf>
struct TableArrays {
  ArrayOf<NodeRecord> nodes;
  ArrayOf<std::uint64_t> at_end;
  ArrayOf<std::uint32_t> bits_at_end;
  ArrayOf<std::int32_t> predecessor_begin, reader_begin, level_begin, draw_begin, further_begin, inputs;
  ArrayOf<Id> predecessors, readers, edge_reader, by_level, producer;
  ArrayOf<FourIds<Id>> draw_inputs, reader_fours;
  ArrayOf<ValueRecord<std::int32_t>> unit_values;
  ArrayOf<ValueRecord<std::int64_t>> values;
  ArrayOf<std::uint8_t> keep, pinned;
  ArrayOf<std::int32_t> unit_size, unit_outputs, unit_scratch;
  ArrayOf<std::int64_t> size, outputs, scratch, cost;
};

/// Calls take(a, b, p) for every array of the tables. Here, a is the array in `from`, b the array of the same name in
/// `to`, and p the pointer in `view` that is to point to b.
template <class Id, class From, class To, class Take>
void for_all_tables(const From& from, To& to, TablesView<Id>& view, const Take& take) {
  take(from.nodes, to.nodes, view.nodes);
  take(from.predecessor_begin, to.predecessor_begin, view.predecessor_begin);
  take(from.predecessors, to.predecessors, view.predecessors);
  take(from.edge_reader, to.edge_reader, view.edge_reader);
  take(from.by_level, to.by_level, view.by_level);
  take(from.level_begin, to.level_begin, view.level_begin);
  take(from.draw_begin, to.draw_begin, view.draw_begin);
  take(from.draw_inputs, to.draw_inputs, view.draw_inputs);
  take(from.reader_fours, to.reader_fours, view.reader_fours);
  take(from.pinned, to.pinned, view.pinned);
  take(from.cost, to.cost, view.cost);
  take(from.at_end, to.at_end, view.at_end);
  take(from.bits_at_end, to.bits_at_end, view.bits_at_end);
  take(from.reader_begin, to.reader_begin, view.reader_begin);
  take(from.readers, to.readers, view.readers);
  take(from.keep, to.keep, view.keep);
  take(from.further_begin, to.further_begin, view.further_begin);
  take(from.producer, to.producer, view.producer);
  take(from.inputs, to.inputs, view.inputs);
  take(from.unit_values, to.unit_values, view.in_units.values);
  take(from.values, to.values, view.in_bytes.values);
  take(from.unit_size, to.unit_size, view.in_units.size);
  take(from.unit_outputs, to.unit_outputs, view.in_units.outputs);
  take(from.unit_scratch, to.unit_scratch, view.in_units.scratch);
  take(from.size, to.size, view.in_bytes.size);
  take(from.outputs, to.outputs, view.in_bytes.outputs);
  take(from.scratch, to.scratch, view.in_bytes.scratch);
}

template <class T>
using HostArray = std::vector<T>;

/// The tables of a graph in the host's memory. O(nodes + edges).
template <class Id>
class Tables {
 public:
  explicit Tables(const core::Graph& graph);
  TablesView<Id> view() const;

  /// A copy of the tables in the memory of a Machine.
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
  TablesView<Id> scalars_;
  TableArrays<Id, HostArray> arrays_;
};

}  // namespace cairn::sim::device
