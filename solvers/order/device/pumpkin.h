#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"

/// The dynamic program of Theorem 8.2 of Jin et al. on parallel chains between a source and a sink: the dominant
/// schedule of each set of branches is one branch's first step, and then the rest of that branch merged (Theorem 6.8)
/// with the dominant schedule of the others. Which branch goes first is found by trying all of them.
namespace cairn::solvers {

/// Branches of equal profile. Bytes.
struct PumpkinKind {
  core::Segment key;                ///< the first step, which reads the source
  std::vector<core::Segment> rest;  ///< the segments of all behind it
  std::int32_t copies = 1;          ///< >= 1
};

/// A state of the program is a multiset of branches: so many of each kind; 2^d for d different branches.
struct PumpkinProblem {
  std::vector<PumpkinKind> kinds;  ///< at most 255, of which a byte can name each
  std::int64_t released = 0;       ///< bytes of the source, which go when the last key has run

  std::int64_t branches() const;  ///< copies of all kinds
};

struct PumpkinOptions {
  /// Of the machine's memory, for the whole table.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();
  /// States that are solved between two calls of `go_on`. A device wants millions, as it waits for each call.
  std::int64_t chunk = std::int64_t{1} << 22;
  /// Called with the candidates tried since the last call, the same numbers on every machine; false ends the search.
  std::function<bool(std::int64_t)> go_on;
};

struct PumpkinAnswer {
  enum class End : std::uint8_t {
    solved,
    stopped,    ///< by go_on
    too_large,  ///< for memory_bytes
  };
  End end = End::solved;
  /// Kinds by who goes first: order[0] before all, and the last one's key releases the source. Empty unless solved.
  std::vector<std::uint8_t> order;
  std::vector<core::Segment> segments;  ///< of the dominant schedule; no segment that dominance does not see
  std::int64_t bytes = 0;  ///< most that were taken of the machine; where too large: what the table needs at least
  std::vector<std::int64_t> segments_of_layer;  ///< those of all states of one size, from size 0
  bool operator==(const PumpkinAnswer&) const = default;
};

/// The multisets of each size, from 0 to all branches. Empty where there are more than 2^40 of them, or more than 255
/// kinds: too many for any table. O(kinds * branches).
std::vector<std::int64_t> count_states(const PumpkinProblem& problem);

/// Bytes that the table takes at most, if no two segments ever become one; the largest int64 where count_states() gives
/// up.
std::int64_t most_bytes(const PumpkinProblem& problem);

/// Layer by layer, all states of one size at a time. The segments of two layers are in memory at once, and of every
/// state the byte that says who goes first. Where several kinds may go first the last one of `kinds` does. The same
/// answer on every machine; sums of rises and drops must be below 2^62.
/// O(states * kinds * segments of a state). Throws InputError where count_states() gives up.
PumpkinAnswer solve_pumpkin(const core::HostMachine& machine, const PumpkinProblem& problem,
                            const PumpkinOptions& options);

}  // namespace cairn::solvers
