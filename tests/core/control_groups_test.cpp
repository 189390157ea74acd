#include "cairn/core/internal/control_groups.h"

#include <map>
#include <string>

#include "cairn/core/support/memory.h"
#include "cairn/tests/catch.h"

namespace cairn::tests::control_groups_test {
namespace {

using Files = std::map<std::string, std::string>;

core::ReadText reads(const Files& files) {
  return [&files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<double> quota(const std::string& groups, const Files& files) {
  return core::quota_cores(groups, reads(files));
}
std::optional<std::int64_t> memory(const std::string& groups, const Files& files) {
  return core::group_memory_left(groups, reads(files));
}

}  // namespace

TEST_CASE("the quota of control groups of version 2 is the least on the way to the root") {
  const Files files = {{"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                       {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
                       {"/sys/fs/cgroup/other/cpu.max", "10000 100000\n"},
                       {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}};
  CHECK(quota("0::/a/b\n", files) == 1.5);
  CHECK(quota("0::/\n", files) == 4);
  // In a container, /proc may name a path of the host's file system, although the container sees only the root group.
  // The quota of the root group must then count.
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

TEST_CASE("the memory that groups of version 2 leave is the least on the way to the root") {
  // Slurm and systemd-run nest groups in this way: the inner group has no limit of its own.
  const Files files = {
      {"/sys/fs/cgroup/job/step/memory.max", "max\n"}, {"/sys/fs/cgroup/job/step/memory.current", "700\n"},
      {"/sys/fs/cgroup/job/memory.max", "1000\n"},     {"/sys/fs/cgroup/job/memory.current", "800\n"},
      {"/sys/fs/cgroup/memory.max", "5000\n"},         {"/sys/fs/cgroup/memory.current", "4900\n"}};
  CHECK(memory("0::/job/step\n", files) == 100);
  CHECK(memory("0::/host/docker-1\n", files) == 100);
  CHECK(memory("0::/job/step\n",
               {{"/sys/fs/cgroup/job/memory.max", "1000"}, {"/sys/fs/cgroup/job/memory.current", "800"}}) == 200);
  CHECK_FALSE(memory("0::/job/step\n", {{"/sys/fs/cgroup/job/step/memory.max", "max\n"},
                                        {"/sys/fs/cgroup/job/step/memory.current", "700\n"}}));
  CHECK_FALSE(memory("", files));
}

TEST_CASE("the memory that groups of version 1 leave is that of the memory controller") {
  const Files files = {{"/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "1000\n"},
                       {"/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "300\n"},
                       {"/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n"},
                       {"/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "300\n"},
                       {"/sys/fs/cgroup/cpuset/slurm/job/memory.limit_in_bytes", "1\n"},
                       {"/sys/fs/cgroup/cpuset/slurm/job/memory.usage_in_bytes", "0\n"}};
  CHECK(memory("5:cpuset:/slurm/job\n4:memory:/slurm/job\n0::/\n", files) == 700);
  CHECK(memory("4:memory:/slurm\n", files) > std::int64_t{1} << 60);
}

TEST_CASE("pages of files that may be dropped are not used memory, and what is above the limit leaves nothing") {
  Files files = {{"/sys/fs/cgroup/memory.max", "1000\n"},
                 {"/sys/fs/cgroup/memory.current", "900\n"},
                 {"/sys/fs/cgroup/memory.stat", "anon 200\nfile 700\ninactive_file 600\nactive_file 100\n"}};
  CHECK(memory("0::/\n", files) == 700);
  files["/sys/fs/cgroup/memory.stat"] = "inactive_file 5000\n";
  CHECK(memory("0::/\n", files) == 1000);
  files["/sys/fs/cgroup/memory.stat"] = "";
  files["/sys/fs/cgroup/memory.current"] = "1200";
  CHECK(memory("0::/\n", files) == 0);
}

TEST_CASE("this process may take some memory") { CHECK(core::available_memory() > 0); }

}  // namespace cairn::tests::control_groups_test
