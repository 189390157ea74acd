#pragma once

#include <cstdint>
#include <string>

#include "cairn/core/op.h"
#include "cairn/python/src/bindings.h"

namespace cairn::python {

/// An array of the caller in memory of a GPU, which DLPack or the CUDA array interface describes. The host cannot read
/// its elements.
struct DeviceArray {
  void* data = nullptr;
  std::string dtype;  ///< as numpy names it: "float32"; "bfloat16" is not one of numpy's types
  core::Shape shape;
  bool contiguous = true;  ///< whether elements are in the order of the last index, without gaps
  bool writeable = true;
  void* stream = nullptr;      ///< stream of the work that uses the memory (runtime::TensorView::stream)
  nb::ndarray<nb::ro> dlpack;  ///< keeps the memory alive, if it came through DLPack

  std::int64_t elements() const { return core::element_count(shape); }
};

}  // namespace cairn::python
