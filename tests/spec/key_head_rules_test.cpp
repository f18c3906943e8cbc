// Tensor ranks and key heads: which numbers go together.
#include "tests/spec/complaint.h"

namespace braid::spec::key_head_rules_test {
namespace {

TEST(KeyHeadRules, RanksDivideTheHeadsOrShareThem) {
  expect_complaints({
      {"",
       {"model.family=llama", "model.kv_heads=3", "mesh.tensor=2"},
       "mesh.tensor = 2: must divide model.kv_heads (3) or be a multiple of it; nearest valid is 1"},
      {"", {"model.family=llama", "model.kv_heads=3", "mesh.tensor=6", "model.ffn=1536"}, "accepted"},
      {"",
       {"model.family=llama", "model.kv_heads=1", "mesh.tensor=2", "mesh.data=2", "sync.compression=top-k"},
       "sync.compression = \"top-k\": must be \"none\", \"bfloat16\" or \"float16\" when mesh.tensor is more than the "
       "key "
       "heads (1): ranks that hold copies of a head would compress its gradient differently"},
  });
}

}  // namespace
}  // namespace braid::spec::key_head_rules_test
