#pragma once

#include <cstdint>
#include <string>

#include "cairn/core/op.h"
#include "cairn/python/src/bindings.h"

namespace cairn::python {

/// An array in memory of a GPU, which the caller gave by DLPack or by the CUDA array interface. The host cannot read
/// its elements.
struct DeviceArray {
  void* data = nullptr;
  std::string dtype;  ///< numpy's name, such as "float32", or "bfloat16", which numpy does not have
  core::Shape shape;
  bool contiguous = true;  ///< whether the elements are in row-major order (last index fastest), without gaps
  bool writeable = true;
  void* stream = nullptr;      ///< stream of the work that uses the memory (runtime::TensorView::stream)
  nb::ndarray<nb::ro> dlpack;  ///< keeps the memory alive if the array was given by DLPack

  std::int64_t elements() const { return core::element_count(shape); }
};

}  // namespace cairn::python
