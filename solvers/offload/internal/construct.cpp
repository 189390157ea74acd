// Adds transfers to a schedule until it fits into its budgets (construct.h). A gap is a range of steps in which a value
// is needed later, but not read; it is offloaded if the value leaves the device during the gap (state.h). A moment is a
// step, or the time between two steps. The `finish` of an evict and the `start` of a fetch are steps.

#include "cairn/solvers/offload/internal/construct.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace cairn::solvers::offloading {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

/// Stores the times at which one link is busy, as half-open intervals that do not overlap.
class Reservations {
 public:
  /// Returns the earliest time at or after `from` at which a free interval of length `length` begins.
  std::int64_t earliest(std::int64_t from, std::int64_t length) const {
    auto next = busy_.upper_bound(from);
    if (next != busy_.begin()) from = std::max(from, std::prev(next)->second.end);
    for (; next != busy_.end() && next->first < from + length; ++next) from = std::max(from, next->second.end);
    return from;
  }
  /// Returns the latest time at which a free interval of length `length` begins, if the interval must end at or before
  /// `until`. The result is negative if no such interval begins at or after 0.
  std::int64_t latest(std::int64_t until, std::int64_t length) const {
    auto next = busy_.lower_bound(until);
    while (next != busy_.begin()) {
      const auto& [begin, interval] = *std::prev(next);
      if (interval.end <= until - length) break;
      until = std::min(until, begin);
      --next;
    }
    return until - length;
  }
  /// Reserves an interval for a copy that depends on step `step`.
  void reserve(std::int64_t begin, std::int64_t length, std::int32_t step) {
    if (length > 0) busy_[begin] = {begin + length, step};
  }
  /// Makes the intervals of copies that depend on `step` or later steps begin later by `delay`.
  void delay(std::int32_t step, std::int64_t delay) {
    std::map<std::int64_t, Interval> moved;
    for (const auto& [begin, interval] : busy_) {
      const std::int64_t by = interval.step >= step ? delay : 0;
      Interval& at = moved[begin + by];
      at = {std::max(at.end, interval.end + by), std::max(at.step, interval.step)};
    }
    busy_ = std::move(moved);
  }

 private:
  struct Interval {
    std::int64_t end = 0;
    std::int32_t step = 0;
  };
  std::map<std::int64_t, Interval> busy_;  ///< indexed by the begin of the interval
};

/// Describes one way to free memory at a moment: a gap to offload, and the times of its copies.
struct Choice {
  std::int32_t gap = -1;
  std::int32_t evict_start = 0, evict_finish = 0, fetch_start = 0;
  std::int64_t out = -1, in = 0;  ///< times at which the evict and the fetch begin; out < 0: no evict is added
  /// - wait_out: estimated delay of all steps from the moment on.
  /// - wait_in: estimated further delay of all steps from the end of the gap on.
  std::int64_t wait_out = kNever, wait_in = 0;
  std::int64_t wait() const { return wait_out + wait_in; }
};

/// Visits the moments in order. At each moment with more bytes than the budget, offloads gaps until the moment fits. To
/// choose the gaps, estimates when steps and copies begin and end, with the waits that the added copies cause.
class Constructor {
 public:
  Constructor(State& state, core::Stopwatch& watch) : state_(state), watch_(watch) {
    std::int64_t now = 0;
    for (std::int32_t i = 0; i < state.length(); ++i) {
      begin_.push_back(now);
      now += state.step_cost(i);
      end_.push_back(now);
    }
    begin_.push_back(now);
    done_.assign(state.occurrences().size(), 0);
    by_begin_.resize(state.gaps().size());
    for (std::size_t g = 0; g < by_begin_.size(); ++g) by_begin_[g] = static_cast<std::int32_t>(g);
    std::ranges::sort(by_begin_, {}, [&](std::int32_t g) { return state.gap(g).begin; });
  }

  bool run() {
    for (std::int64_t m = 0; (m = state_.first_violation(m)) >= 0;) {
      watch_.charge(state_.length());
      if (watch_.expired_now()) return false;
      if (!free_moment(m)) return false;
    }
    return state_.fits();
  }

 private:
  /// Tells when a value is not on the device at a moment: its evict must have a finish <= `finish`, and its fetch a
  /// start >= `start`.
  struct Need {
    std::int32_t finish, start;
  };
  static Need need(std::int64_t moment) {
    return {static_cast<std::int32_t>(moment / 2), static_cast<std::int32_t>((moment + 1) / 2)};
  }

  bool free_moment(std::int64_t moment) {
    constexpr std::size_t kTried = 24;
    const Need need = this->need(moment);
    const std::int64_t excess = state_.bytes_at(moment) - state_.limits().budget;
    // Gaps that cover the moment, each with a number by which they are sorted: gaps that end late and free enough bytes
    // come first.
    std::vector<std::pair<double, std::int32_t>> gaps;
    for (; next_ < by_begin_.size() && state_.gap(by_begin_[next_]).begin < need.finish; ++next_) {
      open_.push_back(by_begin_[next_]);
    }
    std::erase_if(open_, [&](std::int32_t g) { return state_.gap(g).end <= need.start; });
    for (const std::int32_t g : open_) {
      const Gap& gap = state_.gap(g);
      if (gap.begin + 1 > need.finish || gap.end - 1 < need.start) continue;
      const Occurrence& of = state_.occurrence(gap.occurrence);
      const bool gone =
          gap.start >= need.start && (of.finish <= need.finish || state_.first_offloaded(gap.occurrence) != g);
      if (gap.offloaded() && gone) continue;
      const auto far = static_cast<double>(begin_[gap.end] - begin_[need.finish]) + 1;
      const double share = std::min(1.0, static_cast<double>(of.bytes) / static_cast<double>(excess));
      gaps.emplace_back(-far * share, g);
    }
    const std::size_t tried = std::min(gaps.size(), kTried);
    std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(tried), gaps.end());
    Choice best;
    for (std::size_t k = 0; k < gaps.size(); ++k) {
      if (k >= tried && best.wait_out < kNever) break;
      const Choice choice = choice_for(gaps[k].second, need);
      if (choice.wait() < best.wait()) best = choice;
      if (best.wait() == 0) break;
    }
    if (best.wait_out == kNever) return false;
    const std::int64_t before = state_.bytes_at(moment);
    take(best, need);
    return state_.bytes_at(moment) < before;
  }

  /// Returns the first step that begins at or after `time`.
  std::int32_t step_from(std::int64_t time) const {
    return static_cast<std::int32_t>(std::ranges::lower_bound(begin_, time) - begin_.begin());
  }
  /// Returns the last step that has ended at `time`, or -1.
  std::int32_t ended_by(std::int64_t time) const {
    return static_cast<std::int32_t>(std::ranges::upper_bound(end_, time) - end_.begin()) - 1;
  }

  /// Returns how gap g can free memory at the moment if the gap is offloaded already, but its value is still on the
  /// device at this moment. In this case, the evict must end earlier, or the fetch must start later.
  Choice tightened(std::int32_t g, const Need& need) const {
    const Gap& gap = state_.gap(g);
    const Occurrence& of = state_.occurrence(gap.occurrence);
    Choice choice{.gap = g, .evict_finish = of.finish, .fetch_start = gap.start};
    choice.wait_out = 0;
    if (state_.first_offloaded(gap.occurrence) == g && of.finish > need.finish) {
      choice.evict_finish = need.finish;
      choice.wait_out = std::max<std::int64_t>(0, done_[gap.occurrence] - begin_[need.finish]);
    }
    if (gap.start < need.start) {
      choice.fetch_start = need.start;
      choice.wait_in = std::max<std::int64_t>(0, end_[need.start] + of.time - begin_[gap.end]);
    }
    choice.evict_start = std::min(of.start, choice.evict_finish - 1);
    return choice;
  }

  Choice choice_for(std::int32_t g, const Need& need) const {
    const Gap& gap = state_.gap(g);
    if (gap.offloaded()) return tightened(g, need);
    const Occurrence& of = state_.occurrence(gap.occurrence);
    const std::int32_t first = state_.first_offloaded(gap.occurrence);
    Choice choice{.gap = g};
    choice.wait_out = 0;
    std::int64_t done = 0;
    if (first >= 0 && first < g) {
      // An earlier gap of the value is offloaded, so a copy is on the host already. The bytes on the device are freed
      // after the last read before this gap.
      choice.evict_start = of.start;
      choice.evict_finish = of.finish;
      done = begin_[of.finish];
    } else {
      choice.out = out_.earliest(end_[of.made], of.time);
      done = choice.out + of.time;
      choice.evict_finish = std::max(gap.begin + 1, step_from(done));
      if (choice.evict_finish > need.finish) {
        choice.evict_finish = need.finish;
        choice.wait_out = std::max<std::int64_t>(0, done - begin_[need.finish]);
      }
      choice.evict_start = std::min(std::max(of.made, ended_by(choice.out)), choice.evict_finish - 1);
    }
    choice.in = link_in().latest(begin_[gap.end], of.time);
    choice.fetch_start = ended_by(choice.in);
    const std::int32_t least = std::max(need.start, choice.out >= 0 ? choice.evict_finish : gap.begin);
    if (choice.fetch_start < least) {
      choice.fetch_start = least;
      choice.in = link_in().earliest(std::max(end_[choice.fetch_start], done), of.time);
      choice.wait_in = std::max<std::int64_t>(0, choice.in + of.time - begin_[gap.end] - choice.wait_out);
    }
    return choice;
  }

  const Reservations& link_in() const { return state_.limits().link.duplex ? in_ : out_; }
  Reservations& link_in() { return state_.limits().link.duplex ? in_ : out_; }

  void take(const Choice& choice, const Need& need) {
    const Gap gap = state_.gap(choice.gap);
    const Occurrence of = state_.occurrence(gap.occurrence);
    delay(need.finish, choice.wait_out);
    if (choice.out >= 0) {
      out_.reserve(choice.out, of.time, of.made);
      done_[gap.occurrence] = choice.out + of.time;
    }
    delay(gap.end, choice.wait_in);
    if (!gap.offloaded()) link_in().reserve(choice.in + choice.wait_out, of.time, gap.end);
    state_.set_fetch(choice.gap, choice.fetch_start);
    if (state_.first_offloaded(gap.occurrence) == choice.gap) {
      state_.set_evict(gap.occurrence, choice.evict_start, choice.evict_finish);
    }
  }

  /// Makes all steps from `step` on begin later by `time`. Also delays the copies that depend on these steps.
  void delay(std::int32_t step, std::int64_t time) {
    if (time <= 0) return;
    for (auto i = static_cast<std::size_t>(step); i < begin_.size(); ++i) begin_[i] += time;
    for (auto i = static_cast<std::size_t>(step); i < end_.size(); ++i) end_[i] += time;
    out_.delay(step, time);
    in_.delay(step, time);
  }

  State& state_;
  core::Stopwatch& watch_;
  std::vector<std::int64_t> begin_, end_;  ///< estimated times of the steps
  std::vector<std::int64_t> done_;         ///< for each occurrence, the estimated end of its evict
  Reservations out_, in_;
  std::vector<std::int32_t> by_begin_, open_;
  std::size_t next_ = 0;
};

/// Gives more time to the copy for which a step waits. An evict may then end later, and a fetch may start earlier, as
/// far as the budget allows it. Returns whether anything was changed.
bool loosen(State& state, const Wait& wait) {
  const std::int64_t budget = state.limits().budget;
  if (wait.occurrence >= 0) {
    const Occurrence& of = state.occurrence(wait.occurrence);
    const Gap& gap = state.gap(state.first_offloaded(wait.occurrence));
    std::int32_t finish = of.finish;
    while (finish < gap.start && state.bytes_at(2 * std::int64_t{finish}) + of.bytes <= budget &&
           state.bytes_at(2 * std::int64_t{finish} + 1) + of.bytes <= budget) {
      ++finish;
    }
    if (finish == of.finish) return false;
    state.set_evict(wait.occurrence, of.start, finish);
    return true;
  }
  const Gap& gap = state.gap(wait.gap);
  const Occurrence& of = state.occurrence(gap.occurrence);
  const bool first = state.first_offloaded(gap.occurrence) == wait.gap;
  const std::int32_t least = first ? of.finish : gap.begin;
  std::int32_t start = gap.start;
  while (start > least && state.bytes_at(2 * std::int64_t{start}) + of.bytes <= budget &&
         state.bytes_at(2 * std::int64_t{start} - 1) + of.bytes <= budget) {
    --start;
  }
  if (start == gap.start) return false;
  state.set_fetch(wait.gap, start);
  return true;
}

}  // namespace

bool construct(State& state, core::Stopwatch& watch) { return Constructor(state, watch).run(); }

void relax(State& state, core::Stopwatch& watch) {
  constexpr int kMostRounds = 30;
  std::vector<Wait> waits;
  std::int64_t best = state.makespan(&waits);
  for (int round = 0; round < kMostRounds && !waits.empty() && !watch.expired_now(); ++round) {
    std::ranges::sort(waits, std::greater<>(), &Wait::time);
    std::vector<Saved> saved;
    for (const Wait& wait : waits) {
      watch.charge(state.length());
      if (watch.expired()) break;
      const std::int32_t o = wait.occurrence >= 0 ? wait.occurrence : state.gap(wait.gap).occurrence;
      Saved before = state.save(o);
      if (!loosen(state, wait)) continue;
      if (state.fits()) {
        saved.push_back(std::move(before));
      } else {
        state.restore(before);
      }
    }
    waits.clear();
    const std::int64_t now = state.makespan(&waits);
    if (now >= best) {
      for (auto at = saved.rbegin(); at != saved.rend(); ++at) state.restore(*at);
      return;
    }
    best = now;
  }
}

}  // namespace cairn::solvers::offloading
