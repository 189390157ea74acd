// Computes a lower bound on the cost from what is in memory at one moment, by minimum cuts (moment_cut.h).

#include "cairn/solvers/remat/bound/cut/moment_cut.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/transferable.h"

namespace cairn::solvers {
namespace {

__extension__ using Wide = __int128;

// Costs are scaled (see scaled()) so that running each node once costs less than 2^kCostBits. The price of a value is
// at most 2^(kCostBits + 1), because no value is worth more. So the capacities of 2^16 values add up to less than
// FlowNetwork::kUnlimited, as FlowNetwork requires.
constexpr int kCostBits = 44;
constexpr std::int64_t kMostPrice = std::int64_t{1} << (kCostBits + 1);
// Prices are rounded to integers. The price of a byte is in units of 2^-kPriceBits, and the price of time on the link
// is in units of 2^-kLinkBits.
constexpr int kPriceBits = 16, kLinkBits = 30;

constexpr std::int64_t floor_product(std::int64_t a, std::int64_t b, int bits) {
  return static_cast<std::int64_t>(std::min<Wide>(static_cast<Wide>(a) * b >> bits, kMostPrice));
}
constexpr double ceil_product(std::int64_t a, std::int64_t b, int bits) {
  return std::ceil(std::ldexp(static_cast<double>(a) * static_cast<double>(b), -bits)) + 1;
}

}  // namespace

MomentBound::MomentBound(const core::Graph& graph, core::NodeId moment, const MomentCutOptions& options)
    : graph_(graph),
      options_(options),
      moment_(graph, moment, options.budget, options.order),
      source_(graph.node_count() + graph.value_count()),
      sink_(source_ + 1) {
  const std::int64_t total = std::max<std::int64_t>(cost_of(graph, graph.input_order()), 1);
  scale_ = kCostBits - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total)));
  infeasible_ = moment_.room < 0;
  network_.reset(sink_ + 1);
  add_arcs();
}

void MomentBound::add_arcs() {
  const core::NodeId n = graph_.node_count();
  double made = 0;
  for (const core::NodeId v : graph_.input_order()) {
    if (moment_.is_after(v)) continue;
    const bool fixed = moment_.is_before(v) && graph_.pinned(v);
    if (moment_.is_before(v)) {
      network_.add_arc(source_, v, fixed ? FlowNetwork::kUnlimited : scaled(graph_.cost(v)));
      if (!fixed) all_again_ += scaled(graph_.cost(v));
    }
    link_time_ += scaled(graph_.cost(v)) + 1;
    for (const core::ValueId x : graph_.inputs(v)) network_.add_arc(n + x, v, FlowNetwork::kUnlimited);
    constexpr double kLate = 0.05;
    const double weight = 1 + kLate * (1 - made / n);
    ++made;
    for (const core::ValueId x : graph_.outputs(v)) {
      if (moment_.needed[x] != 0) network_.add_arc(n + x, sink_, FlowNetwork::kUnlimited);
      const std::int32_t arc = network_.add_arc(v, n + x, 0);
      if (moment_.free[x] != 0) continue;
      std::int64_t copy = -1;
      if (options_.link && transferable(graph_, x)) {
        copy = scaled(core::copy_cost(*options_.link, graph_.value_size(x), graph_.cost_unit()));
        const double speed =
            static_cast<double>(graph_.value_size(x)) / static_cast<double>(std::max<std::int64_t>(copy, 1));
        bytes_per_cost_ = std::max(bytes_per_cost_, speed);
      }
      arcs_.push_back({x, arc, copy, weight});
      bytes_ += graph_.value_size(x);
    }
  }
}

/// Returns a cost in the units of the network, rounded down.
std::int64_t MomentBound::scaled(std::int64_t cost) const {
  if (scale_ < 0) return cost >> -scale_;
  const Wide value = static_cast<Wide>(cost) << scale_;
  return static_cast<std::int64_t>(std::min<Wide>(value, FlowNetwork::kUnlimited));
}

/// Returns the price of time on the link if holding a byte costs `price`. At this price of time, moving the value of
/// the fastest copy (the most bytes per unit of time) costs as much as holding it. The result is at most 1, because
/// extending the makespan by one unit of time costs only 1.
double MomentBound::link_price(double price) const { return std::min(1.0, price * bytes_per_cost_); }

void MomentBound::set_prices(double price, bool weighted) {
  for (const ValueArc& arc : arcs_) {
    const double weight = weighted ? arc.weight : 1;
    const double most = 2.0 * static_cast<double>(kMostPrice);
    const auto of_byte = static_cast<std::int64_t>(std::ldexp(std::min(price * weight, most), kPriceBits));
    std::int64_t capacity = floor_product(of_byte, graph_.value_size(arc.value), kPriceBits);
    if (mover_ == Mover::any && arc.copy >= 0) capacity = 0;
    if (mover_ == Mover::link && arc.copy >= 0) {
      const auto of_time = static_cast<std::int64_t>(std::ldexp(std::min(1.0, link_price(price) * weight), kLinkBits));
      capacity = std::min(capacity, floor_product(of_time, arc.copy, kLinkBits));
    }
    network_.set_capacity(arc.arc, capacity);
  }
}

/// Computes a minimum cut. Returns its capacity, or nothing if the watch has expired.
std::optional<std::int64_t> MomentBound::solve(core::Stopwatch& watch) {
  if (watch.charge(graph_.node_count() + graph_.edge_count()).expired_now()) return std::nullopt;
  return network_.solve(source_, sink_);
}

/// Returns whether the minimum cut holds or moves the value.
bool MomentBound::crosses(const ValueArc& arc) const {
  return on_source_side(graph_.producer(arc.value)) && !on_source_side(graph_.node_count() + arc.value);
}

std::optional<MomentBound::Point> MomentBound::evaluate(double price, core::Stopwatch& watch) {
  // The price is rounded to the number that set_prices() uses.
  const auto of_byte = static_cast<std::int64_t>(std::ldexp(price, kPriceBits));
  const auto of_time = static_cast<std::int64_t>(std::ldexp(link_price(price), kLinkBits));
  set_prices(price, false);
  const std::optional<std::int64_t> capacity = solve(watch);
  if (!capacity) return std::nullopt;
  const double room =
      static_cast<double>(moment_.room) + (mover_ == Mover::host ? static_cast<double>(*options_.host_budget) : 0.0);
  Point point{price, static_cast<double>(*capacity), -room};
  point.value -= std::ldexp(static_cast<double>(of_byte) * room, -kPriceBits) * (1 + 1e-12) + 1;
  if (mover_ == Mover::link) point.value -= ceil_product(of_time, link_time_, kLinkBits);
  double moved = 0;
  for (const ValueArc& arc : arcs_) {
    if (!crosses(arc) || (mover_ == Mover::any && arc.copy >= 0)) continue;
    const std::int64_t bytes = graph_.value_size(arc.value);
    const bool by_link = mover_ == Mover::link && arc.copy >= 0 &&
                         floor_product(of_time, arc.copy, kLinkBits) < floor_product(of_byte, bytes, kPriceBits);
    if (by_link) {
      moved += static_cast<double>(arc.copy);
    } else {
      point.slope += static_cast<double>(bytes);
    }
  }
  if (mover_ == Mover::link && link_price(price) < 1) {
    point.slope += bytes_per_cost_ * (moved - static_cast<double>(link_time_));
  }
  return point;
}

/// Maximizes the Lagrangian dual over the price of a byte. Up to the price at which link_price() reaches 1, the dual is
/// concave, and two tangents enclose its maximum. At higher prices, the tangents can miss the maximum. Then the bound
/// is lower, but still valid.
void MomentBound::maximize_with(Mover mover, core::Stopwatch& watch) {
  constexpr int kFactors = 30, kTangents = 40;
  constexpr double kNear = 1e-7;
  mover_ = mover;
  Point best;
  const auto at = [&](double price) {
    std::optional<Point> point = evaluate(price, watch);
    if (point && point->value > best.value) best = *point;
    return point;
  };
  const double all = static_cast<double>(all_again_);
  // Find two prices between which the maximum lies, by factors of 4.
  std::optional<Point> left = at(std::max(1.0, all) / static_cast<double>(bytes_));
  std::optional<Point> right = left;
  for (int k = 0; left && left->slope < 0 && k < kFactors; ++k) {
    right = left;
    left = at(right->price / 4);
  }
  for (int k = 0; left && right && right->slope > 0 && k < kFactors; ++k) {
    left = right;
    right = at(4 * left->price);
    if (mover != Mover::link && best.value > all + 1) infeasible_ = true;
    if (infeasible_ || (right && right->price >= static_cast<double>(kMostPrice) / 2)) break;
  }
  for (int k = 0; left && right && left->slope > 0 && right->slope < 0 && !infeasible_ && k < kTangents; ++k) {
    const double price = (left->value - right->value + right->slope * right->price - left->slope * left->price) /
                         (right->slope - left->slope);
    const double most = left->value + left->slope * (price - left->price);
    if (!(price > left->price && price < right->price) || most <= best.value + kNear * std::abs(best.value) + 1) break;
    const std::optional<Point> middle = at(price);
    if (!middle) break;
    (middle->slope > 0 ? left : right) = middle;
  }
  if (best.value <= best_.value) return;
  best_ = best;
  extra_ = std::max<std::int64_t>(0, std::llround(std::ceil(std::ldexp(best.value * (1 - 1e-12) - 1, -scale_))));
}

void MomentBound::maximize(core::Stopwatch& watch) {
  if (infeasible_ || bytes_ <= moment_.room) return;
  if (!options_.link) return maximize_with(Mover::none, watch);
  if (std::ranges::any_of(arcs_, [](const ValueArc& arc) { return arc.copy < 0; })) maximize_with(Mover::any, watch);
  if (infeasible_) return;
  maximize_with(Mover::link, watch);
  if (options_.host_budget && bytes_ - moment_.room > *options_.host_budget) maximize_with(Mover::host, watch);
  mover_ = Mover::link;
}

/// Computes the minimum cut of the network for the case that each held byte costs `price`, and turns it into a
/// MomentCut: which nodes run again after the moment, and which values are in memory or on the host at the moment. Of
/// the values that cross the minimum cut, as many are held in memory as there is room for, and the rest is moved to the
/// host. Returns nothing if the host or the link cannot take the rest, or if the watch has expired.
std::optional<MomentCut> MomentBound::cut_at(double price, core::Stopwatch& watch) {
  set_prices(price, true);
  if (!solve(watch)) return std::nullopt;
  MomentCut cut;
  cut.again.assign(graph_.node_count(), 0);
  cut.held.assign(graph_.value_count(), 0);
  cut.moved.assign(graph_.value_count(), 0);
  for (core::NodeId v = 0; v < graph_.node_count(); ++v) cut.again[v] = !moment_.is_after(v) && !on_source_side(v);
  std::int64_t time = 0, host = 0;
  // Values that cannot be moved come first. Within each of the two groups, values that are made last come first.
  for (const bool movable : {false, true}) {
    for (auto arc = arcs_.rbegin(); arc != arcs_.rend(); ++arc) {
      if (movable != (arc->copy >= 0) || !crosses(*arc)) continue;
      const std::int64_t bytes = graph_.value_size(arc->value);
      if (cut.bytes + bytes <= moment_.room) {
        cut.held[arc->value] = 1;
        cut.bytes += bytes;
      } else if (!movable) {
        return std::nullopt;
      } else {
        cut.moved[arc->value] = 1;
        time = core::saturating_add(time, arc->copy);
        host += bytes;
      }
    }
  }
  if (time > link_time_ || (options_.host_budget && host > *options_.host_budget)) return std::nullopt;
  return cut;
}

std::optional<MomentCut> MomentBound::cut(core::Stopwatch& watch) {
  constexpr int kSteps = 20;
  constexpr double kRange = 8;
  if (best_.price <= 0 || infeasible_) return std::nullopt;
  std::optional<MomentCut> best;
  double low = best_.price / kRange, high = best_.price * kRange;
  for (int k = 0; k < kSteps && !watch.expired_now(); ++k) {
    const double price = std::sqrt(low * high);
    std::optional<MomentCut> cut = cut_at(price, watch);
    (cut ? high : low) = price;
    if (cut) best = std::move(cut);
  }
  return best;
}

}  // namespace cairn::solvers
