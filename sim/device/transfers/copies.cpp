#include "cairn/sim/device/transfers/copies.h"

#include "cairn/core/link.h"

namespace cairn::sim::device {

std::vector<MovedValue> moved_values(const core::Graph& graph) {
  const core::GraphView& view = graph.view();
  std::vector<MovedValue> values(static_cast<std::size_t>(graph.value_count()));
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    const core::OutputRef ref = graph.output_ref(x);
    const std::int32_t further = graph.node_count() + view.value_begin[ref.node] - ref.node + ref.output - 1;
    MovedValue& value = values[x];
    value.bytes = graph.value_size(x);
    value.producer = ref.node;
    value.number = ref.output == 0 ? ref.node : further;
    values[value.number].id = x;
    if (graph.pinned(ref.node) || graph.value_stays(x) || value.bytes == 0) continue;
    value.time = graph.host_memory() ? core::copy_cost(graph.host_memory()->link, value.bytes, graph.cost_unit()) : 0;
  }
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (const core::ValueId taken = graph.inplace(x); taken != core::kNoValue) values[taken].time = -1;
  }
  return values;
}

bool is_duplex(const core::Graph& graph) { return !graph.host_memory() || graph.host_memory()->link.duplex; }

}  // namespace cairn::sim::device
