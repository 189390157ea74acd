#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"

/// The dynamic program of Theorem 8.2 of Jin et al. on parallel chains between a source and a sink. The dominant
/// schedule of each set of branches is one branch's first step, followed by the rest of that branch merged (Theorem
/// 6.8) with the dominant schedule of the others. The branch to go first is found by trying all of them.
namespace cairn::solvers {

/// A kind of branches: all have the same profile. Sizes are in bytes.
struct PumpkinKind {
  core::Segment key;                ///< the first step, which reads the source
  std::vector<core::Segment> rest;  ///< the segments behind the first step
  std::int32_t copies = 1;          ///< number of branches of this kind, >= 1
};

/// A problem of parallel chains between a source and a sink. A state of the program is a multiset of branches, i.e. a
/// number of each kind: 2^d states for d different branches.
struct PumpkinProblem {
  std::vector<PumpkinKind> kinds;  ///< at most 255 kinds, as a byte names each
  std::int64_t released = 0;       ///< bytes of the source, freed when the last key has run

  std::int64_t branches() const;  ///< number of branches, copies included
};

struct PumpkinOptions {
  /// Most bytes of the machine's memory for the whole table.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();
  /// Number of states solved between two calls of `go_on`. A device wants millions, as it waits for each call.
  std::int64_t chunk = std::int64_t{1} << 22;
  /// Called with the number of candidates tried since the last call, which is the same on every machine; false ends the
  /// search.
  std::function<bool(std::int64_t)> go_on;
};

struct PumpkinAnswer {
  enum class End : std::uint8_t {
    solved,
    stopped,    ///< `go_on` returned false
    too_large,  ///< memory_bytes is not enough
  };
  End end = End::solved;
  /// The kinds in the order in which they go first: order[0] goes before all others; the last one's key releases the
  /// source. Empty unless solved.
  std::vector<std::uint8_t> order;
  /// Segments of the dominant schedule, without segments that dominance does not see.
  std::vector<core::Segment> segments;
  std::int64_t bytes = 0;  ///< most memory taken on the machine; if too large: the least that the table needs
  std::vector<std::int64_t> segments_of_layer;  ///< number of segments of all states of one size, from size 0
  bool operator==(const PumpkinAnswer&) const = default;
};

/// Counts the multisets of each size, from 0 to all branches. Empty if there are more than 2^40 of them, or more than
/// 255 kinds: too many for any table. O(kinds * branches).
std::vector<std::int64_t> count_states(const PumpkinProblem& problem);

/// Computes the most bytes that the table can take, which it takes if no two segments ever merge; the largest int64 if
/// count_states() gives up.
std::int64_t most_bytes(const PumpkinProblem& problem);

/// Solves the program layer by layer, all states of one size at a time. Memory holds the segments of two layers and,
/// for every state, the byte that says which kind goes first. If several kinds may go first, the last one in `kinds`
/// does. The answer is the same on every machine; sums of rises and drops must be below 2^62. O(states * kinds *
/// segments of a state). Throws InputError if count_states() gives up.
PumpkinAnswer solve_pumpkin(const core::HostMachine& machine, const PumpkinProblem& problem,
                            const PumpkinOptions& options);

}  // namespace cairn::solvers
