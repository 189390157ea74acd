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

/// One level of a hierarchy. It consists of layers, here called parts, that run one after another. Each part can run in
/// several ways.
struct LevelProblem {
  struct Part {
    Layer layer;
    std::vector<LayerOption> options;  ///< ways to run the part: at least one, the cheapest first
  };
  /// The forward parts can run in this order, and the backward parts in reverse order.
  std::vector<Part> parts;
  /// Whether the level is only a part of the graph. If so, the rest of the graph runs between the forward and the
  /// backward pass. The values that enter the level stay in memory during that time.
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
  /// Schedule of the whole level. If the level is not inner, the backward pass follows directly after the forward pass.
  LayerOption schedule;
  std::int64_t cost = 0;   ///< cost of the schedule
  std::int64_t bound = 0;  ///< lower bound on the cost of every schedule of this form with these options
  std::int64_t work = 0;
  /// One run of a compute node in a phase. A compute node is the forward or the backward part of one part, numbered as
  /// in the level's model. `way` says how the node runs. The runs of an answer are in order.
  struct Run {
    std::int32_t phase = 0, node = 0, way = 0;
  };
  std::vector<Run> runs;

  bool solved() const { return status == Status::optimal || status == Status::feasible; }
};

struct LevelSearch {
  core::Limit limit;
  /// Limit for building the program, which takes long for large levels. The work of building is not counted.
  core::Limit building;
  int threads = 1;
  std::uint64_t seed = 0;
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether a value whose last reader is in a layer is freed within that layer, rather than after the layer.
  bool corrections = true;
  bool again = true;  ///< whether forward parts may run again
  /// Runs of an earlier answer for the same level, from which the engine starts. nullptr: there are none.
  const std::vector<LevelAnswer::Run>* hint = nullptr;
};

namespace level {
struct Model;
}

/// Finds the cheapest schedule of a level within a budget. This is H-ILP of Gusak et al. 2025, appendix B: an integer
/// linear program over phases. Each compute node has a phase, in which it runs for the first time. In the phase of a
/// backward node, forward parts can run again before that node. In a level without backward nodes, they can run again
/// in every phase. Backward parts run once. A part with a backward part has exactly one run that keeps what the
/// backward part needs (the paper's phantom node). One of the part's options says what is kept. The program is free to
/// choose when and how often the part runs otherwise, and which values between parts stay in memory from phase to
/// phase.
///
/// The model never counts fewer bytes than a schedule needs. So the schedules found are within the budget.
class Level {
 public:
  /// Builds the model of a level. The graph must outlive the object. O(nodes, edges and steps of the options).
  Level(const core::Graph& graph, LevelProblem problem);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  /// Solves the level. The status is unknown if it takes too much time or memory to build the program. Throws
  /// InputError if the engine is missing.
  LevelAnswer solve(const LevelBudget& budget, const LevelSearch& search) const;
  /// Returns the schedule that runs every part once, with its first option.
  LayerOption cheapest() const;
  /// Returns the schedule that keeps no values between the passes. The forward pass makes the values that leave the
  /// level. The backward pass first runs all forward nodes again. Returns cheapest() instead if the level is not inner
  /// or contains pinned nodes.
  LayerOption again() const;

 private:
  std::unique_ptr<const level::Model> model_;
};

/// Memory and cost of an option of an inner layer. `peak` is the bytes during the passes, without the values that enter
/// the layer. `between` is the bytes that stay in memory between the passes.
struct OptionNeeds {
  std::int64_t peak = 0, between = 0, cost = 0;
};
OptionNeeds needs_of(const core::Graph& graph, const Layer& layer, const LayerOption& option);

}  // namespace cairn::solvers
