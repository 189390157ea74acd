#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/support/random_graph.h"

/// These functions make problems of static memory planning. bench/plan_instances.py writes files with the same kinds of
/// problems.
namespace cairn::tests {

/// A planning problem with its options. It has no capacity.
struct PlanCase {
  solvers::PlanProblem problem;
  solvers::PlanOptions options;
};

/// Returns up to two random gaps strictly inside of the lifetime, with at least one step between them. A lifetime of
/// fewer than three steps has no gaps.
inline std::vector<core::StepRange> random_gaps(Random& random, const core::Buffer& buffer) {
  std::vector<core::StepRange> gaps;
  for (std::int64_t from = buffer.first + 1; from < buffer.last && gaps.size() < 2; from = gaps.back().last + 2) {
    const std::int64_t first = random.between(from, buffer.last - 1);
    gaps.push_back({first, random.between(first, buffer.last - 1)});
  }
  return gaps;
}

/// Returns a random problem whose buffers are so few and so small that all plans can be tried. Many buffers are alike.
/// Each of these features occurs in about a third of the problems: alignments, gaps, fixed offsets, hints, in-place
/// chains, and forbidden addresses. Fixed offsets may contradict each other.
inline PlanCase random_plan_case(Random& random, std::int64_t most_buffers) {
  PlanCase result;
  solvers::PlanProblem& problem = result.problem;
  const std::int64_t steps = random.between(1, 8);
  const std::int64_t most_bytes = random.pick(std::vector<std::int64_t>{1, 2, 3, 4, 6, 10});
  const std::int64_t count = random.between(1, most_buffers);
  const auto sometimes = [&] { return random.chance(33) ? random.pick(std::vector<int>{15, 40}) : 0; };
  const int aligned = sometimes(), with_gaps = sometimes(), fixed = sometimes(), hinted = sometimes();
  const int in_place = sometimes(), equal = sometimes(), barriers = sometimes();
  if (random.chance(25)) result.options.alignment = random.between(2, 4);
  if (random.chance(20)) result.options.guard_bytes = random.between(1, 3);

  problem.takes_over.assign(static_cast<std::size_t>(count), -1);
  problem.rules.resize(static_cast<std::size_t>(count));
  std::vector<bool> taken(static_cast<std::size_t>(count), false);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto other = static_cast<std::size_t>(random.below(std::max<std::int64_t>(i, 1)));
    core::Buffer buffer{.first = random.below(steps)};
    buffer.last = random.between(buffer.first, steps - 1);
    // An empty buffer could lie anywhere, so it gets no fixed offset. If there are guards, there are no empty buffers.
    buffer.size = random.between(result.options.guard_bytes == 0 && random.chance(5) ? 0 : 1, most_bytes);
    if (i > 0 && random.chance(equal)) {
      buffer = problem.buffers[other];
    } else if (i > 0 && random.chance(in_place) && !taken[other] &&
               problem.buffers[other].first < problem.buffers[other].last) {
      buffer.first = problem.buffers[other].last;
      buffer.last = random.between(buffer.first, steps - 1);
      problem.takes_over[at] = static_cast<std::int32_t>(other);
      taken[other] = true;
    }
    problem.buffers.push_back(buffer);
    solvers::PlacementRules& rules = problem.rules[at];
    if (random.chance(aligned)) rules.alignment = random.pick(std::vector<std::int64_t>{2, 3, 4, 6, 8});
    if (random.chance(with_gaps)) rules.gaps = random_gaps(random, buffer);
    if (random.chance(hinted)) rules.hint = random.below(3 * most_bytes);
    if (random.chance(fixed) && buffer.size > 0) rules.offset = random.below(3) * most_bytes;
  }
  while (random.chance(barriers)) {
    const std::int64_t lower = random.below(4 * most_bytes);
    problem.forbidden.push_back({lower, lower + (random.chance(50) ? 0 : random.between(1, most_bytes))});
  }
  return result;
}

/// A buffer, and its place in a known plan, as ranges of time and of addresses.
struct PlacedBuffer {
  std::int64_t first = 0, end = 0;    ///< time: begins at `first`, ends before `end`
  std::int64_t lower = 0, upper = 0;  ///< addresses: from `lower`, below `upper`
};

/// Cuts the rectangle `whole` into `count` or slightly more buffers. It uses straight cuts and pinwheels (five
/// rectangles that no straight cut separates).
inline std::vector<PlacedBuffer> random_partition(Random& random, const PlacedBuffer& whole, std::size_t count) {
  std::vector<PlacedBuffer> parts{whole};
  while (parts.size() < count) {
    const auto at = random.place(parts);
    const PlacedBuffer b = parts[at];
    const std::int64_t steps = b.end - b.first, height = b.upper - b.lower;
    if (steps >= 3 && height >= 3 && random.chance(30)) {
      const std::int64_t left = b.first + random.between(1, steps - 2);
      const std::int64_t right = random.between(left + 1, b.end - 1);
      const std::int64_t bottom = b.lower + random.between(1, height - 2);
      const std::int64_t top = random.between(bottom + 1, b.upper - 1);
      parts[at] = {left, right, bottom, top};
      parts.push_back({b.first, right, b.lower, bottom});
      parts.push_back({right, b.end, b.lower, top});
      parts.push_back({left, b.end, top, b.upper});
      parts.push_back({b.first, left, bottom, b.upper});
    } else if (random.chance(50) && steps >= 2) {
      const std::int64_t cut = b.first + random.between(1, steps - 1);
      parts[at].end = cut;
      parts.push_back({cut, b.end, b.lower, b.upper});
    } else if (height >= 2) {
      const std::int64_t cut = b.lower + random.between(1, height - 1);
      parts[at].upper = cut;
      parts.push_back({b.first, b.end, cut, b.upper});
    }
  }
  random.shuffle(parts);
  return parts;
}

/// Shortens some of the lifetimes at both ends. A lifetime that contains `moment` still contains it afterwards.
inline void shorten(Random& random, std::vector<PlacedBuffer>& placed, int percent, std::int64_t moment) {
  for (PlacedBuffer& b : placed) {
    if (!random.chance(percent)) continue;
    const bool holds = b.first <= moment && moment < b.end;
    b.first = random.between(b.first, holds ? moment : b.end - 1);
    b.end = random.between(std::max(b.first, holds ? moment : b.first) + 1, b.end);
  }
}

/// Removes some of the buffers, but no buffer that is live at `moment`.
inline void leave_out(Random& random, std::vector<PlacedBuffer>& placed, int percent, std::int64_t moment) {
  const auto out = [&](const PlacedBuffer& b) {
    return !(b.first <= moment && moment < b.end) && random.chance(percent);
  };
  placed.erase(std::remove_if(placed.begin(), placed.end(), out), placed.end());
}

/// Simulates an allocator with `height` units of address. Whenever buffers end, it fills most of the holes with new
/// buffers, which are either small and long-lived or large and short-lived. At one moment, it fills all holes.
inline std::vector<PlacedBuffer> simulated_allocator(Random& random, std::int64_t height, std::size_t count) {
  std::vector<PlacedBuffer> placed, live;
  const auto full_from = static_cast<std::size_t>(random.between(1, static_cast<std::int64_t>(count) / 2));
  bool was_full = false;
  for (std::int64_t now = 0; placed.size() + live.size() < count || !was_full; ++now) {
    const auto ended = std::partition(live.begin(), live.end(), [&](const PlacedBuffer& b) { return b.end > now; });
    placed.insert(placed.end(), ended, live.end());
    live.erase(ended, live.end());
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.lower < b.lower; });
    const bool fill = !was_full && placed.size() + live.size() >= full_from;
    was_full = was_full || fill;
    std::vector<PlacedBuffer> made;
    std::int64_t from = 0;
    for (std::size_t i = 0; i <= live.size(); ++i) {
      const std::int64_t to = i < live.size() ? live[i].lower : height;
      while (from < to && (fill || random.chance(80))) {
        const bool brief = random.chance(45);
        const std::int64_t most = brief ? height * 2 / 3 : std::max<std::int64_t>(1, height / 16);
        const std::int64_t size = std::min(to - from, random.between(1, most));
        const std::int64_t life =
            brief ? random.between(1, 6) : random.between(4, random.pick(std::vector<std::int64_t>{20, 60, 150}));
        made.push_back({now, now + life, from, from + size});
        from += size;
      }
      if (i < live.size()) from = live[i].upper;
    }
    live.insert(live.end(), made.begin(), made.end());
  }
  std::int64_t end = 0;
  for (const PlacedBuffer& b : live) end = std::max(end, b.first + 1);
  for (PlacedBuffer& b : live) b.end = std::min(b.end, end);
  placed.insert(placed.end(), live.begin(), live.end());
  random.shuffle(placed);
  return placed;
}

/// Kinds of problems in which all addresses are in use at some moment. So the least height of a plan is known.
enum class FullKind : std::uint8_t { partition, shortened_30, shortened_70, left_out, allocator };
inline constexpr std::array kFullKinds{FullKind::partition, FullKind::shortened_30, FullKind::shortened_70,
                                       FullKind::left_out, FullKind::allocator};

/// Returns about `count` buffers with their places in a plan of height `height`, which is the least possible height.
inline std::vector<PlacedBuffer> full_problem(Random& random, FullKind kind, std::int64_t height, std::size_t count) {
  if (kind == FullKind::allocator) return simulated_allocator(random, height, count);
  constexpr std::int64_t kSteps = 1024;
  std::vector<PlacedBuffer> placed = random_partition(random, {0, kSteps, 0, height}, count);
  const std::int64_t moment = random.below(kSteps);
  if (kind == FullKind::shortened_30) shorten(random, placed, 30, moment);
  if (kind == FullKind::shortened_70) shorten(random, placed, 70, moment);
  if (kind == FullKind::left_out) leave_out(random, placed, 10, moment);
  return placed;
}

/// Returns the problem that `placed` solves, without the places of the buffers.
inline solvers::PlanProblem without_places(const std::vector<PlacedBuffer>& placed) {
  solvers::PlanProblem problem;
  for (const PlacedBuffer& b : placed) {
    core::Buffer buffer{.first = b.first, .last = b.end - 1, .size = b.upper - b.lower};
    problem.buffers.push_back(buffer);
  }
  problem.takes_over.assign(placed.size(), -1);
  problem.rules.resize(placed.size());
  return problem;
}

}  // namespace cairn::tests
