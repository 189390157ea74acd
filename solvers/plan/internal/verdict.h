#pragma once

#include <cstdint>

namespace cairn::solvers::plan {

/// The answer to the question whether all blocks fit into a capacity. `impossible`: it is proved that they do not.
enum class Verdict : std::uint8_t { fits, impossible, unknown };

}  // namespace cairn::solvers::plan
