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

/// One level of a hierarchy: layers that are run one after the other, each in one of several ways.
struct LevelProblem {
  struct Part {
    Layer layer;
    std::vector<LayerOption> options;  ///< at least one, that of least cost first
  };
  std::vector<Part> parts;  ///< in an order in which their forward parts can run, and their backward parts in reverse
  /// Whether this is a part of a graph: the rest runs between the forward and the backward pass, and holds what enters.
  bool inner = false;
};

struct LevelBudget {
  std::int64_t peak = 0;                ///< bytes, at no step more
  std::optional<std::int64_t> between;  ///< bytes that stay between forward and backward pass; inner levels only
};

struct LevelAnswer {
  using Status = EngineStatus;
  Status status = Status::unknown;
  LayerOption schedule;    ///< of the whole level; of one that is not inner, backward runs right after forward
  std::int64_t cost = 0;   ///< of the schedule
  std::int64_t bound = 0;  ///< no schedule of this form and these options costs less
  std::int64_t work = 0;
  /// What runs in each phase, in order: compute node and way of it, in the level's numbering.
  struct Run {
    std::int32_t phase = 0, node = 0, way = 0;
  };
  std::vector<Run> runs;

  bool solved() const { return status == Status::optimal || status == Status::feasible; }
};

struct LevelSearch {
  core::Limit limit;
  core::Limit building;  ///< of writing the program down, which large levels take long for; its work is not counted
  int threads = 1;
  std::uint64_t seed = 0;
  bool highs = false;       ///< HiGHS instead of CP-SAT
  bool corrections = true;  ///< values that a layer reads last are free within it, not after it
  bool again = true;        ///< forward parts may run again
  const std::vector<LevelAnswer::Run>* hint = nullptr;  ///< of an earlier answer of the same level
};

/// H-ILP of Gusak et al. 2025, appendix B: the cheapest schedule of a level within a budget, by an integer linear
/// program over phases. In the phase of a node that node runs for the first time; in those of backward nodes, or in all
/// where there are none, forward parts may run again before it. A layer with a backward part runs exactly once so that
/// what that needs stays (the paper's phantom node), in one of its options; how often and when else it runs, and which
/// values between layers stay from phase to phase, is free. Backward parts run once.
///
/// What the model counts is never below what the schedule needs, so its schedules are within the budget.
class Level {
 public:
  /// The graph must outlive it. O(nodes, edges and steps of the options).
  Level(const core::Graph& graph, LevelProblem problem);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  /// Unknown where writing the program down takes too long or too much memory. Throws InputError where the engine is
  /// missing.
  LevelAnswer solve(const LevelBudget& budget, const LevelSearch& search) const;
  /// Every part in its first option, once.
  LayerOption cheapest() const;
  /// Nothing stays: the forward pass makes what leaves the level, the backward pass begins by doing all of it again. Of
  /// an inner level without pinned nodes; else the same as cheapest().
  LayerOption again() const;

 private:
  struct Model;
  struct Program;
  std::unique_ptr<const Model> model_;
};

/// Bytes that an inner layer's option needs: within its passes beside what enters, and between them.
struct OptionNeeds {
  std::int64_t peak = 0, between = 0, cost = 0;
};
OptionNeeds needs_of(const core::Graph& graph, const Layer& layer, const LayerOption& option);

}  // namespace cairn::solvers
