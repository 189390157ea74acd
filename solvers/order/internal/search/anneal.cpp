// Improves orders of steps by simulated annealing (anneal.h).

#include "cairn/solvers/order/internal/search/anneal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace cairn::solvers {
namespace {

// All constants were found by experiment on random layered graphs, sparse random graphs and the graphs of the MOCCASIN
// paper. Halving or doubling one of them changes the peaks found about as much as another seed does. The exception is
// kReach: 50 or more is clearly worse. The class Annealing explains the target and the energy.
constexpr double kCold = 0.02;    // last temperature, as a multiple of the mean `rise` of a step (StepGraph)
constexpr double kBelow = 0.002;  // the target is below the lowest peak by this fraction of the peak
constexpr double kTight = 0.003;  // weight, in the energy, of the bytes in memory at every position
constexpr double kFocus = 0.5;    // fraction of moves that are made close to a position with memory above the target
constexpr double kCross = 0.5;    // fraction of these focused moves that must shift a step across that position
// Fraction of moves that shift a step by up to kFarReach positions instead of kReach.
constexpr double kFar = 0.1;
constexpr std::int32_t kReach = 14, kFarReach = 100;
constexpr int kMovesAtOnce = 64;  // number of moves between two updates of the temperature and checks of the limit

}  // namespace

core::EditableSchedule editable_order(const StepGraph& graph) {
  std::vector<core::MemoryEffect> effects;
  std::vector<std::int32_t> input_begin{0};
  std::vector<core::NodeId> inputs;
  for (StepId s = 0; s < graph.step_count(); ++s) {
    effects.push_back({graph[s].rise, graph[s].drop, graph[s].output, false});
    inputs.insert(inputs.end(), graph.predecessors(s).begin(), graph.predecessors(s).end());
    input_begin.push_back(static_cast<std::int32_t>(inputs.size()));
  }
  return {effects, std::move(input_begin), std::move(inputs)};
}

Annealing::Annealing(const StepGraph& graph, std::span<const StepId> start, std::uint64_t seed)
    : graph_(&graph), random_(seed), current_(editable_order(graph)), best_(start.begin(), start.end()) {
  current_.assign(start);
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
    for (int i = 0; i < kMovesAtOnce; ++i) spent += try_move();
    done_ += spent;
    since_best_ += spent;
    // Copying the order of n steps takes O(n) time. So a new best order is copied only if at least n units of work have
    // been done since the last copy.
    if (at_peak_ == 0 && since_best_ >= graph_->step_count()) {
      peak_ = current_.peak();
      best_ = current_.steps();
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
  auto [first, last] = current_.legal(current_.at(move.from));
  first = std::max(first, move.from - reach);
  last = std::min(last, move.from + reach);
  if (focus && chance(kCross)) {
    if (move.from < center) first = std::max(first, center);
    if (move.from > center) last = std::min(last, center);
  }
  const bool own = move.from >= first && move.from <= last;
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
  current_.move();
}

std::int64_t Annealing::try_move() {
  constexpr std::int64_t kDrawing = 4;  // work of drawing a random move, in visited positions
  Move move{0, 0};
  if (!draw(move)) return kDrawing;
  current_.evaluate_move(current_.at(move.from), move.to);
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
