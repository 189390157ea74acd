#include <cstdio>
#include <string>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/plan/planner.h"

/// A chain of three tensors of 100 bytes: two are live at once.
int main() {
  cairn::core::GraphBuilder builder("chain");
  for (int i = 0; i < 3; ++i) {
    cairn::core::Node node;
    node.name = "n" + std::to_string(i);
    node.size = 100;
    node.cost = 1;
    if (i > 0) node.inputs = {i - 1};
    builder.add(node);
  }
  const cairn::core::Graph graph = builder.build();
  const cairn::core::Schedule schedule = cairn::core::baseline_schedule(graph);
  const cairn::core::Evaluation evaluation = cairn::core::evaluate(graph, schedule);
  const cairn::core::Plan plan = cairn::solvers::plan_memory(graph, schedule);

  std::printf("peak %lld, planned %lld\n", static_cast<long long>(evaluation.peak), static_cast<long long>(plan.bytes));
  return evaluation.valid() && evaluation.peak == 200 && plan.bytes == 200 ? 0 : 1;
}
