#pragma once

#include <cstdint>

/// These functions measure the memory that this process can still use, and give freed memory back to the system.
namespace cairn::core {

/// Returns the number of bytes that this process can still use. This is the memory that the machine has left
/// (MemAvailable), or the memory that the limits of the process's control groups leave, if that is less. Returns the
/// largest int64 if neither is known. Reads files.
std::int64_t available_memory();

/// Returns freed memory to the system, as far as the allocator can. Without this call, memory that a search has freed
/// still counts as used by the process.
void give_back_freed_memory();

}  // namespace cairn::core
