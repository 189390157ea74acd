#pragma once

#include <cstdint>

namespace cairn::solvers::plan {

/// Tells whether all blocks fit into a capacity. `impossible`: it is proved that they do not fit. `unknown`: no plan
/// was found, but there may be one.
enum class Verdict : std::uint8_t { fits, impossible, unknown };

}  // namespace cairn::solvers::plan
