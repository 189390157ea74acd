// Implements simulated annealing over schedules (annealer.h). An occurrence is one step of the schedule, and its place
// is its position.

#include "cairn/solvers/remat/anneal/annealer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cairn/core/threads.h"

namespace cairn::solvers {

using core::EditableSchedule;
using core::NodeId;

std::vector<std::uint64_t> island_seeds(int count, const core::Limit& limit, std::uint64_t seed) {
  if (count <= 0) count = limit.counts_work() ? 2 : core::thread_count();
  core::Random random(seed + 1);
  std::vector<std::uint64_t> seeds;
  for (int i = 0; i < count; ++i) seeds.push_back(random.next());
  return seeds;
}

Annealer::Annealer(const core::Graph& graph, const Scope& scope, std::uint64_t seed)
    : graph_(graph), scope_(scope), random_(seed), schedule_(graph), count_(graph.node_count(), 0) {
  double costs = 0, sizes = 0;
  std::int64_t costly = 0, sized = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    costs += static_cast<double>(graph.cost(v));
    sizes += static_cast<double>(graph.size(v));
    costly += graph.cost(v) > 0 ? 1 : 0;
    sized += graph.size(v) > 0 ? 1 : 0;
  }
  unit_cost_ = costly > 0 ? costs / static_cast<double>(costly) : 1;
  unit_size_ = sized > 0 ? sizes / static_cast<double>(sized) : 1;
  price_ = excess_price_ = unit_cost_ / unit_size_;
}

/// Computes the cost of the schedule from which a search starts, and how often each node runs in it. Forgets the best
/// schedule found before.
void Annealer::count(const std::vector<NodeId>& steps) {
  std::fill(count_.begin(), count_.end(), 0);
  cost_ = 0;
  for (const NodeId v : steps) {
    ++count_[v];
    cost_ += graph_.cost(v);
  }
  best_cost_ = kNone;
  keep_if_best();
}

void Annealer::start(const std::vector<NodeId>& steps, std::int64_t budget) {
  placement_ = nullptr;
  schedule_.assign(steps);
  schedule_.set_ceiling(budget, step_charge());
  count(steps);
}

void Annealer::start(const std::vector<NodeId>& steps, Placement& placement, std::span<const std::int64_t> offsets) {
  if (!placement_) excess_price_ = price_;
  placement_ = &placement;
  straightened_ = placement.work();
  schedule_.assign(steps);
  schedule_.set_ceiling(std::numeric_limits<std::int64_t>::max() / 4);
  placement.assign(schedule_, offsets);
  count(steps);
}

double Annealer::excess() const {
  if (!placement_) return std::ldexp(static_cast<double>(schedule_.excess()), schedule_.excess_shift());
  return placement_->overlap() + static_cast<double>(placement_->conflicts()) * static_cast<double>(step_charge());
}

// --- The next functions edit the schedule. Their edits can be undone.

Annealer::Occurrence Annealer::insert(NodeId v, Occurrence before, Occurrence like) {
  const Occurrence o = schedule_.insert(v, before);
  if (placement_) placement_->inserted(schedule_, o, like);
  edits_.push_back({o, EditableSchedule::kNone, v});
  cost_ += graph_.cost(v);
  ++count_[v];
  return o;
}

void Annealer::drop(Occurrence o) {
  const NodeId v = schedule_.node(o);
  edits_.push_back({o, schedule_.next(o), v});
  if (placement_) placement_->dropping(schedule_, o);
  schedule_.drop(o);
  cost_ -= graph_.cost(v);
  --count_[v];
}

/// Undoes the edits of the current move in reverse order, so that occurrences get their previous numbers again.
void Annealer::undo() {
  for (; !edits_.empty(); edits_.pop_back()) {
    const Edit& edit = edits_.back();
    const bool inserted = edit.before == EditableSchedule::kNone;
    if (inserted) {
      schedule_.drop(edit.occurrence);
    } else {
      schedule_.insert(edit.node, edit.before);
    }
    cost_ += (inserted ? -1 : 1) * graph_.cost(edit.node);
    count_[edit.node] += inserted ? -1 : 1;
  }
  if (placement_) placement_->undo(schedule_);
}

bool Annealer::may_run_again(NodeId v) const {
  // A recomputation may raise the cost of the schedule to at most this value, so that sums of costs cannot overflow.
  constexpr std::int64_t kMostCost = std::int64_t{1} << 62;
  return !graph_.pinned(v) && cost_ <= kMostCost - graph_.cost(v) &&
         (scope_.max_occurrences == 0 || count_[v] < scope_.max_occurrences);
}

/// Returns whether occurrence o may be dropped or moved. If the scope fixes the order of first runs, only
/// recomputations may be dropped or moved.
bool Annealer::may_go(Occurrence o) const {
  return scope_.order == OrderRule::free || schedule_.previous_of_node(o) != EditableSchedule::kNone;
}

/// Drops occurrence o. Also drops, repeatedly, each occurrence that is no longer needed because its readers were
/// dropped.
void Annealer::drop_unneeded(Occurrence o) {
  unneeded_.assign(1, o);
  while (!unneeded_.empty()) {
    const Occurrence dropped = unneeded_.back();
    unneeded_.pop_back();
    if (schedule_.place(dropped) < 0) continue;
    drop(dropped);
    const auto inputs = static_cast<std::int32_t>(graph_.inputs(schedule_.node(dropped)).size());
    for (std::int32_t k = 0; k < inputs; ++k) {
      const Occurrence source = schedule_.source(dropped, k);
      if (schedule_.place(source) >= 0 && !schedule_.needed(source) && may_go(source)) unneeded_.push_back(source);
    }
  }
}

Annealer::Occurrence Annealer::random_step() {
  const Place end = schedule_.place(schedule_.end());
  while (true) {
    const Occurrence o = schedule_.at(static_cast<Place>(below(end)));
    if (o != EditableSchedule::kNone) return o;
  }
}

Annealer::Occurrence Annealer::step_from(Place place) const {
  while (schedule_.at(place) == EditableSchedule::kNone) ++place;
  return schedule_.at(place);
}

// --- The next functions make the moves of annealing.

void Annealer::evict() {
  constexpr int kTries = 12;
  Occurrence across = EditableSchedule::kNone;
  if (schedule_.excess() > 0 && chance(0.7)) {
    across = schedule_.step_above_ceiling(static_cast<Place>(below(schedule_.place(schedule_.end()))));
  }
  if (across == EditableSchedule::kNone) across = random_step();
  const Place at = schedule_.place(across);
  if (at == 0) return;
  const auto reach = std::min<Place>(at, static_cast<Place>(std::exp(random_.uniform() * std::log(at + 1.0))));
  Occurrence o = step_from(at - reach);
  for (int i = 0; i < kTries && o != EditableSchedule::kNone; ++i, o = schedule_.previous(o)) {
    if (o != across && graph_.size(schedule_.node(o)) != 0 && evict_across(o, at)) return;
  }
}

/// Removes the outputs of occurrence o from memory at the position `at`, and computes them again before their next use
/// or, if there is none, at the end of the schedule. Returns false if this is not possible.
bool Annealer::evict_across(Occurrence o, Place at) {
  constexpr int kLongestChain = 32;
  const NodeId v = schedule_.node(o);
  if (schedule_.last_use(o) <= at || !may_run_again(v)) return false;
  Occurrence use = schedule_.first_reader(o, at);
  if (use != EditableSchedule::kNone && schedule_.place(use) == at) return false;
  if (use == EditableSchedule::kNone) use = schedule_.end();
  allowed_ = 1;
  while (allowed_ < kLongestChain && chance(0.8)) allowed_ *= 2;
  recompute(v, use, at);
  if (!schedule_.needed(o) && may_go(o)) drop_unneeded(o);
  return true;
}

void Annealer::evict_conflict() {
  const Placement::Rect r = placement_->conflicting();
  if (r < 0) return;
  const Placement::Rect other = placement_->partner(r);
  if (other < 0) return;
  const Occurrence o = placement_->occurrence(chance(0.5) ? r : other);
  if (schedule_.place(o) < 0) return;
  evict_across(o, std::max(schedule_.place(o) + 1, schedule_.place(placement_->meeting(r, other))));
}

/// Runs v again right before `use`. An input of v that is not in memory at `use` is either computed again too or kept
/// in memory until `use`. The choice is random. A recomputation is more likely for an input that is freed before the
/// position `across`.
void Annealer::recompute(NodeId v, Occurrence use, Place across) {
  constexpr int kMostInputs = 8;
  struct Input {
    NodeId node;
    Occurrence before;
  };
  const Place at = schedule_.place(use);
  std::array<Input, kMostInputs> inputs;
  int count = 0;
  for (const core::ValueId x : graph_.inputs(v)) {
    const auto [u, output] = graph_.output_ref(x);
    const Occurrence s = schedule_.latest_before(u, at);
    const Place last = schedule_.last_use(s, output);
    if (last >= at || graph_.value_size(x) == 0) continue;  // the input is still in memory
    if (count == kMostInputs || count + 1 >= allowed_ || !may_run_again(u)) continue;
    const bool dead = last < across;
    if (chance(dead ? 0.6 : 0.2)) inputs[count++] = {u, s};
  }
  const Occurrence o = insert(v, use);
  --allowed_;
  for (int i = 0; i < count; ++i) {
    const NodeId u = inputs[i].node;
    // Skip the input if its producer u already runs again before o because of another input.
    if (schedule_.latest_before(u, schedule_.place(o)) != inputs[i].before) continue;
    if (allowed_ > 0) recompute(u, o, across);
    if (!schedule_.needed(inputs[i].before) && may_go(inputs[i].before)) drop_unneeded(inputs[i].before);
  }
}

void Annealer::retain() {
  constexpr int kTries = 24;
  const Occurrence limit = schedule_.occurrence_limit(), first = schedule_.end() + 1;
  if (limit == first) return;
  for (int i = 0; i < kTries; ++i) {
    auto o = static_cast<Occurrence>(first + below(limit - first));
    if (schedule_.place(o) < 0) continue;
    // Never drop the first occurrence of a node, because it is not a recomputation.
    if (schedule_.previous_of_node(o) == EditableSchedule::kNone || chance(0.2)) {
      const Occurrence next = schedule_.next_of_node(o);
      if (next != EditableSchedule::kNone) o = next;
    }
    if (schedule_.previous_of_node(o) == EditableSchedule::kNone) continue;
    drop_unneeded(o);
    return;
  }
}

void Annealer::shift() {
  Occurrence o = random_step();
  if (schedule_.excess() > 0 && chance(0.5)) {
    const Place end = schedule_.place(schedule_.end());
    const Occurrence above = schedule_.step_above_ceiling(static_cast<Place>(below(end)));
    const auto away = static_cast<Place>(-32 * std::log(1 - random_.uniform()));
    Place p = schedule_.place(above) + (chance(0.5) ? away : -away);
    p = std::clamp(p, 0, end - 1);
    o = step_from(p);
    if (o == schedule_.end()) return;
  }
  if (!may_go(o)) return;
  const auto [first, last] = schedule_.legal(o);
  const Place from = schedule_.place(o);
  if (first >= from && last <= from) return;
  Place to;
  const double kind = random_.uniform();
  if (kind < 0.3) {
    to = last;
  } else if (kind < 0.5) {
    to = first;
  } else if (kind < 0.75) {
    to = first + static_cast<Place>(below(last - first + 1));
  } else {
    const auto near = static_cast<Place>(1 - 4 * std::log(1 - random_.uniform()));
    to = chance(0.5) ? std::max(first, from - near) : std::min(last, from + near);
  }
  if (to == from) return;
  const Occurrence before = step_from(to > from ? to + 1 : to);
  if (before == o || before == schedule_.next(o)) return;
  shift_to(o, before, 0);
}

/// Moves occurrence o to the position right before `before`, where o may run. If o moves to a later position, the steps
/// whose outputs only o reads are sometimes moved along, so that these outputs stay in memory for a shorter time.
void Annealer::shift_to(Occurrence o, Occurrence before, int depth) {
  const NodeId v = schedule_.node(o);
  const bool later = schedule_.place(before) > schedule_.place(o);
  const Occurrence moved = insert(v, before, o);
  drop(o);
  if (!later || depth == 4) return;
  const auto inputs = static_cast<std::int32_t>(graph_.inputs(v).size());
  for (std::int32_t k = 0; k < inputs; ++k) {
    const Occurrence s = schedule_.source(moved, k);
    if (schedule_.next(s) == moved || !may_go(s) || !chance(0.5)) continue;
    if (schedule_.last_use(s) != schedule_.place(moved)) continue;
    if (!schedule_.all_readers(s, [&](Occurrence reader) { return reader == moved; })) continue;
    if (schedule_.legal(s).last + 1 < schedule_.place(moved)) continue;
    shift_to(s, moved, depth + 1);
  }
}

void Annealer::move() {
  const double kind = random_.uniform();
  const bool recomputes = scope_.max_occurrences != 1;
  if (placement_ && chance(0.4)) {
    const Placement::Rect r = placement_->conflicting();
    if (r >= 0) return placement_->relocate(chance(0.8) ? r : std::max(r, placement_->partner(r)));
  }
  if (!recomputes || kind < 0.4) return shift();
  if (placement_ && kind < 0.6 && placement_->conflicts() > 0) return evict_conflict();
  if (kind < 0.75 && !fits_now()) return evict();
  retain();
}

void Annealer::begin_run(std::int64_t length, double hot, double cold, double first_price) {
  run_length_ = length;
  run_done_ = 0;
  fitting_ = 0;
  first_price_ = first_price;
  if (placement_) adapt_price();
  hot_ = hot;
  cold_ = cold;
  temperature_ = unit_cost_ * hot;
}

/// Adapts the price of exceeding the budget. In a search without addresses (no placement), raises or lowers the price
/// so that a certain fraction of the visited schedules is within the budget. In a search with addresses, few schedules
/// fit, so their fraction says little. In such a search, the price rises by a fixed rule during most of the run. Only
/// at the end of the run is it adapted as in a search without addresses.
void Annealer::adapt_price() {
  constexpr double kLeastFitting = 0.1, kMostFitting = 0.2, kCheapest = 1.0 / 30, kDearest = 1000;
  constexpr double kLast = 3, kRising = 0.85;
  const double price = unit_cost_ / unit_size_;
  const double share = static_cast<double>(std::exchange(fitting_, 0)) / kAdapt;
  const double part = static_cast<double>(run_done_) / static_cast<double>(run_length_);
  if (placement_ && part < kRising) {
    price_ = excess_price_ * first_price_ * std::pow(kLast / first_price_, part / kRising);
    return;
  }
  const double rise = placement_ ? 1.3 : 1.1;
  price_ *= share < kLeastFitting ? rise : share > kMostFitting ? 1 / rise : 1;
  price_ = std::clamp(price_, price * kCheapest, price * kDearest);
}

/// Moves all values so that no two of them are in conflict (Placement::straighten). Returns whether this was possible.
/// Makes an attempt only if the schedule is cheaper than the best one, has few conflicts, and the last attempt is long
/// enough ago.
bool Annealer::straighten() {
  constexpr std::int64_t kFew = 30;  // largest number of conflicts at which an attempt is made
  constexpr std::int64_t kRare = 5;  // least work between two attempts, in units of the work of one attempt
  if (cost_ >= best_cost_ || placement_->conflicts() > kFew) return false;
  if (placement_->work() - straightened_ < kRare * placement_->straightening()) return false;
  straightened_ = placement_->work();
  return placement_->straighten(false) || placement_->straighten(true);
}

/// Updates the placement after a move that changed the cost by `cost_change`. Returns false if the move must be undone,
/// because it is unlikely to be accepted or because the placement has no room to record it (Placement::crowded()). Many
/// moves that raise the cost are given up before their conflicts are computed, which saves most of the work.
bool Annealer::place_again(double cost_change, double excess_before) {
  constexpr int kRepairs = 12;
  constexpr double kHopeless = 10, kGivenUp = 0.3;
  const double least_saved = cost_change - kHopeless * temperature_;
  if (least_saved > price_ * excess_before) return false;
  placement_->settle(schedule_);
  if (placement_->crowded()) return false;
  // A repair can still make the move worthwhile, so the move is given up only with some probability.
  if (least_saved > price_ * (excess_before - excess()) && chance(kGivenUp)) return false;
  placement_->repair(kRepairs);
  return true;
}

void Annealer::keep_if_best() {
  if (cost_ >= best_cost_ || !fits_now()) return;
  best_cost_ = cost_;
  best_ = schedule_.steps();
  if (placement_) best_offsets_ = placement_->offsets(schedule_);
  if (cost_ <= enough_) run_done_ = run_length_;
}

void Annealer::advance(core::Stopwatch& watch) {
  double excess_now = excess();
  while (run_done_ < run_length_ && !watch.expired()) {
    if (moves_ % 64 == 0) {
      if (watch.expired_now()) break;  // read the clock often, because moves on large graphs take long
      const double part = static_cast<double>(run_done_) / static_cast<double>(run_length_);
      temperature_ = unit_cost_ * hot_ * std::pow(cold_ / hot_, part);
    }
    if (moves_ % kAdapt == kAdapt - 1) {
      adapt_price();
      if (placement_ && straighten()) {
        excess_now = excess();
        keep_if_best();
      }
    }
    edits_.clear();
    const std::int64_t cost = cost_, looked = placement_ ? placement_->work() : 0;
    do {
      move();
    } while (chance(0.35));
    ++moves_;
    const auto cost_change = static_cast<double>(cost_ - cost);
    const bool hopeful = !placement_ || place_again(cost_change, excess_now);
    const std::int64_t looks = placement_ ? placement_->work() - looked : 0;
    const std::int64_t work = 1 + static_cast<std::int64_t>(edits_.size()) + looks;
    watch.charge(work);
    run_done_ += placement_ ? work : 1;
    const double excess_then = hopeful ? excess() : excess_now;
    const double change = cost_change + price_ * (excess_then - excess_now);
    if (hopeful && (change <= 0 || random_.uniform() < std::exp(-change / temperature_))) {
      if (placement_) placement_->commit();
      excess_now = excess_then;
      if (!edits_.empty() || placement_) keep_if_best();
    } else {
      undo();
      excess_now = placement_ ? excess() : excess_now;
    }
    fitting_ += fits_now() ? 1 : 0;
  }
}

}  // namespace cairn::solvers
