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

/// The processes that do one job together, each its own part. All of them make the same calls in the same order. This
/// base class is a single process.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  /// Sends rank 0's values to all.
  virtual void broadcast(std::span<std::int64_t> values) { (void)values; }
  /// Returns, on rank 0, what each rank passed, in the order of ranks; on the others, nothing.
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }
};

/// Adds every rank's tally to that of rank 0; the others become empty. All must have the same options.
void merge_to_first(Tally& tally, Ranks& ranks);

/// A sweep over candidates 0 .. total - 1 of a generator, and the results of the first `done` of them.
struct Sweep {
  Generator generator;
  std::int64_t total = 0;
  std::int64_t done = 0;
  Tally tally;
};

/// Writes a checkpoint: one line of JSON, {"format":"cairn.sweep","version":2,"graph":fingerprint,"costs":hash of the
/// costs,"seed":..,"moves":..,"total":..,"done":..,"tally":{..},"checksum":CRC-32 of the text before it}.
std::string sweep_to_json(const core::Graph& graph, const Sweep& sweep);
/// Returns `wanted` with the results stored in the checkpoint `text`. Throws InputError, with one line that begins with
/// `origin`, if `text` is no checkpoint or damaged; if it is of another graph, other costs, another generator or other
/// options of the tally; or if it has done more than wanted.total.
Sweep resume_sweep(std::string_view text, const std::string& origin, const core::Graph& graph, Sweep wanted);

struct SweepProgress {
  std::int64_t done = 0, total = 0;  ///< number of candidates evaluated so far, and in all
  double seconds = 0;                ///< duration of this run
  double per_second = 0;             ///< candidates per second, in this run
  std::optional<Entry> best;
};

/// Options of a sweep. None of them changes the result.
struct SweepOptions {
  std::int64_t at_once = 0;     ///< most candidates that a simulator gets at once; 0: all of a round
  double round_seconds = 0.25;  ///< approximate time between two checks of the clock, the stop flag and the other ranks
  const std::atomic<bool>* stop = nullptr;                   ///< ends the sweep after a round once it is set
  double seconds = std::numeric_limits<double>::infinity();  ///< ends the sweep after a round once they have passed
  std::function<void(const SweepProgress&)> progress;        ///< called after every round, on rank 0
  std::function<void(const Sweep&)> checkpoint;              ///< called on rank 0 at intervals, and at the end
  double checkpoint_seconds = 30;
};

struct SweepResult {
  std::int64_t evaluated = 0;  ///< number of candidates evaluated in this run
  double seconds = 0;
};

/// Evaluates candidates sweep.done .. sweep.total - 1, or as many as the limits allow; the ranks share each round. Only
/// rank 0's sweep and options count, and only its sweep holds the tally afterwards. The tally does not depend on the
/// number of ranks, on the rounds, or on the runs that a sweep was divided into.
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options, Ranks& ranks);
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options = {});

}  // namespace cairn::sim
