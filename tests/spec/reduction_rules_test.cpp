// Rules between the keys of compression, nodes and the mesh.
#include <gtest/gtest.h>

#include "tests/spec/complaint.h"

namespace braid::spec::reduction_rules_test {
namespace {

bool accepts(const std::string& mesh, const std::string& sync, const std::string& train = "batch = 48") {
  return problems_of({"[mesh]\n" + mesh + "\n[sync]\n" + sync + "\n[train]\n" + train + "\n", {}, ""},
                     {.max_ranks = 64})
      .empty();
}

TEST(ReductionRules, NodesHoldEquallyManyReplicas) {
  for (const char* mesh :
       {"data = 4\nranks_per_node = 2", "data = 4\nranks_per_node = 1", "data = 4\nranks_per_node = 8",
        "data = 3\ntensor = 2\nranks_per_node = 2", "data = 4\ntensor = 2\nranks_per_node = 4",
        "data = 2\ntensor = 6\nranks_per_node = 2", "data = 1\nranks_per_node = 7"}) {
    EXPECT_TRUE(accepts(mesh, "")) << mesh;
  }
  for (const char* mesh : {"data = 4\nranks_per_node = 3", "data = 3\nranks_per_node = 2",
                           "data = 4\ntensor = 2\nranks_per_node = 3", "data = 4\ntensor = 2\nranks_per_node = 6"}) {
    EXPECT_FALSE(accepts(mesh, "")) << mesh;
  }
}

TEST(ReductionRules, ResidualsWantAScaleThatStaysAndWholeParameters) {
  for (const char* kind : {"top-k", "one-bit", "eight-bit", "power-sgd", "bfloat16", "float16", "none"}) {
    const std::string sync = std::string("compression = \"") + kind + "\"";
    const bool carries_over = std::string(kind).find('-') != std::string::npos;
    EXPECT_TRUE(accepts("data = 2", sync)) << kind;
    EXPECT_EQ(accepts("data = 2", sync, "batch = 48\ndtype = \"float16\""), !carries_over) << kind;
    EXPECT_EQ(accepts("data = 2\nranks_per_node = 1", sync), !carries_over) << kind;
  }
}

}  // namespace
}  // namespace braid::spec::reduction_rules_test
