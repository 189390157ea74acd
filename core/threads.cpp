#include "cairn/core/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cairn/core/internal/cores.h"

namespace cairn::core {
namespace {

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return value;
}

/// quota / period of one group; none where it is "max" or -1.
std::optional<double> ratio(const std::optional<double>& quota, const std::optional<double>& period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

/// Of the group in that folder, version 2 or 1.
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

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int default_thread_count() {
  for (const char* variable : {"CAIRN_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = std::getenv(variable);
    const long threads = value == nullptr ? 0 : std::strtol(value, nullptr, 10);  // of a list, the outermost level's
    if (threads > 0) return static_cast<int>(std::min(threads, 4096L));
  }
  return available_cores();
}

std::atomic<int> chosen_threads = 0;

}  // namespace

std::optional<double> quota_cores(std::string_view groups, const ReadText& read) {
  std::optional<double> least;
  const auto take = [&](const std::optional<double>& quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    // hierarchy:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = "/sys/fs/cgroup" + (unified ? "" : "/" + controllers);
    std::string path = line.substr(second + 1);
    while (!path.empty() && path.back() == '/') path.pop_back();
    // A group may use no more than those that it lies in. In a container the path may be the host's, and only the root
    // be there.
    for (;;) {
      take(quota_of(root + path, unified, read));
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

int available_cores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t bound;
  if (sched_getaffinity(0, sizeof(bound), &bound) == 0) cores = CPU_COUNT(&bound);
  // Threads above the quota would all be stopped together, in the middle of loops that wait for the last one.
  const std::optional<double> quota = quota_cores(read_text("/proc/self/cgroup").value_or(""), read_text);
  if (quota && *quota < cores) cores = static_cast<int>(*quota);
  return std::max(cores, 1);
}

int thread_count() {
  static const int usual = default_thread_count();
  const int chosen = chosen_threads;
  return chosen > 0 ? chosen : usual;
}

void set_thread_count(int threads) { chosen_threads = threads; }

}  // namespace cairn::core
