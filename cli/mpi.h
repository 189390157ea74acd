#pragma once

#include <memory>

#include "cairn/sim/sweep.h"

namespace cairn::cli {

/// The processes that mpirun started. If mpirun did not start this process, the group consists of this process alone.
class Processes : public sim::Ranks {
 public:
  /// Returns the number of this process among the processes on this machine.
  virtual int local_rank() const { return 0; }
  /// Returns the number of processes on this machine.
  virtual int local_count() const { return 1; }
  /// Ends all processes immediately with this exit code. A process calls this function if it fails while others wait
  /// for it, because they would wait forever.
  virtual void abort(int exit_code) { (void)exit_code; }
};

/// Starts MPI if mpirun started this process. In that case, the destructor of the returned object ends MPI. If mpirun
/// did not start this process, the returned group consists of this process alone. Throws Failure if mpirun started more
/// than one process and the build has no MPI. On Ctrl-C, mpirun sends SIGTERM to the processes.
std::unique_ptr<Processes> open_processes();

}  // namespace cairn::cli
