// Finds the ways and turns of the blocks of a chain (dynamic_program.h). A way is one choice of what the forward part
// of a block saves for its backward part, and how the backward part recomputes the rest. A turn runs both parts
// directly one after the other. A checkpoint is what a block gets from the block before. A resident is a value that is
// never recomputed.

#include "cairn/solvers/remat/rotor/block_options.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "cairn/core/support/random.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/remat/repair/block_form.h"
#include "cairn/solvers/remat/repair/input_ranks.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

/// Computes the memory during a sequence of steps. Goes from the end of the sequence to its beginning, because the
/// values needed after a step determine the values needed before it. Residents (BlockChain::resident) are not counted.
class Piece {
 public:
  Piece(const core::Graph& graph, const BlockChain& chain)
      : graph_(graph), chain_(chain), needed_(static_cast<std::size_t>(graph.value_count()), 0) {}

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
  std::vector<ValueId> all_needed() const {
    std::vector<ValueId> values;
    std::ranges::copy_if(touched_, std::back_inserter(values), [&](ValueId x) { return needed(x); });
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
  std::int64_t peak() const { return peak_; }  ///< largest number of bytes in memory during a step passed since clear()

  /// Goes back over the step that runs v. Updates the set of needed values, the bytes and the peak.
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
    return std::ranges::any_of(graph_.outputs(v), [&](ValueId x) { return needed(x); });
  }
  /// Goes back over the given steps. Leaves out each step that makes no needed value, unless stays(v) holds for its
  /// node v. Returns the remaining steps.
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

/// Adds the nodes `once` to the steps, sorts all steps by the input order, and removes duplicates.
void add_once(std::vector<NodeId>& steps, const std::vector<NodeId>& once, const std::vector<std::int32_t>& rank) {
  steps.insert(steps.end(), once.begin(), once.end());
  std::sort(steps.begin(), steps.end(), [&](NodeId a, NodeId b) { return rank[a] < rank[b]; });
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

/// Makes several backward parts for a block. They differ in which of the values that they read are saved by the forward
/// part. All other values are recomputed, each right before its first read.
class BackwardMenu {
 public:
  BackwardMenu(const core::Graph& graph, const BlockChain& chain, const std::vector<std::int32_t>& rank)
      : graph_(graph), chain_(chain), rank_(rank), there_(static_cast<std::size_t>(graph.value_count()), 0) {}

  /// Makes backward parts for a block. The first one saves all values that it reads. If there are few such values,
  /// makes one more part for each other choice of saved values. Otherwise, makes further parts in several descents. A
  /// descent starts with all values saved. In each step it stops saving the value that costs least to recompute per
  /// byte, or several such values if there are many, and makes one backward part. In each descent but the first, these
  /// costs are multiplied by random factors, so that the descents differ.
  std::vector<std::vector<NodeId>> schedules(std::int32_t block, core::Stopwatch& watch) {
    block_ = block;
    std::vector<ValueId> values;
    ++now_;
    for (const NodeId b : chain_.blocks[block].backward) {
      for (const ValueId x : graph_.inputs(b)) {
        if (!own(x) || graph_.value_size(x) == 0 || there_[x] == now_) continue;
        there_[x] = now_;
        values.push_back(x);
      }
    }
    std::vector<std::vector<NodeId>> found{chain_.blocks[block].backward};
    if (values.size() <= kEverySubset) {
      for (std::uint32_t dropped = 1; dropped < std::uint32_t{1} << values.size() && !charge(watch); ++dropped) {
        ++now_;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if ((dropped >> i & 1U) == 0) there_[values[i]] = now_;
        }
        found.push_back(schedule());
      }
      return found;
    }
    core::Random random(1);
    for (int taste = 0; taste < kTastes && !charge(watch); ++taste) {
      std::vector<ValueId> saved = values;
      while (!saved.empty() && !charge(watch)) {
        std::vector<std::pair<double, ValueId>> prices;
        for (const ValueId x : saved) {
          if (charge(watch)) return found;
          mark(saved, x);
          const double noise = taste == 0 ? 1.0 : 0.25 + 1.5 * random.uniform();
          prices.emplace_back(
              static_cast<double>(recompute(x, nullptr)) / static_cast<double>(graph_.value_size(x)) * noise, x);
        }
        std::sort(prices.begin(), prices.end());
        prices.resize(1 + prices.size() / 32);
        for (const auto& [price, x] : prices) saved.erase(std::find(saved.begin(), saved.end(), x));
        mark(saved, core::kNoValue);
        found.push_back(schedule());
      }
    }
    return found;
  }

 private:
  static constexpr std::size_t kEverySubset = 10;
  static constexpr int kTastes = 12;
  static constexpr std::int64_t kMostWork = 50'000'000;

  /// Charges the watch for one pass over the block's backward part. Returns whether to end the search for backward
  /// parts of this block, because of the watch or because it has taken too much work.
  bool charge(core::Stopwatch& watch) {
    const auto steps = static_cast<std::int64_t>(chain_.blocks[block_].backward.size()) + 1;
    work_ += steps;
    return watch.charge(steps).expired() || work_ > kMostWork;
  }
  /// Returns whether x is made in this block's forward part and can be made again.
  bool own(ValueId x) const {
    const NodeId u = graph_.producer(x);
    return !graph_.backward(u) && chain_.block_of[u] == block_ && chain_.resident[x] == 0;
  }
  void mark(const std::vector<ValueId>& saved, ValueId without) {
    ++now_;
    for (const ValueId x : saved) {
      if (x != without) there_[x] = now_;
    }
  }
  /// Computes the cost of making x from the values that are in memory. Afterwards, x and all values made on the way
  /// count as being in memory. If `steps` is not null, appends the nodes to run.
  std::int64_t recompute(ValueId x, std::vector<NodeId>* steps) {
    std::int64_t cost = 0;
    nodes_.clear();
    const auto want = [&](ValueId y) {
      if (!own(y) || there_[y] == now_) return;
      const NodeId u = graph_.producer(y);
      for (const ValueId z : graph_.outputs(u)) there_[z] = now_;
      cost += graph_.cost(u);
      nodes_.push_back(u);
    };
    want(x);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const ValueId y : graph_.inputs(nodes_[i])) want(y);
    }
    if (steps == nullptr) return cost;
    std::sort(nodes_.begin(), nodes_.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
    steps->insert(steps->end(), nodes_.begin(), nodes_.end());
    return cost;
  }
  /// Makes the backward part for which the values marked in there_ are saved.
  std::vector<NodeId> schedule() {
    std::vector<NodeId> steps;
    for (const NodeId b : chain_.blocks[block_].backward) {
      for (const ValueId x : graph_.inputs(b)) recompute(x, &steps);
      steps.push_back(b);
    }
    return steps;
  }

  const core::Graph& graph_;
  const BlockChain& chain_;
  const std::vector<std::int32_t>& rank_;
  std::int32_t block_ = 0;
  std::int64_t work_ = 0;
  /// Indexed by value: the value of now_ when the value was last marked as being in memory. A value is in memory if
  /// this equals now_, so all marks are cleared by increasing now_.
  std::vector<std::int64_t> there_;
  std::int64_t now_ = 0;
  std::vector<NodeId> nodes_;
};

/// Writes the facts of a block on which its ways and turns depend, besides its structure: where values come from and go
/// to.
struct FactsOfBlock {
  const core::Graph& graph;
  const BlockChain& chain;
  const std::int32_t s;  ///< index of the block
  const std::vector<ValueId>& entering_block;

  void node(NumberText& form, NodeId v) const {
    form.add(graph.backward(v) ? 1 : 0);
    form.add(graph.required(v) ? 1 : 0);
  }
  void entering(NumberText& form, ValueId x) const {
    form.add(graph.backward(graph.producer(x)) ? 1 : 0);
    add_place(form, x, entering_block);
  }
  void output(NumberText& form, ValueId x, const auto&) const { add_place(form, x, chain.blocks[s].leaving); }

  void add_place(NumberText& form, ValueId x, const std::vector<ValueId>& values) const {
    form.add(chain.resident[x] != 0 ? 1 : 0);
    form.add(std::find(values.begin(), values.end(), x) - values.begin());
    form.add(chain.last_block[x] < s ? 1 : 0);
  }
};

/// Returns a text that describes a block. If the texts of two blocks are equal, so are their ways and turns.
std::string canonical_form(const core::Graph& graph, const BlockChain& chain, std::int32_t s,
                           const std::vector<ValueId>& entering) {
  const ChainBlock& block = chain.blocks[s];
  NumberText form = block_form(graph, {block.forward, block.backward}, FactsOfBlock{graph, chain, s, entering});
  for (const ValueId x : entering) {
    form.add(graph.value_size(x));
    form.add(std::find(block.leaving.begin(), block.leaving.end(), x) - block.leaving.begin());
  }
  return form.text();
}

bool as_good(const ChainWay& a, const ChainWay& b) {
  bool good = a.forward_time + a.backward_time <= b.forward_time + b.backward_time && a.saved <= b.saved &&
              a.reads_entering <= b.reads_entering && a.reads_leaving <= b.reads_leaving;
  for (const ChainEntry entry : {kReleased, kHeld})
    good = good && a.forward_peak[entry] <= b.forward_peak[entry] && a.backward_peak[entry] <= b.backward_peak[entry];
  return good;
}
bool as_good(const ChainTurn& a, const ChainTurn& b) {
  return a.time <= b.time && a.reads_entering <= b.reads_entering && a.peak[kReleased] <= b.peak[kReleased] &&
         a.peak[kHeld] <= b.peak[kHeld];
}

/// Returns the indices of the ways or turns that no other way or turn dominates, i.e. for which none is at least as
/// good in every measure. Of equal ways or turns, only the first is returned.
template <class Measures>
std::vector<std::size_t> undominated(const std::vector<Measures>& measures) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    bool dominated = false;
    for (const std::size_t j : found) dominated = dominated || as_good(measures[j], measures[i]);
    for (std::size_t j = i + 1; j < measures.size() && !dominated; ++j)
      dominated = as_good(measures[j], measures[i]) && !as_good(measures[i], measures[j]);
    if (!dominated) found.push_back(i);
  }
  return found;
}

/// Measures each block: computes the times and bytes of its ChainStage, and finds the nodes that each of its ways and
/// turns (dynamic_program.h) runs.
class BlockMeter {
 public:
  BlockMeter(const core::Graph& graph, const BlockChain& chain, const std::vector<std::int32_t>& rank)
      : graph_(graph), chain_(chain), rank_(rank), piece_(graph, chain), down_(chain.blocks.size()) {
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      const NodeId u = graph.producer(x);
      if (!graph.backward(u)) {
        if (chain.resident[x] != 0) residents_.push_back(x);
        continue;
      }
      for (std::int32_t s = chain.last_block[x] + 1; s <= chain.block_of[u]; ++s) down_[s].push_back(x);
    }
  }

  void measure_held(std::vector<ChainStage>& stages) const {
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
      for (const ValueId x : down_[s + 1]) stages[s].held += graph_.value_size(x);
    }
    for (const ValueId x : residents_) {
      const auto first = static_cast<std::size_t>(std::max(chain_.last_block[x], 0));
      const auto made = static_cast<std::size_t>(chain_.block_of[graph_.producer(x)]);
      for (std::size_t s = first; s < stages.size(); ++s) stages[s].held += graph_.value_size(x);
      for (std::size_t s = made; s < stages.size(); ++s) stages[s].held_first += graph_.value_size(x);
    }
  }

  void start(std::int32_t s) {
    block_ = &chain_.blocks[s];
    last_ = s + 1 == static_cast<std::int32_t>(chain_.blocks.size());
    entering_ = s == 0 ? &nothing_ : &chain_.blocks[s - 1].leaving;
    left_behind_ = &down_[s];
    resident_ = 0;
    for (const ValueId x : residents_) resident_ += chain_.last_block[x] <= s ? graph_.value_size(x) : 0;
    piece_.clear();
    once_ = piece_.prune(block_->forward, [&](NodeId v) { return runs_once(v); });
    more_at_first_ = 0;
  }
  const std::vector<ValueId>& entering() const { return *entering_; }
  const std::vector<NodeId>& once() const { return once_; }
  /// Returns by how many bytes the peak of this block's first forward run can exceed the peaks of its later forward
  /// runs. The nodes of once() run only in the first forward run. Covers all forward parts measured since start().
  std::int64_t more_at_first() const { return more_at_first_; }

  /// Makes the forward part that saves nothing for the backward part, and sets its measures in `stage`.
  std::vector<NodeId> forward(ChainStage& stage) {
    for (const ValueId x : *entering_) stage.checkpoint += graph_.value_size(x);
    std::vector<NodeId> steps = forward_part(nothing_);
    stage.forward_time = cost_of(graph_, steps);
    measure_forward(steps, nothing_, stage.forward_peak);
    return steps;
  }

  /// Makes and measures the way that belongs to a backward part. Its forward part saves what the backward part reads.
  std::pair<ChainWay, LayerOption> way(const std::vector<NodeId>& backward) {
    ChainWay way;
    way.backward_peak[kHeld] = backward_peak(backward, kHeld);
    way.backward_peak[kReleased] = backward_peak(backward, kReleased);
    std::vector<ValueId> saved;
    for (const ValueId x : piece_.all_needed()) {
      if (graph_.backward(graph_.producer(x))) continue;
      saved.push_back(x);
      const bool enters = contains(*entering_, x), leaves = contains(block_->leaving, x);
      way.reads_entering = way.reads_entering || enters;
      way.reads_leaving = way.reads_leaving || leaves;
      if (!enters && !leaves) way.saved += graph_.value_size(x);
    }
    LayerOption option{forward_part(saved), backward};
    way.forward_time = cost_of(graph_, option.forward);
    way.backward_time = cost_of(graph_, backward);
    measure_forward(option.forward, saved, way.forward_peak);
    return {way, std::move(option)};
  }

  std::pair<ChainTurn, LayerOption> turn(const std::vector<NodeId>& backward) {
    ChainTurn turn;
    LayerOption option{{}, block_->forward};
    std::vector<NodeId>& steps = option.backward;
    steps.insert(steps.end(), backward.begin(), backward.end());
    const auto stays = [&](NodeId v) { return graph_.backward(v) || (last_ && runs_once(v)); };
    for (const ChainEntry entry : {kHeld, kReleased}) {
      need_after_backward(entry);
      steps = piece_.prune(steps, stays);
      turn.peak[entry] = resident_ + piece_.peak();
    }
    turn.time = cost_of(graph_, steps);
    turn.reads_entering = !steps.empty() && !graph_.backward(steps.front());
    for (const ValueId x : *entering_) turn.reads_entering = turn.reads_entering || piece_.needed(x);
    return {turn, std::move(option)};
  }

 private:
  static bool contains(const std::vector<ValueId>& values, ValueId x) {
    return std::find(values.begin(), values.end(), x) != values.end();
  }
  bool runs_once(NodeId v) const {
    bool once = graph_.required(v) || graph_.pinned(v);
    for (const ValueId x : graph_.outputs(v)) once = once || chain_.resident[x] != 0;
    return once;
  }
  void need_after_backward(ChainEntry entry) {
    piece_.clear();
    piece_.need_all(*left_behind_);
    if (entry == kHeld) piece_.need_all(*entering_);
  }
  std::int64_t backward_peak(const std::vector<NodeId>& steps, ChainEntry entry) {
    need_after_backward(entry);
    for (std::size_t i = steps.size(); i-- > 0;) piece_.before(steps[i]);
    return resident_ + piece_.peak();
  }
  void need_after_forward(const std::vector<ValueId>& saved) {
    piece_.clear();
    piece_.need_all(block_->leaving);
    piece_.need_all(saved);
  }
  std::vector<NodeId> forward_part(const std::vector<ValueId>& saved) {
    need_after_forward(saved);
    return piece_.prune(block_->forward, [](NodeId) { return false; });
  }
  std::int64_t forward_peak(const std::vector<NodeId>& steps, const std::vector<ValueId>& saved, ChainEntry entry) {
    need_after_forward(saved);
    if (entry == kHeld) piece_.need_all(*entering_);
    for (std::size_t i = steps.size(); i-- > 0;) piece_.before(steps[i]);
    return piece_.peak();
  }
  void measure_forward(std::vector<NodeId> steps, const std::vector<ValueId>& saved, std::int64_t (&peak)[2]) {
    for (const ChainEntry entry : {kReleased, kHeld}) peak[entry] = forward_peak(steps, saved, entry);
    add_once(steps, once_, rank_);
    more_at_first_ = std::max(more_at_first_, forward_peak(steps, saved, kHeld) - peak[kHeld]);
    more_at_first_ = std::max(more_at_first_, forward_peak(steps, saved, kReleased) - peak[kReleased]);
  }

  const core::Graph& graph_;
  const BlockChain& chain_;
  const std::vector<std::int32_t>& rank_;
  Piece piece_;
  const std::vector<ValueId> nothing_;
  std::vector<ValueId> residents_;
  /// Indexed by block: gradients that this block or a later one makes and that an earlier block reads or that are kept.
  /// They are in memory after the block has run backward.
  std::vector<std::vector<ValueId>> down_;
  // The following fields describe the block that is being measured.
  const ChainBlock* block_ = nullptr;
  bool last_ = false;
  const std::vector<ValueId>*entering_ = nullptr, *left_behind_ = nullptr;
  std::int64_t resident_ = 0;  ///< bytes of the residents that are in memory while the block runs backward
  std::vector<NodeId> once_;
  std::int64_t more_at_first_ = 0;
};

}  // namespace

ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules) {
  ChainProblem problem;
  problem.stages.resize(chain.blocks.size());
  schedules.blocks.assign(chain.blocks.size(), {});
  const std::vector<std::int32_t> rank = input_ranks(graph);
  BlockMeter meter(graph, chain, rank);
  BackwardMenu menu(graph, chain, rank);
  meter.measure_held(problem.stages);
  // Backward parts of the blocks measured so far, by canonical form. A node is given by its index among the forward and
  // backward nodes of its block.
  std::map<std::string, std::vector<std::vector<std::int32_t>>> known;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(chain.blocks.size()); ++s) {
    ChainStage& stage = problem.stages[s];
    BlockSchedules::Block& nodes = schedules.blocks[s];
    meter.start(s);
    nodes.forward = meter.forward(stage);
    nodes.once = meter.once();

    std::vector<NodeId> all = chain.blocks[s].forward;
    all.insert(all.end(), chain.blocks[s].backward.begin(), chain.blocks[s].backward.end());
    const auto [same, is_new] = known.try_emplace(canonical_form(graph, chain, s, meter.entering()));
    std::vector<std::vector<NodeId>> backward_parts;
    if (is_new) backward_parts = menu.schedules(s, watch);
    for (const std::vector<std::int32_t>& places : same->second) {
      backward_parts.emplace_back();
      for (const std::int32_t place : places) backward_parts.back().push_back(all[place]);
    }
    std::vector<ChainWay> ways;
    std::vector<ChainTurn> turns;
    std::vector<LayerOption> at_ways, at_turns;
    for (const std::vector<NodeId>& backward : backward_parts) {
      auto [way, at_way] = meter.way(backward);
      auto [turn, at_turn] = meter.turn(backward);
      ways.push_back(way);
      turns.push_back(turn);
      at_ways.push_back(std::move(at_way));
      at_turns.push_back(std::move(at_turn));
    }
    stage.held_first += meter.more_at_first();
    std::vector<std::uint8_t> used(backward_parts.size(), 0);
    for (const std::size_t k : undominated(ways)) {
      used[k] = 1;
      stage.ways.push_back(ways[k]);
      nodes.ways.push_back(std::move(at_ways[k]));
    }
    for (const std::size_t k : undominated(turns)) {
      used[k] = 1;
      stage.turns.push_back(turns[k]);
      nodes.turns.push_back(std::move(at_turns[k]));
    }
    if (!is_new) continue;
    std::map<NodeId, std::int32_t> place;
    for (const NodeId v : all) place.emplace(v, static_cast<std::int32_t>(place.size()));
    for (std::size_t k = 0; k < backward_parts.size(); ++k) {
      if (used[k] == 0) continue;
      same->second.emplace_back();
      for (const NodeId v : backward_parts[k]) same->second.back().push_back(place[v]);
    }
  }
  return problem;
}

void price_moves(const core::Graph& graph, const BlockChain& chain, const BlockSchedules& schedules,
                 const std::function<double(core::ValueId)>& price_of, ChainProblem& problem) {
  std::vector<std::uint8_t> passed(static_cast<std::size_t>(graph.value_count()), 0);
  std::vector<std::uint8_t> made(passed.size(), 0);
  for (std::size_t s = 0; s < problem.stages.size(); ++s) {
    ChainStage& stage = problem.stages[s];
    static const std::vector<ValueId> kNothing;
    const std::vector<ValueId>& entering = s == 0 ? kNothing : chain.blocks[s - 1].leaving;
    stage.move_time = 0;
    for (const ValueId x : entering) stage.move_time += price_of(x);
    for (const ValueId x : entering) passed[x] = 1;
    for (const ValueId x : chain.blocks[s].leaving) passed[x] = 1;
    for (std::size_t k = 0; k < stage.ways.size(); ++k) {
      ChainWay& way = stage.ways[k];
      way.move_time = 0;
      way.stays = 0;
      std::vector<ValueId> seen;
      for (const NodeId v : schedules.blocks[s].ways[k].backward) {
        for (const ValueId x : graph.inputs(v)) {
          if (made[x] != 0 || graph.backward(graph.producer(x)) || chain.resident[x] != 0) continue;
          made[x] = 1;
          seen.push_back(x);
          if (passed[x] != 0) continue;
          const double price = price_of(x);
          if (price == kNoMove) {
            way.stays += graph.value_size(x);
          } else {
            way.move_time += price;
          }
        }
        for (const ValueId x : graph.outputs(v)) {
          made[x] = 1;
          seen.push_back(x);
        }
      }
      for (const ValueId x : seen) made[x] = 0;
    }
    for (const ValueId x : entering) passed[x] = 0;
    for (const ValueId x : chain.blocks[s].leaving) passed[x] = 0;
  }
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
      // At the stage's first run, the nodes of `once` run as well.
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
