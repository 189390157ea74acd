#pragma once

#include <cstdint>

/// The memory that this process may still take.
namespace cairn::core {

/// Bytes that the machine has left (MemAvailable), but no more than the memory limits of this process's control groups
/// leave. The largest int64 if neither is known. Reads files.
std::int64_t available_memory();

/// Returns freed memory to the system, as far as the allocator can. Otherwise, memory that a search has freed would
/// count as taken.
void give_back_freed_memory();

}  // namespace cairn::core
