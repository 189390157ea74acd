#pragma once

#include <cstdint>

#include "cairn/core/profile.h"
#include "cairn/sim/generator.h"
#include "cairn/sim/tally.h"

namespace cairn::tests {

/// Returns the tally of the candidates 0 to total - 1 of the generator. Each of them is evaluated by core::evaluate().
inline sim::Tally plain_tally(const core::Graph& graph, const sim::Generator& generator, std::int64_t total) {
  sim::Tally tally(sim::tally_options(graph));
  for (std::int64_t i = 0; i < total; ++i) {
    const core::Evaluation evaluation = core::evaluate(graph, sim::generate(graph, generator, i));
    tally.add(i, {{1}, {evaluation.peak}, {evaluation.cost}, {0}});
  }
  return tally;
}

}  // namespace cairn::tests
