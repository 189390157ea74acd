// Implements offer_priced() (priced_remat.h). In this file, a time is an index in the order of the nodes' first runs.
// At each time, a byte in memory has a price. A round makes one schedule at the current prices.

#include "cairn/solvers/remat/repair/priced_remat.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;
/// An index in the order of the nodes' first runs. The number of nodes stands for the end of the schedule.
using Time = std::int32_t;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr Time kNotYet = -1;

/// The times from `from` to `to`, during which a value was in memory.
struct Interval {
  Time from = kNotYet, to = kNotYet;
};

/// Stores a list of items for each value. All lists are stored in one array.
template <class T>
struct Lists {
  std::vector<std::int32_t> begin;
  std::vector<T> items;

  /// Makes the lists from pairs of a value and an item. The items of a value keep their order.
  void assign(std::size_t values, const std::vector<std::pair<ValueId, T>>& pairs) {
    begin.assign(values + 1, 0);
    for (const auto& [x, item] : pairs) ++begin[x + 1];
    for (std::size_t x = 0; x < values; ++x) begin[x + 1] += begin[x];
    items.resize(pairs.size());
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [x, item] : pairs) items[next[x]++] = item;
  }
};

/// Makes the schedules of offer_priced(). At a time t, node order[t] runs for the first time. Right before it, the
/// nodes run that must run again for it.
class PricedRemat {
 public:
  PricedRemat(const core::Graph& graph, std::span<const NodeId> order, const Scope& scope)
      : graph_(graph),
        order_(order),
        scope_(scope),
        end_(static_cast<Time>(order.size())),
        price_(order.size() + 1, 0.0),
        price_before_(order.size() + 2, 0.0),
        live_until_(graph.value_count()),
        last_read_(graph.value_count()),
        life_(graph.value_count()),
        next_held_(graph.value_count()),
        next_use_(graph.value_count()),
        node_stamp_(graph.node_count(), 0),
        value_stamp_(graph.value_count(), 0),
        count_(graph.node_count(), 0) {
    held_.assign(values(), {});
    find_uses();
  }

  /// Makes a new schedule, steps(), in one pass. At every use of a value, decides at the current prices whether the
  /// value is held in memory or computed again.
  void round() {
    for (Time t = 0; t <= end_; ++t) price_before_[t + 1] = price_before_[t] + price_[t];
    std::fill(live_until_.begin(), live_until_.end(), kNotYet);
    std::fill(life_.begin(), life_.end(), Interval());
    std::fill(count_.begin(), count_.end(), 0);
    std::copy(held_.begin.begin(), held_.begin.end() - 1, next_held_.begin());
    std::copy(uses_.begin.begin(), uses_.begin.end() - 1, next_use_.begin());
    lives_.clear();
    steps_.clear();
    times_.clear();
    released_.clear();
    cost_ = 0;
    for (Time t = 0; t < end_; ++t) {
      const NodeId v = order_[t];
      for (const ValueId x : graph_.inputs(v)) require(x, t);
      run(v, t);
    }
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      if (graph_.value_kept(x)) require(x, end_);
    }
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      if (!graph_.value_kept(x)) released_[last_read_[x]] += graph_.value_size(x);
      lives_.emplace_back(x, life_[x]);
    }
    held_.assign(values(), lives_);
    find_memory();
  }

  /// Raises the prices of the times at which memory exceeds the budget, and lowers the prices of all other times. The
  /// change is `step` times the excess, which is measured as a fraction of the budget.
  void change_prices(std::int64_t budget, double step) {
    for (Time t = 0; t <= end_; ++t) {
      const double excess =
          static_cast<double>(memory_[t]) / static_cast<double>(std::max<std::int64_t>(budget, 1)) - 1;
      price_[t] = std::max(0.0, price_[t] + step * excess);
    }
  }

  const std::vector<NodeId>& steps() const { return steps_; }
  std::int64_t peak() const { return *std::max_element(memory_.begin(), memory_.end()); }
  std::int64_t cost() const { return cost_; }
  std::int64_t take_work() { return std::exchange(work_, 0); }

 private:
  static constexpr int kDeepest = 8;
  static constexpr std::size_t kLongestChain = 256;

  std::size_t values() const { return static_cast<std::size_t>(graph_.value_count()); }

  /// Finds for each value x the times at which outputs of the readers of x are used. If such an output must be computed
  /// again at that time, x is needed. Stores at most kUsesOfValue times for each value, evenly chosen from all of these
  /// times.
  void find_uses() {
    constexpr std::size_t kUsesOfNode = 4, kUsesOfValue = 16, kReaders = 64;
    std::vector<Time> rank(static_cast<std::size_t>(graph_.node_count()));
    for (Time t = 0; t < end_; ++t) rank[order_[t]] = t;
    weight_.assign(values(), 0);
    std::vector<std::pair<ValueId, Time>> pairs;
    std::vector<Time> of_node, all;
    Lists<Time> nodes;
    for (NodeId v = 0; v < graph_.node_count(); ++v) {
      of_node.clear();
      for (const NodeId w : graph_.successors(v)) of_node.push_back(rank[w]);
      std::sort(of_node.begin(), of_node.end());
      const std::size_t count = std::min(of_node.size(), kUsesOfNode);
      for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(v, of_node[(i + 1) * of_node.size() / count - 1]);
    }
    nodes.assign(static_cast<std::size_t>(graph_.node_count()), pairs);
    pairs.clear();
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      const auto readers = graph_.readers(x);
      const std::size_t stride = (readers.size() + kReaders - 1) / kReaders;
      all.clear();
      double total = 0;
      for (std::size_t i = 0; i < readers.size(); i += stride) {
        const NodeId w = readers[i];
        for (std::int32_t k = nodes.begin[w]; k < nodes.begin[w + 1]; ++k) all.push_back(nodes.items[k]);
        total += static_cast<double>(graph_.successors(w).size()) * static_cast<double>(stride);
      }
      if (all.empty()) continue;
      std::sort(all.begin(), all.end());
      const std::size_t count = std::min(all.size(), kUsesOfValue);
      for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(x, all[(i + 1) * all.size() / count - 1]);
      weight_[x] = total / static_cast<double>(count);
    }
    uses_.assign(values(), pairs);
  }

  // --- The next functions compute what it costs to have a value in memory at a time.

  double hold(ValueId x, Time t) const {
    return static_cast<double>(graph_.value_size(x)) * (price_before_[t] - price_before_[live_until_[x] + 1]);
  }

  /// Computes the fraction of the price of holding input x that counts for the use at time t. Later uses pay the rest,
  /// because they benefit if x is held. The fraction is smaller if the previous round held x at time t anyway.
  double share(ValueId x, Time t) {
    constexpr double kPartOfUses = 0.05, kHeldAnyway = 0.5;
    std::int32_t& use = next_use_[x];
    while (use < uses_.begin[x + 1] && uses_.items[use] <= t) ++use;
    const double later = weight_[x] * (uses_.begin[x + 1] - use);
    std::int32_t& held = next_held_[x];
    while (held < held_.begin[x + 1] && held_.items[held].to <= t) ++held;
    const bool anyway = held < held_.begin[x + 1] && held_.items[held].from <= t;
    return (anyway ? kHeldAnyway : 1.0) / (1 + kPartOfUses * later);
  }

  bool may_run_again(NodeId v) const {
    return !graph_.pinned(v) && (scope_.max_occurrences == 0 || count_[v] < scope_.max_occurrences);
  }

  /// Computes the price of running v again at t, together with its inputs that are not in memory. If the price is below
  /// `limit`, appends the nodes to chain_ in an order in which they can run. Otherwise returns kNever.
  double price_of_running(NodeId v, Time t, double limit, int depth) {
    constexpr double kRunning = 1e-3;  // price of a step in addition to its cost, so that steps of cost 0 are not free
    if (!may_run_again(v) || chain_.size() >= kLongestChain) return kNever;
    double price = static_cast<double>(graph_.cost(v)) + kRunning;
    if (price >= limit) return kNever;
    node_stamp_[v] = stamp_;
    const std::size_t first = pending_.size();
    // Lower bound on the price of those inputs for which it is not yet decided how they become available
    double least = 0;
    for (const ValueId x : graph_.inputs(v)) {
      if (live_until_[x] >= t || value_stamp_[x] == stamp_) continue;
      const NodeId u = graph_.producer(x);
      if (node_stamp_[u] == stamp_ || graph_.value_size(x) == 0) continue;
      const double held = hold(x, t) * share(x, t);
      const double run = may_run_again(u) && depth < kDeepest ? static_cast<double>(graph_.cost(u)) + kRunning : kNever;
      least += std::min(held, run);
      pending_.push_back({x, held, run});
      if (price + least >= limit) break;
    }
    work_ += static_cast<std::int64_t>(graph_.inputs(v).size());
    for (std::size_t i = first; i < pending_.size() && price + least < limit; ++i) {
      const auto [x, held, run] = pending_[i];
      least = std::max(0.0, least - std::min(held, run));
      const NodeId u = graph_.producer(x);
      if (node_stamp_[u] == stamp_) continue;  // the producer already runs again because of another output
      double made = kNever;
      if (run < held) {
        const std::size_t chain = chain_.size(), kept = kept_.size();
        made = price_of_running(u, t, std::min(held, limit - price - least), depth + 1);
        if (made == kNever) take_back(u, chain, kept);
      }
      if (made == kNever) {
        made = held;
        value_stamp_[x] = stamp_;
        kept_.push_back(x);
      }
      price += made;
    }
    pending_.resize(first);
    if (price + least >= limit) return kNever;
    chain_.push_back(v);
    return price;
  }

  void take_back(NodeId v, std::size_t chain, std::size_t kept) {
    node_stamp_[v] = 0;
    for (std::size_t i = chain; i < chain_.size(); ++i) node_stamp_[chain_[i]] = 0;
    for (std::size_t i = kept; i < kept_.size(); ++i) value_stamp_[kept_[i]] = 0;
    chain_.resize(chain);
    kept_.resize(kept);
  }

  // --- The next functions add steps to the schedule of the current round.

  /// Makes x available at t: either holds x since its last use, or makes x again, whichever is cheaper.
  void require(ValueId x, Time t) {
    if (live_until_[x] >= t) return;
    if (graph_.value_size(x) == 0) return;
    const double held = hold(x, t);
    ++stamp_;
    chain_.clear();
    kept_.clear();
    if (price_of_running(graph_.producer(x), t, held, 0) == kNever) return read(x, t);
    for (const NodeId v : chain_) run(v, t);
  }

  void read(ValueId x, Time t) {
    if (live_until_[x] < t) life_[x].to = t;
    live_until_[x] = t;
  }

  void run(NodeId v, Time t) {
    const auto step = static_cast<std::int32_t>(steps_.size());
    for (const ValueId x : graph_.inputs(v)) {
      read(x, t);
      last_read_[x] = step;
    }
    released_.push_back(0);
    for (const ValueId x : graph_.outputs(v)) {
      if (live_until_[x] != kNotYet) {
        released_[last_read_[x]] += graph_.value_size(x);
        lives_.emplace_back(x, life_[x]);
      }
      life_[x] = {t, t};
      live_until_[x] = t;
      last_read_[x] = step;
    }
    ++count_[v];
    cost_ += graph_.cost(v);
    steps_.push_back(v);
    times_.push_back(t);
  }

  /// Sets memory_[t] to the highest memory at time t, in bytes. Time t consists of the recomputations that were put
  /// before node t of the order, and of that node.
  void find_memory() {
    memory_.assign(static_cast<std::size_t>(end_) + 1, 0);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const NodeId v = steps_[i];
      bytes += graph_.size(v);
      memory_[times_[i]] = std::max(memory_[times_[i]], bytes + graph_.scratch(v));
      bytes -= released_[i];
    }
    memory_[end_] = std::max(memory_[end_], bytes);
    work_ += static_cast<std::int64_t>(steps_.size());
  }

  struct Pending {
    ValueId value;
    /// - held: price of holding the value since its last use.
    /// - run: lower bound on the price of making the value again.
    double held, run;
  };

  const core::Graph& graph_;
  const std::span<const NodeId> order_;
  const Scope scope_;
  const Time end_;
  /// - price_[t]: price of a byte at time t.
  /// - price_before_[t]: sum of the prices of all times before t.
  std::vector<double> price_, price_before_;
  Lists<Time> uses_;
  std::vector<double> weight_;  ///< number of uses for which one entry of uses_ stands; indexed by value
  Lists<Interval> held_;        ///< times at which each value was in memory in the previous round
  // The next arrays belong to the schedule that is being made. They are indexed by value.
  std::vector<Time> live_until_;
  std::vector<std::int32_t> last_read_;  ///< last step so far that reads the value
  std::vector<Interval> life_;           ///< times at which the value is in memory since it was last made
  std::vector<std::int32_t> next_held_, next_use_;
  std::vector<std::pair<ValueId, Interval>> lives_;
  // The next members describe the current attempt to compute a value again. node_stamp_[v] == stamp_ says that node v
  // runs again in this attempt. value_stamp_[x] == stamp_ says that value x is held in memory for this attempt.
  std::int32_t stamp_ = 0;
  std::vector<std::int32_t> node_stamp_, value_stamp_;
  std::vector<NodeId> chain_;
  std::vector<ValueId> kept_;
  std::vector<Pending> pending_;
  // The next members hold the schedule of the current round.
  std::vector<std::int32_t> count_;
  std::vector<NodeId> steps_;
  std::vector<Time> times_;
  std::vector<std::int64_t> released_, memory_;
  std::int64_t cost_ = 0, work_ = 0;
};

}  // namespace

bool offer_priced(const core::Graph& graph, std::span<const NodeId> order, std::int64_t budget, Incumbent& incumbent,
                  core::Stopwatch& watch) {
  constexpr int kMostRounds = 80, kPatience = 12;
  constexpr double kFirstStep = 10, kFaster = 1.2, kSlower = 0.3, kLongestStep = 1e3;
  if (order.empty()) return false;
  double costs = 0, sizes = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    costs += static_cast<double>(graph.cost(v));
    sizes += static_cast<double>(graph.size(v));
  }
  // The unit of prices. At this price, holding a value of mean size during the whole schedule costs as much as running
  // a node of mean cost.
  const double unit = std::max(costs, 1.0) / std::max(sizes, 1.0) / static_cast<double>(order.size());
  PricedRemat priced(graph, order, incumbent.scope());
  std::vector<NodeId> best;
  std::int64_t best_peak = std::numeric_limits<std::int64_t>::max(), best_cost = best_peak;
  double step = kFirstStep;
  int since = 0;  // number of rounds since the last improvement
  for (int round = 0; round < kMostRounds && since < kPatience && !watch.expired_now(); ++round, ++since) {
    priced.round();
    watch.charge(priced.take_work());
    const bool fits = priced.peak() <= budget;
    const bool better =
        fits ? best_peak > budget || priced.cost() < best_cost : priced.peak() < best_peak && best_peak > budget;
    if (better) {
      best = priced.steps();
      best_peak = priced.peak();
      best_cost = priced.cost();
      since = 0;
    }
    step = std::min(fits ? step * kSlower : step * kFaster, kLongestStep);
    priced.change_prices(budget, step * unit);
  }
  if (best.empty()) return false;  // the watch expired before the first round
  incumbent.offer({std::move(best)});
  return best_peak <= budget;
}

}  // namespace cairn::solvers
