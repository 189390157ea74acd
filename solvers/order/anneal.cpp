#include "cairn/solvers/order/internal/anneal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

namespace cairn::solvers {
namespace {

// Found by experiment on random layered graphs, sparse random graphs and those of MOCCASIN. Peaks differ by about as
// much between seeds as between values a factor of 2 apart; but a kReach of 50 or more is clearly worse.
constexpr double kCold = 0.02;    // last temperature, in mean rises of a step
constexpr double kBelow = 0.002;  // the target lies this share of the peak below it
constexpr double kTight = 0.003;  // weight of memory below the target
constexpr double kFocus = 0.5;    // share of moves near a position above the target
constexpr double kCross = 0.5;    // share of these that must cross that position
constexpr double kFar = 0.1;      // share of moves over up to kFarReach positions; the others over up to kReach
constexpr std::int32_t kReach = 14, kFarReach = 100;
constexpr int kBatch = 64;  // moves between two looks at the watch and at the temperature

}  // namespace

MovableOrder::MovableOrder(const StepGraph& graph, std::span<const StepId> order) : graph_(&graph) {
  const auto n = static_cast<std::size_t>(graph.step_count());
  position_.resize(n);
  last_reader_.resize(n);
  during_.resize(n);
  after_.resize(n);
  moved_during_.resize(n);
  moved_after_.resize(n);
  std::size_t most = 0;
  for (StepId s = 0; s < graph.step_count(); ++s) most = std::max(most, graph.predecessors(s).size());
  releases_.reserve(most);
  assign(order);
}

void MovableOrder::assign(std::span<const StepId> order) {
  order_.assign(order.begin(), order.end());
  std::fill(last_reader_.begin(), last_reader_.end(), -1);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    position_[order_[i]] = static_cast<std::int32_t>(i);
    for (const StepId u : graph_->predecessors(order_[i])) last_reader_[u] = order_[i];
  }
  std::int64_t memory = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const StepId s = order_[i];
    during_[i] = memory + (*graph_)[s].rise;
    memory = during_[i] - (*graph_)[s].drop;
    for (const StepId u : graph_->predecessors(s)) {
      if (last_reader_[u] == s) memory -= (*graph_)[u].held;
    }
    after_[i] = memory;
  }
}

std::int64_t MovableOrder::peak() const {
  std::int64_t peak = 0;
  for (const std::int64_t during : during_) peak = std::max(peak, during);
  return peak;
}

MovableOrder::Range MovableOrder::legal(std::int32_t i) const {
  Range range{0, static_cast<std::int32_t>(order_.size()) - 1};
  for (const StepId u : graph_->predecessors(order_[i])) range.first = std::max(range.first, position_[u] + 1);
  for (const StepId t : graph_->successors(order_[i])) range.last = std::min(range.last, position_[t] - 1);
  return range;
}

void MovableOrder::evaluate(std::int32_t from, std::int32_t to) {
  from_ = from;
  to_ = to;
  const StepId s = order_[from];
  const StepGraph::Step& step = (*graph_)[s];
  // Values whose release moves to or from another step than s, at positions in between; and what goes with s itself.
  releases_.clear();
  std::int64_t released = 0;
  for (const StepId u : graph_->predecessors(s)) {
    const std::int64_t held = (*graph_)[u].held;
    if (held == 0) continue;
    if (to > from) {
      const std::int32_t last = position_[last_reader_[u]];
      if (last > to) continue;
      released += held;
      if (last > from) releases_.push_back({last, held});
    } else if (last_reader_[u] == s) {
      std::int32_t last = -1;  // of its other readers
      for (const StepId t : graph_->successors(u)) {
        if (t != s) last = std::max(last, position_[t]);
      }
      if (last >= to) {
        releases_.push_back({last, held});
      } else {
        released += held;
      }
    }
  }
  std::sort(releases_.begin(), releases_.end(),
            [](const Release& a, const Release& b) { return a.position < b.position; });

  std::size_t next = 0;
  if (to > from) {
    std::int64_t shift = before(from) - after_[from];
    std::int32_t i = from + 1;
    for (;; ++next) {
      const std::int32_t stop = next < releases_.size() ? releases_[next].position : to;
      for (; i <= stop; ++i) {
        moved_during_[i - 1] = during_[i] + shift;
        moved_after_[i - 1] = after_[i] + shift;
      }
      if (next == releases_.size()) break;
      shift += releases_[next].bytes;
      moved_after_[stop - 1] += releases_[next].bytes;
    }
    moved_during_[to] = moved_after_[to - 1] + step.rise;
    moved_after_[to] = moved_during_[to] - step.drop - released;
  } else {
    const std::int64_t start = before(to);
    moved_during_[to] = start + step.rise;
    moved_after_[to] = moved_during_[to] - step.drop - released;
    std::int64_t shift = moved_after_[to] - start;
    std::int32_t i = to;
    for (;; ++next) {
      const std::int32_t stop = next < releases_.size() ? releases_[next].position : from - 1;
      for (; i <= stop; ++i) {
        moved_during_[i + 1] = during_[i] + shift;
        moved_after_[i + 1] = after_[i] + shift;
      }
      if (next == releases_.size()) break;
      shift -= releases_[next].bytes;
      moved_after_[stop + 1] -= releases_[next].bytes;
    }
  }
}

void MovableOrder::commit() {
  const StepId s = order_[from_];
  const std::int32_t low = std::min(from_, to_), high = std::max(from_, to_);
  if (to_ > from_) {
    std::copy(order_.begin() + from_ + 1, order_.begin() + to_ + 1, order_.begin() + from_);
  } else {
    std::copy_backward(order_.begin() + to_, order_.begin() + from_, order_.begin() + from_ + 1);
  }
  order_[to_] = s;
  for (std::int32_t i = low; i <= high; ++i) {
    position_[order_[i]] = i;
    during_[i] = moved_during_[i];
    after_[i] = moved_after_[i];
  }
  for (const StepId u : graph_->predecessors(s)) {
    if (position_[s] > position_[last_reader_[u]]) last_reader_[u] = s;
    if (to_ > from_ || last_reader_[u] != s) continue;
    for (const StepId t : graph_->successors(u)) {
      if (position_[t] > position_[last_reader_[u]]) last_reader_[u] = t;
    }
  }
}

Annealing::Annealing(const StepGraph& graph, std::span<const StepId> start, std::uint64_t seed)
    : graph_(&graph), random_(seed), current_(graph, start), best_(start.begin(), start.end()) {
  peak_ = current_.peak();
  above_index_.assign(best_.size(), -1);
  above_.reserve(best_.size());
  for (StepId s = 0; s < graph.step_count(); ++s) scale_ += static_cast<double>(graph[s].rise);
  scale_ /= std::max(1, graph.step_count());
}

void Annealing::start(std::span<const StepId> order, std::int64_t work, double hot) {
  current_.assign(order);
  done_ = 0;
  work_ = work;
  hot_ = hot;
  retarget();
}

void Annealing::lower(std::int64_t peak) {
  if (peak >= peak_) return;
  peak_ = peak;
  retarget();
}

void Annealing::retarget() {
  target_ = peak_ - 1 - static_cast<std::int64_t>(kBelow * static_cast<double>(peak_));
  for (const std::int32_t i : above_) above_index_[i] = -1;
  above_.clear();
  at_peak_ = 0;
  for (std::int32_t i = 0; i < graph_->step_count(); ++i) {
    mark(i, current_.during(i) > target_);
    if (current_.during(i) >= peak_) ++at_peak_;
  }
}

bool Annealing::advance(core::Stopwatch& watch) {
  while (done_ < work_) {
    const double progress = static_cast<double>(done_) / static_cast<double>(work_);
    temperature_ = scale_ * hot_ * std::pow(kCold / hot_, progress);
    std::int64_t spent = 0;
    for (int i = 0; i < kBatch; ++i) spent += try_move();
    done_ += spent;
    since_best_ += spent;
    // Taking over a new best costs O(n): not after every move that makes one.
    if (at_peak_ == 0 && since_best_ >= graph_->step_count()) {
      peak_ = current_.peak();
      best_ = current_.order();
      since_best_ = 0;
      retarget();
    }
    if (watch.charge(spent).expired()) return true;
  }
  return false;
}

std::int32_t Annealing::below(std::int32_t n) {
  return static_cast<std::int32_t>(((random_.next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

bool Annealing::chance(double probability) { return random_.uniform() < probability; }

bool Annealing::draw(Move& move) {
  const std::int32_t n = graph_->step_count();
  const std::int32_t reach = std::min(n - 1, chance(kFar) ? kFarReach : kReach);
  const bool focus = !above_.empty() && chance(kFocus);
  const std::int32_t center = focus ? above_[below(static_cast<std::int32_t>(above_.size()))] : below(n);
  move.from = center + below(2 * reach + 1) - reach;
  if (move.from < 0 || move.from >= n) return false;
  auto [first, last] = current_.legal(move.from);
  first = std::max(first, move.from - reach);
  last = std::min(last, move.from + reach);
  if (focus && chance(kCross)) {
    if (move.from < center) first = std::max(first, center);
    if (move.from > center) last = std::min(last, center);
  }
  const bool own = move.from >= first && move.from <= last;  // is where it stands in the range?
  const std::int32_t choices = last - first + (own ? 0 : 1);
  if (choices <= 0) return false;
  move.to = first + below(choices);
  if (own && move.to >= move.from) ++move.to;
  return true;
}

bool Annealing::acceptable(const Move& move) {
  double change = 0;
  for (std::int32_t i = std::min(move.from, move.to); i <= std::max(move.from, move.to); ++i) {
    const std::int64_t is = current_.during(i), would_be = current_.moved_during(i);
    const std::int64_t over = std::max<std::int64_t>(would_be - target_, 0) - std::max<std::int64_t>(is - target_, 0);
    change += static_cast<double>(over) + kTight * static_cast<double>(would_be - is);
  }
  return change <= 0 || change <= -temperature_ * std::log(random_.uniform());
}

void Annealing::make(const Move& move) {
  for (std::int32_t i = std::min(move.from, move.to); i <= std::max(move.from, move.to); ++i) {
    at_peak_ += (current_.moved_during(i) >= peak_ ? 1 : 0) - (current_.during(i) >= peak_ ? 1 : 0);
    mark(i, current_.moved_during(i) > target_);
  }
  current_.commit();
}

std::int64_t Annealing::try_move() {
  constexpr std::int64_t kDrawing = 4;  // work: about as long as so many positions take
  Move move{0, 0};
  if (!draw(move)) return kDrawing;
  current_.evaluate(move.from, move.to);
  if (acceptable(move)) make(move);
  return 2 * kDrawing + std::abs(move.to - move.from);
}

void Annealing::mark(std::int32_t i, bool above) {
  if (above == (above_index_[i] >= 0)) return;
  if (above) {
    above_index_[i] = static_cast<std::int32_t>(above_.size());
    above_.push_back(i);
  } else {
    above_[above_index_[i]] = above_.back();
    above_index_[above_.back()] = above_index_[i];
    above_.pop_back();
    above_index_[i] = -1;
  }
}

}  // namespace cairn::solvers
