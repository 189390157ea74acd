#include "cairn/sim/host/lockstep/lockstep.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cairn/core/support/processor.h"

namespace cairn::sim {
namespace {

constexpr std::int64_t kShortPositions = 0x7FFE;
constexpr std::int64_t kShortSlots = 0xFFFF;
constexpr std::int64_t kMostPadding = 16;  // entries by which a row is rounded up, at most (kTransposed in vectors.h)
// If the arrays are larger than this, they do not stay in the cache, and evaluating candidates in lanes is slower than
// evaluating them one by one.
constexpr std::int64_t kCacheBytes = std::int64_t{16} << 20;

std::vector<ProcessorFamily> find_families() {
  std::vector<ProcessorFamily> found;
#if defined(__x86_64__)
  if (core::processor() == core::Processor::avx512) found.push_back(avx512());
  if (core::processor() != core::Processor::any) found.push_back(avx2());
#endif
  found.push_back(any_processor());
  return found;
}

}  // namespace

std::span<const ProcessorFamily> families() {
  static const std::vector<ProcessorFamily> found = find_families();
  return found;
}

template <class Id>
std::unique_ptr<Lockstep<Id>> make_lockstep(const device::TablesView<Id>& graph, std::int64_t longest) {
  using Of = Lockstep<Id>;
  const std::int64_t values = graph.value_count;
  const bool recomputes = longest > graph.node_count, is_short = longest <= kShortPositions;
  const bool costs_fit = graph.cost_once < INT64_MAX / Of::kMostOccurrences;
  const bool slots_fit =
      !recomputes || (values + kMostPadding) * (Of::kMostOccurrences + 1) <= (is_short ? kShortSlots : INT32_MAX);
  if (!costs_fit || !slots_fit || longest > INT32_MAX / 2 || values == 0) return nullptr;
  for (const ProcessorFamily& family : families()) {
    // An evaluation keeps two vectors of step numbers per value: the step that produces the value, and the step that
    // reads it last. With recomputation, it keeps two vectors per occurrence of a value. Four occurrences of each value
    // are assumed, i.e. 8 vectors per value.
    if (values * family.vector_bytes * (recomputes ? 8 : 2) > kCacheBytes) continue;
    if constexpr (std::is_same_v<Id, std::uint16_t>)
      return family.lockstep16(graph, static_cast<std::int32_t>(longest));
    if constexpr (std::is_same_v<Id, std::uint32_t>)
      return family.lockstep32(graph, static_cast<std::int32_t>(longest));
  }
  return nullptr;
}

template <class Id>
std::unique_ptr<DrawOrders> make_draw_orders(const device::TablesView<Id>& graph) {
  if constexpr (std::is_same_v<Id, std::uint16_t>) return families().front().draw_orders16(graph);
  if constexpr (std::is_same_v<Id, std::uint32_t>) return families().front().draw_orders32(graph);
}

template std::unique_ptr<Lockstep<std::uint16_t>> make_lockstep(const device::TablesView<std::uint16_t>&, std::int64_t);
template std::unique_ptr<Lockstep<std::uint32_t>> make_lockstep(const device::TablesView<std::uint32_t>&, std::int64_t);
template std::unique_ptr<DrawOrders> make_draw_orders(const device::TablesView<std::uint16_t>&);
template std::unique_ptr<DrawOrders> make_draw_orders(const device::TablesView<std::uint32_t>&);

}  // namespace cairn::sim
