#pragma once

#include <memory>

#include "cairn/sim/sweep.h"

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
};

/// Starts MPI if mpirun started this process; the returned object's destructor ends MPI. Throws Failure if mpirun
/// started several processes and the build has no MPI. On Ctrl-C, mpirun sends SIGTERM to the processes.
std::unique_ptr<Processes> open_processes();

}  // namespace cairn::cli
