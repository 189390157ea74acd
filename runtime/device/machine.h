#pragma once

#include <cstdint>
#include <optional>

#include "cairn/runtime/device/library.h"

/// What a device computes is written once, in this folder, as templates over a Machine and its Teams (core/team.h): the
/// host runs it with a Team of one, cuda/ with warps and thread blocks. Here is no CUDA.
///
/// A Machine executes what it is given, one thing after the other; memory is the machine's own. It has
///
///   launch(functor, teams, shared_bytes = 0)
///       functor(team, index) for every index in [0, teams), teams in any order and at once. F::kThreads is the size of
///       a team on a device: 32 (a warp) to 1024, a multiple of 32. The functor is trivially copyable, at most 4 KB;
///       its result may depend on the team's size by rounding only. shared_bytes is per team.
///   fill(address, byte, bytes)             like memset
///   gemm(shape, operands, workspace)       and gemm_workspace(shape): bytes that it needs
///   conv(shape, operands, workspace)       and conv_workspace(shape): nullopt where no library does it
///   sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace)
///       stable, ascending: sorted_keys[i] = keys[sorted_places[i]]; keys in [0, limit); sort_workspace(count) bytes
///   shared_limit()                         most shared_bytes of a launch
namespace cairn::runtime::device {

/// Goes through an op's calls without executing any, so that its Scratch counts what it needs.
template <class Machine>
class Sizing {
 public:
  explicit Sizing(Machine& machine) : machine_(machine) {}

  template <class F>
  void launch(const F&, std::int64_t, std::int64_t = 0) {}
  void fill(void*, int, std::int64_t) {}
  void gemm(const GemmShape&, const GemmOperands&, void*) {}
  std::int64_t gemm_workspace(const GemmShape& shape) { return machine_.gemm_workspace(shape); }
  void conv(const ConvShape&, const ConvOperands&, void*) {}
  std::optional<std::int64_t> conv_workspace(const ConvShape& shape) { return machine_.conv_workspace(shape); }
  void sort_by_key(const std::int32_t*, std::int32_t*, std::int32_t*, std::int64_t, std::int64_t, void*) {}
  std::int64_t sort_workspace(std::int64_t count) { return machine_.sort_workspace(count); }
  std::int64_t shared_limit() const { return machine_.shared_limit(); }

 private:
  Machine& machine_;
};

/// Blocks of `size` that cover n.
constexpr std::int64_t blocks_of(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

}  // namespace cairn::runtime::device
