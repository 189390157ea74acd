#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/schedule.h"
#include "cairn/sim/simulator.h"
#include "cairn/sim/sweep.h"
#include "cairn/sim/undominated.h"
#include "cairn/solvers/fit/problem.h"

/// A sweep evaluates many schedules (candidates) of one graph, which are random or come from a file. Several processes,
/// whose numbers are called ranks, can share a sweep.
namespace cairn::pipeline {

/// The number of a line in a file of schedules, and what is wrong with it.
using Remark = std::pair<std::int64_t, std::string>;

/// The results of a sweep. They are complete only on rank 0.
struct Swept {
  /// Statistics of the candidates. The index of a candidate is its number in the sequence of random schedules or, if
  /// candidates come from a file, the number of its line.
  sim::Tally tally;
  core::Schedule best;  ///< the best candidate; empty if no candidate is valid
  sim::SweepResult result;
  bool interrupted = false, timed_out = false;
  std::optional<std::int64_t> resumed_from;  ///< number of candidates in the checkpoint; none: no checkpoint was loaded
  std::int64_t bad_lines = 0;                ///< number of lines that are not a schedule
  /// `bad` has the first lines that are not a schedule. `invalid` has the first lines with a schedule that is invalid
  /// for the graph.
  std::vector<Remark> bad, invalid;
  /// Error message about a line that ended the sweep; empty if no line did.
  std::string failure;
  /// Candidates that no other candidate dominates (core/dominance.h); none: not asked for.
  std::optional<sim::Undominated> undominated;

  double per_second() const;  ///< Returns the candidates per second of this run.
};

/// The source of a sweep's candidates, and the simulator that evaluates them.
struct SweepOrigin {
  std::optional<sim::Generator> random;  ///< generator of random candidates; none: schedules were given
  std::string file;                      ///< file with the given schedules; empty: they come from no file
  /// Name of the simulator's backend, and description of its device.
  std::string backend, device;
  int ranks = 1;  ///< number of processes that share the sweep

  /// Returns "random", the path of the file, or "given".
  std::string source() const;
  /// Says for people where the candidates come from: "random schedules of seed 7, at most 2 moves", "schedules of
  /// lines.txt".
  std::string text() const;
};

/// Returns options for the statistics (sim::Tally) of a sweep. With these options, the statistics count the candidates
/// within the problem's budget, and list the `top` best candidates.
sim::TallyOptions tally_options(const fit::Problem& problem, std::int32_t top);

/// A sweep over random schedules. Its state can be saved in a checkpoint file, from which a later process continues.
struct RandomSweep {
  sim::Sweep sweep;
  std::string checkpoint;                    ///< path of the checkpoint file; empty: there is none
  std::optional<std::int64_t> resumed_from;  ///< number of candidates in the checkpoint; none: not resumed
  /// Whether to fill Swept::undominated from the candidates that were evaluated before a limit ended the sweep. Needs a
  /// single rank.
  bool undominated = false;
};
/// Returns the sweep `wanted`, continued from the checkpoint file if `resume` is set and the file exists. Throws
/// InputError as sim::resume_sweep() does.
RandomSweep random_sweep(const fit::Problem& problem, sim::Sweep wanted, std::string checkpoint, bool resume);
/// Runs the sweep. Sets options.checkpoint if there is a checkpoint file to write.
Swept sweep_random(const fit::Problem& problem, sim::Simulator& simulator, RandomSweep& random,
                   sim::SweepOptions options, sim::Ranks& ranks);

/// A file with one schedule per line, which is a list of node numbers or a cairn.schedule object.
struct ScheduleFile {
  std::string path;  ///< path of the file; `-`: stdin
  /// Whether to skip lines that are not a schedule. If false, the first such line ends the sweep.
  bool skip_bad_lines = false;
  std::string output;        ///< CSV file to write, with a line for every schedule; empty: none
  bool undominated = false;  ///< whether to fill Swept::undominated; needs a single rank
};
/// Evaluates the schedules of the file, and writes file.output if that is given. The ranks share the work, so every
/// rank must be able to read the file. Fields of `options` about rounds and checkpoints are only for random schedules,
/// and are ignored.
Swept sweep_file(const fit::Problem& problem, sim::Simulator& simulator, const ScheduleFile& file,
                 const sim::TallyOptions& tally, const sim::SweepOptions& options, sim::Ranks& ranks);

/// Throws DefectError if core::evaluate() computes another peak or cost for the best schedule than the simulator did.
void check_best(const fit::Problem& problem, const Swept& swept);
/// Returns CSV with the best candidates of a random sweep, and with the candidates on the Pareto front of peak and
/// cost. Generates and evaluates these candidates again. Throws DefectError if a peak or cost differs from what the
/// simulator computed.
std::string random_csv(const fit::Problem& problem, const sim::Generator& generator, const sim::Tally& tally);

/// A tally's histogram as reports show it: without empty bins at the ends, and with neighbouring bins merged so that at
/// most 64 remain.
struct Histogram {
  /// Bin b counts the peaks in [from + b * width, from + (b + 1) * width), in bytes.
  std::int64_t from = 0, width = 1;
  std::vector<std::int64_t> counts;  ///< number of candidates in each bin; empty if no candidate is valid
};
Histogram shown_histogram(const sim::Tally& tally);
/// Percentages of the quantiles that reports show.
inline constexpr std::array<std::int32_t, 9> kPercents = {0, 1, 5, 25, 50, 75, 95, 99, 100};

}  // namespace cairn::pipeline
