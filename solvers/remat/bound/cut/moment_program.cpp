// Solves the integer program of one moment by dynamic programming over the nodes (moment_program.h).

#include "cairn/solvers/remat/bound/cut/moment_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "cairn/core/support/saturating.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

class MomentProgram {
 public:
  MomentProgram(const core::Graph& graph, const MomentBound& bound, core::Stopwatch& watch)
      : graph_(graph), moment_(bound.moment()), price_(bound.price()), room_(moment_.room), watch_(watch) {}

  MomentOptimum run(std::int64_t known, std::int64_t most) {
    MomentOptimum optimum{known, false, {}};
    if (!find_items() || !make_states()) return optimum;
    find_rests();
    optimum.infeasible = layers_[0][0].least > room_;
    if (optimum.infeasible) return optimum;
    // The first threshold is higher than the bound by this part of it. The distance grows by kFaster from one threshold
    // to the next.
    constexpr std::int64_t kPart = 500, kFaster = 4;
    std::int64_t step = optimum.extra / kPart;
    while (optimum.extra <= most) {
      const std::int64_t threshold = std::min(core::saturating_add(optimum.extra, step), most);
      const Outcome outcome = search(threshold);
      if (outcome == Outcome::cut) break;
      if (outcome == Outcome::found) {
        if (best_.cost < known) break;
        optimum.extra = best_.cost;
        optimum.cut = cut();
        break;
      }
      optimum.extra = threshold + 1;
      step = std::max<std::int64_t>(step, 1) * kFaster;
    }
    return optimum;
  }

 private:
  static constexpr std::size_t kMostStates = 1 << 18;   // of all layers together, 40 bytes each
  static constexpr std::int64_t kMostLabels = 1 << 24;  // that one threshold makes
  static constexpr std::int32_t kNoIndex = -1;
  /// A set of values: one bit for each value that is not needed, and that a node reads which may run again. A bit
  /// stands for one value after the other.
  using Demand = std::uint64_t;
  static constexpr int kBits = 64;

  /// A node about which there is something to decide.
  struct Item {
    NodeId node;
    std::int64_t cost;   ///< of running again
    std::int64_t bytes;  ///< of the outputs that are needed
    bool may_run_again;
    std::vector<std::pair<Demand, std::int64_t>> open;  ///< outputs that are not needed: their bits and bytes
    Demand outputs = 0;                                 ///< bits of these outputs
    Demand inputs = 0;                                  ///< bits that are set if the node runs again
  };

  struct State {
    Demand demand;
    std::int64_t bytes = 0;                          ///< held if the node does not run again
    std::int32_t hold = kNoIndex, again = kNoIndex;  ///< the state of the next layer for each choice
    double rest = 0;                                 ///< least sum of costs and prices from here on
    std::int64_t least = 0;                          ///< least bytes from here on
    bool prefers_again = false;                      ///< whether running the node again gives `rest`
  };

  struct Label {
    std::int64_t cost, bytes;
    std::int32_t last;  ///< index of the last deviation; kNoIndex: none
  };

  /// A choice that differs from State::prefers_again.
  struct Deviation {
    std::int32_t before;  ///< index of the deviation before it
    std::int32_t item;
  };

  enum class Outcome : std::uint8_t { found, none, cut };  ///< cut: a limit ended the search

  /// Finds the choices, in the order of the dynamic program. Returns false if more than kBits values are open at the
  /// same time.
  bool find_items() {
    std::vector<std::int32_t> bit(graph_.value_count(), kNoIndex);
    Demand used = 0;
    const auto order = graph_.input_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const NodeId v = *at;
      if (moment_.is_after(v)) continue;
      Item item{v, moment_.is_before(v) ? graph_.cost(v) : 0, 0, !(moment_.is_before(v) && graph_.pinned(v)), {}};
      for (const ValueId x : graph_.outputs(v)) {
        if (moment_.free[x] != 0) continue;
        if (moment_.needed[x] != 0) {
          item.bytes += graph_.value_size(x);
        } else if (bit[x] != kNoIndex) {
          const Demand own = Demand{1} << bit[x];
          item.open.emplace_back(own, graph_.value_size(x));
          item.outputs |= own;
          used &= ~own;
        }
      }
      if (item.bytes == 0 && item.open.empty()) continue;
      for (const ValueId x : graph_.inputs(v)) {
        if (!item.may_run_again || moment_.free[x] != 0 || moment_.needed[x] != 0) continue;
        if (bit[x] == kNoIndex) {
          bit[x] = std::countr_one(used);
          if (bit[x] == kBits) return false;
          used |= Demand{1} << bit[x];
        }
        item.inputs |= Demand{1} << bit[x];
      }
      items_.push_back(std::move(item));
    }
    return true;
  }

  std::int64_t held(const Item& item, Demand demand) const {
    std::int64_t bytes = item.bytes;
    for (const auto& [bit, size] : item.open) bytes += (demand & bit) != 0 ? size : 0;
    return bytes;
  }

  /// Makes the states of all layers. Layer i has those before the choice of item i. Returns false if there are too
  /// many.
  bool make_states() {
    layers_.assign(1, {State{0}});
    std::size_t count = 1;
    std::vector<Demand> next;
    for (const Item& item : items_) {
      std::vector<State>& layer = layers_.back();
      next.clear();
      for (State& state : layer) {
        state.bytes = held(item, state.demand);
        const Demand left = state.demand & ~item.outputs;
        next.push_back(left);
        if (item.may_run_again && state.bytes > 0) next.push_back(left | item.inputs);
      }
      std::ranges::sort(next);
      next.erase(std::unique(next.begin(), next.end()), next.end());
      const auto number = [&](Demand demand) {
        return static_cast<std::int32_t>(std::ranges::lower_bound(next, demand) - next.begin());
      };
      for (State& state : layer) {
        const Demand left = state.demand & ~item.outputs;
        state.hold = number(left);
        if (item.may_run_again && state.bytes > 0) state.again = number(left | item.inputs);
      }
      count += next.size();
      watch_.charge(static_cast<std::int64_t>(next.size()));
      if (count > kMostStates || watch_.expired()) return false;
      layers_.emplace_back();
      for (const Demand demand : next) layers_.back().push_back({demand});
    }
    return true;
  }

  double priced(std::int64_t bytes) const { return price_ * static_cast<double>(bytes); }

  /// Computes State::rest and State::least from the last layer to the first.
  void find_rests() {
    for (std::size_t i = items_.size(); i-- > 0;) {
      const std::vector<State>& next = layers_[i + 1];
      for (State& state : layers_[i]) {
        state.rest = priced(state.bytes) + next[state.hold].rest;
        state.least = state.bytes + next[state.hold].least;
        if (state.again == kNoIndex) continue;
        const double again = static_cast<double>(items_[i].cost) + next[state.again].rest;
        state.prefers_again = again < state.rest;
        state.rest = std::min(state.rest, again);
        state.least = std::min(state.least, next[state.again].least);
      }
    }
  }

  /// Looks for the cheapest choice that costs at most `threshold`.
  Outcome search(std::int64_t threshold) {
    // Rounding errors of sums of prices are far below this part of the sums.
    constexpr double kRounding = 1e-9;
    most_ = threshold;
    most_priced_ = (static_cast<double>(threshold) + priced(room_)) * (1 + kRounding) + kRounding;
    deviations_.clear();
    std::int64_t made = 0;
    std::vector<std::vector<Label>> lists(1, {{0, 0, kNoIndex}}), next;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      next.assign(layers_[i + 1].size(), {});
      for (std::size_t s = 0; s < lists.size(); ++s) {
        const State& state = layers_[i][s];
        const std::int32_t item = static_cast<std::int32_t>(i);
        extend(lists[s], next[state.hold], {0, state.bytes, state.prefers_again ? item : kNoIndex},
               layers_[i + 1][state.hold]);
        if (state.again == kNoIndex) continue;
        extend(lists[s], next[state.again], {items_[i].cost, 0, state.prefers_again ? kNoIndex : item},
               layers_[i + 1][state.again]);
      }
      for (std::vector<Label>& list : next) {
        made += std::ssize(list);
        drop_dominated(list);
      }
      lists.swap(next);
      watch_.charge(std::ssize(lists));
      if (made > kMostLabels || watch_.expired()) return Outcome::cut;
    }
    if (lists[0].empty()) return Outcome::none;
    best_ = lists[0].back();
    return Outcome::found;
  }

  /// Appends to a list the labels that a choice makes of others. Both lists are in ascending order of bytes. `choice`
  /// has what the choice adds to cost and bytes, and its item if it is a deviation.
  void extend(const std::vector<Label>& labels, std::vector<Label>& to, const Label& choice, const State& state) {
    const auto before = std::ssize(to);
    for (const Label& label : labels) {
      Label more{label.cost + choice.cost, label.bytes + choice.bytes, label.last};
      if (more.bytes + state.least > room_ || more.cost > most_) continue;
      if (static_cast<double>(more.cost) + priced(more.bytes) + state.rest > most_priced_) continue;
      if (choice.last != kNoIndex) {
        deviations_.push_back({label.last, choice.last});
        more.last = static_cast<std::int32_t>(deviations_.size()) - 1;
      }
      to.push_back(more);
    }
    std::inplace_merge(to.begin(), to.begin() + before, to.end(), [](const Label& a, const Label& b) {
      return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost);
    });
    watch_.charge(std::ssize(labels));
  }

  /// Keeps the labels for which no other label has neither more cost nor more bytes. The cheapest one is the last.
  static void drop_dominated(std::vector<Label>& list) {
    std::int64_t cheapest = std::numeric_limits<std::int64_t>::max();
    std::erase_if(list, [&](const Label& label) {
      if (label.cost >= cheapest) return true;
      cheapest = label.cost;
      return false;
    });
  }

  /// Returns the choice of the label best_.
  MomentCut cut() const {
    MomentCut cut{std::vector<std::uint8_t>(graph_.node_count(), 0), std::vector<std::uint8_t>(graph_.value_count(), 0),
                  std::vector<std::uint8_t>(graph_.value_count(), 0), best_.bytes};
    std::vector<std::uint8_t> deviates(items_.size(), 0);
    for (std::int32_t d = best_.last; d != kNoIndex; d = deviations_[d].before) deviates[deviations_[d].item] = 1;
    std::int32_t at = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const State& state = layers_[i][at];
      const bool again = state.prefers_again != (deviates[i] != 0);
      cut.again[items_[i].node] = again;
      at = again ? state.again : state.hold;
    }
    for (const NodeId v : graph_.input_order()) {
      if (moment_.is_after(v)) continue;
      for (const ValueId x : graph_.outputs(v)) {
        const auto runs_again = [&](NodeId reader) { return !moment_.is_after(reader) && cut.again[reader] != 0; };
        const bool read = moment_.needed[x] != 0 || std::ranges::any_of(graph_.readers(x), runs_again);
        cut.held[x] = read && moment_.free[x] == 0 && cut.again[v] == 0;
      }
    }
    return cut;
  }

  const core::Graph& graph_;
  const Moment& moment_;
  const double price_;
  const std::int64_t room_;
  std::vector<Item> items_;
  core::Stopwatch& watch_;
  std::vector<std::vector<State>> layers_;
  std::int64_t most_ = 0;   ///< the threshold
  double most_priced_ = 0;  ///< the threshold and the price of all bytes that there is room for
  std::vector<Deviation> deviations_;
  Label best_{0, 0, kNoIndex};
};

}  // namespace

MomentOptimum moment_optimum(const core::Graph& graph, const MomentBound& bound, std::int64_t known, std::int64_t most,
                             core::Stopwatch& watch) {
  return MomentProgram(graph, bound, watch).run(std::max(known, bound.extra()), most);
}

}  // namespace cairn::solvers
