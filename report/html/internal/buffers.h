#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::report::html {

/// At most eight classes, each of a colour.
struct BufferClasses {
  std::vector<std::string> names;
  std::vector<std::int64_t> of_buffer;
};
/// By the letters that ids begin with, where those make few classes; by size otherwise.
BufferClasses classes_of(const std::vector<core::BufferSpec>& specs, const core::Plan& plan);

}  // namespace cairn::report::html
