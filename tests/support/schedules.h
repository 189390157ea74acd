#pragma once

#include <cstdint>

#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

namespace cairn::tests {

/// Calls body(random, graph, schedule) once for each seed, with a random graph of any kind and a random schedule of it.
/// If a check fails, Catch shows the graph and the schedule.
template <class Body>
void for_each_schedule(std::uint64_t seeds, const Body& body) {
  for_each_seed(seeds, [&](Random& random) {
    const core::Graph graph = random_graph(random, any_graph(random));
    const core::Schedule schedule = random_schedule(random, graph);
    CAPTURE(show(graph), show(schedule.steps));
    body(random, graph, schedule);
  });
}

}  // namespace cairn::tests
