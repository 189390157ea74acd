#include "cairn/core/internal/control_groups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace cairn::core {
namespace {

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> whole_in(const std::string& path, const ReadText& read) {
  const std::optional<std::string> text = read(path);
  if (!text) return std::nullopt;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text->c_str(), &end, 10);
  if (end == text->c_str()) return std::nullopt;  // the file holds "max": there is no limit
  return value;
}

/// Returns the CPU quota of one control group (cgroup), in cores: `quota` divided by `period`, both in microseconds.
/// Returns none if the group has no quota; its file then holds "max" or -1.
std::optional<double> ratio(const std::optional<double>& quota, const std::optional<double>& period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

/// Returns the CPU quota, in cores, of the group whose files are in `folder`. `unified` says whether the group is of
/// version 2. Returns none if the group has no quota.
std::optional<double> quota_of(const std::string& folder, bool unified, const ReadText& read) {
  if (unified) {
    const std::optional<std::string> text = read(folder + "/cpu.max");
    if (!text) return std::nullopt;
    const std::size_t space = text->find(' ');
    if (space == std::string::npos) return std::nullopt;
    return ratio(number_of(text->substr(0, space)), number_of(text->substr(space)));
  }
  const std::optional<std::string> quota = read(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period = read(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return ratio(number_of(*quota), number_of(*period));
}

/// Returns the number named `name` in the group's file memory.stat, or 0 if there is none.
std::int64_t counter(const std::string& folder, std::string_view name, const ReadText& read) {
  std::istringstream words(read(folder + "/memory.stat").value_or(""));
  std::string word;
  for (std::int64_t value = 0; words >> word >> value;) {
    if (word == name) return value;
  }
  return 0;
}

std::optional<std::int64_t> memory_left_in(const std::string& folder, bool unified, const ReadText& read) {
  const auto limit = whole_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"), read);
  const auto used = whole_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"), read);
  if (!limit || !used) return std::nullopt;
  const std::int64_t droppable = counter(folder, unified ? "inactive_file" : "total_inactive_file", read);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *used - droppable));
}

/// Finds the groups of this process that limit the resource `controller` ("cpu" or "memory"), and the groups that
/// contain them. Calls of_group(folder, unified) for each and returns the least result. `groups` is the text of
/// /proc/self/cgroup, which names the groups of this process.
template <class OfGroup>
auto least_of_groups(std::string_view groups, std::string_view controller, const OfGroup& of_group) {
  decltype(of_group(std::string(), true)) least;
  const std::string wanted = "," + std::string(controller) + ",";
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    // a line has the form hierarchy:controllers:path; version 2 names no controllers
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(wanted) == std::string::npos) continue;
    const std::string root = "/sys/fs/cgroup" + (unified ? "" : "/" + controllers);
    std::string path = line.substr(second + 1);
    while (!path.empty() && path.back() == '/') path.pop_back();
    // In a container, the path can be the group's path on the host. The folder of that path may not exist in the
    // container, where perhaps only the root folder exists. So all folders from the path up to the root are tried.
    for (;;) {
      const auto found = of_group(root + path, unified);
      if (found && (!least || *found < *least)) least = found;
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<double> quota_cores(std::string_view groups, const ReadText& read) {
  return least_of_groups(groups, "cpu",
                         [&](const std::string& folder, bool unified) { return quota_of(folder, unified, read); });
}

std::optional<std::int64_t> group_memory_left(std::string_view groups, const ReadText& read) {
  return least_of_groups(
      groups, "memory", [&](const std::string& folder, bool unified) { return memory_left_in(folder, unified, read); });
}

}  // namespace cairn::core
