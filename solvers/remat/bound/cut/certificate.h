#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/certificate.h"

namespace cairn::solvers {

/// Finds a bound that can be certified, as high as possible, but at most `enough`. It is that of cut_bound(), unless
/// only a relaxation gave this bound.
Certificate certify(const core::Graph& graph, std::int64_t budget, OrderRule order, std::int64_t enough,
                    core::Stopwatch& watch);

}  // namespace cairn::solvers
