#pragma once

/// The number of threads that this process uses.
namespace cairn::core {

/// Number of cores that this process may keep busy: those it is bound to (sched_setaffinity), but no more than the
/// whole cores of the CPU quotas of its control groups (cpu.max; cfs_quota_us of version 1). At least 1. Reads files.
int available_cores();

/// Number of threads where no number is given: CAIRN_THREADS, else OMP_NUM_THREADS, else available_cores(). At least 1.
int thread_count();
/// Sets thread_count() for the whole process; 0 restores the default.
void set_thread_count(int threads);

}  // namespace cairn::core
