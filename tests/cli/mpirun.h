#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

#include "cairn/tests/cli/command.h"

namespace cairn::tests {

/// Starts `cairn` with the arguments `words` under mpirun, in `processes` processes on this machine.
inline Child mpirun(int processes, const Words& words) {
  // The MPI library leaks memory. In a build with the address sanitizer, these leaks must not fail the test.
  const Words before = {"ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1", "mpirun", "--oversubscribe"};
  const Words ranks = {"--allow-run-as-root", "-np", std::to_string(processes)};
  return Child(before + ranks + Words{CAIRN_BINARY_DIR "/bin/cairn"} + words, "", "/usr/bin/env");
}

/// Returns whether mpirun is missing or this build has no MPI. In both cases it prints a line from which ctest
/// recognizes that the test was skipped.
inline bool no_mpi() {
  std::string why;
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0) {
    why = "no mpirun";
  } else if (mpirun(2, {"simulate", "ffn", "--random", "1"}).wait().err.find("this build has no MPI") !=
             std::string::npos) {
    why = "this build has no MPI";
  }
  if (!why.empty()) std::cout << "skipped: " << why << std::endl;
  return !why.empty();
}

}  // namespace cairn::tests
