#pragma once

#include <memory>

#include "cairn/sim/sweep.h"

namespace cairn::cli {

/// The processes that mpirun started, or this one alone.
class Processes : public sim::Ranks {
 public:
  /// Among the processes of this machine.
  virtual int local_rank() const { return 0; }
  virtual int local_count() const { return 1; }
  /// Ends all processes at once with this exit code: for one that fails while others wait for it.
  virtual void abort(int exit_code) { (void)exit_code; }
};

/// MPI starts only where mpirun started this process, and ends with what is returned; everyone else is alone. mpirun
/// makes SIGTERM of Ctrl-C. Throws Failure where mpirun started more than one process and the build has no MPI.
std::unique_ptr<Processes> open_processes();

}  // namespace cairn::cli
