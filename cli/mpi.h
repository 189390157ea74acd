#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cairn/cli/command.h"
#include "cairn/sim/sweep.h"
#include "cairn/solvers/common/peers.h"

namespace cairn::cli {

/// The processes that mpirun started, or this process alone if it was started without mpirun.
class Processes : public sim::Ranks {
 public:
  /// Returns the number of this process among the processes on this machine.
  virtual int local_rank() const { return 0; }
  /// Returns the number of processes on this machine.
  virtual int local_count() const { return 1; }
  /// Ends all processes immediately with this exit code. A process that fails calls this if others would wait for it
  /// forever.
  virtual void abort(int exit_code) { (void)exit_code; }
  /// Returns the other processes, for SolveOptions::peers; nullptr if there are none.
  virtual solvers::Peers* peers() { return nullptr; }
  /// Ends the exchange among peers(). All processes must call this after their searches. Waits for all of them.
  virtual void end_exchange() {}
};

/// Starts MPI if mpirun started this process; the returned object's destructor ends MPI. Throws Failure if mpirun
/// started several processes and the build has no MPI. On Ctrl-C, mpirun sends SIGTERM to the processes.
std::unique_ptr<Processes> open_processes();

/// Returns how many threads this process should use: its share of the cores of the machine, unless the user gives a
/// number by --threads.
int threads_of(const CLI::App& app, const Processes& processes);

/// Returns the failure with the number of the process in its message.
Failure named(const Failure& failure, const Processes& processes);

/// Runs `step` on every process and returns whether it succeeded on all. If not, the process of the lowest rank on
/// which it failed throws, and its exit code becomes the command's. The other processes get false and should exit with
/// code 0, because mpirun kills all processes when one exits with another code, perhaps before the message is printed.
bool together(Processes& processes, const std::function<void()>& step);

}  // namespace cairn::cli
