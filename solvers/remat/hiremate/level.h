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

/// One level of a hierarchy: layers that run one after the other, each in one of several ways.
struct LevelProblem {
  struct Part {
    Layer layer;
    std::vector<LayerOption> options;  ///< ways to run the part, at least one, the cheapest first
  };
  /// Parts in an order in which their forward parts can run, and in reverse their backward parts.
  std::vector<Part> parts;
  /// Whether the level is a part of a graph. The rest of the graph then runs between the forward and the backward pass,
  /// and holds the values that enter the level.
  bool inner = false;
};

struct LevelBudget {
  std::int64_t peak = 0;  ///< most bytes at any step
  /// Most bytes that stay between forward and backward pass; for inner levels only.
  std::optional<std::int64_t> between;
};

struct LevelAnswer {
  using Status = EngineStatus;
  Status status = Status::unknown;
  /// Schedule of the whole level; if the level is not inner, backward runs right after forward.
  LayerOption schedule;
  std::int64_t cost = 0;   ///< cost of the schedule
  std::int64_t bound = 0;  ///< lower bound: no schedule of this form with these options costs less
  std::int64_t work = 0;
  /// One run of a compute node in a phase: the node and the way to run it, in the level's numbering. The runs are in
  /// order.
  struct Run {
    std::int32_t phase = 0, node = 0, way = 0;
  };
  std::vector<Run> runs;

  bool solved() const { return status == Status::optimal || status == Status::feasible; }
};

struct LevelSearch {
  core::Limit limit;
  /// Limit for writing down the program, which takes long for large levels; its work is not counted.
  core::Limit building;
  int threads = 1;
  std::uint64_t seed = 0;
  bool highs = false;       ///< whether HiGHS is used instead of CP-SAT
  bool corrections = true;  ///< whether values that a layer reads last are freed within the layer, not after it
  bool again = true;        ///< whether forward parts may run again
  const std::vector<LevelAnswer::Run>* hint = nullptr;  ///< runs of an earlier answer for the same level, to start from
};

namespace level {
struct Model;
}

/// Finds the cheapest schedule of a level within a budget, by an integer linear program over phases: H-ILP of Gusak et
/// al. 2025, appendix B. In the phase of a node, that node runs for the first time. In the phases of backward nodes, or
/// in all phases if there are none, forward parts may run again before it. A layer with a backward part runs exactly
/// once in a way that keeps what the backward part needs (the paper's phantom node), in one of its options. How often
/// and when else it runs, and which values between layers stay from phase to phase, is free. Backward parts run once.
///
/// The bytes that the model counts are never below what the schedule needs, so its schedules are within the budget.
class Level {
 public:
  /// Builds the model of a level. The graph must outlive the object. O(nodes, edges and steps of the options).
  Level(const core::Graph& graph, LevelProblem problem);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  /// Solves the level. The status is unknown if writing down the program takes too long or too much memory. Throws
  /// InputError if the engine is missing.
  LevelAnswer solve(const LevelBudget& budget, const LevelSearch& search) const;
  /// Makes the schedule that runs every part once, in its first option.
  LayerOption cheapest() const;
  /// Makes the schedule that keeps nothing: the forward pass makes the values that leave the level, and the backward
  /// pass begins by running everything again. Only for an inner level without pinned nodes; otherwise the same as
  /// cheapest().
  LayerOption again() const;

 private:
  std::unique_ptr<const level::Model> model_;
};

/// Bytes that an inner layer's option needs: within its passes, beside the values that enter the layer, and between the
/// passes.
struct OptionNeeds {
  std::int64_t peak = 0, between = 0, cost = 0;
};
OptionNeeds needs_of(const core::Graph& graph, const Layer& layer, const LayerOption& option);

}  // namespace cairn::solvers
