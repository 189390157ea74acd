// Improves the transfers of a schedule by simulated annealing (improve.h). A gap is a range of steps in which a value
// is needed later, but not read; it is offloaded if the value leaves the device during the gap (state.h).

#include "cairn/solvers/offload/internal/improve.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace cairn::solvers::offloading {
namespace {

/// Holds the numbers by which states are compared; smaller is better.
struct Measure {
  std::int64_t makespan = 0, copies = 0;
  auto operator<=>(const Measure&) const = default;
};

/// Changes the transfers of a state at random, one move after another. A move that is not accepted is taken back.
class TransferAnnealer {
 public:
  TransferAnnealer(State& state, core::Stopwatch& watch, core::Random& random)
      : state_(state), watch_(watch), random_(random) {}

  void run(std::int64_t enough) {
    Measure now = measure(waits_), best = now;
    core::Schedule best_schedule = state_.schedule();
    const double first = std::max(1.0, 0.03 * static_cast<double>(now.makespan - state_.compute()));
    const double share = watch_.rest().seconds;
    const double begin = watch_.seconds();
    std::int64_t round = 0;
    double temperature = first;
    while (!state_.gaps().empty() && best.makespan > enough && !waits_.empty() && !watch_.expired()) {
      if (++round % kRound == 0) {
        const double left = progress(begin, share, round);
        if (left <= 0) break;
        temperature = first * left * left;
      }
      undo_.clear();
      change();
      repair();
      watch_.charge(state_.length());
      std::vector<Wait> waits;
      const Measure next = state_.fits() ? measure(waits) : Measure{};
      if (!state_.fits() || !accepts(now, next, temperature)) {
        take_back();
        continue;
      }
      now = next;
      waits_ = std::move(waits);
      if (now < best) {
        best = now;
        best_schedule = state_.schedule();
      }
    }
    state_.assign(best_schedule.transfers);
  }

 private:
  static constexpr std::int64_t kRound = 64;
  static constexpr std::int64_t kMostRounds = 2'000'000;

  /// Returns which fraction is left if `done` of `all` units are done; 0 if `all` is 0.
  static double left_of(double done, double all) { return all > 0 ? 1 - done / all : 0; }
  double progress(double begin, double share, std::int64_t round) {
    const double by_rounds = left_of(static_cast<double>(round), kMostRounds);
    if (!std::isfinite(share)) return by_rounds;
    return std::min(by_rounds, left_of(watch_.seconds() - begin, share));
  }

  Measure measure(std::vector<Wait>& waits) {
    waits.clear();
    const std::int64_t makespan = state_.makespan(&waits);
    return {makespan, state_.copy_time()};
  }

  bool accepts(const Measure& now, const Measure& next, double temperature) {
    if (next <= now) return true;
    const double worse = static_cast<double>(next.makespan - now.makespan);
    return random_.uniform() < std::exp(-worse / std::max(temperature, 1e-9)) && worse > 0;
  }

  std::int32_t below(std::int64_t count) {
    return static_cast<std::int32_t>(random_.next() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, count)));
  }
  std::int32_t any_gap() { return below(std::ssize(state_.gaps())); }
  /// Draws a random distance in steps: at least 1, mostly small.
  std::int32_t distance() { return 1 + below(std::int64_t{1} << below(7)); }

  void remember(std::int32_t occurrence) { undo_.push_back(state_.save(occurrence)); }
  void take_back() {
    for (auto at = undo_.rbegin(); at != undo_.rend(); ++at) state_.restore(*at);
  }

  void change() {
    const int count = 1 + below(3);
    for (int k = 0; k < count; ++k) {
      switch (below(4)) {
        case 0:
        case 1:
          change_critical();
          break;
        case 2:
          shift(any_gap());
          break;
        default:
          toggle(any_gap());
      }
    }
  }

  /// Changes a copy for which a step waits.
  void change_critical() {
    const Wait& wait = waits_[static_cast<std::size_t>(below(std::ssize(waits_)))];
    const std::int32_t g = wait.gap >= 0 ? wait.gap : state_.first_offloaded(wait.occurrence);
    if (g < 0) return;
    if (below(6) == 0) {
      toggle(g);
    } else {
      shift(g);
    }
  }

  void toggle(std::int32_t g) {
    const Gap& gap = state_.gap(g);
    remember(gap.occurrence);
    if (gap.offloaded()) {
      state_.set_fetch(g, -1);
    } else {
      offload(g, gap.begin + distance(), gap.end - distance());
    }
  }

  /// Offloads gap g: the evict of its value ends before step `finish`, and its fetch starts after step `start`.
  void offload(std::int32_t g, std::int32_t finish, std::int32_t start) {
    const Gap& gap = state_.gap(g);
    const std::int32_t o = gap.occurrence;
    start = std::clamp(start, gap.begin, gap.end - 1);
    state_.set_fetch(g, start);
    if (state_.first_offloaded(o) == g) state_.set_evict(o, state_.occurrence(o).made, finish);
  }

  void shift(std::int32_t g) {
    const Gap& gap = state_.gap(g);
    if (!gap.offloaded()) return;
    const std::int32_t o = gap.occurrence;
    const Occurrence& of = state_.occurrence(o);
    remember(o);
    const std::int32_t by = (below(3) == 0 ? -1 : 1) * distance();
    switch (below(5)) {
      case 0:
      case 1:
        state_.set_evict(o, of.start, of.finish + by);
        break;
      case 2:
      case 3:
        state_.set_fetch(g, std::max(gap.begin, gap.start - by));
        break;
      default:
        state_.set_evict(o, below(2) == 0 ? of.made : of.start + by, of.finish);
    }
  }

  /// Offloads further gaps at moments at which the state exceeds its budget, but at most kRepairs gaps.
  void repair() {
    constexpr int kRepairs = 4, kTries = 60;
    std::int64_t from = 0;
    for (int k = 0; k < kRepairs && !state_.fits(); ++k) {
      const std::int64_t moment = state_.first_violation(from);
      if (moment < 0) return;  // only the host's budget is exceeded
      from = moment;
      const auto finish = static_cast<std::int32_t>(moment / 2), start = static_cast<std::int32_t>((moment + 1) / 2);
      bool found = false;
      for (int t = 0; t < kTries && !found; ++t) {
        const std::int32_t g = any_gap();
        const Gap& gap = state_.gap(g);
        if (gap.begin + 1 > finish || gap.end - 1 < start) continue;
        const Occurrence& of = state_.occurrence(gap.occurrence);
        const bool first = state_.first_offloaded(gap.occurrence) == g;
        if (gap.offloaded() && gap.start >= start && (!first || of.finish <= finish)) continue;
        remember(gap.occurrence);
        if (gap.offloaded()) {
          offload(g, std::min(of.finish, finish), std::max(gap.start, start));
        } else {
          offload(g, finish - (below(2) == 0 ? 0 : distance()), std::max(start, gap.end - distance()));
        }
        found = true;
      }
      if (!found) return;
    }
  }

  State& state_;
  core::Stopwatch& watch_;
  core::Random& random_;
  std::vector<Wait> waits_;
  std::vector<Saved> undo_;
};

}  // namespace

void improve(State& state, core::Stopwatch& watch, core::Random& random, std::int64_t enough) {
  TransferAnnealer(state, watch, random).run(enough);
}

}  // namespace cairn::solvers::offloading
