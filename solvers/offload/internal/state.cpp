// Keeps track of the transfers of a schedule with fixed steps (state.h). An occurrence is the output of one run of a
// node. A gap is a range of steps in which an occurrence is needed later, but not read; it is offloaded if the value
// leaves the device during the gap.

#include "cairn/solvers/offload/internal/state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/transferable.h"

namespace cairn::solvers::offloading {
namespace {

using core::NodeId;
using core::ValueId;

std::int64_t above(std::int64_t bytes, std::int64_t budget) { return std::max<std::int64_t>(0, bytes - budget); }

}  // namespace

State::State(const core::Graph& graph, std::vector<NodeId> steps, const Limits& limits)
    : steps_(std::move(steps)), limits_(limits) {
  const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(std::span<const NodeId>(steps_));
  profile_.assign(profile.begin() + 1, profile.end());
  host_.assign(steps_.size(), 0);
  for (const std::int64_t bytes : profile_) excess_ += above(bytes, limits_.budget);
  for (const NodeId v : steps_) {
    costs_.push_back(graph.cost(v));
    compute_ = core::saturating_add(compute_, costs_.back());
  }

  // The steps that touch each value, in order: those that compute it, and those that read it.
  struct Touch {
    std::int32_t step;
    bool made;
  };
  std::vector<std::vector<Touch>> touches(graph.value_count());
  for (std::int32_t i = 0; i < length(); ++i) {
    for (const ValueId x : graph.inputs(steps_[i])) touches[x].push_back({i, false});
    for (const ValueId x : graph.outputs(steps_[i])) touches[x].push_back({i, true});
  }
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    if (!transferable(graph, x)) continue;
    std::vector<Touch>& of = touches[x];
    if (graph.value_kept(x)) of.push_back({length(), false});
    for (std::size_t t = 0; t < of.size(); ++t) {
      if (of[t].made) {
        const std::int64_t bytes = graph.value_size(x);
        occurrences_.push_back({.value = x,
                                .made = of[t].step,
                                .start = of[t].step,
                                .finish = of[t].step + 1,
                                .first_gap = static_cast<std::int32_t>(gaps_.size()),
                                .bytes = bytes,
                                .time = core::copy_cost(limits_.link, bytes, graph.cost_unit())});
      } else if (of[t].step >= of[t - 1].step + 2) {
        gaps_.push_back({static_cast<std::int32_t>(occurrences_.size()) - 1, of[t - 1].step, of[t].step});
        ++occurrences_.back().gap_count;
      }
    }
  }
  due_.resize(steps_.size() + 1);
  due_by_.resize(steps_.size() + 1);
  done_.resize(occurrences_.size());
}

std::int64_t State::first_violation(std::int64_t from) const {
  for (auto m = static_cast<std::size_t>(from); m < profile_.size(); ++m) {
    if (profile_[m] > limits_.budget) return static_cast<std::int64_t>(m);
  }
  return -1;
}

std::int32_t State::first_offloaded(std::int32_t o) const {
  const Occurrence& occurrence = occurrences_[o];
  for (std::int32_t g = occurrence.first_gap; g < occurrence.first_gap + occurrence.gap_count; ++g) {
    if (gaps_[g].offloaded()) return g;
  }
  return -1;
}

void State::add(std::int64_t first, std::int64_t last, std::int64_t bytes) {
  const std::int64_t budget = limits_.budget;
  std::int64_t change = 0;
  for (std::int64_t m = first; m <= last; ++m) {
    const std::int64_t before = profile_[m];
    profile_[m] = before + bytes;
    change += above(before + bytes, budget) - above(before, budget);
  }
  excess_ += change;
}

void State::add_host(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  for (std::int32_t i = first; i <= last; ++i) {
    excess_ += above(host_[i] + bytes, limits_.host_budget) - above(host_[i], limits_.host_budget);
    host_[i] += bytes;
  }
}

/// Adds (sign 1) or removes (sign -1) the effect of an occurrence's transfers on the memory of device and host and on
/// copy_time_.
void State::occupy(const Occurrence& occurrence, int sign) {
  bool first = true;
  std::int32_t last_end = 0;
  for (std::int32_t g = occurrence.first_gap; g < occurrence.first_gap + occurrence.gap_count; ++g) {
    const Gap& gap = gaps_[g];
    if (!gap.offloaded()) continue;
    const std::int64_t from = first ? 2 * std::int64_t{occurrence.finish} : 2 * std::int64_t{gap.begin} + 1;
    add(from, 2 * std::int64_t{gap.start}, -sign * occurrence.bytes);
    copy_time_ += sign * occurrence.time;
    last_end = gap.end;
    first = false;
  }
  if (first) return;
  copy_time_ += sign * occurrence.time;
  add_host(occurrence.start, last_end - 1, sign * occurrence.bytes);
}

void State::adapt(Occurrence& occurrence) {
  const std::int32_t g = first_offloaded(gaps_[occurrence.first_gap].occurrence);
  if (g < 0) return;
  // If the fetch started right after the step of the last read, the bytes would never leave the device, and nothing
  // would be saved.
  gaps_[g].start = std::max(gaps_[g].start, gaps_[g].begin + 1);
  occurrence.finish = std::clamp(occurrence.finish, gaps_[g].begin + 1, gaps_[g].start);
  occurrence.start = std::clamp(occurrence.start, occurrence.made, occurrence.finish - 1);
}

Saved State::save(std::int32_t o) const {
  const Occurrence& occurrence = occurrences_[o];
  Saved saved{o, occurrence.start, occurrence.finish, {}};
  for (std::int32_t k = 0; k < occurrence.gap_count; ++k) {
    saved.starts.push_back(gaps_[occurrence.first_gap + k].start);
  }
  return saved;
}

void State::restore(const Saved& saved) {
  Occurrence& occurrence = occurrences_[saved.occurrence];
  occupy(occurrence, -1);
  occurrence.start = saved.start;
  occurrence.finish = saved.finish;
  for (std::int32_t k = 0; k < occurrence.gap_count; ++k) gaps_[occurrence.first_gap + k].start = saved.starts[k];
  occupy(occurrence, 1);
}

void State::set_fetch(std::int32_t g, std::int32_t start) {
  Gap& gap = gaps_[g];
  Occurrence& occurrence = occurrences_[gap.occurrence];
  occupy(occurrence, -1);
  gap.start = start < 0 ? -1 : std::clamp(start, gap.begin, gap.end - 1);
  adapt(occurrence);
  occupy(occurrence, 1);
}

void State::set_evict(std::int32_t o, std::int32_t start, std::int32_t finish) {
  Occurrence& occurrence = occurrences_[o];
  occupy(occurrence, -1);
  occurrence.start = start;
  occurrence.finish = finish;
  adapt(occurrence);
  occupy(occurrence, 1);
}

void State::sort_copies() {
  copies_.clear();
  const auto count = static_cast<std::int32_t>(occurrences_.size());
  for (std::int32_t o = 0; o < count; ++o) {
    const Occurrence& occurrence = occurrences_[o];
    bool any = false;
    for (std::int32_t g = occurrence.first_gap; g < occurrence.first_gap + occurrence.gap_count; ++g) {
      if (!gaps_[g].offloaded()) continue;
      any = true;
      copies_.push_back({gaps_[g].start, gaps_[g].end, count + g});
    }
    if (any) copies_.push_back({occurrence.start, occurrence.finish, o});
  }
  std::ranges::sort(copies_);
}

std::int64_t State::makespan(std::vector<Wait>* waits) {
  sort_copies();
  std::ranges::fill(due_, 0);
  std::ranges::fill(due_by_, -1);
  const auto count = static_cast<std::int32_t>(occurrences_.size());
  const bool duplex = limits_.link.duplex;
  std::array<std::int64_t, 2> free{0, 0};
  std::int64_t now = 0;
  auto next = copies_.begin();
  const auto wait_until_due = [&](std::int32_t step) {
    if (due_[step] <= now) return;
    if (waits != nullptr) {
      const std::int32_t by = due_by_[step];
      waits->push_back({step, due_[step] - now, by >= count ? by - count : -1, by < count ? by : -1});
    }
    now = due_[step];
  };
  for (std::int32_t i = 0; i < length(); ++i) {
    wait_until_due(i);
    now = core::saturating_add(now, costs_[i]);
    for (; next != copies_.end() && next->start == i; ++next) {
      const bool fetch = next->number >= count;
      const std::int32_t o = fetch ? gaps_[next->number - count].occurrence : next->number;
      std::int64_t& link = free[duplex && fetch ? 1 : 0];
      std::int64_t begin = std::max(now, link);
      if (fetch) begin = std::max(begin, done_[o]);
      link = core::saturating_add(begin, occurrences_[o].time);
      if (!fetch) done_[o] = link;
      if (link > due_[next->finish]) {
        due_[next->finish] = link;
        due_by_[next->finish] = next->number;
      }
    }
  }
  // An evict ends before its fetches end, so only fetches can be due at the end of the schedule.
  wait_until_due(length());
  return now;
}

core::Schedule State::schedule() const {
  core::Schedule schedule{steps_};
  for (std::int32_t o = 0; o < static_cast<std::int32_t>(occurrences_.size()); ++o) {
    const Occurrence& occurrence = occurrences_[o];
    if (first_offloaded(o) < 0) continue;
    const auto evict = static_cast<std::int32_t>(schedule.transfers.evicts.size());
    schedule.transfers.evicts.push_back({occurrence.value, occurrence.made, occurrence.start, occurrence.finish});
    for (std::int32_t g = occurrence.first_gap; g < occurrence.first_gap + occurrence.gap_count; ++g) {
      if (gaps_[g].offloaded()) schedule.transfers.fetches.push_back({evict, gaps_[g].start, gaps_[g].end});
    }
  }
  return schedule;
}

void State::assign(const core::Transfers& from) {
  for (std::int32_t g = 0; g < static_cast<std::int32_t>(gaps_.size()); ++g) {
    if (gaps_[g].offloaded()) set_fetch(g, -1);
  }
  std::vector<std::pair<std::pair<ValueId, std::int32_t>, std::int32_t>> by_made;
  for (std::size_t o = 0; o < occurrences_.size(); ++o) {
    by_made.push_back({{occurrences_[o].value, occurrences_[o].made}, static_cast<std::int32_t>(o)});
  }
  std::ranges::sort(by_made);
  for (std::size_t e = 0; e < from.evicts.size(); ++e) {
    const core::Evict& evict = from.evicts[e];
    const std::pair key{evict.value, static_cast<std::int32_t>(evict.made)};
    const auto found = std::ranges::lower_bound(by_made, key, {}, [](const auto& entry) { return entry.first; });
    if (found == by_made.end() || found->first != key) continue;
    const Occurrence& occurrence = occurrences_[found->second];
    for (const core::Fetch& fetch : from.fetches) {
      if (fetch.evict != static_cast<std::int32_t>(e)) continue;
      for (std::int32_t g = occurrence.first_gap; g < occurrence.first_gap + occurrence.gap_count; ++g) {
        if (gaps_[g].end == fetch.finish) set_fetch(g, static_cast<std::int32_t>(fetch.start));
      }
    }
    if (first_offloaded(found->second) >= 0) {
      set_evict(found->second, static_cast<std::int32_t>(evict.start), static_cast<std::int32_t>(evict.finish));
    }
  }
}

}  // namespace cairn::solvers::offloading
