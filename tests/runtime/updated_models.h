#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/runtime/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/random_graph.h"

/// This file has tiny models whose graphs update their weights.
namespace cairn::tests {

/// Returns two models for each optimizer, once with and once without clipped gradients. The models have shared weights,
/// norms and dropouts. Some gradients are 0 except for rounding errors. `eps` is so large that adamw does not turn
/// these errors into large updates.
inline std::vector<core::Graph> updated_models() {
  std::vector<core::Graph> graphs;
  for (const char* optimizer : {"sgd", "adamw"}) {
    for (const double clip : {0.0, 0.5}) {
      for (const TinyModel& tiny : tiny_models()) {
        if (tiny.name != "ffn" && tiny.name != "gpt2") continue;
        models::BuildOptions options = tiny.options;
        options.optimizer = optimizer;
        options.update = {.rate = 0.01, .eps = 1e-3, .decay = 0.1, .clip = clip};
        graphs.push_back(models::build_model(tiny.name, options));
      }
    }
  }
  return graphs;
}

/// Returns a random schedule that recomputes. Steps whose outputs nobody reads are dropped from it. So no node that
/// reads a weight runs after the update of the weight.
inline core::Schedule recomputing_schedule(Random& random, const core::Graph& graph) {
  const core::Schedule schedule = core::drop_unread(graph, random_schedule(random, graph, 3 * graph.node_count()));
  REQUIRE(schedule.length() > graph.node_count());
  return schedule;
}

/// Runs `count` steps and returns the outputs after each of them.
inline std::vector<Outputs> outputs_of_steps(runtime::Executor& executor, int count) {
  std::vector<Outputs> steps;
  for (int i = 0; i < count; ++i) {
    executor.run();
    steps.push_back(outputs_of(executor));
  }
  return steps;
}

/// Returns the tiny gpt2 with updates by adamw, in the given precision.
inline core::Graph gpt2_with_updates(core::Precision precision) {
  for (const core::Graph& graph : updated_models()) {
    const std::int32_t last = runtime::find_resident(graph, "learning_rate") + 1;
    const bool adamw = graph.residents()[static_cast<std::size_t>(last)].name == "step";
    if (graph.name() == "gpt2" && adamw) return core::with_precision(graph, precision);
  }
  throw std::out_of_range("no gpt2 with adamw");
}

/// Returns a bf16 weight, and the name of the fp32 copy of this weight.
inline std::pair<core::Resident, std::string> weight_with_master(const core::Graph& graph) {
  for (const core::Resident& copy : graph.residents()) {
    if (copy.master_of >= 0) return {graph.residents()[static_cast<std::size_t>(copy.master_of)], copy.name};
  }
  throw std::out_of_range("no fp32 copy");
}

}  // namespace cairn::tests
