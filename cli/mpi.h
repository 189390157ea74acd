#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cairn/cli/command.h"
#include "cairn/sim/sweep.h"
#include "cairn/solvers/common/support/peers.h"

namespace cairn::cli {

/// Represents the processes that mpirun started, or this process alone if it was started without mpirun.
class Processes : public sim::Ranks {
 public:
  /// Returns the number of this process among the processes on this machine.
  virtual int local_rank() const { return 0; }
  /// Returns the number of processes on this machine.
  virtual int local_count() const { return 1; }
  /// Ends all processes immediately with this exit code. A process that fails calls this function if the other
  /// processes would otherwise wait for it forever.
  virtual void abort(int exit_code) { (void)exit_code; }
  /// Returns an object that exchanges schedules with the other processes, for SolveOptions::peers. Returns nullptr if
  /// there are no other processes.
  virtual solvers::Peers* peers() { return nullptr; }
  /// Ends the exchange of schedules among peers(). All processes must call this function after their searches. Waits
  /// until all have called it.
  virtual void end_exchange() {}
};

/// Starts MPI if mpirun started this process; the returned object's destructor ends MPI. Throws Failure if mpirun
/// started several processes although Cairn was built without MPI. On Ctrl-C, mpirun sends SIGTERM to the processes,
/// and catch_interrupt() treats SIGTERM like Ctrl-C.
std::unique_ptr<Processes> open_processes();

/// Returns how many threads this process should use: the number given by --threads, or else this process's share of the
/// machine's cores.
int threads_of(const CLI::App& app, const Processes& processes);

/// Returns the seed with which the process of this rank searches if the user gives `seed`. Rank 0 keeps the seed. The
/// sequences of random numbers that different ranks draw from their seeds do not overlap.
std::uint64_t seed_of(std::uint64_t seed, int rank);

/// Runs `step` on every process, and returns whether it succeeded on all of them. If it failed on some, the failed
/// process of lowest rank throws, and the exit code of its failure becomes that of the command. All other processes get
/// false and should exit with code 0: if they exited with another code, mpirun would kill all processes, perhaps before
/// the throwing process has printed its message.
bool together(Processes& processes, const std::function<void()>& step);

/// Runs `step`, which other processes may wait for. If `step` throws and there are other processes, prints the failure
/// (also as JSON if `json` is true) and ends all processes. If there are no other processes, passes the exception on.
void or_end_all(Processes& processes, bool json, const std::function<void()>& step);

}  // namespace cairn::cli
