#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::report::html {

/// A division of buffers into at most eight groups. The group of a buffer determines its colour.
struct BufferClasses {
  std::vector<std::string> names;
  std::vector<std::int64_t> of_buffer;
};
/// Groups buffers by the letters with which their ids begin. If the letters give only one group, or more than eight
/// groups, groups the buffers by size instead.
BufferClasses classes_of(const std::vector<core::BufferSpec>& specs, const core::Plan& plan);

}  // namespace cairn::report::html
