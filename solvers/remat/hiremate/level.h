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

/// Describes one level of a hierarchy of layers. A layer is a set of forward nodes with their backward nodes
/// (layers.h). The layers of a level are called its parts; they run one after another. Each part can run in several
/// ways, called its options.
struct LevelProblem {
  struct Part {
    Layer layer;
    std::vector<LayerOption> options;  ///< ways to run the part: at least one, the cheapest first
  };
  /// Parts in an order in which their forward halves can run. Their backward halves can run in reverse order.
  std::vector<Part> parts;
  /// Whether the level covers only some nodes of the graph. If so, the rest of the graph runs between the level's
  /// forward and backward pass, and the values that enter the level stay in memory during that time.
  bool inner = false;
};

struct LevelBudget {
  std::int64_t peak = 0;  ///< largest allowed number of bytes in memory at any step
  /// Largest allowed number of bytes of the level that stay in memory between its forward and its backward pass. Only
  /// for inner levels. Absent: no limit.
  std::optional<std::int64_t> between;
};

struct LevelAnswer {
  using Status = EngineStatus;
  Status status = Status::unknown;
  /// Schedule of the whole level. Unless the level is inner, the backward pass follows directly after the forward pass.
  LayerOption schedule;
  std::int64_t cost = 0;
  std::int64_t bound = 0;  ///< lower bound on the cost of all schedules that Level::solve() considers
  std::int64_t work = 0;
  /// One run of a compute node, which is the forward half or the backward half of a part. It takes place in phase
  /// `phase` (see Level). `node` is an index in Model::nodes and `way` an index in ComputeNode::ways (level_model.h).
  struct Run {
    std::int32_t phase = 0, node = 0, way = 0;
  };
  std::vector<Run> runs;  ///< all runs, in the order in which they take place

  bool solved() const { return status == Status::optimal || status == Status::feasible; }
};

struct LevelSearch {
  core::Limit limit;
  /// Limit for building the program, which takes long for large levels. Building does not count as work.
  core::Limit building;
  int threads = 1;
  std::uint64_t seed = 0;
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether the program takes into account that a compute node can free an input in the middle of its run, after the
  /// last step that reads the input. If not, the input is counted until the run ends.
  bool corrections = true;
  bool again = true;  ///< whether forward halves may run again in later phases
  /// Runs of an earlier answer for the same level, from which the engine starts. Can be null.
  const std::vector<LevelAnswer::Run>* hint = nullptr;
};

namespace level {
struct Model;
}

/// Finds the cheapest schedule of a level within a budget. This is H-ILP of Gusak et al. 2025, appendix B: an integer
/// linear program over phases. The compute nodes are the forward and backward halves of the parts. There is one phase
/// for each compute node, in which it runs for the first time. In the phase of a backward half, forward halves can run
/// again before the backward half. In a level without backward halves, forward halves can run again in every phase.
/// Backward halves run once.
///
/// If a part has a backward half, exactly one run of its forward half keeps what the backward half needs. The paper
/// calls these values a phantom node. Which values they are depends on the part's option. The program chooses this run,
/// the option, all other runs of forward halves, and which values between parts stay in memory from phase to phase.
///
/// The model never counts fewer bytes than a schedule needs, so the schedules found are within the budget.
class Level {
 public:
  /// Builds the model of a level. The graph must outlive the object. Takes time linear in the nodes, edges and steps of
  /// all options.
  Level(const core::Graph& graph, LevelProblem problem);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  /// Solves the level. The status is unknown if building the program took too much time or memory. Throws InputError if
  /// the engine is missing.
  LevelAnswer solve(const LevelBudget& budget, const LevelSearch& search) const;
  /// Returns the schedule that runs every part once, with its first option.
  LayerOption cheapest() const;
  /// Returns the schedule that keeps as little as possible between the passes. The forward pass only makes the values
  /// that leave the level. The backward pass first runs all forward nodes again. Returns cheapest() instead if the
  /// level contains pinned nodes, which must not run twice.
  LayerOption again() const;

 private:
  std::unique_ptr<const level::Model> model_;
};

/// Holds memory and cost of an option of a layer of an inner level. `peak` is the largest number of bytes during the
/// passes, without the values that enter the layer. `between` is the number of bytes that stay in memory from the
/// forward pass to the backward pass.
struct OptionNeeds {
  std::int64_t peak = 0, between = 0, cost = 0;
};
OptionNeeds needs_of(const core::Graph& graph, const Layer& layer, const LayerOption& option);

}  // namespace cairn::solvers
