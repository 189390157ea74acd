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

/// Evaluates many schedules of one graph, which is called a sweep. The schedules, called candidates, are random or come
/// from a file. If several processes share a sweep, their numbers are called ranks.
namespace cairn::pipeline {

/// The number of a line in a file of schedules, and a remark about that line.
using Remark = std::pair<std::int64_t, std::string>;

/// The results of a sweep. If several ranks share the sweep, only rank 0 has the complete results.
struct Swept {
  /// Measures of the candidates. The index of a candidate is its number or, if it comes from a file, the number of its
  /// line in the file.
  sim::Tally tally;
  core::Schedule best;  ///< the best candidate; empty if no candidate is valid
  sim::SweepResult result;
  bool interrupted = false, timed_out = false;
  std::optional<std::int64_t> resumed_from;  ///< number of candidates in the checkpoint; none: there was no checkpoint
  std::int64_t bad_lines = 0;                ///< number of lines that are not a schedule
  /// bad: the first lines that are not a schedule; invalid: the first lines whose schedule is not valid for the graph.
  std::vector<Remark> bad, invalid;
  /// Error message about the line that ended the sweep; empty: no line did.
  std::string failure;
  std::optional<sim::Undominated> undominated;  ///< candidates that are not dominated by any other; none: not asked for

  double per_second() const;  ///< Returns the number of candidates evaluated per second in this run.
};

/// The source of a sweep's candidates, and the simulator that evaluates them.
struct SweepOrigin {
  std::optional<sim::Generator> random;  ///< generator of random candidates; none: the schedules were given
  std::string file;                      ///< file with the given schedules; empty: they come from no file
  /// backend: name of the simulator's backend; device: description of the device on which the backend runs.
  std::string backend, device;
  int ranks = 1;  ///< number of processes that share the sweep

  /// Returns "random", the path of the file, or "given".
  std::string source() const;
  /// Describes where the candidates come from, for people: "random schedules of seed 7, at most 2 moves", "schedules of
  /// lines.txt".
  std::string text() const;
};

/// Returns options for the statistics (sim::Tally) of a sweep over the problem's graph. The tally counts the candidates
/// within the problem's budget and keeps the `top` best candidates.
sim::TallyOptions tally_options(const fit::Problem& problem, std::int32_t top);

/// A sweep over random schedules. Its state can be saved in a checkpoint file, from which a later process continues.
struct RandomSweep {
  sim::Sweep sweep;
  std::string checkpoint;                    ///< path of the checkpoint file; empty: there is none
  std::optional<std::int64_t> resumed_from;  ///< as Swept::resumed_from
  /// Whether to fill Swept::undominated from the candidates that were swept within the limits. Possible only with one
  /// rank.
  bool undominated = false;
};
/// Returns the sweep `wanted`. If `resume` is set and the checkpoint file exists, the sweep continues from there.
/// Throws InputError as sim::resume_sweep() does.
RandomSweep random_sweep(const fit::Problem& problem, sim::Sweep wanted, std::string checkpoint, bool resume);
/// Runs the sweep. If there is a checkpoint file, sets options.checkpoint so that the sweep writes that file.
Swept sweep_random(const fit::Problem& problem, sim::Simulator& simulator, RandomSweep& random,
                   sim::SweepOptions options, sim::Ranks& ranks);

/// A file with one schedule per line, which is a list of node numbers or a cairn.schedule object.
struct ScheduleFile {
  std::string path;  ///< path of the file; `-`: stdin
  /// Whether to leave out lines that are not a schedule; false: the first such line ends the sweep.
  bool skip_bad_lines = false;
  std::string output;        ///< CSV file to write, with a line for every schedule; empty: none
  bool undominated = false;  ///< whether to fill Swept::undominated; possible only with one rank
};
/// Evaluates the schedules of the file. If file.output is given, writes a line of this CSV file for each schedule. The
/// ranks share the work, so every rank must be able to read the file. Fields of `options` about rounds and checkpoints
/// are ignored.
Swept sweep_file(const fit::Problem& problem, sim::Simulator& simulator, const ScheduleFile& file,
                 const sim::TallyOptions& tally, const sim::SweepOptions& options, sim::Ranks& ranks);

/// Evaluates the best schedule again with core::evaluate(). Throws DefectError if peak or cost differ from what the
/// simulator computed.
void check_best(const fit::Problem& problem, const Swept& swept);
/// Returns CSV with the best candidates of a random sweep and those of its Pareto set. Generates these candidates and
/// evaluates them again. Throws DefectError if peak or cost of one of them differ from what the simulator computed.
std::string random_csv(const fit::Problem& problem, const sim::Generator& generator, const sim::Tally& tally);

/// A tally's histogram in the form in which it is shown: from the first to the last non-empty bin. Neighbouring bins
/// are merged so that at most 64 remain.
struct Histogram {
  /// from: lower end of bin 0, in bytes; width: width of each bin, in bytes. Bin b counts the peaks in [from + b *
  /// width, from + (b + 1) * width).
  std::int64_t from = 0, width = 1;
  std::vector<std::int64_t> counts;  ///< number of candidates in each bin; empty if no candidate is valid
};
Histogram shown_histogram(const sim::Tally& tally);
/// Percentages of the quantiles that reports show.
inline constexpr std::array<std::int32_t, 9> kPercents = {0, 1, 5, 25, 50, 75, 95, 99, 100};

}  // namespace cairn::pipeline
