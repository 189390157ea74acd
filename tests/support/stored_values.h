#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/core/support/bf16.h"

namespace cairn::tests {

/// Returns the elements of a tensor that is stored as f32 or bf16.
inline std::vector<double> stored_values(std::span<const std::byte> bytes, core::ElementType type) {
  const auto width = static_cast<std::size_t>(core::element_bytes(type));
  std::vector<double> values(bytes.size() / width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float value = 0;
    core::Bf16 half;
    if (type == core::ElementType::bf16) {
      std::memcpy(&half, bytes.data() + width * i, width);
      value = static_cast<float>(half);
    } else {
      std::memcpy(&value, bytes.data() + width * i, width);
    }
    values[i] = static_cast<double>(value);
  }
  return values;
}

/// Returns ||x - y|| / ||y||, or ||x|| if y is zero. x and y must have the same length.
inline double relative_error(const std::vector<double>& x, const std::vector<double>& y) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return std::sqrt(norm > 0 ? difference / norm : difference);
}

}  // namespace cairn::tests
