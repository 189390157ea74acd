// Finds a plan by a beam search over time (explained in time_beam.h). An item is a block of buffers that share one
// offset, treated as one rectangle of steps and addresses. A state is a placement of the first items; the beam is the
// list of states that are kept. A child of a state also places the next item. A hole is a range of free addresses
// between live items. A snapshot is a copy of the beam, to which the search can go back.

#include "cairn/solvers/plan/internal/search/time_beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "cairn/core/plan.h"

namespace cairn::solvers::plan {
namespace {

constexpr std::size_t kSpacing = 10;         // number of items between two snapshots
constexpr std::size_t kMostSnapshots = 64;   // largest number of snapshots; limits how far the search goes back
constexpr double kSnapshotBytes = 64 << 20;  // approximate size of all snapshots together, in bytes
// Number of attempts without progress (attempts_) after which the width of the beam doubles.
constexpr int kPatience = 150;
constexpr std::int64_t kNarrow = 8, kWide = 64;  // number of states in a narrow and in a wide beam
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

/// Returns the work of extending a state with `live` live items, without the work of its children.
std::int64_t work_of(std::size_t live) { return 10 + static_cast<std::int64_t>(live) / 2; }

}  // namespace

bool TimeBeam::takes(const Instance& instance) {
  constexpr std::size_t kMostBlocks = 20'000;
  constexpr std::int64_t kMostSteps = 1'000'000;
  return instance.blocks.size() <= kMostBlocks && instance.steps <= kMostSteps &&
         std::none_of(instance.blocks.begin(), instance.blocks.end(),
                      [](const Block& block) { return block.fixed.has_value(); });
}

TimeBeam::Problem::Problem(const Instance& instance) : forbidden(instance.forbidden), blocks(instance.blocks.size()) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(instance.steps) + 2, 0);
  double sizes = 0, lives = 0;
  for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
    const Block& block = instance.blocks[b];
    const Rectangle bounds = instance.bounds(block);
    const Item item{static_cast<std::int32_t>(b), bounds.first, bounds.last + 1, bounds.size, block.alignment};
    if (item.size == 0) continue;
    loads[item.first] += item.size;
    loads[item.end] -= item.size;
    sizes += static_cast<double>(item.size);
    lives += static_cast<double>(item.end - item.first);
    items.push_back(item);
  }
  for (std::size_t t = 1; t < loads.size(); ++t) loads[t] += loads[t - 1];
  load = *std::max_element(loads.begin(), loads.end());
  mean_size = sizes / static_cast<double>(std::max<std::size_t>(items.size(), 1));
  mean_live = lives / static_cast<double>(loads.size());
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(a.first, b.end, a.block) < std::tuple(b.first, a.end, b.block);
  });
  // The weight of a step is `exp(-below / decay)`, where `below` is the difference between the step's live bytes and
  // the largest number of live bytes, as a fraction of the latter.
  constexpr double kDecay[kTables] = {0.1, 0.03, 0.06, 0.15};
  for (std::size_t k = 0; k < kTables; ++k) {
    std::vector<double>& before = weights_before[k];
    before.assign(1, 0);
    for (const std::int64_t bytes : loads) {
      const auto below = static_cast<double>(load - bytes) / static_cast<double>(std::max<std::int64_t>(load, 1));
      before.push_back(before.back() + std::exp(-below / kDecay[k]));
    }
  }
}

std::int64_t TimeBeam::Problem::pass_work() const {
  return static_cast<std::int64_t>(items.size()) * kNarrow * 2 * work_of(static_cast<std::size_t>(mean_live));
}

TimeBeam::TimeBeam(const Problem& problem, std::int64_t capacity, int seed)
    : problem_(problem), capacity_(capacity), random_(static_cast<std::uint64_t>(seed) + 1) {
  // First value of small_hole_, as a multiple of the mean size of the items.
  constexpr double kFirstSmall = 0.6;
  small_hole_ = kFirstSmall * problem.mean_size;
  State empty;
  const double forever = problem.weights_before[table_].back();
  for (const core::AddressRange& range : problem.forbidden) {
    if (range.lower < capacity)
      empty.live.push_back({range.lower, std::min(range.upper, capacity), kForever, forever, -1});
  }
  states_.push_back(std::move(empty));
  alive_ = 1;
  constexpr std::size_t kMostAttempts = 1200, kAttemptsOfItem = 20;
  most_attempts_ = static_cast<int>(std::min(kMostAttempts, kAttemptsOfItem * problem.items.size()));
  if (problem.load > capacity) attempts_ = most_attempts_ + 1;
}

std::uint64_t TimeBeam::hash_of(std::int32_t item, std::int64_t offset) const {
  return core::Random(static_cast<std::uint64_t>(offset) * 0x2545f4914f6cdd1dULL + static_cast<std::uint64_t>(item))
      .next();
}

/// Returns the weight of the hole between two neighbouring live items, from the current step on. Each border between
/// free and used bytes counts with the weights of the steps during which it exists. While both neighbours are live,
/// there are two borders, which count less if the hole has less than small_hole_ bytes, and not at all if the hole has
/// no bytes. After one neighbour has ended, there is one border. `below`, `above` and `now` are the sums of the weights
/// of all steps before the end of the lower neighbour, before the end of the upper neighbour and before the current
/// step. `hole` is in bytes.
double TimeBeam::border(double below, double above, std::int64_t hole, double now) const {
  const double open = std::min(1.0, static_cast<double>(hole) / small_hole_);
  return std::abs(below - above) + 2 * open * (std::min(below, above) - now);
}

void TimeBeam::settle(State& state, std::int64_t now) const {
  const std::vector<double>& before = problem_.weights_before[table_];
  const double weight_now = before[now], forever = before.back();
  std::size_t kept = 0;
  std::int64_t top = 0;
  double below = forever, holes = 0;
  for (const Live& one : state.live) {
    if (one.end <= now) {
      state.hash -= hash_of(one.item, one.offset);
      continue;
    }
    holes += border(below, one.until, one.offset - top, weight_now);
    top = one.top;
    below = one.until;
    state.live[kept++] = one;
  }
  state.live.resize(kept);
  state.holes = holes + border(below, forever, capacity_ - top, weight_now);
}

void TimeBeam::branch(const State& state, std::int32_t parent, const Problem::Item& item) {
  const std::vector<double>& before = problem_.weights_before[table_];
  const double now = before[item.first], forever = before.back(), until = before[item.end];
  const std::int32_t number = static_cast<std::int32_t>(&item - problem_.items.data());
  std::int64_t top = 0;
  double below = forever;
  for (std::size_t i = 0; i <= state.live.size(); ++i) {
    const bool last = i == state.live.size();
    const std::int64_t bottom = last ? capacity_ : state.live[i].offset;
    const double above = last ? forever : state.live[i].until;
    if (bottom - top >= item.size) {
      const double without = state.holes - border(below, above, bottom - top, now);
      const auto add = [&](std::int64_t offset) {
        const double holes =
            without + border(below, until, offset - top, now) + border(until, above, bottom - offset - item.size, now);
        children_.push_back({noise_ > 0 ? holes + noise_ * random_.uniform() : holes,
                             state.hash + hash_of(number, offset), parent, static_cast<std::int32_t>(i), offset});
      };
      const std::int64_t lowest = core::align_up(top, item.alignment);
      const std::int64_t highest = (bottom - item.size) / item.alignment * item.alignment;
      if (lowest <= highest) add(lowest);
      if (lowest < highest) add(highest);
    }
    if (last) break;
    top = state.live[i].top;
    below = above;
  }
}

/// Keeps the children whose holes have the least weight as the next beam. Of children with equal hashes, keeps only
/// one. `number` is the index of the item that the children have placed.
void TimeBeam::select(const Problem::Item& item, std::int32_t number) {
  const auto width = static_cast<std::size_t>(std::min(kWide, kNarrow << std::min(attempts_ / kPatience, 8)));
  const auto better = [](const Child& a, const Child& b) {
    return std::tuple(a.holes, a.parent, a.position, a.offset) < std::tuple(b.holes, b.parent, b.position, b.offset);
  };
  const std::size_t looked_at = std::min(children_.size(), 2 * width);
  std::partial_sort(children_.begin(), children_.begin() + static_cast<std::ptrdiff_t>(looked_at), children_.end(),
                    better);
  const double until = problem_.weights_before[table_][item.end];
  seen_.clear();
  std::size_t count = 0;
  for (std::size_t i = 0; i < looked_at && count < width; ++i) {
    const Child& child = children_[i];
    if (std::find(seen_.begin(), seen_.end(), child.hash) != seen_.end()) continue;
    seen_.push_back(child.hash);
    if (next_states_.size() == count) next_states_.emplace_back();
    State& state = next_states_[count++];
    state = states_[child.parent];
    state.live.insert(state.live.begin() + child.position,
                      {child.offset, child.offset + item.size, item.end, until, number});
    state.hash = child.hash;
    placed_.push_back({state.last, number, child.offset});
    state.last = static_cast<std::int32_t>(placed_.size()) - 1;
  }
  std::swap(states_, next_states_);
  alive_ = count;
}

void TimeBeam::remember() {
  const double state_bytes = (problem_.mean_live + 1) * sizeof(Live) * static_cast<double>(alive_);
  const auto most =
      static_cast<std::size_t>(std::clamp(kSnapshotBytes / state_bytes, 4.0, static_cast<double>(kMostSnapshots)));
  snapshots_.push_back(
      {next_, placed_.size(), {states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(alive_)}});
  while (snapshots_.size() > most) snapshots_.pop_front();
}

/// Goes back to an earlier snapshot, and changes the weights so that the following items are placed differently.
void TimeBeam::go_back() {
  // The number of snapshots to go back is random. Its upper limit grows from kNear to kFar, by kFarther with each
  // attempt.
  constexpr double kNear = 2, kFar = 40, kFarther = 0.1;
  if (next_ > furthest_) {
    furthest_ = next_;
    attempts_ = 0;
  }
  ++attempts_;
  const double most = std::min(kFar, kNear + kFarther * attempts_);
  const auto back = 1 + static_cast<std::size_t>(random_.uniform() * most);
  for (std::size_t i = 0; i < back && snapshots_.size() > 1; ++i) snapshots_.pop_back();
  const Snapshot& snapshot = snapshots_.back();
  next_ = snapshot.next;
  placed_.resize(snapshot.placed);
  alive_ = snapshot.states.size();
  if (states_.size() < alive_) states_.resize(alive_);
  std::copy(snapshot.states.begin(), snapshot.states.end(), states_.begin());
  choose_weights();
}

void TimeBeam::choose_weights() {
  constexpr double kSmallest = 0.2, kExact = 0.1, kNoise = 8;
  table_ = static_cast<std::size_t>(random_.uniform() * Problem::kTables);
  small_hole_ = (kSmallest + random_.uniform()) * problem_.mean_size;
  const std::vector<double>& before = problem_.weights_before[table_];
  const double life = before.back() * problem_.mean_live / static_cast<double>(problem_.items.size());
  noise_ = random_.uniform() < kExact ? 0 : kNoise * random_.uniform() * life;
  for (std::size_t i = 0; i < alive_; ++i) {
    for (Live& one : states_[i].live) one.until = one.item < 0 ? before.back() : before[one.end];
  }
}

Verdict TimeBeam::run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch) {
  constexpr std::int64_t kBetweenChecks = 100'000;
  const std::int64_t end = work_ + work;
  std::int64_t next_check = work_;
  while (next_ < problem_.items.size()) {
    if (stuck() || work_ >= end || work_ > most) return Verdict::unknown;
    if (work_ >= next_check) {
      if (watch.passed()) return Verdict::unknown;
      next_check = work_ + kBetweenChecks;
    }
    const Problem::Item& item = problem_.items[next_];
    if (next_ % kSpacing == 0 && (snapshots_.empty() || snapshots_.back().next < next_)) remember();
    children_.clear();
    for (std::size_t i = 0; i < alive_; ++i) {
      settle(states_[i], item.first);
      branch(states_[i], static_cast<std::int32_t>(i), item);
      work_ += work_of(states_[i].live.size());
    }
    work_ += static_cast<std::int64_t>(children_.size());
    if (children_.empty()) {
      go_back();
      continue;
    }
    select(item, static_cast<std::int32_t>(next_));
    ++next_;
  }
  return Verdict::fits;
}

std::vector<std::int64_t> TimeBeam::offsets() const {
  std::vector<std::int64_t> offsets(problem_.blocks, 0);
  for (std::int32_t p = states_.front().last; p >= 0; p = placed_[p].before)
    offsets[problem_.items[placed_[p].item].block] = placed_[p].offset;
  return offsets;
}

}  // namespace cairn::solvers::plan
