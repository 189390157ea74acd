#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/generator.h"
#include "cairn/sim/simulator.h"
#include "cairn/sim/tally.h"

namespace cairn::sim {

/// A group of processes (ranks) that share one job, as in MPI. All ranks must make the same calls of these functions in
/// the same order. This base class is a group of one process; derived classes connect several.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  /// Sends the values of rank 0 to all other ranks, which receive them in `values`.
  virtual void broadcast(std::span<std::int64_t> values) { (void)values; }
  /// Returns, on rank 0, the strings that all ranks passed, ordered by rank. Returns an empty vector on every other
  /// rank.
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }
};

/// Adds the tallies of all ranks to the tally of rank 0. The tallies of all other ranks become empty. The tallies must
/// have the same options.
void merge_to_first(Tally& tally, Ranks& ranks);

/// The state of a sweep. A sweep evaluates candidates (random schedules) 0 .. total - 1 of a generator. The first
/// `done` candidates have been evaluated, and `tally` holds their results.
struct Sweep {
  Generator generator;
  std::int64_t total = 0;
  std::int64_t done = 0;
  Tally tally;
};

/// Returns a checkpoint as one line of JSON: {"format":"cairn.sweep","version":4,"graph":fingerprint,"costs":hash of
/// the costs,"seed":..,"moves":..,"total":..,"done":..,"tally":{..},"checksum":CRC-32 of the text before it}.
std::string sweep_to_json(const core::Graph& graph, const Sweep& sweep);
/// Returns a copy of `wanted` that has the values of `done` and `tally` from the checkpoint `text`. Throws InputError
/// in these cases:
/// - `text` is damaged, not a checkpoint, or of an older version, in which the numbers of candidates stood for other
///   schedules;
/// - the checkpoint was made for another graph, other costs, another generator or other options of the tally;
/// - the checkpoint covers more candidates than wanted.total.
/// The error's message is one line that begins with `origin`, the name of the checkpoint file.
Sweep resume_sweep(std::string_view text, const std::string& origin, const core::Graph& graph, Sweep wanted);

struct SweepProgress {
  std::int64_t done = 0, total = 0;  ///< done: number of candidates evaluated so far; total: number of all candidates
  double seconds = 0;                ///< duration of this run so far
  double per_second = 0;             ///< candidates per second, in this run
  std::optional<Entry> best;
};

/// Options of a sweep. They decide how many candidates are evaluated and when, but not the tally of a given number of
/// candidates.
struct SweepOptions {
  std::int64_t at_once = 0;  ///< largest number of candidates that a simulator gets in one call; 0: no such limit
  /// Duration of a round. A sweep runs in rounds of about this duration. After each round, the sweep checks the clock
  /// and `stop`, and waits for all ranks.
  double round_seconds = 0.25;
  const std::atomic<bool>* stop = nullptr;  ///< once *stop is true, the sweep ends after the current round
  /// Time limit in seconds. Once it has passed, the sweep ends after the current round.
  double seconds = std::numeric_limits<double>::infinity();
  std::function<void(const SweepProgress&)> progress;  ///< called after every round, on rank 0
  std::function<void(const Sweep&)> checkpoint;        ///< called on rank 0 every checkpoint_seconds, and at the end
  double checkpoint_seconds = 30;
};

struct SweepResult {
  std::int64_t evaluated = 0;  ///< number of candidates evaluated in this run
  double seconds = 0;
};

/// Evaluates candidates sweep.done .. sweep.total - 1, or as many of them as the limits in `options` allow. The sweep
/// runs in rounds, and the ranks share the candidates of each round. Rank 0 decides what is evaluated, by its `sweep`
/// and its `options`. Afterwards, only the sweep of rank 0 holds the tally. The tally does not depend on the number of
/// ranks, on the rounds, or on how a sweep was divided into runs.
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options, Ranks& ranks);
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options = {});

}  // namespace cairn::sim
