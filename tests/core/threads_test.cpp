#include "cairn/core/threads.h"

#include <sched.h>

#include <map>
#include <string>

#include "cairn/core/internal/cores.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<double> quota(const std::string& groups, const Files& files) {
  return core::quota_cores(groups, [&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

}  // namespace

TEST_CASE("the quota of control groups of version 2 is the least on the way to the root") {
  const Files files = {{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                       {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
                       {"/sys/fs/cgroup/other/cpu.max", "10000 100000\n"},
                       {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}};
  CHECK(quota("0::/a/b\n", files) == 1.5);
  CHECK(quota("0::/\n", files) == 4);
  // The path of a container's host, of which only the root is to be seen.
  CHECK(quota("0::/host/docker-1\n", files) == 4);
  CHECK_FALSE(quota("0::/a/b\n", {{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}}));
  CHECK_FALSE(quota("0::/a\n", {}));
  CHECK_FALSE(quota("", files));
}

TEST_CASE("the quota of control groups of version 1 is that of the cpu controller") {
  const Files files = {{"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
                       {"/sys/fs/cgroup/cpuset/job/cpu.cfs_quota_us", "10\n"},
                       {"/sys/fs/cgroup/cpuset/job/cpu.cfs_period_us", "100\n"}};
  CHECK(quota("7:cpuset:/job\n3:cpu,cpuacct:/job\n0::/\n", files) == 2.5);
  CHECK_FALSE(quota("3:cpu,cpuacct:/\n", files));
}

TEST_CASE("files that hold something else are no quota") {
  for (const char* text : {"", "max", "x y", "100000", "0 100000", "100000 0", "-5 100"}) {
    INFO(text);
    CHECK_FALSE(quota("0::/\n", {{"/sys/fs/cgroup/cpu.max", text}}));
  }
}

TEST_CASE("available cores are those that the process is bound to") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  CHECK(core::available_cores() >= 1);
  CHECK(core::available_cores() <= CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(core::available_cores() == 1);
  REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
}

}  // namespace cairn::tests
