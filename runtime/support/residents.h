#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/runtime/support/host_arena.h"

namespace cairn::runtime {

/// Fills one resident tensor with its initial values. Every element depends only on the seed, on the resident's index
/// and on the element's own index. If Resident::master_of is set, it takes the place of the resident's index, so a
/// weight and its fp32 copy get the same values. Elements of bf16 tensors are rounded. `bytes` must be as long as the
/// tensor. Throws InputError if the initialisation does not suit the tensor's type or scale.
void fill_resident(const core::Resident& resident, std::int32_t index, std::uint64_t seed, std::span<std::byte> bytes);

/// Returns, for each resident tensor, whether an execution needs its values. Optimizer state that no op updates only
/// counts as memory; its values are not needed. O(residents + nodes).
std::vector<bool> executed_residents(const core::Graph& graph);

/// Returns whether a training step of the graph changes weights. If so, the next step gives different results.
bool updates_weights(const core::Graph& graph);

/// Returns the number L of valid ids or labels for the op of node v: 0 .. L - 1 are valid. The op must read ids or
/// labels.
std::int64_t index_limit(const core::Graph& graph, core::NodeId v);

/// Throws core::Error at the first of `count` integers that is not in [0, limit). `what` is the name of the integers in
/// the message.
void check_range(std::string_view what, const std::int32_t* values, std::int64_t count, std::int64_t limit);

/// Checks the ids or labels of the resident tensor `index` against the limits of all ops that read the tensor. `bytes`
/// are the tensor's elements. Throws InputError, which names the tensor, if an id or label is out of range.
void check_indices(const core::Graph& graph, std::int32_t index, std::span<const std::byte> bytes);

/// Places all resident tensors in one allocation. offsets[i] is the offset of tensor i in bytes, or -1 for a tensor
/// that an execution does not need (executed_residents).
struct ResidentLayout {
  explicit ResidentLayout(const core::Graph& graph);
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

/// The resident tensors of one execution, in one allocation.
class Residents {
 public:
  /// Returns the bytes that the constructor will allocate.
  static std::int64_t bytes_needed(const core::Graph& graph);

  /// Allocates and fills the tensors. Throws MemoryError if they do not fit into memory. Throws InputError as
  /// fill_resident() and check_indices() do.
  Residents(const core::Graph& graph, std::uint64_t seed);

  /// Gives all tensors the initial values that `seed` determines. Throws InputError as the constructor does.
  void fill(const core::Graph& graph, std::uint64_t seed);

  /// Returns the bytes of one tensor, or an empty span for a tensor that an execution does not need.
  std::span<std::byte> at(std::int32_t index) const { return tensors_[static_cast<std::size_t>(index)]; }

 private:
  Arena arena_;
  std::vector<std::span<std::byte>> tensors_;
};

}  // namespace cairn::runtime
