#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Writes a sequence of numbers as a text. Two sequences are equal if their texts are.
class NumberText {
 public:
  void add(std::int64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Writes a description of a block of nodes without names and ids: if the texts of two blocks are equal, so are their
/// structure, costs and sizes. `lists` are the nodes of the block in topological order, for example forward and
/// backward nodes. The functions of `facts` write what else must be equal: node(v), entering(x) for a value x from
/// outside where a node reads it, and output(x) for each value that the block makes. O(nodes + inputs + outputs) of the
/// block.
template <class Facts>
NumberText block_form(const core::Graph& graph, std::initializer_list<std::span<const core::NodeId>> lists,
                      const Facts& facts) {
  NumberText form;
  std::unordered_map<core::NodeId, std::size_t> place;          // index of each node in the block
  std::unordered_map<core::ValueId, std::size_t> from_outside;  // values from outside, numbered by first appearance
  for (const auto nodes : lists) {
    form.add(static_cast<std::int64_t>(nodes.size()));
    for (const core::NodeId v : nodes) place.emplace(v, place.size());
  }
  for (const auto nodes : lists) {
    for (const core::NodeId v : nodes) {
      form.add(graph.cost(v));
      form.add(graph.scratch(v));
      form.add(graph.pinned(v) ? 1 : 0);
      facts.node(form, v);
      form.add(static_cast<std::int64_t>(graph.inputs(v).size()));
      for (const core::ValueId x : graph.inputs(v)) {
        if (const auto maker = place.find(graph.producer(x)); maker != place.end()) {
          form.add(static_cast<std::int64_t>(maker->second));
          form.add(graph.output_ref(x).output);
        } else {
          form.add(-1 - static_cast<std::int64_t>(from_outside.emplace(x, from_outside.size()).first->second));
          form.add(graph.value_size(x));
          facts.entering(form, x);
        }
      }
      form.add(graph.output_count(v));
      for (const core::ValueId x : graph.outputs(v)) {
        form.add(graph.value_size(x));
        facts.output(form, x, [&](core::NodeId reader) { return place.contains(reader); });
      }
    }
  }
  return form;
}

}  // namespace cairn::solvers
