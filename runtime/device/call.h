#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "cairn/core/bf16.h"
#include "cairn/core/op.h"
#include "cairn/runtime/internal/extents.h"

namespace cairn::runtime::device {

/// An argument in the memory of the machine that executes. Data begins at 16 bytes.
struct Tensor {
  const void* data = nullptr;
  core::ElementType type = core::ElementType::f32;
  Extents shape;
};

/// Hands out an op's scratch, piece after piece. Without a base it only counts, so that the code that uses scratch also
/// says how much it needs.
class Scratch {
 public:
  Scratch() = default;
  Scratch(void* base, std::int64_t bytes) : base_(static_cast<std::byte*>(base)), bytes_(bytes), counts_(false) {}

  /// Room for `count` values at an address aligned to 256 bytes within the scratch; nullptr while counting.
  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAlignment = 256;
    const std::int64_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    used_ = begin + count * static_cast<std::int64_t>(sizeof(T));
    if (counts_) return nullptr;
    if (used_ > bytes_) throw std::logic_error("an op took more scratch than it asked for");
    return reinterpret_cast<T*>(base_ + begin);
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t used_ = 0;
  bool counts_ = true;
};

/// One execution of an op that passed core::check_op and the graph's check of types.
struct Call {
  const core::Op& op;
  std::span<const Tensor> args;
  void* out = nullptr;
  bool tf32 = false;  ///< products may round fp32 factors to TF32
  Scratch scratch;

  const core::OpAttrs& attrs() const { return op.attrs; }
  Extents shape(std::size_t i) const { return args[i].shape; }
  Extents out_shape() const { return op.shape; }
  template <class T>
  const T* arg(std::size_t i) const {
    return static_cast<const T*>(args[i].data);
  }
  template <class T>
  T* output() const {
    return static_cast<T*>(out);
  }
};

template <class T>
struct TypeTag {
  using Type = T;
};

/// body(TypeTag<T>) for the storage type T of `type`: float or core::Bf16.
template <class F>
void with_storage(core::ElementType type, const F& body) {
  if (type == core::ElementType::bf16) {
    body(TypeTag<core::Bf16>{});
  } else {
    body(TypeTag<float>{});
  }
}

}  // namespace cairn::runtime::device
