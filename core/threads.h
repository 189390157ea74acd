#pragma once

/// The number of threads that this process uses.
namespace cairn::core {

/// Returns the number of cores that this process may use: the cores it is bound to (sched_setaffinity), but no more
/// than the whole cores in the CPU quotas of its control groups (cpu.max; cfs_quota_us in version 1). At least 1. Reads
/// files.
int available_cores();

/// Returns the number of threads to use where the caller gives none: CAIRN_THREADS, else OMP_NUM_THREADS, else
/// available_cores(). At least 1.
int thread_count();
/// Sets thread_count() for the whole process; 0 restores the default.
void set_thread_count(int threads);

}  // namespace cairn::core
