// Solves the integer program of several moments by dynamic programming over the nodes (moments_program.h).

#include "cairn/solvers/remat/bound/cut/moments_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "cairn/core/support/saturating.h"
#include "cairn/solvers/remat/bound/subgradient.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

/// Builds the dynamic program and solves it. The program treats one node after another, from the last to the first; the
/// part of the program that belongs to a node is called an item. For each item, a choice says in which stages the node
/// runs. A label stands for one choice for each of the first items.
class MomentsProgram {
 public:
  MomentsProgram(const core::Graph& graph, const Moments& moments, std::vector<double> prices, core::Stopwatch& watch)
      : graph_(graph), moments_(moments), stages_(moments.count() + 1), prices_(std::move(prices)), watch_(watch) {
    rank_.assign(graph.node_count(), 0);
    for (std::size_t i = 0; i < graph.input_order().size(); ++i)
      rank_[graph.input_order()[i]] = static_cast<std::int32_t>(i);
    find_certain();
  }

  MomentsOptimum run(std::int64_t known, std::int64_t most) {
    MomentsOptimum optimum;
    optimum.extra = known;
    if (!make_program()) return optimum;
    for (int t = 0; t < moments_.count(); ++t) {
      optimum.proof.moments.push_back(moments_[t].node);
      optimum.infeasible |= first().least[t] > moments_[t].room;
    }
    optimum.proof.reach = reach_;
    optimum.proof.prices = prices_;
    optimum.proof.infeasible = optimum.infeasible;
    if (optimum.infeasible) return optimum;
    const double bound = find_prices(most);
    // The bound is lowered by an amount that is far above the rounding errors of the sums and far below the cost of a
    // node.
    constexpr double kLargest = 9e18;
    const double sure = bound - kRounding * (std::abs(bound) + 2 * priced(rooms(), prices_)) - 1e-6;
    const auto whole = static_cast<std::int64_t>(std::ceil(std::clamp(sure, 0.0, kLargest)));
    optimum.extra = std::max(known, whole);
    optimum.prices = optimum.proof.prices = prices_;
    optimum.proof.extra = whole;
    deviations_.clear();
    best_ = {};
    optimum.choice = choice();
    raise(optimum, known, most);
    return optimum;
  }

 private:
  // Largest number of choices of all states together; a choice takes 40 bytes
  static constexpr std::size_t kMostChoices = 1 << 18;
  // Largest number of labels that a search with one threshold makes. The first number is for one moment, the second for
  // several moments.
  static constexpr std::int64_t kMostLabels = 1 << 23, kMostLabelsOfSeveral = 1 << 20;
  static constexpr std::int32_t kNoIndex = -1;
  // Rounding errors of sums of prices are far below this fraction of the sums
  static constexpr double kRounding = 1e-9;
  using Bytes = std::array<std::int64_t, Moments::kMost>;  ///< a number of bytes for each moment
  /// Encodes a state of the dynamic program: for each value of the state, the stages in which optional runs read the
  /// value. A run is optional if a schedule may contain it or not. Stages in which a node reads the value in every
  /// schedule are left out.
  __extension__ using Demand = unsigned __int128;
  static constexpr int kBits = 128;

  struct Output {
    ValueId value;
    std::int32_t place = kNoIndex;  ///< first bit of its stages in a Demand; kNoIndex: it is not part of the state
  };
  struct Input {
    std::int32_t place;
    StageSet open;  ///< stages after stage 0 in which the item's node can run, without those in certain_
  };
  struct Item {
    NodeId node;
    std::vector<StageSet> runs;  ///< all sets of stages in which the node can run
    std::vector<Output> outputs;
    std::vector<Input> inputs;  ///< inputs that are part of the state
  };
  struct Choice {
    std::int32_t next;  ///< index of the resulting state in the next layer
    StageSet runs;
    std::int64_t cost;
    Bytes bytes;
  };
  struct State {
    Demand demand = 0;
    std::int32_t first = 0, count = 0;  ///< range of its choices in choices_
    std::int32_t best = 0;              ///< index of the cheapest choice at the current prices, counted from `first`
    double rest = 0;                    ///< least sum of costs and prices of this and all later items
    Bytes least{};                      ///< least bytes of this and all later items
  };
  struct Label {
    std::int64_t cost = 0;
    Bytes bytes{};
    std::int32_t last = kNoIndex;  ///< index of the last deviation
  };
  /// Records a choice of a label that differs from State::best.
  struct Deviation {
    std::int32_t before;  ///< index of the previous deviation of the same label
    std::int32_t item, choice;
  };
  enum class Outcome : std::uint8_t { found, none, cut };  ///< cut: a limit ended the search

  StageSet from(int stage) const { return static_cast<StageSet>((1 << stages_) - (1 << stage)); }
  const State& first() const { return layers_.front().front(); }

  /// Finds for each value the stages in which a node reads it in every schedule. If a value is kept, the last stage is
  /// one of them. Stage 0 does not count.
  void find_certain() {
    certain_.assign(graph_.value_count(), 0);
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      for (const NodeId w : graph_.readers(x)) {
        if (moments_.earliest(w) == moments_.latest(w)) certain_[x] |= static_cast<StageSet>(1 << moments_.earliest(w));
      }
      if (graph_.value_kept(x)) certain_[x] |= static_cast<StageSet>(1 << (stages_ - 1));
      certain_[x] &= from(1);
    }
  }

  /// Makes the items and the layers of the dynamic program. If there are too many states, leaves out inputs of optional
  /// runs, more and more of them, until there are few enough states. Inputs of nodes that run only after the first
  /// moment are left out first, and inputs of other nodes later. In both groups, inputs whose producers are far away in
  /// the input order are left out first.
  bool make_program() {
    const NodeId n = graph_.node_count();
    for (const NodeId reach : {n, n / 8, n / 64, NodeId{0}}) {
      for (const NodeId late_reach : {reach, reach / 8, reach / 64, NodeId{0}}) {
        if (late_reach < reach && moments_.count() == 1) continue;
        if (watch_.expired_now()) return false;
        if (find_items(reach, late_reach) && make_layers()) {
          reach_ = {reach, late_reach};
          find_least();
          return true;
        }
      }
    }
    return false;
  }

  bool counts(NodeId v, ValueId x, NodeId reach, NodeId late_reach) const {
    const NodeId distance = rank_[v] - rank_[graph_.producer(x)];
    return graph_.value_size(x) > 0 && distance <= (moments_.earliest(v) > 0 ? late_reach : reach);
  }

  /// Finds the items, in the order of the dynamic program. Returns false if the state would contain more values than a
  /// Demand can hold.
  bool find_items(NodeId reach, NodeId late_reach) {
    items_.clear();
    const int most_open = kBits / stages_;
    std::vector<std::int32_t> place(graph_.value_count(), kNoIndex);
    // Whether each place of a Demand is taken
    std::vector<std::uint8_t> used(static_cast<std::size_t>(most_open) + 1, 0);
    const auto order = graph_.input_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const NodeId v = *at;
      Item item{v, {}, {}, {}};
      for (const ValueId x : graph_.outputs(v)) {
        if (place[x] == kNoIndex && (certain_[x] == 0 || graph_.value_size(x) == 0)) continue;
        item.outputs.push_back({x, place[x] == kNoIndex ? kNoIndex : place[x] * stages_});
        if (place[x] != kNoIndex) used[place[x]] = 0;
      }
      const int earliest = moments_.earliest(v), latest = moments_.latest(v);
      if (item.outputs.empty() && (earliest == 0 || earliest == latest)) continue;
      const StageSet all = from(earliest);
      const auto in_time = static_cast<StageSet>(all & ~from(latest + 1));
      for (int runs = 1; runs < 1 << stages_; ++runs) {
        if ((runs & ~all) != 0 || (runs & in_time) == 0) continue;
        if (graph_.pinned(v) && std::popcount(static_cast<unsigned>(runs)) > 1) continue;
        item.runs.push_back(static_cast<StageSet>(runs));
      }
      for (const ValueId x : graph_.inputs(v)) {
        const auto open = static_cast<StageSet>(from(1) & all & ~certain_[x]);
        if (item.runs.size() == 1 || open == 0 || !counts(v, x, reach, late_reach)) continue;
        if (place[x] == kNoIndex) {
          place[x] = static_cast<std::int32_t>(std::ranges::find(used, 0) - used.begin());
          if (place[x] >= most_open) return false;
          used[place[x]] = 1;
        }
        item.inputs.push_back({place[x] * stages_, open});
      }
      items_.push_back(std::move(item));
    }
    return true;
  }

  StageSet read_in(const Output& output, Demand demand) const {
    const StageSet open = output.place == kNoIndex ? 0 : static_cast<StageSet>(demand >> output.place & from(0));
    return open | certain_[output.value];
  }

  /// Returns the stages t for which a value must be held at moment t and is not free at moment t (Moments::free()). The
  /// value's node runs in the stages `runs`, and the value is read in the stages `read`. Returns nothing if the value
  /// cannot be in memory when it is read.
  std::optional<StageSet> held(ValueId x, StageSet runs, StageSet read) const {
    StageSet at = 0;
    const StageSet free = moments_.free(x);
    for (int t = 1; t < stages_; ++t) {
      if ((read >> t & 1) == 0 || (runs >> t & 1) != 0) continue;
      int moment = t - 1;
      while (true) {
        if ((free >> moment & 1) != 0) break;  // in memory at this moment in every schedule
        at |= static_cast<StageSet>(1 << moment);
        if ((runs >> moment & 1) != 0) break;
        if (--moment < 0) return std::nullopt;
      }
    }
    return at;
  }

  /// Returns how many bytes of the item's outputs are held at each moment if its node runs in the stages `runs`.
  /// Returns nothing if an output cannot be in memory when it is read.
  std::optional<Bytes> held_by(const Item& item, StageSet runs, Demand demand) const {
    Bytes bytes{};
    for (const Output& output : item.outputs) {
      const std::optional<StageSet> at = held(output.value, runs, read_in(output, demand));
      if (!at) return std::nullopt;
      for (int t = 0; t < moments_.count(); ++t) {
        if ((*at >> t & 1) != 0) bytes[t] += graph_.value_size(output.value);
      }
    }
    return bytes;
  }

  /// Appends the choices of an item in a state to choices_, and the state that follows from each choice to `wanted`.
  /// Leaves out choices that are no better than another choice.
  void add_choices(const Item& item, State& state, std::vector<Demand>& wanted) {
    Demand mine = 0;
    for (const Output& output : item.outputs) {
      if (output.place != kNoIndex) mine |= Demand{from(0)} << output.place;
    }
    state.first = static_cast<std::int32_t>(choices_.size());
    const std::size_t begin = wanted.size();
    for (const StageSet runs : item.runs) {
      const std::optional<Bytes> bytes = held_by(item, runs, state.demand);
      if (!bytes) continue;
      Choice choice{0, runs, 0, *bytes};
      for (int more = std::popcount(static_cast<unsigned>(runs)); more > 1; --more)
        choice.cost = core::saturating_add(choice.cost, graph_.cost(item.node));
      Demand demand = state.demand & ~mine;
      for (const Input& input : item.inputs) demand |= Demand(runs & input.open) << input.place;
      add_unless_worse(choice, demand, state.first, begin, wanted);
    }
    state.count = static_cast<std::int32_t>(choices_.size()) - state.first;
  }

  /// Adds a choice and the demand that follows from it, unless another choice of the same state costs no more, holds no
  /// more bytes and leads to no larger demand. Removes the choices that are no better than the new one in this sense.
  void add_unless_worse(const Choice& choice, Demand demand, std::int32_t first, std::size_t begin,
                        std::vector<Demand>& wanted) {
    const auto no_worse = [&](const Choice& a, Demand of_a, const Choice& b, Demand of_b) {
      bool less = a.cost <= b.cost && (of_a & ~of_b) == 0;
      for (int t = 0; t < moments_.count(); ++t) less = less && a.bytes[t] <= b.bytes[t];
      return less;
    };
    std::size_t kept = 0;
    const std::size_t count = wanted.size() - begin;
    for (std::size_t i = 0; i < count; ++i) {
      const Choice old = choices_[first + i];
      const Demand of_old = wanted[begin + i];
      if (no_worse(old, of_old, choice, demand)) return;
      if (no_worse(choice, demand, old, of_old)) continue;
      choices_[first + kept] = old;
      wanted[begin + kept++] = of_old;
    }
    choices_.resize(first + kept);
    wanted.resize(begin + kept);
    choices_.push_back(choice);
    wanted.push_back(demand);
  }

  /// Makes the states of all layers with their choices. Layer i contains the states before the choice for item i.
  /// Returns false if there are too many choices or the watch expired.
  bool make_layers() {
    layers_.assign(1, {State{}});
    choices_.clear();
    std::vector<Demand> next, wanted;
    for (const Item& item : items_) {
      wanted.clear();
      for (State& state : layers_.back()) add_choices(item, state, wanted);
      next = wanted;
      std::ranges::sort(next);
      next.erase(std::unique(next.begin(), next.end()), next.end());
      const std::size_t begin = choices_.size() - wanted.size();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        choices_[begin + i].next = static_cast<std::int32_t>(std::ranges::lower_bound(next, wanted[i]) - next.begin());
      }
      watch_.charge(std::ssize(wanted));
      if (choices_.size() > kMostChoices || watch_.expired()) return false;
      layers_.emplace_back();
      for (const Demand demand : next) layers_.back().push_back({demand});
    }
    return true;
  }

  std::span<const Choice> choices(const State& state) const {
    return {choices_.data() + state.first, static_cast<std::size_t>(state.count)};
  }

  void find_least() {
    for (std::size_t i = items_.size(); i-- > 0;) {
      for (State& state : layers_[i]) {
        state.least.fill(std::numeric_limits<std::int64_t>::max());
        for (const Choice& choice : choices(state)) {
          for (int t = 0; t < moments_.count(); ++t) {
            const std::int64_t least = layers_[i + 1][choice.next].least[t];
            state.least[t] = std::min(state.least[t], core::saturating_add(choice.bytes[t], least));
          }
        }
      }
    }
  }

  double priced(const Bytes& bytes, const std::vector<double>& prices) const {
    double sum = 0;
    for (int t = 0; t < moments_.count(); ++t) sum += prices[t] * static_cast<double>(bytes[t]);
    return sum;
  }
  Bytes rooms() const {
    Bytes rooms{};
    for (int t = 0; t < moments_.count(); ++t) rooms[t] = moments_[t].room;
    return rooms;
  }

  /// Computes State::rest and State::best at the prices. Returns the bound that the prices give.
  double evaluate(const std::vector<double>& prices) {
    for (std::size_t i = items_.size(); i-- > 0;) {
      for (State& state : layers_[i]) {
        state.rest = std::numeric_limits<double>::infinity();
        for (std::int32_t c = 0; c < state.count; ++c) {
          const Choice& choice = choices_[state.first + c];
          const double sum =
              static_cast<double>(choice.cost) + priced(choice.bytes, prices) + layers_[i + 1][choice.next].rest;
          if (sum >= state.rest) continue;
          state.rest = sum;
          state.best = c;
        }
      }
    }
    return first().rest - priced(rooms(), prices);
  }

  /// Improves the prices by subgradient steps. Returns the bound that the best prices give. Afterwards, State::rest and
  /// State::best belong to these prices.
  double find_prices(std::int64_t most) {
    constexpr int kAscents = 6, kRounds = 60;
    constexpr double kAbove = 1.05;  // target of an ascent, as a multiple of the bound at the beginning of the ascent
    Ascent ascent;
    ascent.best_point = prices_;
    ascent.best = evaluate(prices_);
    const auto at_point = [&](std::vector<double>& gradient) {
      const double value = evaluate(ascent.point);
      gradient = excess();
      return value;
    };
    for (int k = 0; k < kAscents && moments_.count() > 1 && !watch_.expired_now(); ++k) {
      const double target = std::min(static_cast<double>(most) + 1, kAbove * ascent.best + 1);
      ascend(ascent, target, kRounds, std::ssize(choices_), watch_, at_point, [] {});
      if (ascent.best < target) break;
    }
    prices_ = ascent.best_point;
    return evaluate(prices_);
  }

  /// Returns by how many bytes the cheapest choice at the prices exceeds the room of each moment.
  std::vector<double> excess() const {
    Bytes bytes{};
    std::int32_t at = 0;
    for (const std::vector<State>& layer : layers_) {
      const State& state = layer[at];
      if (state.count == 0) break;  // the last layer
      const Choice& choice = choices_[state.first + state.best];
      for (int t = 0; t < moments_.count(); ++t) bytes[t] += choice.bytes[t];
      at = choice.next;
    }
    std::vector<double> excess;
    for (int t = 0; t < moments_.count(); ++t) excess.push_back(static_cast<double>(bytes[t] - moments_[t].room));
    return excess;
  }

  /// Raises the bound by searches with rising thresholds (see search()).
  void raise(MomentsOptimum& optimum, std::int64_t known, std::int64_t most) {
    // The first threshold is higher than the bound by `step`, which is the fraction 1 / kPart of the bound. After each
    // threshold, `step` grows by the factor kFaster.
    constexpr std::int64_t kPart = 500, kFaster = 4;
    const std::int64_t dearest = dearest_choice();
    std::int64_t step = optimum.extra / kPart;
    while (optimum.extra <= most) {
      const std::int64_t threshold = std::min(core::saturating_add(optimum.extra, step), most);
      const Outcome outcome = search(threshold);
      if (outcome == Outcome::cut) return;
      if (outcome == Outcome::found) {
        optimum.choice = choice();
        optimum.proof.extra = best_.cost;
        optimum.exact = best_.cost >= known;
        if (optimum.exact) optimum.extra = best_.cost;
        return;
      }
      optimum.infeasible = optimum.proof.infeasible = threshold >= dearest;
      if (optimum.infeasible) return;
      optimum.extra = optimum.proof.extra = threshold + 1;
      step = std::max<std::int64_t>(step, 1);
      for (int k = 1; k < kFaster; k *= 2) step = core::saturating_add(step, step);
    }
  }

  /// Returns a cost that no choice exceeds.
  std::int64_t dearest_choice() const {
    std::int64_t sum = 0;
    for (const std::vector<State>& layer : layers_) {
      std::int64_t most = 0;
      for (const State& state : layer) {
        for (const Choice& choice : choices(state)) most = std::max(most, choice.cost);
      }
      sum = core::saturating_add(sum, most);
    }
    return sum;
  }

  /// Looks for the cheapest choice that fits into memory at all moments and costs at most `threshold`.
  Outcome search(std::int64_t threshold) {
    most_ = threshold;
    most_priced_ = (static_cast<double>(threshold) + priced(rooms(), prices_)) * (1 + kRounding) + kRounding;
    deviations_.clear();
    const std::int64_t most_labels = moments_.count() == 1 ? kMostLabels : kMostLabelsOfSeveral;
    std::int64_t made = 0;
    std::vector<std::vector<Label>> lists(1, {Label{}}), next;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      next.assign(layers_[i + 1].size(), {});
      for (std::size_t s = 0; s < lists.size(); ++s) {
        const State& state = layers_[i][s];
        for (std::int32_t c = 0; c < state.count && !lists[s].empty(); ++c) {
          const std::int32_t to = choices_[state.first + c].next;
          extend(lists[s], static_cast<std::int32_t>(i), state, c, layers_[i + 1][to], next[to]);
        }
      }
      for (std::vector<Label>& list : next) {
        made += std::ssize(list);
        drop_dominated(list);
      }
      lists.swap(next);
      watch_.charge(std::ssize(lists));
      if (made > most_labels || watch_.expired()) return Outcome::cut;
    }
    if (lists[0].empty()) return Outcome::none;
    best_ = *std::ranges::min_element(lists[0], {}, &Label::cost);
    return Outcome::found;
  }

  /// Extends labels of a state by one choice of the state, and appends the extended labels to the list `to` of the next
  /// state `after`. `number` is the index of the choice in the state. Keeps the list in ascending order of bytes.
  void extend(const std::vector<Label>& labels, std::int32_t item, const State& state, std::int32_t number,
              const State& after, std::vector<Label>& to) {
    const Choice& choice = choices_[state.first + number];
    const auto before = std::ssize(to);
    for (const Label& label : labels) {
      Label more{core::saturating_add(label.cost, choice.cost), label.bytes, label.last};
      bool fits = more.cost <= most_;
      for (int t = 0; t < moments_.count(); ++t) {
        more.bytes[t] = core::saturating_add(more.bytes[t], choice.bytes[t]);
        fits = fits && core::saturating_add(more.bytes[t], after.least[t]) <= moments_[t].room;
      }
      if (!fits || static_cast<double>(more.cost) + priced(more.bytes, prices_) + after.rest > most_priced_) continue;
      if (number != state.best) {
        deviations_.push_back({label.last, item, number});
        more.last = static_cast<std::int32_t>(deviations_.size()) - 1;
      }
      to.push_back(more);
    }
    std::inplace_merge(to.begin(), to.begin() + before, to.end(), [](const Label& a, const Label& b) {
      return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost);
    });
    watch_.charge(std::ssize(labels));
  }

  /// Drops each label for which another label has no higher cost and no more bytes at any moment. Compares a label with
  /// the last kCompared labels that are kept. If there is only one moment, the last kept label is enough: the labels
  /// are sorted by bytes, so each label that is kept is cheaper than all kept labels before it.
  void drop_dominated(std::vector<Label>& list) {
    constexpr std::size_t kCompared = 64;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      bool dominated = false;
      const std::size_t compared = moments_.count() == 1 ? 1 : kCompared;
      for (std::size_t k = kept; k-- > 0 && kept - k <= compared && !dominated;) {
        dominated = list[k].cost <= list[i].cost;
        for (int t = 0; t < moments_.count(); ++t) dominated = dominated && list[k].bytes[t] <= list[i].bytes[t];
      }
      if (!dominated) list[kept++] = list[i];
    }
    list.resize(kept);
  }

  /// Returns the choice of the label best_. Which values are held follows from the inputs of all chosen runs.
  MomentsChoice choice() const {
    MomentsChoice choice{
        {}, std::vector<StageSet>(graph_.node_count(), 0), std::vector<StageSet>(graph_.value_count(), 0)};
    for (int t = 0; t < moments_.count(); ++t) choice.moments.push_back(moments_[t].node);
    for (NodeId v = 0; v < graph_.node_count(); ++v) choice.runs[v] = static_cast<StageSet>(1 << moments_.earliest(v));
    std::vector<std::int32_t> chosen(items_.size(), kNoIndex);
    for (std::int32_t d = best_.last; d != kNoIndex; d = deviations_[d].before)
      chosen[deviations_[d].item] = deviations_[d].choice;
    std::int32_t at = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const State& state = layers_[i][at];
      const Choice& own = choices_[state.first + (chosen[i] == kNoIndex ? state.best : chosen[i])];
      choice.runs[items_[i].node] = own.runs;
      at = own.next;
    }
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      StageSet read = certain_[x];
      for (const NodeId w : graph_.readers(x)) read |= static_cast<StageSet>(choice.runs[w] & from(1));
      // If inputs of optional runs were left out, a run may read a value that is not in memory. Then the value counts
      // as held at all moments.
      const std::optional<StageSet> at_moments = held(x, choice.runs[graph_.producer(x)], read);
      choice.held[x] = at_moments.value_or(from(0)) | moments_.free(x);
    }
    return choice;
  }

  const core::Graph& graph_;
  const Moments& moments_;
  const int stages_;
  std::vector<double> prices_;
  core::Stopwatch& watch_;
  std::vector<std::int32_t> rank_;  ///< for each node, its place in the input order
  std::vector<StageSet> certain_;   ///< for each value, the stages in which a node reads it in every schedule
  std::array<NodeId, 2> reach_{};   ///< see MomentsProof
  std::vector<Item> items_;
  std::vector<std::vector<State>> layers_;
  std::vector<Choice> choices_;
  std::int64_t most_ = 0;   ///< the threshold
  double most_priced_ = 0;  ///< the threshold plus the price of all bytes for which there is room
  std::vector<Deviation> deviations_;
  Label best_;
};

}  // namespace

MomentsOptimum moments_optimum(const core::Graph& graph, const Moments& moments, std::int64_t known, std::int64_t most,
                               std::vector<double> prices, core::Stopwatch& watch) {
  return MomentsProgram(graph, moments, std::move(prices), watch).run(known, most);
}

}  // namespace cairn::solvers
