// What ranks that are processes cannot do is refused by name, and threads are offered.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "braid/spec/problems.h"

namespace braid::launch_rules_test {
namespace {

std::vector<std::string> complaints(const std::function<void(RunSpec& spec)>& change) {
  RunSpec spec;
  spec.data.paths = {"text"};
  spec.train.batch = spec.train.microbatch = 1;
  spec.run.ranks = RanksAs::Processes;
  change(spec);
  spec.train.batch *= spec.mesh.data;
  std::vector<std::string> texts;
  for (const Problem& problem : problems(spec, {.max_ranks = 100})) texts.push_back(text(problem));
  spec.run.ranks = RanksAs::Threads;
  EXPECT_TRUE(problems(spec, {.max_ranks = 100}).empty());
  return texts;
}

TEST(ProcessRankRules, SixtyFourRanksAreTheMost) {
  EXPECT_TRUE(complaints([](RunSpec& spec) { spec.mesh.data = 64; }).empty());
  EXPECT_EQ(complaints([](RunSpec& spec) { spec.mesh.data = 65; }),
            std::vector<std::string>{
                "run.ranks = \"processes\": must be \"threads\" for more than 64 ranks on a host (65); nearest "
                "valid is \"threads\""});
}

TEST(ProcessRankRules, EachHostHasItsOwn) {
  RunSpec spec;
  spec.data.paths = {"text"};
  spec.run.ranks = RanksAs::Processes;
  spec.train.batch = 128;
  spec.train.microbatch = 1;
  spec.mesh.data = 128;
  EXPECT_TRUE(problems(spec, {.max_ranks = 64, .num_hosts = 2}).empty());
  spec.mesh.data = 64;
  const auto found = problems(spec, {.max_ranks = 16, .num_hosts = 2});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].rule.starts_with("must leave at most 32 ranks on these hosts ")) << found[0].rule;
}

TEST(ProcessRankRules, ServersAndDevicesWantThreads) {
  EXPECT_EQ(
      complaints([](RunSpec& spec) { spec.sync.replication = ReplicationKind::ParameterServer; }),
      std::vector<std::string>{"sync.replication = \"parameter-server\": must be \"all-reduce\" with ranks that are "
                               "processes, since servers are threads that the workers, being threads too, share; "
                               "nearest valid is \"all-reduce\""});
  EXPECT_EQ(complaints([](RunSpec& spec) { spec.train.device = DeviceKind::Cuda; }),
            std::vector<std::string>{"run.ranks = \"processes\": must be \"threads\" with train.device = \"cuda\": its "
                                     "libraries are opened before ranks start, and a fork of a process that has them "
                                     "open cannot use them; nearest valid is \"threads\""});
}

}  // namespace
}  // namespace braid::launch_rules_test
