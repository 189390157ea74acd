#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/device/transfer.h"

namespace cairn::sim::device {

/// One node as the backward pass of sim/device/rewind.h meets it: two to a cache line.
struct NodeRecord {
  std::uint64_t held;  ///< bytes while in memory for later steps, and kMark
  std::int64_t extra;  ///< bytes that it adds while it runs: size + scratch
  std::int64_t cost;
  std::int32_t begin;  ///< its inputs: places in GraphView::inputs
  std::int32_t end;
};
/// Tells "in memory, of size 0" from "not in memory". Sums of it vanish modulo 2^64, or are this bit again.
inline constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

/// A graph as the simulator's inner loops want it, as plain arrays of a Machine. Id is std::uint16_t or std::uint32_t,
/// as in ScheduleBatch.
template <class Id>
struct TablesView {
  std::int32_t node_count = 0, edge_count = 0;
  std::int32_t level_count = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t cost_once = 0;  ///< of all nodes
  const NodeRecord* nodes = nullptr;
  const std::uint64_t* at_end = nullptr;  ///< NodeRecord::held, or 0 for nodes that a schedule must contain
  const std::int32_t* input_begin = nullptr;
  const Id* inputs = nullptr;
  const std::int32_t* reader_begin = nullptr;
  const Id* readers = nullptr;
  const Id* edge_reader = nullptr;  ///< of each place in `inputs`: who reads there
  const Id* by_level = nullptr;     ///< nodes by the longest path to them, then by number
  const std::int32_t* level_begin = nullptr;
  const std::uint8_t* keep = nullptr;
  std::int64_t unit = 0;  ///< divides all sizes and scratches, if sums of them in it take 31 bits; else 0
  const std::int32_t* unit_size = nullptr;  ///< in units, where there are any
  const std::int32_t* unit_scratch = nullptr;
  const std::int64_t* size = nullptr;  ///< bytes
  const std::int64_t* scratch = nullptr;
  const std::int64_t* cost = nullptr;
  std::uint32_t wait_shift = 0;  ///< see waiting_time()
};

/// Of each node, the nodes before it on the longest path to it. O(n + m).
std::vector<std::int32_t> node_levels(const core::Graph& graph);

/// The same in the host's memory. O(n + m).
template <class Id>
class Tables {
 public:
  explicit Tables(const core::Graph& graph);
  TablesView<Id> view() const;

  /// The same arrays in the memory of a Machine.
  template <class Machine>
  struct Copy;
  template <class Machine>
  Copy<Machine> upload(Machine& machine) const;

 private:
  TablesView<Id> scalars_;
  std::vector<NodeRecord> nodes_;
  std::vector<std::uint64_t> at_end_;
  std::vector<std::int32_t> input_begin_, reader_begin_, level_begin_;
  std::vector<Id> inputs_, readers_, edge_reader_, by_level_;
  std::vector<std::uint8_t> keep_;
  std::vector<std::int32_t> unit_size_, unit_scratch_;
  std::vector<std::int64_t> size_, scratch_, cost_;
};

template <class Id>
template <class Machine>
struct Tables<Id>::Copy {
  template <class T>
  using Array = typename Machine::template ArrayOf<T>;

  TablesView<Id> view;
  Array<NodeRecord> nodes;
  Array<std::uint64_t> at_end;
  Array<std::int32_t> input_begin, reader_begin, level_begin;
  Array<Id> inputs, readers, edge_reader, by_level;
  Array<std::uint8_t> keep;
  Array<std::int32_t> unit_size, unit_scratch;
  Array<std::int64_t> size, scratch, cost;
};

template <class Id>
template <class Machine>
typename Tables<Id>::template Copy<Machine> Tables<Id>::upload(Machine& machine) const {
  Copy<Machine> copy;
  copy.view = scalars_;
  const auto put = [&](const auto& from, auto& to, auto& pointer) {
    to = uploaded(machine, std::span(from));
    pointer = to.data();
  };
  put(nodes_, copy.nodes, copy.view.nodes);
  put(at_end_, copy.at_end, copy.view.at_end);
  put(input_begin_, copy.input_begin, copy.view.input_begin);
  put(inputs_, copy.inputs, copy.view.inputs);
  put(reader_begin_, copy.reader_begin, copy.view.reader_begin);
  put(readers_, copy.readers, copy.view.readers);
  put(edge_reader_, copy.edge_reader, copy.view.edge_reader);
  put(by_level_, copy.by_level, copy.view.by_level);
  put(level_begin_, copy.level_begin, copy.view.level_begin);
  put(keep_, copy.keep, copy.view.keep);
  put(unit_size_, copy.unit_size, copy.view.unit_size);
  put(unit_scratch_, copy.unit_scratch, copy.view.unit_scratch);
  put(size_, copy.size, copy.view.size);
  put(scratch_, copy.scratch, copy.view.scratch);
  put(cost_, copy.cost, copy.view.cost);
  return copy;
}

}  // namespace cairn::sim::device
