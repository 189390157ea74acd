#pragma once

/// How many threads this process uses.
namespace cairn::core {

/// Cores that this process may keep busy: those that it is bound to (sched_setaffinity), but no more than the whole
/// ones of the CPU quotas of its control groups (cpu.max; cfs_quota_us of version 1). At least 1. Reads files.
int available_cores();

/// Threads of whatever asks for no number: CAIRN_THREADS, else OMP_NUM_THREADS, else available_cores(). At least 1.
int thread_count();
/// Sets it for the whole process; 0 goes back to the default.
void set_thread_count(int threads);

}  // namespace cairn::core
