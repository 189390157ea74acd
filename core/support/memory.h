#pragma once

#include <cstdint>

/// The memory that this process can still use.
namespace cairn::core {

/// Returns the bytes that the machine has left (MemAvailable), but no more than the memory limits of this process's
/// control groups leave. Returns the largest int64 if neither is known. Reads files.
std::int64_t available_memory();

/// Returns freed memory to the system, as far as the allocator can. Without this call, memory that a search has freed
/// still counts as used by the process.
void give_back_freed_memory();

}  // namespace cairn::core
