#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "cairn/sim/device/graph_tables.h"

// The header lockstep_lanes.h includes this one, and explains why the namespace has no name.
namespace cairn::sim {
namespace {

/// The amounts of memory of a graph in 32 bits, if they fit. Narrow amounts need half the bytes of the caches, and half
/// as many instructions.
///
/// The memory of a large graph can need 64 bits although its amounts fit into 32. Then only the changes of memory
/// within `steps_at_once` successive steps fit into 31 bits, and sums must begin anew after so many steps.
template <class Id>
class NarrowAmounts {
 public:
  explicit NarrowAmounts(const device::TablesView<Id>& graph) {
    if (graph.unit > 0) {
      unit_ = graph.unit;
      amounts_ = graph.in_units;
      return;
    }
    const std::int64_t unit = divisor(graph);
    const std::int64_t steps = std::numeric_limits<std::int32_t>::max() / (largest_change(graph) / unit + 1) - 1;
    if (steps < kFewest) return;
    unit_ = unit;
    steps_at_once_ = static_cast<std::int32_t>(steps / kFewest * kFewest);
    const auto in_units = [&](const std::int64_t* bytes, std::int32_t count, std::vector<std::int32_t>& units) {
      if (bytes == nullptr) return static_cast<const std::int32_t*>(nullptr);
      units.resize(static_cast<std::size_t>(count));
      std::transform(bytes, bytes + count, units.begin(),
                     [=](std::int64_t amount) { return static_cast<std::int32_t>(amount / unit); });
      return static_cast<const std::int32_t*>(units.data());
    };
    amounts_.size = in_units(graph.in_bytes.size, graph.value_count, size_);
    amounts_.outputs = in_units(graph.single_output() ? nullptr : graph.in_bytes.outputs, graph.node_count, outputs_);
    amounts_.scratch = in_units(graph.in_bytes.scratch, graph.node_count, scratch_);
  }
  NarrowAmounts(const NarrowAmounts&) = delete;
  NarrowAmounts& operator=(const NarrowAmounts&) = delete;

  bool fit() const { return unit_ > 0; }
  const device::Amounts<std::int32_t>& amounts() const { return amounts_; }
  std::int64_t unit() const { return unit_; }  ///< bytes
  std::int32_t steps_at_once() const { return steps_at_once_; }

 private:
  /// Fewest steps for which beginning anew pays. A multiple of the elements of each vector.
  static constexpr std::int64_t kFewest = 64;

  static std::int64_t divisor(const device::TablesView<Id>& graph) {
    std::int64_t unit = 0;
    for (std::int32_t x = 0; x < graph.value_count; ++x) unit = std::gcd(unit, graph.in_bytes.size[x]);
    for (std::int32_t v = 0; v < graph.node_count; ++v) unit = std::gcd(unit, graph.in_bytes.scratch[v]);
    return std::max<std::int64_t>(unit, 1);
  }

  /// Returns a bound, in bytes, on what a step adds to the memory, frees, or needs as scratch: the sizes of what its
  /// node reads and makes, and the scratch.
  static std::int64_t largest_change(const device::TablesView<Id>& graph) {
    std::vector<std::int64_t> change(static_cast<std::size_t>(graph.node_count));
    for (std::int32_t v = 0; v < graph.node_count; ++v) change[v] = std::abs(graph.in_bytes.scratch[v]);
    for (std::int32_t x = 0; x < graph.value_count; ++x) {
      const std::int64_t size = graph.in_bytes.size[x];
      change[x < graph.node_count ? x : static_cast<std::int32_t>(graph.producer[x])] += size;
      for (std::int32_t e = graph.reader_begin[x]; e < graph.reader_begin[x + 1]; ++e) change[graph.readers[e]] += size;
    }
    return change.empty() ? 0 : *std::max_element(change.begin(), change.end());
  }

  std::int64_t unit_ = 0;
  std::int32_t steps_at_once_ = std::numeric_limits<std::int32_t>::max();
  device::Amounts<std::int32_t> amounts_;
  std::vector<std::int32_t> size_, outputs_, scratch_;
};

}  // namespace
}  // namespace cairn::sim
