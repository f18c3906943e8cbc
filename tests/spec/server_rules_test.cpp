// Requirements of parameter servers on the mesh, by their consistency.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace braid::spec::server_rules_test
