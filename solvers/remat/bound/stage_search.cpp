// Searches through the stages of a schedule for the least cost (stage_search.h). The first run of the chain's node c_t
// ends stage t. The extra cost is the cost above the cost of running each node once.

#include "cairn/solvers/remat/bound/stage_search.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>
#include <utility>

#include "cairn/core/graph.h"

namespace cairn::solvers {
namespace {

using Word = std::uint64_t;

bool contains(std::span<const Word> set, std::int32_t i) {
  return (set[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0;
}
void put_in(std::span<Word> set, core::ValueId i) { set[static_cast<std::size_t>(i) / 64] |= Word{1} << (i % 64); }
void take_out(std::span<Word> set, core::ValueId i) { set[static_cast<std::size_t>(i) / 64] &= ~(Word{1} << (i % 64)); }

/// Stores a layer: the states that the search reached at the end of one stage. A state is described by a set of bits in
/// `sets`: the values that are held, and the nodes that have run, for nodes whose first run is not fixed to a stage.
struct StageStates {
  struct State {
    std::int64_t extra = 0;  ///< cost so far of all runs except first runs, in units of FirstRunStages::cost_unit()
    /// Index, in the layer before this one, of the state from which this state was reached.
    std::int32_t before = -1;
    /// range in `runs` of the nodes that ran in this stage, without the node of the chain
    std::int32_t runs_begin = 0, runs_end = 0;
  };
  std::vector<State> states;
  std::vector<Word> sets;
  std::vector<core::NodeId> runs;
};

/// Runs the search. expand() goes from a state at the end of one stage to the states at the end of the next stage; it
/// chooses the nodes that run in this stage, and the values to be kept or dropped.
class StageSearch {
 public:
  StageSearch(const FirstRunStages& stages, const StagePrices& prices, std::int64_t most_extra,
              std::int64_t memory_bytes, core::Stopwatch& watch)
      : stages_(stages),
        prices_(prices),
        graph_(stages.graph()),
        end_(stages.chain_length()),
        most_(std::min(most_extra, (std::int64_t{1} << 60) / prices.one())),
        memory_(memory_bytes),
        watch_(watch),
        bit_of_node_(static_cast<std::size_t>(graph_.node_count()), -1),
        in_stage_(static_cast<std::size_t>(graph_.node_count()), 0),
        free_(static_cast<std::size_t>(graph_.value_count()), 0) {
    std::int32_t bits = graph_.value_count();
    for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
      if (stages.node(v).first < stages.node(v).due) bit_of_node_[v] = bits++;
    }
    words_ = static_cast<std::size_t>(bits + 63) / 64;
    node_bits_.assign(words_, 0);
    for (std::int32_t bit = graph_.value_count(); bit < bits; ++bit) put_in(node_bits_, bit);
    held_.resize(words_);
  }

  StageSearchAnswer run() {
    StageSearchAnswer answer;
    layers_.resize(static_cast<std::size_t>(end_) + 2);
    layers_[0].states.emplace_back();
    layers_[0].sets.assign(words_, 0);
    std::int64_t bytes = 0;
    for (stage_ = 0; stage_ <= end_; ++stage_) {
      prepare_stage();
      StageStates& from = layers_[static_cast<std::size_t>(stage_)];
      for (std::size_t s = 0; s < from.states.size() && capacity_ >= 0; ++s) {
        expand(static_cast<std::int32_t>(s));
        if (watch_.charge(1).expired() || bytes + bytes_of(next()) > memory_) return answer;
      }
      if (!leave_out_dominated()) return answer;
      index_.clear();
      bytes += bytes_of(next());
    }
    answer.complete = true;
    answer.left_out = left_out_;
    const std::vector<StageStates::State>& last = layers_.back().states;
    if (last.empty()) return answer;
    const auto best = std::ranges::min_element(last, {}, &StageStates::State::extra);
    answer.extra = best->extra;
    answer.schedule = schedule(static_cast<std::int32_t>(best - last.begin()));
    return answer;
  }

 private:
  struct Candidate {
    core::ValueId value;
    std::int64_t size, worth;
  };

  StageStates& next() { return layers_[static_cast<std::size_t>(stage_) + 1]; }
  static std::int64_t bytes_of(const StageStates& layer) {
    constexpr std::int64_t kIndexed = 64;
    return static_cast<std::int64_t>(layer.states.size() * (sizeof(StageStates::State) + kIndexed) +
                                     layer.sets.size() * sizeof(Word) + layer.runs.size() * sizeof(core::NodeId));
  }

  void prepare_stage() {
    capacity_ = stages_.budget() - (stage_ < end_ ? graph_.scratch(stages_.chain(stage_)) : 0);
    forced_.assign(words_, 0);
    due_.clear();
    for (const core::NodeId v : prices_.active(stage_)) {
      if (stages_.node(v).due == stage_) due_.push_back(v);
      for (const core::ValueId x : graph_.outputs(v)) {
        if (stage_ > stages_.value(x).until || !stages_.forced(stage_, x)) continue;
        put_in(forced_, x);
        capacity_ -= graph_.value_size(x);
      }
    }
  }

  bool has_run(core::NodeId v) const {
    const FirstRunStages::Node& node = stages_.node(v);
    return node.due < stage_ || in_stage_[v] != 0 || (bit_of_node_[v] >= 0 && contains(held_, bit_of_node_[v]));
  }
  bool may_run(core::NodeId v) {
    const FirstRunStages::Node& node = stages_.node(v);
    if (stage_ < node.first || stage_ > node.last || (node.once && has_run(v))) return false;
    const bool never = has_run(v) && prices_.never_run(stage_, v, most_);
    left_out_ = left_out_ || never;
    return !never;
  }

  /// Runs v in this stage, after the nodes that make its missing inputs. Returns false if one of these nodes may not
  /// run.
  bool need(core::NodeId v) {
    if (in_stage_[v] != 0) return true;
    if (!may_run(v)) return false;
    for (const core::ValueId y : graph_.inputs(v)) {
      if (!contains(held_, y) && !need(graph_.producer(y))) return false;
    }
    run_node(v);
    return true;
  }
  void run_node(core::NodeId v) {
    if (has_run(v)) extra_ += graph_.cost(v) / stages_.cost_unit();
    if (bit_of_node_[v] >= 0) put_in(held_, bit_of_node_[v]);
    for (const core::ValueId x : graph_.outputs(v)) put_in(held_, x);
    in_stage_[v] = 1;
    runs_.push_back(v);
  }

  void expand(std::int32_t s) {
    const StageStates& from = layers_[static_cast<std::size_t>(stage_)];
    before_ = s;
    const auto set = from.sets.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s) * words_);
    arrival_.assign(set, set + static_cast<std::ptrdiff_t>(words_));
    held_ = arrival_;
    extra_ = from.states[static_cast<std::size_t>(s)].extra;
    runs_.clear();
    bool possible = true;
    for (const core::NodeId v : due_) possible = possible && (has_run(v) || need(v));
    if (stage_ == end_) {
      for (const core::NodeId v : prices_.active(stage_)) {
        for (const core::ValueId x : graph_.outputs(v))
          possible = possible && (!graph_.value_kept(x) || contains(held_, x) || need(v));
      }
    }
    for (std::size_t w = 0; w < words_; ++w) possible = possible && (forced_[w] & ~held_[w]) == 0;
    needed_runs_ = runs_.size();
    if (possible) choose_runs(0);
    for (const core::NodeId v : runs_) in_stage_[v] = 0;
  }

  /// Returns a lower bound on the extra cost of all solutions that contain the current choice of runs. The bound is in
  /// units of FirstRunStages::cost_unit() / StagePrices::one().
  std::int64_t least() {
    std::int64_t sum = extra_ * prices_.one() + prices_.rest(stage_) - prices_.holding(stage_, capacity_) - 1;
    for (const core::NodeId v : prices_.active(stage_)) {
      std::int64_t gain = 0;
      if (in_stage_[v] == 0) gain -= has_run(v) ? graph_.cost(v) / stages_.cost_unit() * prices_.one() : 0;
      const bool can_run = in_stage_[v] == 0 && may_run(v);
      for (const core::ValueId x : graph_.outputs(v)) {
        if (stage_ > stages_.value(x).until) continue;
        if (contains(forced_, x)) {
          sum -= prices_.worth(stage_, x);
          continue;
        }
        const std::int64_t net =
            std::max<std::int64_t>(prices_.worth(stage_, x) - prices_.holding(stage_, graph_.value_size(x)), 0);
        if (never_held(x)) continue;
        if (contains(held_, x)) {
          sum -= net;
        } else {
          gain += net;
        }
      }
      if (can_run && gain > 0) sum -= gain;
    }
    return sum;
  }
  bool too_much(std::int64_t cost) {
    const bool is = cost > most_ * prices_.one();
    left_out_ = left_out_ || is;
    return is;
  }

  /// Chooses among runs that are not required. Begins with the i-th of the nodes that matter in this stage (see
  /// StageUses::active()). For each of these nodes whose inputs are in memory, tries both cases: the node runs, and the
  /// node does not run.
  void choose_runs(std::size_t i) {
    const auto nodes = prices_.active(stage_);
    if (watch_.charge(static_cast<std::int64_t>(nodes.size())).expired() || too_much(least())) return;
    for (; i < nodes.size(); ++i) {
      const core::NodeId v = nodes[i];
      if (in_stage_[v] != 0 || !may_run(v)) continue;
      const auto inputs = graph_.inputs(v);
      if (!std::all_of(inputs.begin(), inputs.end(), [&](core::ValueId y) { return contains(held_, y); })) continue;
      const bool first = !has_run(v);
      const bool free = !first && graph_.cost(v) == 0;
      bool useful = first, weightless = true;
      for (const core::ValueId x : graph_.outputs(v)) {
        useful = useful || (!contains(held_, x) && stage_ <= stages_.value(x).until);
        weightless = weightless && graph_.value_size(x) == 0;
      }
      if (!useful) continue;
      const std::int64_t extra = extra_;
      const std::vector<Word> held = held_;
      run_node(v);
      choose_runs(i + 1);
      undo(v, held, extra);
      // A run at no cost, and a first run whose outputs have 0 bytes, have no disadvantage. So the case without the run
      // is skipped.
      if (free || (first && weightless)) return;
    }
    choose_drops();
  }
  void undo(core::NodeId v, const std::vector<Word>& held, std::int64_t extra) {
    in_stage_[v] = 0;
    runs_.pop_back();
    held_ = held;
    extra_ = extra;
  }

  void choose_drops() {
    watch_.charge(2 * static_cast<std::int64_t>(prices_.active(stage_).size()));
    candidates_.clear();
    std::int64_t excess = -capacity_;
    std::int64_t cost = extra_ * prices_.one() + prices_.rest(stage_);
    kept_ = held_;
    for (const core::NodeId v : prices_.active(stage_)) {
      for (const core::ValueId x : graph_.outputs(v)) {
        if (!contains(held_, x)) continue;
        if (stage_ > stages_.value(x).until || never_held(x)) {
          take_out(kept_, x);
          continue;
        }
        const std::int64_t worth = prices_.worth(stage_, x);
        cost -= worth;
        if (contains(forced_, x) || graph_.value_size(x) == 0) continue;
        if (made_freely(v)) {
          free_[x] = 1;
          take_out(kept_, x);
          continue;
        }
        candidates_.push_back({x, graph_.value_size(x), worth});
        excess += graph_.value_size(x);
      }
    }
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.size != b.size ? a.size > b.size : a.value < b.value;
    });
    rest_bytes_.assign(candidates_.size() + 1, 0);
    rest_ratio_.assign(candidates_.size() + 1, 1e300);
    for (std::size_t i = candidates_.size(); i-- > 0;) {
      const Candidate& c = candidates_[i];
      rest_bytes_[i] = rest_bytes_[i + 1] + c.size;
      rest_ratio_[i] = std::min(rest_ratio_[i + 1], static_cast<double>(c.worth) / static_cast<double>(c.size));
    }
    sorted_ = candidates_.size();
    drop_from(0, excess, cost);
    for (const core::NodeId v : prices_.active(stage_)) {
      for (const core::ValueId x : graph_.outputs(v)) free_[x] = 0;
    }
  }
  bool never_held(core::ValueId x) {
    const bool never = graph_.value_size(x) != 0 && prices_.never_held(stage_, x, most_);
    left_out_ = left_out_ || never;
    return never;
  }
  /// Returns whether v can run again in the next stage at no cost, from kept values. If so, the values of v need not be
  /// kept.
  bool made_freely(core::NodeId v) const {
    const FirstRunStages::Node& node = stages_.node(v);
    if (graph_.cost(v) != 0 || node.once || node.last <= stage_) return false;
    if (prices_.never_run(stage_ + 1, v, most_)) return false;
    const auto inputs = graph_.inputs(v);
    return std::ranges::all_of(inputs, [&](core::ValueId y) { return contains(kept_, y) || free_[y] != 0; });
  }
  void drop_from(std::size_t i, std::int64_t excess, std::int64_t cost) {
    if (excess <= 0) {
      if (!too_much(cost)) arrive();
      return;
    }
    if (watch_.charge(1).expired()) return;
    for (; i < candidates_.size(); ++i) {
      if (candidates_.size() == sorted_) {
        if (rest_bytes_[i] < excess) return;
        // Each candidate that is left costs at least rest_ratio_[i] per byte. So dropping `excess` more bytes costs at
        // least `more`. The last factor makes up for rounding errors, so that this bound stays valid.
        const double more = rest_ratio_[i] * static_cast<double>(excess) * (1 - 1e-12);
        if (too_much(cost + static_cast<std::int64_t>(std::min(more, 0x1p60)))) return;
      }
      const Candidate dropped = candidates_[i];
      if (too_much(cost + dropped.worth)) continue;
      take_out(kept_, dropped.value);
      // Some values were not kept, because they could be made at no cost from the dropped value. Now they are kept, and
      // are candidates for dropping.
      const std::size_t before = candidates_.size();
      std::int64_t more_excess = 0;
      for (const core::NodeId reader : graph_.readers(dropped.value)) {
        for (const core::ValueId x : graph_.outputs(reader)) {
          if (free_[x] == 0) continue;
          free_[x] = 0;
          put_in(kept_, x);
          candidates_.push_back({x, graph_.value_size(x), 0});
          more_excess += graph_.value_size(x);
        }
      }
      drop_from(i + 1, excess - dropped.size + more_excess, cost + dropped.worth);
      for (; candidates_.size() > before; candidates_.pop_back()) {
        free_[candidates_.back().value] = 1;
        take_out(kept_, candidates_.back().value);
      }
      put_in(kept_, dropped.value);
    }
  }

  /// Adds the state in which kept_ is held after this stage. Does nothing in two cases:
  /// - A run that is not required could also be made in a later stage, without a disadvantage. The search tries that
  ///   choice, too.
  /// - The runs of this stage do not fit into memory.
  void arrive() {
    watch_.charge(static_cast<std::int64_t>(prices_.active(stage_).size()));
    const auto all_kept = [&](auto values) {
      return std::all_of(values.begin(), values.end(), [&](core::ValueId y) { return contains(kept_, y); });
    };
    for (std::size_t i = needed_runs_; i < runs_.size(); ++i) {
      const core::NodeId v = runs_[i];
      const bool weightless = graph_.size(v) == 0;
      bool used = false;
      for (std::size_t k = i + 1; k < runs_.size() && !used; ++k) {
        for (const core::ValueId y : graph_.inputs(runs_[k])) used = used || graph_.producer(y) == v;
      }
      const bool first = bit_of_node_[v] >= 0 && !contains(arrival_, bit_of_node_[v]);
      if (used || weightless || (!first && graph_.cost(v) == 0)) continue;
      const auto outputs = graph_.outputs(v);
      const bool wasted =
          std::none_of(outputs.begin(), outputs.end(), [&](core::ValueId x) { return contains(kept_, x); });
      if ((wasted && !first) || all_kept(graph_.inputs(v))) return;
    }
    if (!runs_fit()) return;
    StageStates& layer = next();
    std::size_t hash = 0xcbf29ce484222325ULL;
    for (const Word w : kept_) hash = (hash ^ w) * 0x9e3779b97f4a7c15ULL ^ (hash >> 29);
    const auto [first, last] = index_.equal_range(hash);
    std::int32_t place = -1;
    for (auto it = first; it != last && place < 0; ++it) {
      const auto set = layer.sets.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(it->second) * words_);
      if (std::equal(kept_.begin(), kept_.end(), set)) place = it->second;
    }
    if (place < 0) {
      place = static_cast<std::int32_t>(layer.states.size());
      layer.states.emplace_back();
      layer.sets.insert(layer.sets.end(), kept_.begin(), kept_.end());
      index_.emplace(hash, place);
    } else if (layer.states[static_cast<std::size_t>(place)].extra <= extra_) {
      return;
    }
    StageStates::State& state = layer.states[static_cast<std::size_t>(place)];
    state.extra = extra_;
    state.before = before_;
    state.runs_begin = static_cast<std::int32_t>(layer.runs.size());
    for (const core::NodeId v : runs_) {
      if (stages_.place(v) != stage_) layer.runs.push_back(v);
    }
    state.runs_end = static_cast<std::int32_t>(layer.runs.size());
  }

  /// Returns whether all nodes whose first run is certainly in this stage can run within the memory. During each of
  /// these runs, the node's inputs, outputs and scratch count. Values that are held before and after the stage also
  /// count if their producers run only once, because they must then be held during the whole stage.
  bool runs_fit() const {
    std::int64_t through = 0;
    const auto stays = [&](core::ValueId x) {
      return contains(arrival_, x) && contains(kept_, x) && stages_.node(graph_.producer(x)).once;
    };
    for (const core::NodeId v : prices_.active(stage_)) {
      for (const core::ValueId x : graph_.outputs(v)) through += stays(x) ? graph_.value_size(x) : 0;
    }
    return std::all_of(due_.begin(), due_.end(), [&](core::NodeId v) {
      if (stages_.node(v).first < stage_) return true;
      std::int64_t bytes = through + graph_.size(v) + graph_.scratch(v);
      for (const core::ValueId y : graph_.inputs(v)) bytes += stays(y) ? 0 : graph_.value_size(y);
      return bytes <= stages_.budget();
    });
  }

  /// Removes states of the next layer for which another state holds at least the same values at no higher cost.
  /// Compares each state only with the first kCompared states that are kept. Returns false if the watch expired.
  bool leave_out_dominated() {
    constexpr std::size_t kCompared = 64;
    StageStates& layer = next();
    std::vector<std::int32_t> order(layer.states.size());
    for (std::size_t s = 0; s < order.size(); ++s) order[s] = static_cast<std::int32_t>(s);
    std::ranges::sort(order, {}, [&](std::int32_t s) { return std::pair(layer.states[s].extra, s); });
    StageStates kept;
    for (const std::int32_t s : order) {
      if (watch_.charge(static_cast<std::int64_t>(words_)).expired()) return false;
      const Word* set = layer.sets.data() + static_cast<std::size_t>(s) * words_;
      bool dominated = false;
      for (std::size_t k = 0; k < std::min(kept.states.size(), kCompared) && !dominated; ++k) {
        const Word* other = kept.sets.data() + k * words_;
        dominated = true;
        // A state dominates another one only if the same nodes have run in both. Otherwise, the state in which fewer
        // nodes have run can be better: the first runs that it still has to make yield values, and `extra` does not
        // count the cost of first runs.
        for (std::size_t w = 0; w < words_ && dominated; ++w)
          dominated = (set[w] & ~other[w]) == 0 && ((set[w] ^ other[w]) & node_bits_[w]) == 0;
      }
      if (dominated) continue;
      kept.states.push_back(layer.states[static_cast<std::size_t>(s)]);
      kept.sets.insert(kept.sets.end(), set, set + words_);
    }
    kept.runs = std::move(layer.runs);
    layer = std::move(kept);
    return true;
  }

  core::Schedule schedule(std::int32_t s) const {
    std::vector<std::vector<core::NodeId>> stages;
    for (std::int32_t t = end_; t >= 0; --t) {
      const StageStates& layer = layers_[static_cast<std::size_t>(t) + 1];
      const StageStates::State& state = layer.states[static_cast<std::size_t>(s)];
      stages.emplace_back(layer.runs.begin() + state.runs_begin, layer.runs.begin() + state.runs_end);
      if (t < end_) stages.back().push_back(stages_.chain(t));
      s = state.before;
    }
    core::Schedule schedule;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
      schedule.steps.insert(schedule.steps.end(), stage->begin(), stage->end());
    return schedule;
  }

  const FirstRunStages& stages_;
  const StagePrices& prices_;
  const core::Graph& graph_;
  const std::int32_t end_;
  const std::int64_t most_, memory_;
  core::Stopwatch& watch_;
  /// bit of each node whose first run can be in more than one stage; -1 for other nodes
  std::vector<std::int32_t> bit_of_node_;
  std::size_t words_ = 0;
  std::vector<Word> node_bits_;
  std::vector<StageStates> layers_;
  bool left_out_ = false;

  // The next members describe the current stage.
  std::int32_t stage_ = 0;
  std::int64_t capacity_ = 0;  ///< bytes left during the first run of c_t for values that need not be in memory then
  std::vector<Word> forced_;
  std::vector<core::NodeId> due_;
  std::unordered_multimap<std::size_t, std::int32_t> index_;

  // The next members describe the current expansion of a state.
  std::int32_t before_ = 0;
  /// - arrival_: values held during the first run of c_(t-1).
  /// - held_: values made or held since then.
  /// - kept_: values to be held during the first run of c_t.
  std::vector<Word> arrival_, held_, kept_;
  std::int64_t extra_ = 0;
  std::vector<core::NodeId> runs_;
  std::size_t needed_runs_ = 0;
  std::vector<std::uint8_t> in_stage_;
  std::vector<std::uint8_t> free_;  ///< whether a value is left out of kept_, because it can be made at no cost
  /// Number of candidates that were sorted by size. drop_from() can add more candidates after them.
  std::size_t sorted_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<std::int64_t> rest_bytes_;
  std::vector<double> rest_ratio_;
};

}  // namespace

StageSearchAnswer search_relaxation(const FirstRunStages& stages, const StagePrices& prices, std::int64_t most_extra,
                                    std::int64_t memory_bytes, core::Stopwatch& watch) {
  return StageSearch(stages, prices, most_extra, memory_bytes, watch).run();
}

}  // namespace cairn::solvers
