#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::report::html {

/// Classes of buffers, at most eight; the class determines the colour.
struct BufferClasses {
  std::vector<std::string> names;
  std::vector<std::int64_t> of_buffer;
};
/// Classifies by the letters that ids begin with, where that makes few classes; by size otherwise.
BufferClasses classes_of(const std::vector<core::BufferSpec>& specs, const core::Plan& plan);

}  // namespace cairn::report::html
