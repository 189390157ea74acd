#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// The data that graphs share if they differ only in sizes, costs and scratch.
struct Graph::Structure {
  std::string name;
  // Per node:
  std::vector<std::string> names;
  std::vector<std::uint8_t> backward, pinned;
  std::vector<NodeId> forward;
  std::vector<std::optional<Op>> ops;
  std::vector<std::int32_t> value_begin{0}, input_begin{0};
  std::vector<ValueId> inputs;
  // Per value:
  std::vector<std::string> output_names;
  std::vector<std::uint8_t> keep, stays;
  std::vector<ValueId> inplace;
  std::vector<NodeId> producer;
  std::vector<std::int32_t> reader_begin{0};
  std::vector<NodeId> readers;
  // Neighbours of each node. These lists are empty if every node has one output, because the neighbours are then the
  // same as the node's inputs and readers.
  std::vector<std::int32_t> predecessor_begin, successor_begin;
  std::vector<NodeId> predecessors, successors;
  std::vector<NodeId> order;
  bool order_given = false;
  bool any_pinned = false;
  std::vector<Resident> residents;
  std::int64_t resident_bytes = 0;

  bool single_output() const { return producer.size() == value_begin.size() - 1; }
};

struct Graph::Data {
  std::shared_ptr<const Structure> structure;
  CostUnit cost_unit;
  std::vector<std::int64_t> cost, scratch;
  std::vector<std::int64_t> size;       ///< size of each value
  std::vector<std::int64_t> node_size;  ///< size of each node; empty if every node has one output
  std::optional<HostMemory> host_memory = {};
  bool executable = true;  ///< whether all ops and residents agree with the sizes

  /// Recomputes node_size after the entries of `size` have changed.
  void add_up_sizes() {
    if (structure->single_output()) return;
    node_size.assign(cost.size(), 0);
    for (std::size_t x = 0; x < size.size(); ++x) node_size[structure->producer[x]] += size[x];
  }

  GraphView view() const {
    const Structure& s = *structure;
    const bool single = s.single_output();
    return {.node_count = static_cast<NodeId>(cost.size()),
            .value_count = static_cast<ValueId>(size.size()),
            .single_output = single,
            .cost = cost.data(),
            .scratch = scratch.data(),
            .node_size = single ? size.data() : node_size.data(),
            .pinned = s.pinned.data(),
            .value_begin = s.value_begin.data(),
            .input_begin = s.input_begin.data(),
            .inputs = s.inputs.data(),
            .predecessor_begin = single ? s.input_begin.data() : s.predecessor_begin.data(),
            .predecessors = single ? s.inputs.data() : s.predecessors.data(),
            .successor_begin = single ? s.reader_begin.data() : s.successor_begin.data(),
            .successors = single ? s.readers.data() : s.successors.data(),
            .size = size.data(),
            .keep = s.keep.data(),
            .producer = s.producer.data(),
            .reader_begin = s.reader_begin.data(),
            .readers = s.readers.data()};
  }
};

}  // namespace cairn::core
