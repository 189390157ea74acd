#include <cstdio>
#include <string>

#include "cairn/pipeline/run.h"

using namespace cairn;

/// Returns a chain of 16 nodes of 1 MiB, shaped like a training step. Each of the last eight nodes also reads the
/// output of one of the first eight, in reverse order.
core::Graph hourglass() {
  core::GraphBuilder builder("hourglass");
  for (int i = 0; i < 16; ++i) {
    core::Node node{.name = "n" + std::to_string(i), .size = 1 << 20, .cost = 1};
    if (i > 0) node.inputs = {i - 1};
    if (i >= 8) node.inputs.push_back(15 - i);
    builder.add(node);
  }
  return builder.build();
}

int main() {
  const auto backend = pipeline::open_backend("auto");
  const pipeline::PreparedGraph graph = pipeline::prepare(*backend, hourglass());
  const fit::Problem problem(graph.prepared, "70%");
  const fit::Decision decision = fit::decide(problem, "auto", {.search = {.limit = {.work = 100'000}}});
  const pipeline::RunResult result = pipeline::run(*backend, graph, decision);

  std::printf("on %s: %lld of %lld bytes, %lld steps again, %s\n", backend->name().c_str(),
              static_cast<long long>(decision.executed_plan().bytes), static_cast<long long>(problem.baseline.peak),
              static_cast<long long>(decision.evaluation.recomputed),
              result.comparison.identical() ? "identical" : "different");
  return decision.executed_plan().bytes <= *problem.budget && result.comparison.identical() ? 0 : 1;
}
