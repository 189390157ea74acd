#pragma once

/// These functions choose the number of threads that this process uses.
namespace cairn::core {

/// Returns the number of cores that this process may use, which is at least 1. This is the number of cores that it is
/// bound to (sched_setaffinity). If CPU quotas of the process's control groups (cpu.max, or cfs_quota_us in version 1)
/// allow fewer whole cores, that smaller number is returned. Reads files.
int available_cores();

/// Returns the number of threads to use if the caller gives none. This is the value of the environment variable
/// CAIRN_THREADS, else that of OMP_NUM_THREADS, else available_cores(). At least 1.
int thread_count();
/// Sets thread_count() for the whole process; 0 restores the default.
void set_thread_count(int threads);

}  // namespace cairn::core
