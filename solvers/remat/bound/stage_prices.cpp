// Computes prices for memory, from which a lower bound on the cost of schedules follows (stage_prices.h). The first run
// of the chain's node c_t ends stage t of a schedule. The price of a value is collected, i.e. added to the bound, where
// the value is surely needed.

#include "cairn/solvers/remat/bound/stage_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::solvers {

/// Gives the rules by which forward() computes the bound with prices in floating-point numbers. Also records how each
/// price was found, because the subgradient is computed from these records.
struct StagePrices::Guide {
  const StagePrices& prices;
  std::vector<Origin>& sources;
  std::vector<double>& gradient;

  double holding(std::int32_t t, std::int64_t bytes) const {
    return prices.ascent_.point[t] * static_cast<double>(bytes);
  }
  double beyond_budget(std::int32_t t, std::int64_t bytes) {
    gradient[t] += static_cast<double>(bytes);
    return prices.ascent_.point[t] * static_cast<double>(bytes);
  }
  double cost(core::NodeId v) const {
    const std::int64_t units = prices.graph_.cost(v) / prices.stages_.cost_unit();
    return static_cast<double>(units);
  }
  static double sum(double a, double b) { return a + b; }
  static double advance(std::int32_t, core::ValueId) { return 0; }
  double until_next_use(std::int32_t t, core::ValueId x) const {
    const std::int32_t use = prices.uses_.next_use(t, x);
    const double price = prices.price_until_[static_cast<std::size_t>(use)] - prices.price_until_[t];
    return std::max(cost(prices.graph_.producer(x)) - price * static_cast<double>(prices.graph_.value_size(x)), 0.0);
  }
  void ran(std::int32_t, core::NodeId, double) {}
  void priced(std::int32_t, core::ValueId, double, double, Source source, bool shared) {
    sources.push_back({source, shared});
  }
  void stage_done(std::int32_t, double) {}
};

/// Gives the rules by which forward() computes the bound with prices in integers. Also stores the results of fix().
struct StagePrices::Exact {
  StagePrices& prices;
  bool in_advance = false;
  static constexpr std::int64_t kMost = std::int64_t{1} << 58;

  std::int64_t holding(std::int32_t t, std::int64_t bytes) const { return prices.holding(t, bytes); }
  std::int64_t beyond_budget(std::int32_t t, std::int64_t bytes) const { return prices.holding(t, bytes); }
  std::int64_t cost(core::NodeId v) const {
    return prices.graph_.cost(v) / prices.stages_.cost_unit() << prices.shift_;
  }
  /// Returns an amount that is subtracted from the bound in stage t, where x is available at no price, and added again
  /// at the next use of x. The sum stays the same. But in the stages between t and that use, the results of rest() and
  /// worth() then already contain what it costs to drop x. The amount is the cost of making x minus the price of
  /// holding x until the next use.
  std::int64_t advance(std::int32_t t, core::ValueId x) const {
    const core::NodeId v = prices.graph_.producer(x);
    if (!in_advance || prices.stages_.node(v).once || prices.graph_.value_size(x) == 0) return 0;
    const std::int32_t use = prices.uses_.next_use(t, x);
    if (use < 0) return 0;
    const Wide price = prices.whole_price_until_[static_cast<std::size_t>(use)] -
                       prices.whole_price_until_[static_cast<std::size_t>(t) + 1];
    const Wide held = (price * prices.graph_.value_size(x) >> prices.price_shift_) + 1;
    const std::int64_t made = cost(v) / prices.graph_.output_count(v);
    return held < made ? made - static_cast<std::int64_t>(held) : 0;
  }
  std::int64_t until_next_use(std::int32_t t, core::ValueId x) const {
    const std::int32_t use = prices.uses_.next_use(t, x);
    const Wide price = prices.whole_price_until_[static_cast<std::size_t>(use)] - prices.whole_price_until_[t];
    const Wide held = price * prices.graph_.value_size(x) >> prices.price_shift_;
    const std::int64_t made = cost(prices.graph_.producer(x));
    return held < made ? made - static_cast<std::int64_t>(held) : 0;
  }
  /// Returns the sum of two prices, but at most kMost, so that sums cannot overflow. A lower price is always valid,
  /// because it only lowers the bound.
  static std::int64_t sum(std::int64_t a, std::int64_t b) { return std::min(a + b, kMost); }
  void ran(std::int32_t t, core::NodeId v, std::int64_t excess) {
    const FirstRunStages::Node& node = prices.stages_.node(v);
    if (t <= node.due || t > node.last) return;
    std::int64_t& most = prices.run_excess_[prices.run_begin_[v] + static_cast<std::size_t>(t - node.first)];
    most = std::max(most, excess);
  }
  void priced(std::int32_t t, core::ValueId x, std::int64_t price, std::int64_t excess, Source, bool) {
    const FirstRunStages::Value& value = prices.stages_.value(x);
    if (t <= value.from || t > value.until + 1) return;
    const std::size_t place = prices.worth_begin_[x] + static_cast<std::size_t>(t - 1 - value.from);
    prices.worth_[place] = price;
    if (!prices.stages_.forced(t - 1, x)) prices.hold_excess_[place] = std::max(prices.hold_excess_[place], excess);
  }
  void stage_done(std::int32_t t, std::int64_t collected) { prices.rest_[static_cast<std::size_t>(t)] = collected; }
};

StagePrices::StagePrices(const FirstRunStages& stages)
    : stages_(stages),
      graph_(stages.graph()),
      end_(stages.chain_length()),
      uses_(stages),
      ascent_{.point = std::vector<double>(static_cast<std::size_t>(end_) + 1, 0.0),
              .best_point = std::vector<double>(static_cast<std::size_t>(end_) + 1, 0.0)} {}

std::int64_t StagePrices::holding(std::int32_t t, std::int64_t bytes) const {
  // Rounding down lowers the price of holding a value, which can only lower the bound. So the bound stays valid.
  return static_cast<std::int64_t>(Wide(whole_price_[t]) * bytes >> price_shift_);
}

std::int64_t StagePrices::worth(std::int32_t t, core::ValueId x) const {
  const FirstRunStages::Value& value = stages_.value(x);
  if (t < value.from || t > value.until) return 0;
  return worth_[worth_begin_[x] + static_cast<std::size_t>(t - value.from)];
}

template <class Number, class Rules>
Number StagePrices::forward(Rules& rules) {
  // The following vectors are indexed by value.
  // - carried: the price of having the value in the current stage by holding it since the stage before.
  // - left: the part of the value's price that was not collected yet.
  // - share: the part of the price that is charged to each node that can read the value when it runs again.
  std::vector<Number> carried(static_cast<std::size_t>(graph_.value_count()), Number{0});
  std::vector<Number> left(carried), share(carried);
  Number sum{0};
  for (std::int32_t t = 0; t <= end_; ++t) {
    Number collected{0};
    const auto collect = [&](core::ValueId x) {
      collected += left[x];
      left[x] = Number{0};
    };
    for (const core::NodeId v : active(t)) {
      const FirstRunStages::Node& node = stages_.node(v);
      const bool runs_surely = t == node.first && t == node.due;
      const bool may_be_first = t <= node.due;
      // The part of the cost of running v again that is not yet in the price of one of v's outputs.
      Number making = may_be_first ? Number{0} : rules.cost(v);
      if (runs_surely) {
        for (const core::ValueId y : graph_.inputs(v)) collect(y);
      } else if (!may_be_first && t <= node.last) {
        for (const core::ValueId y : graph_.inputs(v)) making = rules.sum(making, share[y]);
      }
      for (const core::ValueId x : graph_.outputs(v)) {
        Source source = Source::held;
        Number price = carried[x];
        if (t == node.first) {
          price = runs_surely ? rules.advance(t, x) : Number{0};
          collected -= price;
          source = Source::free;
        } else if (t <= node.last && making < price) {
          price = making;
          source = Source::made;
        }
        if (t <= node.last && t > node.first) making -= price;
        left[x] = price;
        share[x] = Number{0};
        bool shared = false;
        // Let s be the next stage in which x is surely read. Until s, x need not be held, because x can also be
        // computed again in stage s. So x keeps only a part of its price: at most the cost of making x minus the price
        // of holding x until s. The rest of the price is charged to the nodes that can run again in this stage and read
        // x. If there is no such stage s, these nodes are charged the whole price.
        if (const std::int32_t readers = price > 0 ? uses_.readers_again(t, x) : 0; readers > 0 && !uses_.used(t, x)) {
          const bool later = uses_.next_use(t, x) >= 0;
          const Number kept = !later ? Number{0} : node.once ? price : std::min(price, rules.until_next_use(t, x));
          shared = kept < price;
          share[x] = (price - kept) / static_cast<Number>(readers);
          left[x] = kept;
        }
        rules.priced(t, x, price, carried[x] - price, source, shared);
      }
      rules.ran(t, v, making);
    }
    std::int64_t bytes = t < end_ ? graph_.scratch(stages_.chain(t)) : 0;
    for (const core::NodeId v : active(t)) {
      for (const core::ValueId x : graph_.outputs(v)) {
        if (t > stages_.value(x).until) continue;
        if (stages_.forced(t, x)) {
          collect(x);
          bytes += graph_.value_size(x);
          carried[x] = rules.advance(t, x);
          collected -= carried[x];
        } else {
          carried[x] = rules.sum(rules.holding(t, graph_.value_size(x)), left[x]);
        }
      }
    }
    collected += rules.beyond_budget(t, bytes - stages_.budget());
    rules.stage_done(t, collected);
    sum += collected;
  }
  return sum;
}

double StagePrices::evaluate(std::vector<double>& gradient) {
  gradient.assign(static_cast<std::size_t>(end_) + 1, 0.0);
  sources_.clear();
  price_until_.assign(1, 0.0);
  for (const double price : ascent_.point) price_until_.push_back(price_until_.back() + price);
  Guide guide{*this, sources_, gradient};
  const double sum = forward<double>(guide);
  // Derivatives of the bound with respect to these quantities of forward():
  // - of_carried: `carried` of a value.
  // - of_price: the price of a value.
  // - of_making: the cost of running a node again.
  std::vector<double> of_carried(static_cast<std::size_t>(graph_.value_count()), 0.0), of_price(of_carried);
  std::vector<double> of_making(static_cast<std::size_t>(graph_.node_count()), 0.0);
  // Some terms of the gradient are equal for a whole range of stages. change[t] is the sum of these terms in stage t
  // minus their sum in stage t - 1. Its prefix sums are added to the gradient at the end.
  std::vector<double> change(static_cast<std::size_t>(end_) + 2, 0.0);
  std::size_t next = sources_.size();
  for (std::int32_t t = end_; t >= 0; --t) {
    const auto nodes = active(t);
    for (const core::NodeId v : nodes) {
      for (const core::ValueId x : graph_.outputs(v)) {
        of_price[x] = 0;
        if (t <= stages_.value(x).until) {
          if (stages_.forced(t, x)) {
            of_price[x] = 1;
          } else {
            gradient[t] += of_carried[x] * static_cast<double>(graph_.value_size(x));
            of_price[x] = of_carried[x];
          }
        }
        of_carried[x] = 0;
      }
    }
    for (const core::NodeId v : nodes) {
      if (t != stages_.node(v).first || t != stages_.node(v).due) continue;
      for (const core::ValueId y : graph_.inputs(v)) of_price[y] = 1;
    }
    for (auto v = nodes.rbegin(); v != nodes.rend(); ++v) {
      of_making[*v] = 0;
      for (std::int32_t k = graph_.output_count(*v); k-- > 0;) {
        const core::ValueId x = graph_.outputs(*v)[k];
        const Origin origin = sources_[--next];
        if (origin.shared) {
          double of_share = 0;
          for (const core::NodeId reader : graph_.readers(x)) {
            const FirstRunStages::Node& node = stages_.node(reader);
            if (node.due < t && t <= node.last) of_share += of_making[reader];
          }
          of_share /= static_cast<double>(uses_.readers_again(t, x));
          if (const std::int32_t use = uses_.next_use(t, x); use >= 0) {
            const double bytes = static_cast<double>(graph_.value_size(x)) * (of_share - of_price[x]);
            change[t] += bytes;
            change[use] -= bytes;
          }
          of_price[x] = of_share;
        }
        if (origin.source == Source::held) of_carried[x] = of_price[x];
        if (origin.source == Source::made) of_making[*v] += of_price[x];
      }
    }
  }
  double sum_of_changes = 0;
  for (std::size_t t = 0; t < gradient.size(); ++t) gradient[t] += sum_of_changes += change[t];
  return sum;
}

double StagePrices::ascend(double target, int rounds, core::Stopwatch& watch) {
  solvers::ascend(
      ascent_, target, rounds, static_cast<std::int64_t>(uses_.pairs()), watch,
      [&](std::vector<double>& gradient) { return evaluate(gradient); }, [] {});
  return ascent_.best;
}

void StagePrices::fix() {
  // Largest sum that may occur, so that no sum overflows.
  constexpr double kMost = 0x1p55;
  std::int64_t bytes = stages_.budget();
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) bytes = std::max(bytes, graph_.value_size(x));
  const std::int64_t base = stages_.base_cost() / stages_.cost_unit();
  double most = static_cast<double>(base) + 1, highest = 0;
  double sum = 0;
  for (std::size_t v = 0; v < static_cast<std::size_t>(graph_.node_count()); ++v)
    sum += static_cast<double>(graph_.size(static_cast<core::NodeId>(v)));
  for (const double price : ascent_.best_point) {
    most += price * (sum + static_cast<double>(stages_.budget()));
    highest = std::max(highest, price);
  }
  double scale = 1;
  if (most > kMost) scale = kMost / most;
  shift_ = 0;
  while (shift_ < 24 && most * scale * static_cast<double>(std::int64_t{2} << shift_) < kMost) ++shift_;
  highest *= scale * static_cast<double>(one());
  price_shift_ = 0;
  while (price_shift_ < 60 && std::ldexp(highest, price_shift_ + 1) < 0x1p60) ++price_shift_;
  whole_price_.clear();
  for (const double price : ascent_.best_point) {
    const double whole = std::ldexp(price * scale * static_cast<double>(one()), price_shift_);
    whole_price_.push_back(static_cast<std::int64_t>(whole));
  }
  whole_price_until_.assign(1, 0);
  for (const std::int64_t price : whole_price_) whole_price_until_.push_back(whole_price_until_.back() + price);
  worth_begin_.clear();
  std::size_t pairs = 0;
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    worth_begin_.push_back(pairs);
    pairs += static_cast<std::size_t>(std::max(stages_.value(x).until - stages_.value(x).from + 1, 0));
  }
  worth_.assign(pairs, 0);
  hold_excess_.assign(pairs, 0);
  run_begin_.clear();
  std::size_t runs = 0;
  for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
    run_begin_.push_back(runs);
    runs += static_cast<std::size_t>(std::max(stages_.node(v).last - stages_.node(v).first + 1, 0));
  }
  run_excess_.assign(runs, 0);
  rest_.assign(static_cast<std::size_t>(end_) + 2, 0);
  // The two passes, without and with advance(), compute two solutions of the dual of the linear relaxation, with about
  // the same bound. Both are useful, because they prove of different nodes that they never run again in a stage, and of
  // different values that they are never held.
  for (const bool in_advance : {false, true}) {
    Exact exact{*this, in_advance};
    const auto value = forward<std::int64_t>(exact);
    excess_of_ = in_advance ? std::min(excess_of_, value) : value;
  }
  for (std::size_t t = rest_.size() - 1; t-- > 0;) rest_[t] += rest_[t + 1];
}

}  // namespace cairn::solvers
