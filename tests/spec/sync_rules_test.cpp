// Rules between the keys of [sync], of [mesh] and of other tables.
#include <gtest/gtest.h>

#include "tests/spec/complaint.h"

namespace braid::spec::sync_rules_test {
namespace {

bool accepts(const std::string& mesh, const std::string& sync, const std::string& train = "batch = 48") {
  return problems_of({"[mesh]\n" + mesh + "\n[sync]\n" + sync + "\n[train]\n" + train + "\n", {}, ""},
                     {.max_ranks = 64})
      .empty();
}

TEST(MeshRules, NodesDivideTheRanks) {
  for (const char* nodes : {"0", "1", "2", "4"}) {
    EXPECT_TRUE(accepts(std::string("data = 4\nranks_per_node = ") + nodes, "")) << nodes;
  }
  EXPECT_FALSE(accepts("data = 4\nranks_per_node = 3", ""));
  EXPECT_FALSE(accepts("data = 4\nranks_per_node = 8", ""));
}

TEST(SyncRules, ResidualsNeedAConstantLossScale) {
  for (const char* kind : {"top-k", "one-bit", "eight-bit", "power-sgd", "bfloat16", "float16", "none"}) {
    const std::string sync = std::string("compression = \"") + kind + "\"";
    const bool carries_over = std::string(kind).find('-') != std::string::npos;
    EXPECT_TRUE(accepts("data = 2", sync)) << kind;
    EXPECT_EQ(accepts("data = 2", sync, "batch = 48\ndtype = \"float16\""), !carries_over) << kind;
  }
}

}  // namespace
}  // namespace braid::spec::sync_rules_test
