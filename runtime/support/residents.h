#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/runtime/support/arena.h"

namespace cairn::runtime {

/// Fills one resident tensor with its initial values. Every element is a pure function of (seed, index, element),
/// rounded if it is stored as bf16. `bytes` must be as long as the tensor. Throws InputError on an initialisation that
/// does not suit its type or scale.
void fill_resident(const core::Resident& resident, std::int32_t index, std::uint64_t seed, std::span<std::byte> bytes);

/// Whether an execution needs the tensor's values. Optimizer state is counted, but no step touches it.
inline bool is_executed(const core::Resident& resident) { return resident.role != core::Resident::Role::optimizer; }

/// The limit below which the ids or labels that the op of v reads must be. The op must read some.
std::int64_t index_limit(const core::Graph& graph, core::NodeId v);

/// Throws core::Error, which calls the integers `what`, at the first of `count` integers that is not in [0, limit).
void check_range(std::string_view what, const std::int32_t* values, std::int64_t count, std::int64_t limit);

/// Throws core::Error, which names the resident, if an id or label that some op of the graph reads is out of range.
void check_indices(const core::Graph& graph, std::int32_t index, std::span<const std::byte> bytes);

/// Offset of every resident tensor in one allocation; -1 for tensors that are not executed.
struct ResidentLayout {
  explicit ResidentLayout(std::span<const core::Resident> residents);
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

/// The resident tensors of one execution, in one allocation.
class Residents {
 public:
  /// Bytes that the constructor will allocate.
  static std::int64_t bytes_needed(std::span<const core::Resident> residents);

  /// Allocates and fills the tensors. Throws MemoryError if they do not fit into memory, InputError as fill_resident.
  Residents(std::span<const core::Resident> residents, std::uint64_t seed);

  /// The bytes of one tensor; empty for optimizer state.
  std::span<std::byte> at(std::int32_t index) const { return tensors_[static_cast<std::size_t>(index)]; }

 private:
  Arena arena_;
  std::vector<std::span<std::byte>> tensors_;
};

}  // namespace cairn::runtime
