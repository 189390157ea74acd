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

/// Evaluating many schedules of one problem: random ones, or those of a file.
namespace cairn::pipeline {

/// A line of a file and what is to be said of it.
using Remark = std::pair<std::int64_t, std::string>;

/// What a sweep came to; complete on rank 0 alone.
struct Swept {
  sim::Tally tally;     ///< a candidate's index is its number, or its line
  core::Schedule best;  ///< of the tally's top; empty where nothing is valid
  sim::SweepResult result;
  bool interrupted = false, timed_out = false;
  std::optional<std::int64_t> resumed_from;  ///< candidates of the checkpoint
  std::int64_t bad_lines = 0;
  std::vector<Remark> bad, invalid;             ///< the first few
  std::string failure;                          ///< the line that ended it, in words
  std::optional<sim::Undominated> undominated;  ///< where that was asked for

  double per_second() const;  ///< candidates, in this run
};

/// Where the candidates of a sweep come from, and what evaluates them.
struct SweepOrigin {
  std::optional<sim::Generator> random;  ///< none: they are given
  std::string file;                      ///< of those that are given; empty: they come from no file
  std::string backend, device;           ///< of the simulator
  int ranks = 1;

  /// "random", the file, or "given".
  std::string source() const;
  /// "random schedules of seed 7, at most 2 moves", "schedules of lines.txt".
  std::string text() const;
};

/// That of the problem's graph and budget, with so many of the best.
sim::TallyOptions tally_options(const fit::Problem& problem, std::int32_t top);

/// Random schedules, of which a file keeps the state.
struct RandomSweep {
  sim::Sweep sweep;
  std::string checkpoint;                    ///< the file; empty: none
  std::optional<std::int64_t> resumed_from;  ///< Swept::resumed_from
  bool undominated = false;  ///< fills Swept::undominated, of what was swept before the limits; one rank
};
/// Goes on from the checkpoint where `resume` is set and there is one. Throws InputError as sim::resume_sweep.
RandomSweep random_sweep(const fit::Problem& problem, sim::Sweep wanted, std::string checkpoint, bool resume);
/// Of `options`, `checkpoint` is filled in here.
Swept sweep_random(const fit::Problem& problem, sim::Simulator& simulator, RandomSweep& random,
                   sim::SweepOptions options, sim::Ranks& ranks);

/// A file of schedules, one a line: a list of node numbers or a cairn.schedule object.
struct ScheduleFile {
  std::string path;             ///< - for stdin
  bool skip_bad_lines = false;  ///< else the first one ends the sweep
  std::string output;           ///< CSV file to write, a line for every schedule; empty: none
  bool undominated = false;     ///< fills Swept::undominated; one rank
};
/// Evaluates the schedules, divided among the ranks line by line, and writes the output as it goes. All ranks must be
/// able to read the file. Of `options`, what is about rounds and checkpoints is not read.
Swept sweep_file(const fit::Problem& problem, sim::Simulator& simulator, const ScheduleFile& file,
                 const sim::TallyOptions& tally, const sim::SweepOptions& options, sim::Ranks& ranks);

/// Evaluates the best schedule again. Throws DefectError where the simulator had other figures.
void check_best(const fit::Problem& problem, const Swept& swept);
/// CSV: best and Pareto candidates of a random sweep, generated and evaluated again. Throws DefectError likewise.
std::string random_csv(const fit::Problem& problem, const sim::Generator& generator, const sim::Tally& tally);

/// The bins of a tally that hold anything, put together into 64 or less.
struct Histogram {
  std::int64_t from = 0, width = 1;  ///< bytes: counts[b] are in [from + b * width, from + (b + 1) * width)
  std::vector<std::int64_t> counts;  ///< empty where nothing is valid
};
Histogram shown_histogram(const sim::Tally& tally);
/// Quantiles that are shown.
inline constexpr std::array<std::int32_t, 9> kPercents = {0, 1, 5, 25, 50, 75, 95, 99, 100};

}  // namespace cairn::pipeline
