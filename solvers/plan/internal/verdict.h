#pragma once

#include <cstdint>

namespace cairn::solvers::plan {

/// Answers whether blocks fit below a capacity.
enum class Verdict : std::uint8_t { fits, impossible, unknown };

}  // namespace cairn::solvers::plan
