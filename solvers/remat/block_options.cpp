#include "cairn/solvers/remat/internal/block_options.h"

#include <algorithm>

#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

/// Memory of a piece of a schedule, from its end: what is needed there says what is needed before each step. Values
/// that are resident are left out. Keeps work arrays.
class Piece {
 public:
  Piece(const core::Graph& graph, const BlockChain& chain)
      : graph_(graph), chain_(chain), needed_(static_cast<std::size_t>(graph.value_count()), 0) {}

  /// Empties what is needed.
  void clear() {
    for (const ValueId x : touched_) needed_[x] = 0;
    touched_.clear();
    bytes_ = peak_ = 0;
  }
  void need(ValueId x) {
    if (needed_[x] != 0 || chain_.resident[x] != 0) return;
    needed_[x] = 1;
    touched_.push_back(x);
    bytes_ += graph_.value_size(x);
  }
  template <class Values>
  void need_all(const Values& values) {
    for (const ValueId x : values) need(x);
  }
  bool needed(ValueId x) const { return needed_[x] != 0; }
  std::int64_t bytes() const { return bytes_; }  ///< of what is needed
  std::int64_t peak() const { return peak_; }    ///< of the steps since clear()

  /// Goes back over a step.
  void before(NodeId v) {
    for (const ValueId x : graph_.outputs(v)) {
      if (needed_[x] == 0) continue;
      needed_[x] = 0;
      bytes_ -= graph_.value_size(x);
    }
    need_all(graph_.inputs(v));
    std::int64_t made = 0;
    for (const ValueId x : graph_.outputs(v)) made += chain_.resident[x] != 0 ? 0 : graph_.value_size(x);
    peak_ = std::max(peak_, bytes_ + made + graph_.scratch(v));
  }
  bool makes_needed(NodeId v) const {
    for (const ValueId x : graph_.outputs(v)) {
      if (needed_[x] != 0) return true;
    }
    return false;
  }
  /// Goes back over the steps, of which it drops those that make nothing that is needed, unless `stays(v)`.
  template <class Stays>
  std::vector<NodeId> prune(const std::vector<NodeId>& steps, const Stays& stays) {
    std::vector<NodeId> rest;
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (!makes_needed(steps[i]) && !stays(steps[i])) continue;
      before(steps[i]);
      rest.push_back(steps[i]);
    }
    std::reverse(rest.begin(), rest.end());
    return rest;
  }

 private:
  const core::Graph& graph_;
  const BlockChain& chain_;
  std::vector<std::uint8_t> needed_;
  std::vector<ValueId> touched_;
  std::int64_t bytes_ = 0, peak_ = 0;
};

std::int64_t cost_of(const core::Graph& graph, const std::vector<NodeId>& steps) {
  std::int64_t cost = 0;
  for (const NodeId v : steps) cost += graph.cost(v);
  return cost;
}

/// Further nodes take their places among steps in the input order.
void add_once(std::vector<NodeId>& steps, const std::vector<NodeId>& once, const std::vector<std::int32_t>& rank) {
  steps.insert(steps.end(), once.begin(), once.end());
  std::sort(steps.begin(), steps.end(), [&](NodeId a, NodeId b) { return rank[a] < rank[b]; });
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

/// Backward parts of a block that recompute more and more of what they read.
class BackwardMenu {
 public:
  BackwardMenu(const core::Graph& graph, const BlockChain& chain, std::int32_t block)
      : graph_(graph), chain_(chain), block_(block), there_(static_cast<std::size_t>(graph.value_count()), 0) {}

  /// From all saved to nothing saved: each time the value whose recomputation costs least a byte is saved no more.
  std::vector<std::vector<NodeId>> schedules() {
    std::vector<ValueId> saved;
    for (const NodeId b : chain_.blocks[block_].backward) {
      for (const ValueId x : graph_.inputs(b)) {
        if (own(x) && graph_.value_size(x) > 0 && std::find(saved.begin(), saved.end(), x) == saved.end())
          saved.push_back(x);
      }
    }
    std::vector<std::vector<NodeId>> found{chain_.blocks[block_].backward};
    while (!saved.empty()) {
      std::size_t best = 0;
      double least = 0;
      for (std::size_t i = 0; i < saved.size(); ++i) {
        mark(saved, i);
        const double price =
            static_cast<double>(recompute(saved[i], nullptr)) / static_cast<double>(graph_.value_size(saved[i]));
        if (i == 0 || price < least) best = i, least = price;
      }
      saved.erase(saved.begin() + static_cast<std::ptrdiff_t>(best));
      mark(saved, saved.size());
      std::vector<NodeId> steps;
      for (const NodeId b : chain_.blocks[block_].backward) {
        for (const ValueId x : graph_.inputs(b)) {
          if (own(x)) recompute(x, &steps);
        }
        steps.push_back(b);
      }
      found.push_back(std::move(steps));
    }
    return found;
  }

 private:
  /// Made by this block's forward part, and it could be made again.
  bool own(ValueId x) const {
    const NodeId u = graph_.producer(x);
    return !graph_.backward(u) && chain_.block_of[u] == block_ && chain_.resident[x] == 0;
  }
  void mark(const std::vector<ValueId>& saved, std::size_t without) {
    ++now_;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (i != without) there_[saved[i]] = now_;
    }
  }
  /// Cost of making x out of what is there, which is then there as well; writes the steps down.
  std::int64_t recompute(ValueId x, std::vector<NodeId>* steps) {
    if (!own(x) || there_[x] == now_) return 0;
    const NodeId u = graph_.producer(x);
    std::int64_t cost = graph_.cost(u);
    for (const ValueId y : graph_.outputs(u)) there_[y] = now_;
    for (const ValueId y : graph_.inputs(u)) cost += recompute(y, steps);
    if (steps != nullptr) steps->push_back(u);
    return cost;
  }

  const core::Graph& graph_;
  const BlockChain& chain_;
  const std::int32_t block_;
  std::vector<std::int64_t> there_;
  std::int64_t now_ = 0;
};

}  // namespace

ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, BlockSchedules& schedules) {
  const auto n = static_cast<std::int32_t>(chain.blocks.size());
  ChainProblem problem;
  problem.stages.resize(chain.blocks.size());
  schedules.blocks.assign(chain.blocks.size(), {});

  // What is held between backward parts.
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const NodeId u = graph.producer(x);
    const std::int64_t size = graph.value_size(x);
    if (graph.backward(u)) {
      for (std::int32_t s = std::max(chain.last_block[x], 0); s < chain.block_of[u]; ++s)
        problem.stages[s].held += size;
    } else if (chain.resident[x] != 0) {
      for (std::int32_t s = std::max(chain.last_block[x], 0); s < n; ++s) problem.stages[s].held += size;
      for (std::int32_t s = chain.block_of[u]; s < n; ++s) problem.stages[s].held_first += size;
    }
  }
  // What the backward parts up to a stage leave behind: gradients that cross down, and kept values.
  std::vector<std::vector<ValueId>> down(chain.blocks.size());
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    if (!graph.backward(graph.producer(x))) continue;
    for (std::int32_t s = std::max(chain.last_block[x] + 1, 0); s <= chain.block_of[graph.producer(x)]; ++s)
      down[s].push_back(x);
  }

  const std::vector<std::int32_t> rank = input_ranks(graph);
  Piece piece(graph, chain);
  const std::vector<ValueId> nothing;
  const auto never = [](NodeId) { return false; };
  for (std::int32_t s = 0; s < n; ++s) {
    const ChainBlock& block = chain.blocks[s];
    const std::vector<ValueId>& entering = s == 0 ? nothing : chain.blocks[s - 1].leaving;
    ChainStage& stage = problem.stages[s];
    BlockSchedules::Block& nodes = schedules.blocks[s];
    for (const ValueId x : entering) stage.checkpoint += graph.value_size(x);
    std::int64_t resident = 0;
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      if (!graph.backward(graph.producer(x)) && chain.resident[x] != 0 && chain.last_block[x] <= s)
        resident += graph.value_size(x);
    }

    const auto forward_peak = [&](const std::vector<NodeId>& steps, const std::vector<ValueId>& saved,
                                  ChainEntry entry) {
      piece.clear();
      piece.need_all(block.leaving);
      piece.need_all(saved);
      if (entry == kHeld) piece.need_all(entering);
      for (std::size_t i = steps.size(); i-- > 0;) piece.before(steps[i]);
      return piece.peak();
    };
    piece.clear();
    piece.need_all(block.leaving);
    nodes.forward = piece.prune(block.forward, never);
    stage.forward_time = cost_of(graph, nodes.forward);
    for (const ChainEntry entry : {kReleased, kHeld})
      stage.forward_peak[entry] = forward_peak(nodes.forward, nothing, entry);
    piece.clear();
    const auto once = [&](NodeId v) {
      bool must = graph.required(v) || graph.pinned(v);
      for (const ValueId x : graph.outputs(v)) must = must || chain.resident[x] != 0;
      return must;
    };
    nodes.once = piece.prune(block.forward, once);
    // How much higher memory gets where these run as well.
    const auto first_extra = [&](std::vector<NodeId> steps, const std::vector<ValueId>& saved) {
      const std::int64_t peak = forward_peak(steps, saved, kHeld);
      add_once(steps, nodes.once, rank);
      return std::max<std::int64_t>(forward_peak(steps, saved, kHeld) - peak, 0);
    };
    std::int64_t extra = first_extra(nodes.forward, nothing);

    for (const std::vector<NodeId>& backward : BackwardMenu(graph, chain, s).schedules()) {
      ChainWay way;
      std::vector<ValueId> saved;
      for (const ChainEntry entry : {kReleased, kHeld}) {
        piece.clear();
        piece.need_all(down[s]);
        if (entry == kHeld) piece.need_all(entering);
        for (std::size_t i = backward.size(); i-- > 0;) piece.before(backward[i]);
        way.backward_peak[entry] = resident + piece.peak();
        if (entry == kHeld) continue;
        for (const NodeId v : backward) {
          for (const ValueId x : graph.inputs(v)) {
            if (!piece.needed(x) || graph.backward(graph.producer(x)) ||
                std::find(saved.begin(), saved.end(), x) != saved.end())
              continue;
            saved.push_back(x);
            const bool enters = std::find(entering.begin(), entering.end(), x) != entering.end();
            const bool leaves = std::find(block.leaving.begin(), block.leaving.end(), x) != block.leaving.end();
            way.reads_entering = way.reads_entering || enters;
            way.reads_leaving = way.reads_leaving || leaves;
            if (!enters && !leaves) way.saved += graph.value_size(x);
          }
        }
      }
      piece.clear();
      piece.need_all(block.leaving);
      piece.need_all(saved);
      BlockSchedules::Option option{piece.prune(block.forward, never), backward};
      way.forward_time = cost_of(graph, option.forward);
      way.backward_time = cost_of(graph, backward);
      for (const ChainEntry entry : {kReleased, kHeld})
        way.forward_peak[entry] = forward_peak(option.forward, saved, entry);
      extra = std::max(extra, first_extra(option.forward, saved));

      ChainTurn turn;
      BlockSchedules::Option at_turn{{}, block.forward};
      at_turn.backward.insert(at_turn.backward.end(), backward.begin(), backward.end());
      for (const ChainEntry entry : {kHeld, kReleased}) {
        piece.clear();
        piece.need_all(down[s]);
        if (entry == kHeld) piece.need_all(entering);
        at_turn.backward =
            piece.prune(at_turn.backward, [&](NodeId v) { return graph.backward(v) || (s + 1 == n && once(v)); });
        turn.peak[entry] = resident + piece.peak();
        if (entry == kReleased)
          turn.reads_entering =
              at_turn.backward.size() != block.backward.size() ||
              std::any_of(entering.begin(), entering.end(), [&](ValueId x) { return piece.needed(x); });
      }
      turn.time = cost_of(graph, at_turn.backward);
      stage.ways.push_back(way);
      nodes.ways.push_back(std::move(option));
      stage.turns.push_back(turn);
      nodes.turns.push_back(std::move(at_turn));
    }
    stage.held_first += extra;
  }
  return problem;
}

core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps) {
  core::Schedule schedule;
  std::vector<std::uint8_t> visited(schedules.blocks.size(), 0);
  const std::vector<std::int32_t> rank = input_ranks(graph);
  std::vector<NodeId> forward;
  for (const ChainStep& step : steps) {
    const BlockSchedules::Block& block = schedules.blocks[step.stage];
    const std::vector<NodeId>& nodes = step.kind == ChainStep::Kind::forward        ? block.forward
                                       : step.kind == ChainStep::Kind::way_forward  ? block.ways[step.option].forward
                                       : step.kind == ChainStep::Kind::way_backward ? block.ways[step.option].backward
                                                                                    : block.turns[step.option].backward;
    auto rest = nodes.begin();
    if (visited[step.stage] == 0) {
      // What must run once takes its place among the others.
      rest = std::find_if(nodes.begin(), nodes.end(), [&](NodeId v) { return graph.backward(v); });
      forward.assign(nodes.begin(), rest);
      add_once(forward, block.once, rank);
      schedule.steps.insert(schedule.steps.end(), forward.begin(), forward.end());
    }
    visited[step.stage] = 1;
    schedule.steps.insert(schedule.steps.end(), rest, nodes.end());
  }
  return schedule;
}

}  // namespace cairn::solvers
