// Computes prices for memory and for time on the link, which give a lower bound on the makespan (transfer_prices.h).
// The multipliers are the prices `device`, `host`, `evict`, `fetch` and `both` of the theorem in that file.

#include "cairn/solvers/offload/bound/transfer_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cairn/solvers/common/support/transferable.h"

namespace cairn::solvers {
namespace {

/// Holds a price, as a multiple of 2^-shift units of cost, and its place on a DerivativeTape.
struct Price {
  std::int64_t value = 0;
  std::int32_t place = -1;  ///< -1: the price is constant
};

/// Records how prices were computed from multipliers, so that derivatives with respect to the multipliers can be
/// computed.
class DerivativeTape {
 public:
  /// The places 0 to `multipliers` - 1 stand for the multipliers.
  explicit DerivativeTape(std::size_t multipliers) : first_(static_cast<std::int32_t>(multipliers)) {}

  /// Largest price; larger ones are lowered to it, so that sums cannot overflow. This is allowed, because lower prices
  /// also give a valid bound.
  static constexpr std::int64_t kMost = std::int64_t{1} << 58;

  Price sum(Price a, Price b) {
    const std::int64_t value = std::min(a.value + b.value, kMost);
    if (a.place < 0 || b.place < 0) return {value, std::max(a.place, b.place)};
    return {value, record(a.place, 1, b.place, 1)};
  }
  /// Returns a - b, which must be >= 0.
  Price difference(Price a, Price b) {
    const std::int64_t value = a.value - b.value;
    if (value == 0) return {};
    if (b.place < 0) return {value, a.place};
    return {value, record(a.place, 1, b.place, -1)};
  }
  Price share(Price a, std::int32_t among) {
    if (a.place < 0 || among == 1) return {a.value / among, a.place};
    return {a.value / among, record(a.place, 1.0 / among, -1, 0)};
  }
  /// Returns a + `value`, where `value` is `factor` times multiplier `which`.
  Price plus(Price a, std::int64_t value, std::size_t which, double factor) {
    if (factor == 0) return a;
    return {std::min(a.value + value, kMost), record(a.place, 1, static_cast<std::int32_t>(which), factor)};
  }
  static Price least(Price a, Price b) { return b.value < a.value ? b : a; }

  /// Adds `factor` times `price` to the number whose derivatives are computed.
  void count(Price price, double factor = 1) {
    if (price.place >= 0) counted_.emplace_back(price.place, factor);
  }
  /// Returns the derivatives with respect to the multipliers.
  std::vector<double> derivatives() const {
    std::vector<double> of(static_cast<std::size_t>(first_) + entries_.size(), 0.0);
    for (const auto& [place, factor] : counted_) of[place] += factor;
    for (std::size_t k = entries_.size(); k-- > 0;) {
      const Entry& entry = entries_[k];
      const double here = of[static_cast<std::size_t>(first_) + k];
      if (entry.a >= 0) of[entry.a] += here * entry.of_a;
      if (entry.b >= 0) of[entry.b] += here * entry.of_b;
    }
    of.resize(static_cast<std::size_t>(first_));
    return of;
  }

 private:
  struct Entry {
    std::int32_t a, b;
    double of_a, of_b;
  };
  std::int32_t record(std::int32_t a, double of_a, std::int32_t b, double of_b) {
    entries_.push_back({a, b, of_a, of_b});
    return first_ + static_cast<std::int32_t>(entries_.size()) - 1;
  }

  const std::int32_t first_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::int32_t, double>> counted_;
};

}  // namespace

PathCosts path_costs(const core::Graph& graph) {
  PathCosts costs;
  costs.until.assign(static_cast<std::size_t>(graph.node_count()), 0);
  costs.since = costs.until;
  for (const core::NodeId v : graph.input_order()) {
    for (const core::NodeId u : graph.predecessors(v)) costs.until[v] = std::max(costs.until[v], costs.until[u]);
    costs.until[v] += graph.cost(v);
  }
  for (std::size_t k = graph.input_order().size(); k-- > 0;) {
    const core::NodeId v = graph.input_order()[k];
    std::int64_t least = graph.required(v) ? 0 : std::numeric_limits<std::int64_t>::max();
    for (const core::NodeId reader : graph.successors(v)) least = std::min(least, costs.since[reader]);
    costs.since[v] = graph.cost(v) + least;
  }
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    std::int64_t least = graph.value_kept(x) ? 0 : std::numeric_limits<std::int64_t>::max();
    for (const core::NodeId reader : graph.readers(x)) least = std::min(least, costs.since[reader]);
    costs.since_read.push_back(least);
  }
  return costs;
}

/// Computes the bound for given multipliers in one pass over the stages.
class TransferPrices::Pass {
 public:
  Pass(const TransferPrices& prices, const Multipliers& multipliers)
      : prices_(prices),
        m_(multipliers),
        stages_(prices.stages_),
        graph_(prices.graph_),
        uses_(prices.uses_),
        tape_(kScalars + 3 * prices.count()),
        carried_(static_cast<std::size_t>(graph_.value_count())),
        left_(carried_),
        share_(carried_),
        host_(carried_.size(), Price{kNever, -1}) {}

  /// Returns the bound in units of 2^-shift.
  Wide run() {
    Wide sum = first_runs();
    for (std::int32_t t = 0; t <= prices_.end_; ++t) {
      collected_ = 0;
      for (const core::NodeId v : uses_.active(t)) price_outputs(t, v);
      sum += end_stage(t) + collected_;
    }
    return sum;
  }

  /// Assigns to `gradient` the derivatives of the bound with respect to the coordinates of TransferPrices::ascent_.
  void derivatives(std::vector<double>& gradient) const {
    const std::vector<double> of = tape_.derivatives();
    gradient.assign(prices_.ascent_.point.size(), 0.0);
    gradient[kEvict] = of[kEvict] * prices_.link_unit_;
    gradient[kFetch] = of[kFetch] * prices_.link_unit_;
    gradient[kBoth] = prices_.shared_ ? of[kBoth] * prices_.link_unit_ : 0;
    double until = 0;
    for (std::int32_t t = prices_.end_; t >= 0; --t) {
      gradient[prices_.device_at(t)] = of[device_place(t)] + until * prices_.device_unit_;
      until += of[until_place(t)];
      if (prices_.host_budget_) gradient[prices_.host_at(t)] = of[host_place(t)];
    }
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Places of multipliers on the tape. The first three places are kEvict, kFetch and kBoth. until_place(t) stands for
  // Multipliers::device_until[t], in units of cost per byte.
  std::size_t device_place(std::int32_t t) const { return kScalars + static_cast<std::size_t>(t); }
  std::size_t until_place(std::int32_t t) const { return device_place(t) + prices_.count(); }
  std::size_t host_place(std::int32_t t) const { return until_place(t) + prices_.count(); }

  std::int64_t weigh(std::int64_t cost, std::int64_t weight) const {
    const Wide value = (Wide(cost) * weight << prices_.shift_) >> kWeightShift;
    return value > DerivativeTape::kMost ? DerivativeTape::kMost : static_cast<std::int64_t>(value);
  }
  std::int64_t weigh_bytes(std::int64_t bytes, std::int64_t price) const {
    const Wide value = Wide(bytes) * price >> m_.price_shift;
    return value > DerivativeTape::kMost ? DerivativeTape::kMost : static_cast<std::int64_t>(value);
  }
  /// Returns a + `factor` * `both`. If `beside` is set, also adds `factor` * `evict` (for t <= cut) or `factor` *
  /// `fetch` (for t > cut). `value` is the sum of the products added to a.
  Price plus_weighed(Price a, std::int64_t value, std::int32_t t, bool beside, double factor) {
    const std::size_t which = t <= prices_.cut_ ? kEvict : kFetch;
    if (prices_.shared_) a = tape_.plus(a, 0, kBoth, factor);
    a = tape_.plus(a, 0, beside ? which : kBoth, beside ? factor : 0);
    a.value = std::min(a.value + value, DerivativeTape::kMost);
    return a;
  }
  Price plus_work(Price a, core::NodeId v, std::int32_t t) {
    return plus_weighed(a, weigh(graph_.cost(v), m_.work(t)), t, true, -static_cast<double>(graph_.cost(v)));
  }
  Price plus_evict(Price a, core::ValueId x, std::int32_t t) {
    const std::int64_t copy = prices_.copy_cost_[x];
    return plus_weighed(a, weigh(copy, m_.out(t)), t, t <= prices_.cut_, static_cast<double>(copy));
  }
  Price plus_fetch(Price a, core::ValueId x, std::int32_t t) {
    const std::int64_t copy = prices_.copy_cost_[x];
    return plus_weighed(a, weigh(copy, m_.in(t)), t, t > prices_.cut_, static_cast<double>(copy));
  }
  Price plus_bytes(Price a, std::int64_t bytes, std::int64_t price, std::size_t place) {
    return tape_.plus(a, weigh_bytes(bytes, price), place, static_cast<double>(bytes) * prices_.device_unit_);
  }

  /// Returns the least weighted cost of the first runs of all nodes, plus the terms for the times that no copy can use
  /// (r, q and s of the theorem).
  Wide first_runs() {
    Wide sum = Wide(m_.evict) * prices_.before_evicts_ + Wide(m_.fetch) * prices_.after_fetches_ +
               Wide(m_.both) * prices_.beside_copies_;
    const auto count = [&](std::size_t which, std::int64_t cost) {
      tape_.count({0, static_cast<std::int32_t>(which)}, static_cast<double>(cost));
    };
    count(kEvict, prices_.before_evicts_);
    count(kFetch, prices_.after_fetches_);
    count(kBoth, prices_.beside_copies_);
    for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
      const FirstRunStages::Node& node = stages_.node(v);
      const bool can_be_before = node.first <= prices_.cut_, can_be_after = node.due > prices_.cut_;
      const bool before = can_be_before && (!can_be_after || m_.evict >= m_.fetch);
      const bool at_cut = stages_.place(v) == prices_.cut_;
      sum += Wide(graph_.cost(v)) * (at_cut ? m_.at_cut() : before ? m_.before() : m_.after());
      if (!at_cut) count(before ? kEvict : kFetch, -graph_.cost(v));
      count(kBoth, -graph_.cost(v));
    }
    return (sum << prices_.shift_) >> kWeightShift;
  }

  /// Subtracts `amount`, which must be at most left_[x], from the prices of x on the device and on the host.
  void take(core::ValueId x, Price amount) {
    left_[x] = tape_.difference(left_[x], amount);
    if (host_[x].value == kNever) return;
    host_[x] = host_[x].value > amount.value ? tape_.difference(host_[x], amount) : Price{};
  }
  void collect(core::ValueId x) {
    collected_ += left_[x].value;
    tape_.count(left_[x]);
    take(x, left_[x]);
  }

  /// Returns the price of fetching x in stage t. Its value is kNever if x cannot be on the host.
  Price fetched(std::int32_t t, core::ValueId x) {
    if (host_[x].value == kNever) return host_[x];
    return plus_fetch(host_[x], x, t);
  }
  bool fetching_is_cheaper(std::int32_t t, core::ValueId x, Price price) const {
    return host_[x].value < price.value && host_[x].value + weigh(prices_.copy_cost_[x], m_.in(t)) < price.value;
  }

  void price_outputs(std::int32_t t, core::NodeId v) {
    const FirstRunStages::Node& node = stages_.node(v);
    const bool runs_surely = t == node.first && t == node.due;
    const bool may_be_first = t <= node.due;
    Price making;
    if (runs_surely) {
      for (const core::ValueId y : graph_.inputs(v)) collect(y);
    } else if (!may_be_first && t <= node.last) {
      making = plus_work(making, v, t);
      for (const core::ValueId y : graph_.inputs(v)) making = tape_.sum(making, share_[y]);
    }
    for (const core::ValueId x : graph_.outputs(v)) {
      Price price;
      if (t > node.first) {
        price = t <= node.last ? DerivativeTape::least(carried_[x], making) : carried_[x];
        if (fetching_is_cheaper(t, x, price)) price = fetched(t, x);
        if (t <= node.last) making = tape_.difference(making, price);
      }
      left_[x] = price;
      share_[x] = {};
      share_with_readers(t, x);
    }
  }

  /// Splits the price of x in stage t into two parts. The first part is left for the next stage u in which x is surely
  /// read. In stage u, x need not come from stage t: x can be made again in stage u, or fetched from an older copy. So
  /// the first part is at most the price of the cheaper of these two ways, minus the price of bringing x from stage t
  /// to stage u. The second part, the rest of the price, is charged to the nodes that read x and can run again in stage
  /// t.
  void share_with_readers(std::int32_t t, core::ValueId x) {
    const std::int32_t readers = left_[x].value > 0 ? uses_.readers_again(t, x) : 0;
    if (readers == 0 || uses_.used(t, x)) return;
    const Price kept = kept_until_next_use(t, x);
    if (kept.value >= left_[x].value) return;
    const Price part = tape_.share(tape_.difference(left_[x], kept), readers);
    share_[x] = part;
    take(x, tape_.difference(left_[x], kept));
  }
  Price kept_until_next_use(std::int32_t t, core::ValueId x) {
    const core::NodeId v = graph_.producer(x);
    const std::int32_t use = uses_.next_use(t, x);
    if (use < 0) return {};
    if (stages_.node(v).once) return left_[x];
    const Price made = plus_work({}, v, use);
    const bool movable = prices_.copy_cost_[x] >= 0;
    const Price there = fetching_is_cheaper(use, x, made) ? plus_fetch(host_[x], x, use) : made;
    const Wide rise = std::min(m_.device_until[use] - m_.device_until[t], Wide(1) << 61);  // avoids an overflow
    const Wide held = rise * graph_.value_size(x) >> m_.price_shift;
    const Price moved = movable ? plus_fetch(plus_evict({}, x, t), x, use) : Price{kNever, -1};
    const Wide kept = there.value - std::min<Wide>(held, moved.value);
    if (kept <= 0) return {};
    if (moved.value < held) return tape_.difference(there, moved);
    const auto bytes = static_cast<double>(graph_.value_size(x));
    Price price = tape_.plus(there, 0, until_place(use), -bytes);
    price = tape_.plus(price, 0, until_place(t), bytes);
    price.value = static_cast<std::int64_t>(kept);
    return price;
  }

  /// Adds the prices of holding values during the run of c_t. Returns what the budgets add to the bound in this stage:
  /// for each budget, the difference between the bytes that are surely needed and the budget, times the price of a
  /// byte.
  Wide end_stage(std::int32_t t) {
    Wide bytes = t < prices_.end_ ? graph_.scratch(stages_.chain(t)) : 0;
    for (const core::NodeId v : uses_.active(t)) {
      for (const core::ValueId x : graph_.outputs(v)) {
        if (t > stages_.value(x).until) continue;
        Price there;  // the price of having x in this stage
        if (stages_.forced(t, x)) {
          collect(x);
          bytes += graph_.value_size(x);
          carried_[x] = {};
        } else {
          there = left_[x];
          carried_[x] = plus_bytes(there, graph_.value_size(x), m_.device[t], device_place(t));
        }
        if (prices_.copy_cost_[x] >= 0) hold_on_host(t, x, there);
      }
    }
    const Wide excess = bytes - stages_.budget();
    tape_.count({0, static_cast<std::int32_t>(device_place(t))}, static_cast<double>(excess) * prices_.device_unit_);
    Wide sum = excess * m_.device[t] >> m_.price_shift;
    if (prices_.host_budget_) {
      const Wide host = -Wide(*prices_.host_budget_);
      tape_.count({0, static_cast<std::int32_t>(host_place(t))}, static_cast<double>(host) * prices_.device_unit_);
      sum += host * m_.host[t] >> m_.price_shift;
    }
    return sum;
  }
  void hold_on_host(std::int32_t t, core::ValueId x, Price there) {
    // The output of c_t does not exist before the first run of c_t.
    const bool can_enter = t >= stages_.node(graph_.producer(x)).first && stages_.place(graph_.producer(x)) != t;
    const std::int64_t entering = can_enter ? there.value + weigh(prices_.copy_cost_[x], m_.out(t)) : kNever;
    if (entering < host_[x].value) host_[x] = plus_evict(there, x, t);
    if (host_[x].value == kNever || !prices_.host_budget_) return;
    host_[x] = plus_bytes(host_[x], graph_.value_size(x), m_.host[t], host_place(t));
  }

  const TransferPrices& prices_;
  const Multipliers& m_;
  const FirstRunStages& stages_;
  const core::Graph& graph_;
  const StageUses& uses_;
  DerivativeTape tape_;
  // These arrays are indexed by value:
  // - carried_: the price of having the value in the current stage by holding it since the stage before.
  // - left_: the part of the value's price that was not taken yet.
  // - share_: the part of the price that is charged to each node that can read the value when it runs again.
  // - host_: the price of having the value on the host during the run of c_(t-1); kNever: the value cannot be on the
  // host.
  std::vector<Price> carried_, left_, share_, host_;
  Wide collected_ = 0;
};

TransferPrices::TransferPrices(const FirstRunStages& stages, const core::Link& link,
                               std::optional<std::int64_t> host_budget, std::int32_t cut)
    : stages_(stages),
      graph_(stages.graph()),
      uses_(stages),
      end_(stages.chain_length()),
      cut_(cut),
      shared_(!link.duplex),
      host_budget_(host_budget),
      bound_(stages.base_cost()) {
  std::int64_t bytes = 1;
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    const std::int64_t size = graph_.value_size(x);
    const bool movable = transferable(graph_, x) && (!host_budget || size <= *host_budget);
    copy_cost_.push_back(movable ? core::copy_cost(link, size, graph_.cost_unit()) : -1);
    bytes += size;
  }
  find_unused_time();
  constexpr double kMostShifted = 0x1p55;
  const double base = static_cast<double>(stages.base_cost()) + 1;
  while (shift_ < 20 && std::ldexp(base, shift_ + 1) < kMostShifted) ++shift_;
  const double by_link = 2 * static_cast<double>(core::copy_cost(link, bytes, graph_.cost_unit()));
  // Moving all values over the link and back takes by_link, and running all nodes once costs `base`. With a price of
  // base / by_link for the link's time, both cost the same. So this ratio sets the unit of the link's prices.
  constexpr double kPart = 0.125, kLeast = 0x1p-20;
  device_unit_ = std::max(std::min(base, by_link), 1.0) / static_cast<double>(bytes);
  link_unit_ = std::clamp(base / (kPart * std::max(by_link, 1.0)), kLeast, 1.0);
  ascent_.point.assign(kScalars + (host_budget ? 2 : 1) * count(), 0.0);
  ascent_.point[kEvict] = ascent_.point[kFetch] = kPart;
  ascent_.best_point = ascent_.point;
  ascent_.best = -std::numeric_limits<double>::infinity();
}

void TransferPrices::find_unused_time() {
  const PathCosts costs = path_costs(graph_);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = kMost, last = kMost, first_before = kMost;
  for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
    if (copy_cost_[x] < 0) continue;
    const core::NodeId v = graph_.producer(x);
    first = std::min(first, costs.until[v]);
    if (stages_.node(v).first <= cut_) first_before = std::min(first_before, costs.until[v]);
    last = std::min(last, costs.since_read[x]);
  }
  if (first == kMost) return;
  beside_copies_ = first + last;
  if (cut_ >= end_) return;
  const core::NodeId c = stages_.chain(cut_);
  before_evicts_ = std::min(first_before, costs.until[c] - graph_.cost(c));
  after_fetches_ = std::min(last, costs.since[c] - graph_.cost(c));
}

void TransferPrices::project() {
  const double most = 1 / link_unit_;
  double& both = ascent_.point[kBoth];
  both = std::min(both, most);
  for (const std::size_t k : {kEvict, kFetch}) ascent_.point[k] = std::min(ascent_.point[k], most - both);
}

TransferPrices::Multipliers TransferPrices::multipliers() const {
  const std::vector<double>& point = ascent_.point;
  const auto weight = [](double part) { return static_cast<std::int64_t>(std::ldexp(part, kWeightShift)); };
  Multipliers m;
  m.cut = cut_;
  m.both = weight(link_unit_ * point[kBoth]);
  // The weight `both` plus the weight `evict` or `fetch` may be at most 1. project() makes sure of this up to a
  // rounding error, and min() removes this error.
  m.evict = std::min(weight(link_unit_ * point[kEvict]), kOne - m.both);
  m.fetch = std::min(weight(link_unit_ * point[kFetch]), kOne - m.both);
  constexpr double kMostPrice = 0x1p60;
  double highest = 0;
  for (std::size_t k = kScalars; k < point.size(); ++k) highest = std::max(highest, point[k]);
  const double scale = std::ldexp(device_unit_, shift_);
  while (m.price_shift < 60 && std::ldexp(highest * scale, m.price_shift + 1) < kMostPrice) ++m.price_shift;
  const auto price = [&](double p) {
    return static_cast<std::int64_t>(std::min(std::ldexp(p * scale, m.price_shift), kMostPrice));
  };
  m.device_until.push_back(0);
  for (std::int32_t t = 0; t <= end_; ++t) {
    m.device.push_back(price(point[device_at(t)]));
    if (host_budget_) m.host.push_back(price(point[host_at(t)]));
    m.device_until.push_back(m.device_until.back() + m.device.back());
  }
  return m;
}

double TransferPrices::evaluate(std::vector<double>& gradient) {
  const Multipliers m = multipliers();
  Pass pass(*this, m);
  const Wide value = pass.run();
  pass.derivatives(gradient);
  const Wide one = Wide(1) << shift_;
  const Wide whole = (value + one - 1) >> shift_;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (whole > bound_) bound_ = whole > kMost ? kMost : static_cast<std::int64_t>(whole);
  return static_cast<double>(value - (Wide(stages_.base_cost()) << shift_)) / static_cast<double>(one);
}

void TransferPrices::ascend(std::int64_t target, int rounds, core::Stopwatch& watch) {
  const double extra = static_cast<double>(target) - static_cast<double>(stages_.base_cost());
  solvers::ascend(
      ascent_, extra, rounds, static_cast<std::int64_t>(uses_.pairs()), watch,
      [&](std::vector<double>& gradient) { return evaluate(gradient); }, [&] { project(); });
}

}  // namespace cairn::solvers
