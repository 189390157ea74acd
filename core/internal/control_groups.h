#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// Limits that control groups (version 1 or 2) set for a process, kept apart from the reading of files. `groups` is the
/// text of /proc/self/cgroup. A group may use no more than the groups that contain it.
namespace cairn::core {

/// Returns the text of a file, or none if there is no such file.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads a file of this machine.
std::optional<std::string> read_text(const std::string& path);

/// The least CPU quota in cores, which may be a fraction. None if there is no quota.
std::optional<double> quota_cores(std::string_view groups, const ReadText& read);

/// The least number of bytes that a memory limit leaves; pages of files that the system may drop do not count as used.
/// None if there is no limit.
std::optional<std::int64_t> group_memory_left(std::string_view groups, const ReadText& read);

}  // namespace cairn::core
