#pragma once

#include <cstdint>

/// How much memory this process may still take.
namespace cairn::core {

/// Bytes that the machine has left (MemAvailable), but no more than the memory limits of this process's control groups
/// leave it. The largest number where neither is known. Reads files.
std::int64_t available_memory();

/// Gives memory that was freed back to the system, as far as the allocator can: what a search leaves behind would count
/// as taken.
void give_back_freed_memory();

}  // namespace cairn::core
