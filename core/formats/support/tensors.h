#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cairn/core/op.h"

namespace cairn::core {

/// A tensor in a file.
struct NamedTensor {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<std::byte> bytes;  ///< the elements, row by row
};

/// The content of a file in the format safetensors: named tensors, and texts by name. In this format, a file begins
/// with the length of its header as a 64-bit little-endian number. The header, which is JSON, follows, and then the
/// bytes of all tensors. Other programs, such as the Python package safetensors, can read and write such files.
struct TensorFile {
  std::map<std::string, std::string> texts;  ///< the header's `__metadata__`
  std::vector<NamedTensor> tensors;
};

/// Atomically writes the file, as core::write_file() does. Throws InputError if it cannot be written.
void write_tensors(const std::string& path, const TensorFile& file);
/// Reads a file with tensors of type F32, I32 or BF16. Throws InputError, in one line that names the file, if the
/// file cannot be read, is shorter or longer than its header says, has a header that is not valid, or has tensors of
/// other types.
TensorFile read_tensors(const std::string& path);

}  // namespace cairn::core
