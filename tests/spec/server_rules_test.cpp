// Requirements of parameter servers on the mesh, by their consistency.
#include <gtest/gtest.h>

#include "braid/spec/problems.h"
#include "tests/spec/complaint.h"

namespace braid::spec::server_rules_test {
namespace {

constexpr const char* kServed = "sync.replication=parameter-server";

TEST(ServerRules, BulkSynchronousServersTakeEveryMesh) {
  for (const char* mesh : {"mesh.pipe=2", "mesh.tensor=2", "mesh.data=2"}) {
    EXPECT_TRUE(problems_of({"", {kServed, mesh, "train.batch=16"}, ""}).empty()) << mesh;
  }
  EXPECT_TRUE(problems_of({"", {kServed, "mesh.pipe=2", "pipeline.schedule=dualpipe", "train.batch=16"}, ""}).empty());
}

TEST(ServerRules, ReplicasApartHaveNoParameterTwice) {
  const std::string apart = "sync.consistency=asp", pipe = "mesh.pipe=2", batch = "train.batch=16";
  const std::string must = "sync.consistency = \"asp\": must be \"bsp\" ", nearest = "; nearest valid is \"bsp\"";
  const std::string untied = "model.output_weights=untied";
  expect_complaints({
      {"", {kServed, apart, "mesh.data=2"}, "accepted"},
      {"", {kServed, apart, pipe, batch, untied}, "accepted"},
      {"", {kServed, apart, pipe, batch, "pipeline.schedule=zb-v"}, "accepted"},
      {"",
       {kServed, apart, pipe, batch},
       must +
           "when the first and the last stage are on two ranks and share the embedding: each has servers of its own, "
           "which would apply pushes in different orders (or untie it with model.output_weights = \"untied\")" +
           nearest},
      {"",
       {kServed, apart, "mesh.tensor=2"},
       must +
           "when mesh.tensor is more than 1 (2): tensor ranks hold norms and some biases alike, each with servers of "
           "its own, which would apply pushes in different orders" +
           nearest},
      {"",
       {kServed, apart, pipe, batch, "pipeline.schedule=dualpipe"},
       must +
           "in a bidirectional pipeline: the two copies of a stage push the same sum of gradients, which would count "
           "twice" +
           nearest},
  });
}

TEST(ServerRules, ServersOfTheirOwnNeedAParameterServer) {
  expect_complaints({
      {"", {kServed, "sync.servers_on=own", "mesh.data=2"}, "accepted"},
      {"",
       {"sync.servers_on=own", "mesh.data=2"},
       "sync.servers_on = \"own\": must be \"ranks\" with sync.replication = \"all-reduce\", which has no servers; "
       "nearest valid is \"ranks\""},
  });
}

TEST(ServerRules, ServersOfTheirOwnCountAsRanksOfTheirHost) {
  RunSpec spec;
  spec.data.paths = {"text"};
  spec.mesh.data = 4;
  spec.train.batch = 4;
  spec.train.microbatch = 1;
  spec.sync.replication = ReplicationKind::ParameterServer;
  spec.sync.servers = 3;
  spec.sync.servers_on = ServersOn::Own;
  EXPECT_TRUE(problems(spec, {.max_ranks = 7}).empty());
  const auto crowded = problems(spec, {.max_ranks = 6}), uneven = problems(spec, {.num_hosts = 2});
  ASSERT_EQ(crowded.size(), 1u);
  EXPECT_EQ(crowded[0].rule, "must leave at most 6 ranks on this host (4 of the mesh + 3 servers = 7)");
  ASSERT_EQ(uneven.size(), 1u);
  EXPECT_EQ(uneven[0].rule,
            "must leave a multiple of 2 ranks, as many for each host, and leaves 7, of which 3 are servers");
}

}  // namespace
}  // namespace braid::spec::server_rules_test
