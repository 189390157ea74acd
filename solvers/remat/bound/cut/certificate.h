#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/certificate.h"

namespace cairn::solvers {

/// Finds a lower bound on the cost together with a proof that can be verified. The bound is as high as possible, but at
/// most `enough`. It can be lower than the bound of cut_bound() if cut_bound() got its bound only from minimum cuts
/// (MomentBound), for which there is no such proof.
Certificate certify(const core::Graph& graph, std::int64_t budget, OrderRule order, std::int64_t enough,
                    core::Stopwatch& watch);

}  // namespace cairn::solvers
