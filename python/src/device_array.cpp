#include "cairn/python/src/device_array.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>

namespace cairn::python {
namespace {

using Strides = std::vector<std::int64_t>;

std::string name_of(const nb::dlpack::dtype& type) {
  const auto named = [&](const char* kind) { return fmt::format("{}{}", kind, static_cast<int>(type.bits)); };
  if (type.lanes != 1) return "vectors";
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Int:
      return named("int");
    case nb::dlpack::dtype_code::UInt:
      return named("uint");
    case nb::dlpack::dtype_code::Float:
      return named("float");
    case nb::dlpack::dtype_code::Bfloat:
      return named("bfloat");
    case nb::dlpack::dtype_code::Complex:
      return named("complex");
    case nb::dlpack::dtype_code::Bool:
      return "bool";
    default:
      return fmt::format("type {} of DLPack", static_cast<int>(type.code));
  }
}

/// Returns whether `strides` are those of an array without gaps. `unit` is the stride between neighbouring elements: 1,
/// or the bytes of an element. Every array without elements counts as one without gaps.
bool is_contiguous(const core::Shape& shape, const Strides& strides, std::int64_t unit) {
  if (core::element_count(shape) == 0) return true;
  for (std::size_t i = shape.size(); i > 0; --i) {
    if (shape[i - 1] != 1 && strides[i - 1] != unit) return false;
    unit *= shape[i - 1];
  }
  return true;
}

/// Converts a capsule of DLPack, and takes over the array in it. `stream`: the CUDA stream of the work that uses the
/// array.
DeviceArray from_dlpack(nb::handle capsule, std::uintptr_t stream) {
  DeviceArray result;
  nb::ndarray<> changeable;
  result.writeable = nb::try_cast(capsule, changeable);
  result.dlpack = result.writeable ? nb::ndarray<nb::ro>(changeable) : nb::cast<nb::ndarray<nb::ro>>(capsule);
  result.data = const_cast<void*>(result.dlpack.data());
  result.dtype = name_of(result.dlpack.dtype());
  Strides strides;
  for (std::size_t i = 0; i < result.dlpack.ndim(); ++i) {
    result.shape.push_back(static_cast<std::int64_t>(result.dlpack.shape(i)));
    strides.push_back(result.dlpack.stride(i));
  }
  result.contiguous = is_contiguous(result.shape, strides, 1);
  result.stream = reinterpret_cast<void*>(stream);
  return result;
}

/// Converts the values of a CUDA array interface. `strides` are in bytes; without a value, the array has no gaps.
DeviceArray from_interface(std::uintptr_t address, std::string dtype, std::int64_t element_bytes, core::Shape shape,
                           const std::optional<Strides>& strides, bool writeable, std::uintptr_t stream) {
  DeviceArray result;
  result.data = reinterpret_cast<void*>(address);
  result.dtype = std::move(dtype);
  result.contiguous = !strides || is_contiguous(shape, *strides, element_bytes);
  result.shape = std::move(shape);
  result.writeable = writeable;
  result.stream = reinterpret_cast<void*>(stream);
  return result;
}

}  // namespace

void bind_device_array(nb::module_& module) {
  nb::class_<DeviceArray>(module, "DeviceArray", "An array in memory of a GPU.")
      .def_ro("dtype", &DeviceArray::dtype)
      .def_prop_ro("shape", [](const DeviceArray& array) { return tuple_of(array.shape); })
      .def_ro("contiguous", &DeviceArray::contiguous)
      .def_ro("writeable", &DeviceArray::writeable)
      .def_static("from_dlpack", &from_dlpack, "capsule"_a, "stream"_a)
      .def_static("from_interface", &from_interface, "address"_a, "dtype"_a, "element_bytes"_a, "shape"_a,
                  "strides"_a.none(), "writeable"_a, "stream"_a);
}

}  // namespace cairn::python
