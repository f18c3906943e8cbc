// A host that is made up: its files below a folder.
#include "braid/base/host_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "braid/base/host.h"
#include "tests/support/scratch_folder.h"

namespace braid::host_facts_test {
namespace {

class HostFactsOf : public ScratchFolder {
 protected:
  void say(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    write(path(name), content);
  }
};

TEST_F(HostFactsOf, what_the_system_says_in_its_files) {
  say("proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 9000\n");
  say("proc/meminfo", "MemTotal:        8000 kB\nMemFree: 1 kB\nMemAvailable:    6000 kB\n");
  say("sys/class/net/lo/speed", "-1\n");
  HostFacts facts = host_facts(folder_);
  EXPECT_EQ(facts.processor, "Abacus 9000");
  EXPECT_EQ(facts.memory_bytes, 8000 * 1024);
  EXPECT_EQ(facts.free_memory_bytes, 6000 * 1024);
  EXPECT_EQ(facts.shared_memory_bytes, 0);
  const auto loopback = std::ranges::find(facts.interfaces, "lo", &HostInterface::name);
  ASSERT_NE(loopback, facts.interfaces.end());
  EXPECT_EQ(loopback->megabits_per_second, 0);
  EXPECT_NE(std::ranges::find(loopback->addresses, "127.0.0.1"), loopback->addresses.end());
  say("sys/class/net/lo/speed", "25000\n");
  say("sys/fs/cgroup/memory.max", "max\n");
  facts = host_facts(folder_);
  EXPECT_EQ(std::ranges::find(facts.interfaces, "lo", &HostInterface::name)->megabits_per_second, 25000);
  EXPECT_EQ(facts.memory_bytes, 8000 * 1024);
  say("sys/fs/cgroup/memory.max", "4096000\n");
  EXPECT_EQ(host_facts(folder_).memory_bytes, 4096000);
}

TEST_F(HostFactsOf, memory_that_control_groups_leave) {
  EXPECT_EQ(available_memory_bytes(folder_), 0);
  say("proc/meminfo", "MemTotal:        8000 kB\nMemAvailable:    6000 kB\n");
  EXPECT_EQ(available_memory_bytes(folder_), 6000 * 1024);
  say("proc/self/cgroup", "0::/jobs/mine\n");
  say("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  say("sys/fs/cgroup/jobs/memory.max", "1000000\n");
  say("sys/fs/cgroup/jobs/memory.current", "900000\n");
  say("sys/fs/cgroup/jobs/memory.stat", "anon 500000\nactive_file 100000\ninactive_file 200000\n");
  EXPECT_EQ(available_memory_bytes(folder_), 400000);
  EXPECT_EQ(host_facts(folder_).memory_bytes, 1000000);
  EXPECT_EQ(host_facts(folder_).free_memory_bytes, 400000);
  say("sys/fs/cgroup/memory.max", "50000\n");
  say("sys/fs/cgroup/memory.current", "60000\n");
  EXPECT_EQ(available_memory_bytes(folder_), 1);
}

TEST_F(HostFactsOf, memory_that_control_groups_of_version_1_leave) {
  say("proc/meminfo", "MemTotal:        8000 kB\nMemAvailable:    6000 kB\n");
  say("proc/self/cgroup", "12:cpu,cpuacct:/other\n4:hugetlb,memory:/jobs/mine\n1:name=systemd:/init\n0::/\n");
  say("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  say("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000000\n");
  EXPECT_EQ(available_memory_bytes(folder_), 6000 * 1024);
  say("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 9000000\n");  // read after the usage
  EXPECT_EQ(available_memory_bytes(folder_), 6000 * 1024);
  say("sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes", "1000000\n");
  say("sys/fs/cgroup/memory/jobs/mine/memory.usage_in_bytes", "900000\n");
  say("sys/fs/cgroup/memory/jobs/mine/memory.stat",
      "active_file 1\ninactive_file 1\ntotal_inactive_file 200000\ntotal_active_file 100000\n");
  EXPECT_EQ(available_memory_bytes(folder_), 400000);
  say("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(host_facts(folder_).memory_bytes, 1000000);  // of the own group, below the root's
  EXPECT_EQ(host_facts(folder_).free_memory_bytes, 400000);
}

TEST_F(HostFactsOf, processes_that_the_system_has_killed_for_memory) {
  EXPECT_EQ(num_killed_for_memory(folder_), 0);
  say("proc/self/cgroup", "0::/jobs/mine\n");
  say("sys/fs/cgroup/jobs/mine/memory.events", "low 0\nhigh 3\nmax 7\noom 5\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(num_killed_for_memory(folder_), 2);
  say("proc/self/cgroup", "4:memory:/jobs/other\n");
  say("sys/fs/cgroup/memory/jobs/other/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_EQ(num_killed_for_memory(folder_), 3);
}

TEST_F(HostFactsOf, this_host) {
  const HostFacts facts = host_facts();
  EXPECT_EQ(facts.host, host_name());
  EXPECT_EQ(facts.cores, num_cores());
  EXPECT_GE(facts.host_cores, facts.cores);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_GT(facts.open_files, 0);
}

TEST_F(HostFactsOf, what_it_does_not_say) {
  const HostFacts facts = host_facts(folder_);
  EXPECT_EQ(facts.processor, "");
  EXPECT_EQ(facts.memory_bytes, 0);
}

}  // namespace
}  // namespace braid::host_facts_test
