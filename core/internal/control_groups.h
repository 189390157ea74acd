#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// Reads the limits that control groups (version 1 or 2) set for a process. A control group can be inside another
/// group; then the limits of both hold for its processes. The parameter `groups` is the text of /proc/self/cgroup,
/// which lists the groups that a process is in. The functions read files through a parameter `read`, so that tests can
/// provide the texts of the files.
namespace cairn::core {

/// A function that returns the text of a file, or none if there is no such file.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

std::optional<std::string> read_text(const std::string& path);

/// Returns the least CPU quota of the process's groups and of the groups that contain them, in cores. It can be a
/// fraction. Returns none if there is no quota.
std::optional<double> quota_cores(std::string_view groups, const ReadText& read);

/// Returns the number of bytes that the memory limits of the process's groups, and of the groups that contain them,
/// leave to the process. Returns none if there is no limit. Inactive cached pages of files do not count as used,
/// because the system can drop them.
std::optional<std::int64_t> group_memory_left(std::string_view groups, const ReadText& read);

}  // namespace cairn::core
