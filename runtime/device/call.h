#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>

#include "cairn/core/op.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/device/library.h"
#include "cairn/runtime/support/extents.h"

/// The kernels in this folder are templates. Their parameters are a Machine, which runs kernels, and Teams, which are
/// groups of cooperating threads (core/machine/). On the host, a team is one thread. With CUDA (folder cuda/), a team
/// is a warp or a thread block. This folder itself makes no calls to CUDA. The bits of a result depend only on the
/// arguments and on the kind of machine.
namespace cairn::runtime::device {

/// An argument of an op, in the memory of the machine that executes the op. The data begins at a multiple of 16 bytes.
struct Tensor {
  const void* data = nullptr;
  core::ElementType type = core::ElementType::f32;
  Extents shape;
};

/// Divides an op's scratch among the temporary arrays that the op needs. Without a base address, only counts the bytes
/// of these arrays. So the same code both computes how much scratch an op needs and uses the scratch.
class Scratch {
 public:
  Scratch() = default;
  /// Makes an object that only counts the bytes that an op takes. `given` is the number of bytes of scratch that the op
  /// will have, so that the op can choose an algorithm. The count may exceed `given`.
  explicit Scratch(std::int64_t given) : given_(given) {}
  Scratch(void* base, std::int64_t bytes) : base_(static_cast<std::byte*>(base)), given_(bytes), counts_(false) {}

  /// Returns memory for `count` values within the scratch, aligned to 256 bytes. Returns nullptr if this object only
  /// counts bytes.
  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAlignment = 256;
    const std::int64_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    used_ = begin + count * static_cast<std::int64_t>(sizeof(T));
    if (counts_) return nullptr;
    if (used_ > given_) throw std::logic_error("an op took more scratch than it asked for");
    return reinterpret_cast<T*>(base_ + begin);
  }
  std::int64_t used() const { return used_; }
  /// Returns the number of bytes of scratch that the op has, or nullopt if this number is not known yet. With more
  /// scratch, an op can choose a faster algorithm.
  std::optional<std::int64_t> given() const { return given_; }
  bool counts() const { return counts_; }

 private:
  std::byte* base_ = nullptr;
  std::optional<std::int64_t> given_;
  std::int64_t used_ = 0;
  bool counts_ = true;
};

/// One execution of an op. The op must have passed core::check_op and the check of types when the graph was built. If
/// `scratch` only counts bytes, the tensors have no memory (null pointers), and nothing is executed.
struct Call {
  const core::Op& op;
  std::span<const Tensor> args;
  void* out = nullptr;
  Library& library;
  bool tf32 = false;  ///< whether products may round fp32 factors to TF32
  Scratch scratch;
  std::span<void* const> more = {};  ///< outputs beyond the first; empty while only counting
  const std::uint64_t* dropout_key =
      nullptr;  ///< the step's dropout_key(), in the machine's memory; nullptr stands for the key 0

  const core::OpAttrs& attrs() const { return op.attrs; }
  Extents shape(std::size_t i) const { return args[i].shape; }
  Extents out_shape() const { return op.shape; }
  template <class T>
  const T* arg(std::size_t i) const {
    return static_cast<const T*>(args[i].data);
  }
  /// Returns the elements of an argument that the op overwrites (core::updated_args).
  float* updated(std::size_t i) const { return const_cast<float*>(arg<float>(i)); }
  template <class T>
  T* output(std::size_t k = 0) const {
    if (k > 0) return more.empty() ? nullptr : static_cast<T*>(more[k - 1]);
    return static_cast<T*>(out);
  }
  void gemm(const GemmShape& product, const GemmOperands& operands, void* workspace) {
    if (!scratch.counts()) library.gemm(product, operands, workspace);
  }
};

/// Returns the shape of the convolution that a call computes. The call's op is conv2d, or computes a gradient of
/// conv2d.
inline ConvShape conv_shape(const Call& call) {
  using core::OpKind;
  const OpKind kind = call.op.kind;
  const Extents first = call.shape(0), second = call.shape(1), out = call.out_shape();
  const Extents x = kind == OpKind::conv2d ? first : kind == OpKind::conv2d_grad_input ? out : second;
  const Extents w = kind == OpKind::conv2d_grad_weight ? out : second;
  const Extents y = kind == OpKind::conv2d ? out : first;
  ConvShape s;
  s.kind = kind == OpKind::conv2d              ? ConvKind::forward
           : kind == OpKind::conv2d_grad_input ? ConvKind::grad_input
                                               : ConvKind::grad_weight;
  s.tf32 = call.tf32;
  s.type = call.op.type;
  s.images = x[0];
  s.in_h = x[1];
  s.in_w = x[2];
  s.in_c = x[3];
  s.kernel_h = w[1];
  s.kernel_w = w[2];
  s.out_h = y[1];
  s.out_w = y[2];
  s.out_c = y[3];
  s.stride = call.attrs().stride;
  s.pad = call.attrs().pad;
  return s;
}

/// Launches an op's kernels on a Machine. Launches nothing if the call only counts how much scratch the op needs
/// (Scratch::counts()).
template <class Machine>
class Launcher {
 public:
  Launcher(Machine& machine, const Call& call) : machine_(machine), executes_(!call.scratch.counts()) {}

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) {
    if (executes_) machine_.launch(functor, teams, shared_bytes);
  }
  void fill(void* address, int byte, std::int64_t bytes) {
    if (executes_) machine_.fill(address, byte, bytes);
  }
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace) {
    if (executes_) machine_.sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace);
  }
  std::int64_t sort_workspace(std::int64_t count) { return machine_.sort_workspace(count); }
  std::int64_t shared_limit() const { return machine_.shared_limit(); }

 private:
  Machine& machine_;
  bool executes_;
};

/// Returns the number of blocks of `size` elements that cover n elements.
constexpr std::int64_t blocks_of(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

template <class T>
struct TypeTag {};

/// Calls body(TypeTag<T>), where T is the C++ type for elements of `type`: core::Bf16 for bf16, else float.
template <class F>
void with_storage(core::ElementType type, const F& body) {
  if (type == core::ElementType::bf16) {
    body(TypeTag<core::Bf16>{});
  } else {
    body(TypeTag<float>{});
  }
}

}  // namespace cairn::runtime::device
