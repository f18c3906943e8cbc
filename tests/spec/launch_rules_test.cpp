// Features that process ranks lack are refused by name, and threads are offered.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "braid/base/text.h"
#include "braid/spec/problems.h"
#include "braid/spec/rank_hosts.h"

namespace braid::spec::launch_rules_test {
namespace {

std::vector<std::string> complaints(const std::function<void(RunSpec& spec)>& change) {
  RunSpec spec;
  spec.data.paths = {"text"};
  spec.train.batch = spec.train.microbatch = 1;
  spec.run.ranks = RanksAs::Processes;
  change(spec);
  spec.train.batch *= spec.mesh.data;
  std::vector<std::string> texts;
  for (const Problem& problem : problems(spec, {.max_ranks = 100})) texts.push_back(braid::text(problem));
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

std::vector<std::string> on_hosts(const std::string& placement, int data, const HostLimits& limits) {
  RunSpec spec;
  spec.data.paths = {"text"};
  spec.train.batch = 12;
  spec.train.microbatch = 1;
  spec.mesh.data = data;
  spec.run.placement = placement;
  std::vector<std::string> texts;
  for (const Problem& problem : problems(spec, limits)) texts.push_back(braid::text(problem));
  return texts;
}

TEST(Placement, EachHostHasRanksAndTheFirstHasRank0) {
  const std::string rule =
      ": must be \"blocks\" or a list of 4 hosts, one for each rank: 0 for the first, and each of 0 to 1 at least "
      "once; "
      "nearest valid is \"blocks\"";
  for (const char* placement : {"1,0,1,0", "0,0,0,0", "0,1,0", "0,1,0,1,0", "0,1,0,2", "0,1,,0", "0,1,0,-1", "h0,h1"}) {
    EXPECT_EQ(on_hosts(placement, 4, {.num_hosts = 2}),
              std::vector<std::string>{cat("run.placement = \"", placement, "\"", rule)});
  }
  EXPECT_TRUE(on_hosts("0,1,1,0", 4, {.num_hosts = 2}).empty());
  EXPECT_TRUE(on_hosts("0,1,0", 3, {.num_hosts = 2}).empty());
  EXPECT_TRUE(on_hosts("0,1,0", 4, {}).empty());  // on one host it says nothing
  EXPECT_EQ(listed_hosts("0,1,1,0", 4, 2), (std::vector<int>{0, 1, 1, 0}));
}

TEST(Placement, BlocksAreAlike) {
  EXPECT_TRUE(on_hosts("blocks", 4, {.num_hosts = 2}).empty());
  EXPECT_EQ(
      on_hosts("blocks", 3, {.num_hosts = 2}),
      std::vector<std::string>{"mesh.data = 3: must leave a multiple of 2 ranks, as many for each host, and leaves "
                               "3; nearest valid is 2"});
  EXPECT_EQ(on_hosts("blocks", 3, {.num_hosts = 2, .ranks_started = 2}),
            std::vector<std::string>{
                "mesh.data = 3: must leave the 2 ranks that were started, and leaves 3; nearest valid is 2"});
}

TEST(ProcessRankRules, DevicesWantThreads) {
  EXPECT_EQ(complaints([](RunSpec& spec) { spec.train.device = DeviceKind::Cuda; }),
            std::vector<std::string>{"run.ranks = \"processes\": must be \"threads\" with train.device = \"cuda\": its "
                                     "libraries are opened before ranks start, and a fork of a process that has them "
                                     "open cannot use them; nearest valid is \"threads\""});
}

}  // namespace
}  // namespace braid::spec::launch_rules_test
