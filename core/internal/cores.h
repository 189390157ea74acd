#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// CPU quotas of control groups, apart from the files that they stand in.
namespace cairn::core {

/// The text of a file; none where there is no such file.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

/// Cores, maybe a fraction, that the control groups of a process leave it: the least quota of its groups and of those
/// that they lie in. `groups`: the text of /proc/self/cgroup. None where there is no quota.
std::optional<double> quota_cores(std::string_view groups, const ReadText& read);

}  // namespace cairn::core
