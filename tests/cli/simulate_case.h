#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/sim/generator.h"
#include "cairn/sim/tally.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/random_graph.h"

/// Helpers of the tests of `cairn simulate`.
namespace cairn::test {

/// 24 nodes whose random schedules differ in peak and, with recomputation, have several Pareto-optimal points.
inline core::Graph sweep_graph() {
  tests::Random random(18);
  tests::RandomGraphOptions options;
  options.min_nodes = options.max_nodes = 24;
  return tests::random_graph(random, options);
}

/// Evaluates candidates 0 .. total - 1 one by one, by the definitions.
inline sim::Tally plain_sweep(const core::Graph& graph, const sim::Generator& generator, std::int64_t total) {
  sim::Tally tally(sim::tally_options(graph));
  for (std::int64_t i = 0; i < total; ++i) {
    const core::Evaluation evaluation = core::evaluate(graph, sim::generate(graph, generator, i));
    tally.add(i, {{1}, {evaluation.peak}, {evaluation.cost}, {0}});
  }
  return tally;
}

/// Removes what depends on the machine, the number of processes, or the number of runs of a sweep.
inline nlohmann::json without_circumstances(nlohmann::json json) {
  for (const char* key : {"seconds", "candidates_per_second", "ranks", "device", "resumed_from"}) json.erase(key);
  return json;
}

/// Waits until the sweep wrote a checkpoint with some progress; returns false where it ended first.
inline bool wait_for_checkpoint(const Child& child, const std::string& path) {
  while (child.alive()) {
    if (std::filesystem::exists(path) && nlohmann::json::parse(read_text(path))["done"] > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace cairn::test
