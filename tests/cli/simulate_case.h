#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "cairn/core/formats/files.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/plain_tally.h"
#include "cairn/tests/support/random_graph.h"

/// These helpers are shared by the tests of `cairn simulate`.
namespace cairn::tests {

/// Returns a graph of 24 nodes. Its random schedules have different peaks. Of schedules that recompute, several are
/// Pareto-optimal in peak and cost.
inline core::Graph sweep_graph() {
  Random random(18);
  return random_graph(random, {.min_nodes = 24, .max_nodes = 24});
}

/// Removes the fields of `json` that depend on the machine, the number of processes, or whether a sweep was resumed.
inline Json without_circumstances(Json json) {
  for (const char* key : {"seconds", "candidates_per_second", "ranks", "device", "resumed_from"}) json.erase(key);
  return json;
}

/// Waits until a sweep has written a checkpoint to `path` after at least one candidate. Returns false if the sweep ends
/// without such a checkpoint.
inline bool wait_for_checkpoint(const Child& child, const std::string& path) {
  while (child.alive()) {
    if (std::filesystem::exists(path) && read_json(path)["done"] > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace cairn::tests
