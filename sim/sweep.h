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

/// The processes that do one thing together, each on its own part. All of them make the same calls in the same order.
/// As it stands here: one process alone.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  /// Gives rank 0's values to all.
  virtual void broadcast(std::span<std::int64_t> values) { (void)values; }
  /// What each rank gave, in their order, on rank 0; nothing on the others.
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }
};

/// Adds every rank's tally to that of rank 0; the others' become empty. All have the same options.
void merge_to_first(Tally& tally, Ranks& ranks);

/// Candidates 0 .. total - 1 of a generator, and what is known of the first `done` of them.
struct Sweep {
  Generator generator;
  std::int64_t total = 0;
  std::int64_t done = 0;
  Tally tally;
};

/// A checkpoint: one line of JSON, {"format":"cairn.sweep","version":1,"graph":fingerprint,"costs":hash of the
/// costs,"seed":..,"moves":..,"total":..,"done":..,"tally":{..}}.
std::string sweep_to_json(const core::Graph& graph, const Sweep& sweep);
/// `wanted` with what `text` knows of it. Throws InputError, one line that begins with `origin`, on what is no
/// checkpoint or damaged; on one of another graph, other costs, another generator or other options of the tally; and on
/// one that has done more than wanted.total.
Sweep resume_sweep(std::string_view text, const std::string& origin, const core::Graph& graph, Sweep wanted);

struct SweepProgress {
  std::int64_t done = 0, total = 0;  ///< candidates
  double seconds = 0;                ///< of this run
  double per_second = 0;             ///< candidates, in this run
  std::optional<Entry> best;
};

/// None of these changes what comes out.
struct SweepOptions {
  std::int64_t at_once = 0;     ///< most candidates that a simulator is given at once; 0: as many as a round has
  double round_seconds = 0.25;  ///< between two looks at the clock, the stop flag and the other ranks, about
  const std::atomic<bool>* stop = nullptr;                   ///< ends the sweep after a round
  double seconds = std::numeric_limits<double>::infinity();  ///< likewise
  std::function<void(const SweepProgress&)> progress;        ///< after every round, on rank 0
  std::function<void(const Sweep&)> checkpoint;              ///< on rank 0: every so often, and at the end
  double checkpoint_seconds = 30;
};

struct SweepResult {
  std::int64_t evaluated = 0;  ///< candidates, in this run
  double seconds = 0;
};

/// Evaluates candidates sweep.done .. sweep.total - 1, or as many as the limits allow; the ranks divide each round
/// among themselves. Only rank 0's sweep and options count, and only its sweep holds the tally afterwards. Whatever the
/// number of ranks, the rounds, and the runs that a sweep was divided into, the tally is the same.
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options, Ranks& ranks);
SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options = {});

}  // namespace cairn::sim
