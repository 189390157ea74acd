#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// What the control groups of a process leave it, apart from the files that they stand in. `groups`: the text of
/// /proc/self/cgroup. A group may use no more than those that it lies in, of version 1 or 2.
namespace cairn::core {

/// The text of a file; none where there is no such file.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

/// The text of a file of this machine.
std::optional<std::string> read_text(const std::string& path);

/// Cores, maybe a fraction: the least CPU quota. None where there is no quota.
std::optional<double> quota_cores(std::string_view groups, const ReadText& read);

/// Bytes: the least of what memory limits leave, pages of files that the system may drop not counted as used. None
/// where there is no limit.
std::optional<std::int64_t> group_memory_left(std::string_view groups, const ReadText& read);

}  // namespace cairn::core
