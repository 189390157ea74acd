#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/cli/common.h"
#include "cairn/cli/mpi.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/simulator.h"
#include "cairn/sim/sweep.h"

/// The parts of `cairn simulate`.
namespace cairn::cli {

struct SimulateArguments {
  Console console;
  GraphSource source;
  std::string random, schedules;  ///< one of both is empty
  std::string backend = "auto", budget, time_limit, on_bad_line = "stop", checkpoint, checkpoint_every = "30s";
  std::string output, best, report;
  std::uint64_t seed = 0;
  std::int32_t moves = 0, top = 10;
  std::int64_t at_once = 0;  ///< 0: as many as suits
  int threads = 0;           ///< 0: those of the machine, divided among its processes
};

/// A line of a file and what is to be said of it.
using Remark = std::pair<std::int64_t, std::string>;
inline constexpr std::size_t kMostRemarks = 8;

/// What a sweep came to; complete on rank 0 alone.
struct Swept {
  sim::Tally tally;     ///< a candidate's index is its number, or its line
  core::Schedule best;  ///< of the tally's top; empty where nothing is valid
  sim::SweepResult result;
  bool interrupted = false, timed_out = false;
  std::optional<std::int64_t> resumed_from;  ///< candidates of the checkpoint
  std::int64_t bad_lines = 0;
  std::vector<Remark> bad, invalid;  ///< the first few
  std::string failure;               ///< the line that ended it, in words
};

/// Evaluates the schedules of a file, divided among the ranks line by line, and writes -o as it goes. All ranks must be
/// able to read the file.
Swept sweep_schedules(const SimulateArguments& arguments, const Problem& problem, const sim::TallyOptions& tally,
                      sim::Simulator& simulator, Processes& processes);

/// The result in the forms that people and programs get. `device`, `backend`: the simulator's.
Json describe(const SimulateArguments& arguments, const Problem& problem, const Swept& swept,
              const sim::Simulator& simulator, int ranks);
std::string table(const Problem& problem, const Json& json, const Swept& swept);
std::string report_page(const Problem& problem, const Json& json, const Swept& swept);

/// On stderr while that is a terminal; erases itself when it ends.
class SweepLine {
 public:
  SweepLine(const Console& console, const Problem& problem);
  ~SweepLine();
  SweepLine(const SweepLine&) = delete;
  SweepLine& operator=(const SweepLine&) = delete;

  /// `total` is 0 where it is not known.
  void show(const sim::SweepProgress& progress);

 private:
  bool active_, shown_ = false;
  std::int64_t baseline_peak_;
};

}  // namespace cairn::cli
