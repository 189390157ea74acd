// Computes lower bounds on the cost from what is in memory at a few moments (cut_bound.h). A moment is the first run of
// a node.

#include "cairn/solvers/remat/bound/cut/cut_bound.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/costs.h"

namespace cairn::solvers {
namespace {

/// Tries moments one after another, and keeps the highest bound in answer_.
class CutBounding {
 public:
  CutBounding(const core::Graph& graph, const MomentCutOptions& options, std::int64_t enough,
              const std::function<void(std::int64_t)>& raised, core::Stopwatch& watch)
      : graph_(graph), options_(options), enough_(enough), raised_(raised), watch_(watch) {}

  CutBound run() {
    base_ = answer_.value = cost_of(graph_, graph_.input_order());
    const std::vector<std::int64_t> profile = core::Evaluator(graph_).profile(graph_.input_order());
    for (std::size_t i = 0; i < graph_.input_order().size(); ++i) memory_.push_back(profile[2 * i + 1]);
    tried_.assign(memory_.size(), 0);
    try_largest();
    climb();
    solve_best();
    return std::move(answer_);
  }

 private:
  /// Stores what a MomentBound found for one moment (the first run of a node): the bound on the extra cost, i.e. the
  /// cost above the cost of running each node once, and the price of a byte that gives this bound.
  struct Single {
    Moment moment;
    std::int64_t extra;
    double price;
  };

  bool done() { return answer_.infeasible || answer_.value >= enough_ || watch_.expired_now(); }

  /// Tries the moments that need the most memory. Of several neighbouring moments, tries only the one that needs the
  /// most.
  void try_largest() {
    constexpr int kMost = 12;
    constexpr std::size_t kParts = 100;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i] > options_.budget) places.push_back(i);
    }
    std::ranges::stable_sort(places, std::greater<>(), [&](std::size_t i) { return memory_[i]; });
    const std::size_t apart = memory_.size() / kParts;
    std::vector<std::uint8_t> near(memory_.size(), 0);
    int count = 0;
    for (const std::size_t i : places) {
      if (near[i] != 0) continue;
      if (done() || count++ == kMost) return;
      try_moment(i);
      const std::size_t first = i - std::min(i, apart), last = std::min(i + apart + 1, near.size());
      std::fill(near.begin() + static_cast<std::ptrdiff_t>(first), near.begin() + static_cast<std::ptrdiff_t>(last), 1);
    }
  }

  /// Tries the neighbours of the best moment. If a neighbour gives a higher bound, continues with its neighbours.
  void climb() {
    if (answer_.moment == core::kNoNode) return;
    while (!done()) {
      const std::size_t at = best_;
      for (const std::ptrdiff_t step : std::array<std::ptrdiff_t, 6>{-1, 1, -2, 2, -4, 4}) {
        const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(at) + step;
        if (i < 0 || i >= std::ssize(tried_) || tried_[i] != 0 || memory_[i] <= options_.budget) continue;
        if (done()) return;
        try_moment(static_cast<std::size_t>(i));
      }
      if (best_ == at) return;
    }
  }

  void try_moment(std::size_t place) {
    tried_[place] = 1;
    MomentBound bound(graph_, graph_.input_order()[place], options_);
    bound.maximize(watch_);
    if (bound.infeasible()) {
      answer_.infeasible = true;
      answer_.moment = bound.moment().node;
      return;
    }
    if (raise(bound.extra(), bound.moment().node)) best_ = place;
    if (bound.extra() == 0 || options_.solved == 0 || options_.link) return;
    singles_.push_back({bound.moment(), bound.extra(), bound.price()});
    std::ranges::stable_sort(singles_, std::greater<>(), &Single::extra);
    if (singles_.size() > std::max(options_.solved, kPartners)) singles_.pop_back();
  }

  /// Raises the bounds of the best moments to the optima of their integer programs (moments_program.h). Then adds
  /// moments to the best one, so that one program bounds the cost from several moments together.
  void solve_best() {
    std::optional<Moments> best;
    std::vector<double> prices;
    for (std::size_t i = 0; i < std::min(options_.solved, singles_.size()); ++i) {
      if (done()) return;
      Moments moments(graph_, singles_[i].moment);
      if (take(moments, {singles_[i].price}, singles_[i].extra, prices, watch_)) best = std::move(moments);
    }
    if (!best || done()) return;
    core::Limit limit = watch_.rest();
    limit.work = std::min(limit.work, options_.together_work);
    core::Stopwatch part(limit);
    while (best) best = one_more(*best, prices, part);
    watch_.charge(part.work());
  }

  /// Returns the given moments and one more: the one that raises the bound most. Returns nothing if no further moment
  /// raises the bound. `prices` holds the price of a byte at each of the given moments, and is replaced by the prices
  /// at the returned moments.
  std::optional<Moments> one_more(const Moments& moments, std::vector<double>& prices, core::Stopwatch& watch) {
    std::optional<Moments> best;
    if (moments.count() >= options_.together) return best;
    const std::vector<double> before = prices;
    for (const core::NodeId node : next_moments()) {
      if (done() || watch.expired_now()) return std::nullopt;
      std::optional<Moments> more = moments.with(Moment(graph_, node, options_.budget, options_.order));
      if (!more) continue;
      std::vector<double> start = before;
      start.insert(start.begin() + more->place(node), 0.0);
      if (take(*more, std::move(start), 0, prices, watch)) best = std::move(more);
    }
    return best;
  }

  /// Solves the integer program of the moments, beginning with the prices `start`. Its solution is a choice: in which
  /// stages nodes run, and what is held at the moments. If the solution raises the bound, or if no choice is known yet,
  /// stores the choice and its prices, and returns true. Otherwise returns false.
  bool take(const Moments& moments, std::vector<double> start, std::int64_t known, std::vector<double>& prices,
            core::Stopwatch& watch) {
    known = std::max(known, answer_.value - base_);
    MomentsOptimum optimum = moments_optimum(graph_, moments, known, enough_ - 1 - base_, std::move(start), watch);
    answer_.infeasible = answer_.infeasible || optimum.infeasible;
    const MomentsProof& proof = optimum.proof;
    if (!answer_.proof.infeasible && (proof.infeasible || proof.extra > answer_.proof.extra)) answer_.proof = proof;
    const bool raised = raise(optimum.extra, moments[0].node);
    if (optimum.prices.empty() || (!raised && answer_.choice)) return false;
    answer_.choice = std::move(optimum.choice);
    prices = std::move(optimum.prices);
    return true;
  }

  /// Returns nodes whose first runs can be added as moments. These are the first runs at which the schedule of the
  /// current choice exceeds the budget most, and the best single moments. Returns no nodes if the schedule is within
  /// the budget.
  std::vector<core::NodeId> next_moments() const {
    constexpr std::size_t kTried = 3, kParts = 30;
    const core::Schedule schedule = follow_choice(graph_, *answer_.choice);
    const std::vector<std::int64_t> profile = core::Evaluator(graph_).profile(schedule);
    // Bytes in memory during a step, and the index of the step.
    std::vector<std::pair<std::int64_t, std::size_t>> steps;
    std::vector<std::uint8_t> ran(graph_.node_count(), 0);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      if (std::exchange(ran[schedule.steps[i]], 1) == 0 && profile[2 * i + 1] > options_.budget)
        steps.emplace_back(profile[2 * i + 1], i);
    }
    std::ranges::stable_sort(steps, std::greater<>(), &std::pair<std::int64_t, std::size_t>::first);
    std::vector<core::NodeId> nodes;
    std::vector<std::size_t> places;
    for (const auto& [memory, i] : steps) {
      const auto near = [&](std::size_t k) {
        return std::max(i, k) - std::min(i, k) <= schedule.steps.size() / kParts;
      };
      if (nodes.size() == kTried) break;
      if (std::ranges::any_of(places, near)) continue;
      places.push_back(i);
      nodes.push_back(schedule.steps[i]);
    }
    for (std::size_t i = 0; i < singles_.size() && !nodes.empty(); ++i) nodes.push_back(singles_[i].moment.node);
    return nodes;
  }

  static constexpr std::size_t kPartners = 8;  ///< how many of the best single moments are tried as further moments

  bool raise(std::int64_t extra, core::NodeId moment) {
    const std::int64_t value = core::saturating_add(base_, extra);
    if (value <= answer_.value) return false;
    answer_.value = value;
    answer_.moment = moment;
    if (raised_) raised_(value);
    return true;
  }

  const core::Graph& graph_;
  const MomentCutOptions& options_;
  const std::int64_t enough_;
  const std::function<void(std::int64_t)>& raised_;
  core::Stopwatch& watch_;
  std::vector<std::int64_t> memory_;  ///< bytes in memory during each step of the input order
  std::vector<std::uint8_t> tried_;
  std::int64_t base_ = 0;
  std::size_t best_ = 0;
  std::vector<Single> singles_;  ///< the moments with the highest bounds, by descending bound
  CutBound answer_;
};

/// Returns for each node whether it runs before the moment in the schedule of follow_cut(). If the order rule is not
/// `free`, these are all nodes before the moment's node in the input order. If the rule is `free`, a node that the cut
/// runs again after the moment is left out, unless the moment's node or another node that runs before the moment needs
/// it.
std::vector<std::uint8_t> runs_before(const core::Graph& graph, core::NodeId moment, const MomentCut& cut,
                                      OrderRule rule) {
  const auto order = graph.input_order();
  std::vector<std::uint8_t> first(graph.node_count(), 0);
  for (const core::NodeId u : graph.predecessors(moment)) first[u] = 1;
  for (auto v = std::ranges::find(order, moment); v-- != order.begin();) {
    if (cut.again[*v] == 0 || rule != OrderRule::free) first[*v] = 1;
    if (first[*v] == 0) continue;
    for (const core::NodeId u : graph.predecessors(*v)) first[u] = 1;
  }
  return first;
}

}  // namespace

CutBound cut_bound(const core::Graph& graph, const MomentCutOptions& options, std::int64_t enough,
                   const std::function<void(std::int64_t)>& raised, core::Stopwatch& watch) {
  return CutBounding(graph, options, enough, raised, watch).run();
}

std::int64_t cut_peak_bound(const core::Graph& graph, MomentCutOptions options, std::int64_t max_cost,
                            std::int64_t known, core::Stopwatch& watch) {
  // The bisection ends when its range is at most the peak divided by this number
  constexpr std::int64_t kNear = 100'000;
  std::int64_t low = std::min(core::peak_lower_bound(graph), known), high = known;
  while (high - low > high / kNear && !watch.expired_now()) {
    options.budget = low + (high - low) / 2;
    const CutBound bound = cut_bound(graph, options, core::saturating_add(max_cost, 1), {}, watch);
    if (bound.infeasible || bound.value > max_cost) {
      low = options.budget + 1;
    } else {
      high = options.budget;
    }
  }
  return low;
}

core::Schedule follow_cut(const core::Graph& graph, core::NodeId moment, const MomentCut& cut, OrderRule order) {
  constexpr StageSet kBefore = 1, kAfter = 2;
  const std::vector<std::uint8_t> before = runs_before(graph, moment, cut, order);
  MomentsChoice choice{{moment}, {}, std::vector<StageSet>(graph.value_count(), 0)};
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    choice.runs.push_back(before[v] != 0 || v == moment ? kBefore : kAfter);
    for (const core::ValueId x : graph.outputs(v)) choice.held[x] = cut.again[v] == 0 ? kBefore : 0;
  }
  // Inputs of the moment's node are in memory at the moment, even if the nodes that make them run again.
  for (const core::ValueId x : graph.inputs(moment)) choice.held[x] = kBefore;
  return follow_choice(graph, choice);
}

std::optional<CutSchedule> cut_schedule(const core::Graph& graph, const MomentCutOptions& options, core::NodeId moment,
                                        core::Stopwatch& watch) {
  MomentBound bound(graph, moment, options);
  bound.maximize(watch);
  std::optional<MomentCut> cut = bound.cut(watch);
  if (!cut) return std::nullopt;
  watch.charge(graph.node_count());
  core::Schedule schedule = follow_cut(graph, moment, *cut, options.order);
  return CutSchedule{std::move(*cut), std::move(schedule)};
}

}  // namespace cairn::solvers
