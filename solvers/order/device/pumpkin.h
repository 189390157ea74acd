#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"

/// Solves the dynamic program of Theorem 8.2 of Jin et al. for parallel chains, here called branches, between a source
/// and a sink (a pumpkin graph). A schedule is dominant if its memory profile dominates the profiles of all others
/// (core/dominance.h). A segment is a part of a profile that rises from a valley to a peak and drops to the next
/// valley. The dominant schedule of a set of branches begins with the first step of one branch. The other steps of this
/// branch follow, merged with the dominant schedule of the other branches (Theorem 6.8). The program tries each branch
/// as the first one.
namespace cairn::solvers {

/// Describes all branches that have a certain memory profile. Sizes are in bytes.
struct PumpkinKind {
  core::Segment key;                ///< the first step of the branch, which reads the source
  std::vector<core::Segment> rest;  ///< the segments after the first step
  std::int32_t copies = 1;          ///< number of branches with this profile, >= 1
};

/// Describes a problem of parallel branches between a source and a sink. A state of the dynamic program is a multiset
/// of branches, given by the number of branches of each kind. If all d branches differ, there are 2^d states.
struct PumpkinProblem {
  std::vector<PumpkinKind> kinds;  ///< at most 255, because one byte stores a kind's number
  std::int64_t released = 0;       ///< bytes of the source, freed when the first steps of all branches have run

  std::int64_t branches() const;
};

struct PumpkinOptions {
  /// Largest number of bytes of the machine's memory for the whole table.
  std::int64_t memory_bytes = std::numeric_limits<std::int64_t>::max();
  /// Number of states solved between two calls of `go_on`. On a device this should be millions of states, because the
  /// device is idle during each call.
  std::int64_t chunk = std::int64_t{1} << 22;
  /// Called after each chunk with the number of candidates tried since the last call. A candidate for a state is the
  /// best schedule in which a given kind starts first. The number is the same on every machine. If the function returns
  /// false, the search ends.
  std::function<bool(std::int64_t)> go_on;
};

struct PumpkinAnswer {
  enum class End : std::uint8_t {
    solved,
    stopped,    ///< `go_on` returned false
    too_large,  ///< memory_bytes is too small for the table
  };
  End end = End::solved;
  /// The kinds in the order in which their branches start. The first step of the last branch frees the source. Empty
  /// unless the problem was solved.
  std::vector<std::uint8_t> order;
  /// Segments of the dominant schedule, without those that do not matter for dominance.
  std::vector<core::Segment> segments;
  /// Largest number of bytes in use on the machine. If too_large: a lower bound on the bytes that the table needs.
  std::int64_t bytes = 0;
  /// For each number of branches, from 0 on, the number of segments of all states with this number of branches.
  std::vector<std::int64_t> segments_of_layer;
  bool operator==(const PumpkinAnswer&) const = default;
};

/// Counts the multisets of each size from 0 to the number of branches. Returns an empty list if there are more than
/// 2^40 multisets or more than 255 kinds, because such a table cannot be stored. O(kinds * branches).
std::vector<std::int64_t> count_states(const PumpkinProblem& problem);

/// Returns an upper bound on the bytes of the table, which is reached if no two segments ever merge. Returns the
/// largest int64 if count_states() gives up.
std::int64_t most_bytes(const PumpkinProblem& problem);

/// Solves the dynamic program layer by layer; a layer consists of all states of one size. Memory holds the segments of
/// two layers and, for every state, one byte with the kind that starts first. If several kinds are equally good, the
/// last of them in `kinds` starts first. The answer is the same on every machine. Sums of rises and drops must be below
/// 2^62. O(states * kinds * segments of a state). Throws InputError if count_states() gives up.
PumpkinAnswer solve_pumpkin(const core::HostMachine& machine, const PumpkinProblem& problem,
                            const PumpkinOptions& options);

}  // namespace cairn::solvers
