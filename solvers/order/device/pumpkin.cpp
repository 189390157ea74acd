// Counts the states of the dynamic program for parallel chains (pumpkin.h), and chooses how its table is stored. The
// chains are called branches, and branches with equal memory profiles are of one kind. A state is a multiset of
// branches.

#include "cairn/solvers/order/device/pumpkin.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "cairn/solvers/order/device/pumpkin_kernel.h"

namespace cairn::solvers {
namespace {

constexpr std::int64_t kBeyondCounting = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostStates = std::int64_t{1} << 40;
constexpr std::size_t kMostKinds = 255;  // a kind is stored in a byte

/// Adds a kind with `copies` branches to the counts, where `counts[s]` is the number of multisets of at most s
/// branches.
void add_kind(std::vector<std::int64_t>& counts, std::int64_t copies) {
  // With j branches of the new kind, there is room for at most s - j branches of the old kinds. So the new count at s
  // is the sum of the old counts from s - copies to s.
  std::int64_t sum = 0;
  std::vector<std::int64_t> next(counts.size());
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const std::int64_t too_few = static_cast<std::int64_t>(s) - copies - 1;
    sum += counts[s] - (too_few >= 0 ? counts[too_few] : 0);
    next[s] = sum;
  }
  counts = std::move(next);
}

std::vector<std::int64_t> no_kinds(const PumpkinProblem& problem) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(problem.branches()) + 1, 1);
}

}  // namespace

std::int64_t PumpkinProblem::branches() const {
  std::int64_t sum = 0;
  for (const PumpkinKind& kind : kinds) sum += kind.copies;
  return sum;
}

std::vector<std::int64_t> count_states(const PumpkinProblem& problem) {
  if (problem.kinds.size() > kMostKinds) return {};
  std::int64_t states = 1;
  for (const PumpkinKind& kind : problem.kinds) {
    if (states > kMostStates / (kind.copies + 1)) return {};
    states *= kind.copies + 1;
  }
  std::vector<std::int64_t> counts = no_kinds(problem);
  for (const PumpkinKind& kind : problem.kinds) add_kind(counts, kind.copies);
  std::adjacent_difference(counts.begin(), counts.end(), counts.begin());
  return counts;
}

std::vector<std::int64_t> count_of_kinds_before(const PumpkinProblem& problem) {
  std::vector<std::int64_t> counts = no_kinds(problem), all;
  for (const PumpkinKind& kind : problem.kinds) {
    all.insert(all.end(), counts.begin(), counts.end());
    add_kind(counts, kind.copies);
  }
  return all;
}

PumpkinScale scale_of(const PumpkinProblem& problem) {
  PumpkinScale scale;
  std::int64_t divisor = problem.released;
  const auto for_each_size = [&](const auto& take) {
    for (const PumpkinKind& kind : problem.kinds) {
      take(kind.copies, kind.key);
      for (const core::Segment& segment : kind.rest) take(kind.copies, segment);
    }
  };
  for_each_size([&](std::int64_t /*copies*/, const core::Segment& segment) {
    divisor = std::gcd(divisor, std::gcd(segment.rise, segment.drop));
  });
  scale.unit = std::max<std::int64_t>(divisor, 1);
  scale.sum = problem.released / scale.unit;
  for_each_size([&](std::int64_t copies, const core::Segment& segment) {
    scale.sum += copies * (segment.rise / scale.unit + segment.drop / scale.unit);
    scale.segments += copies;
  });
  return scale;
}

std::int64_t most_bytes(const PumpkinProblem& problem) {
  const std::vector<std::int64_t> states = count_states(problem);
  if (states.empty()) return kBeyondCounting;
  const PumpkinScale scale = scale_of(problem);
  std::size_t longest_rest = 0;
  for (const PumpkinKind& kind : problem.kinds) longest_rest = std::max(longest_rest, kind.rest.size());
  double layers = 0, below = 0, all = 0;
  std::int64_t widest = 0;
  for (std::size_t size = 0; size < states.size(); ++size) {
    const auto count = static_cast<double>(states[size]);
    const auto segments =
        static_cast<double>(std::min(scale.segments, static_cast<std::int64_t>(size * (1 + longest_rest))));
    layers = std::max(layers, below + count * segments);
    below = count * segments;
    all += count;
    widest = std::max(widest, states[size]);
  }
  // Besides the segments, memory holds: a byte for every state; for two layers, the index at which each state's
  // segments begin; and the problem with its counts.
  const auto kinds = static_cast<double>(problem.kinds.size());
  const bool narrow = scale.fits_narrow();
  const std::int64_t offsets = narrow ? PumpkinSolver<const core::HostMachine, NarrowTable>::bytes_of_offsets(widest)
                                      : PumpkinSolver<const core::HostMachine, WideTable>::bytes_of_offsets(widest);
  const double bytes = (layers + kinds + static_cast<double>(scale.segments)) *
                           (narrow ? sizeof(NarrowSegment) : sizeof(core::Segment)) +
                       all + static_cast<double>(offsets) +
                       (kinds + 2) * static_cast<double>(states.size() + 1) * sizeof(std::int64_t);
  return bytes < 0x1p62 ? static_cast<std::int64_t>(bytes) : kBeyondCounting;
}

PumpkinAnswer solve_pumpkin(const core::HostMachine& machine, const PumpkinProblem& problem,
                            const PumpkinOptions& options) {
  return solve_pumpkin<const core::HostMachine>(machine, problem, options);
}

}  // namespace cairn::solvers
