#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/rotor/layers.h"

namespace cairn::solvers {

/// One level of a hierarchy: layers, here called parts, that run one after the other. Each part can run in several
/// ways.
struct LevelProblem {
  struct Part {
    Layer layer;
    std::vector<LayerOption> options;  ///< ways to run the part: at least one, the cheapest first
  };
  /// The forward parts can run in this order, and the backward parts in reverse order.
  std::vector<Part> parts;
  /// Whether the level is only a part of the graph. If so, the rest of the graph runs between the forward and the
  /// backward pass, and keeps the values that enter the level in memory.
  bool inner = false;
};

struct LevelBudget {
  std::int64_t peak = 0;  ///< largest number of bytes at any step
  /// Largest number of bytes that stay in memory between the forward and the backward pass; for inner levels only.
  std::optional<std::int64_t> between;
};

struct LevelAnswer {
  using Status = EngineStatus;
  Status status = Status::unknown;
  /// Schedule of the whole level. If the level is not inner, the backward pass follows right after the forward pass.
  LayerOption schedule;
  std::int64_t cost = 0;   ///< cost of the schedule
  std::int64_t bound = 0;  ///< lower bound on the cost of every schedule of this form with these options
  std::int64_t work = 0;
  /// One run of a compute node (the forward or backward part of one part, numbered as in the level's model) in a phase.
  /// `way` says how the node runs. The runs of an answer are in order.
  struct Run {
    std::int32_t phase = 0, node = 0, way = 0;
  };
  std::vector<Run> runs;

  bool solved() const { return status == Status::optimal || status == Status::feasible; }
};

struct LevelSearch {
  core::Limit limit;
  /// Limit for building the program, which takes long for large levels. Its work is not counted.
  core::Limit building;
  int threads = 1;
  std::uint64_t seed = 0;
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether a value whose last reader is a layer is freed within the layer, rather than after it.
  bool corrections = true;
  bool again = true;  ///< whether forward parts may run again
  /// Runs of an earlier answer for the same level from which the engine starts; nullptr: none.
  const std::vector<LevelAnswer::Run>* hint = nullptr;
};

namespace level {
struct Model;
}

/// Finds the cheapest schedule of a level within a budget. This is H-ILP of Gusak et al. 2025, appendix B: an integer
/// linear program over phases. Each compute node has a phase, in which it runs for the first time. In the phase of a
/// backward node, forward parts may run again before that node; in a level without backward nodes, they may do so in
/// every phase. Backward parts run once. A part with a backward part runs exactly once in a way that keeps what the
/// backward part needs (the paper's phantom node), as given by one of its options. All else is free: when and how often
/// the part runs otherwise, and which values between parts stay in memory from phase to phase.
///
/// The model never counts fewer bytes than a schedule needs, so the schedules found are within the budget.
class Level {
 public:
  /// Builds the model of a level. The graph must outlive the object. O(nodes, edges and steps of the options).
  Level(const core::Graph& graph, LevelProblem problem);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  /// Solves the level. The status is unknown if building the program takes too much time or memory. Throws InputError
  /// if the engine is missing.
  LevelAnswer solve(const LevelBudget& budget, const LevelSearch& search) const;
  /// Returns the schedule that runs every part once, with its first option.
  LayerOption cheapest() const;
  /// Returns the schedule that keeps no values between the passes: the forward pass makes the values that leave the
  /// level, and the backward pass first runs all forward nodes again. Requires an inner level without pinned nodes;
  /// otherwise returns cheapest().
  LayerOption again() const;

 private:
  std::unique_ptr<const level::Model> model_;
};

/// Memory and cost of an option of an inner layer. `peak` counts bytes during the passes, without the values that enter
/// the layer. `between` counts bytes that stay between the passes.
struct OptionNeeds {
  std::int64_t peak = 0, between = 0, cost = 0;
};
OptionNeeds needs_of(const core::Graph& graph, const Layer& layer, const LayerOption& option);

}  // namespace cairn::solvers
