// Meshes that do not fit the model, the other keys or the host.
#include "tests/spec/complaint.h"

namespace braid::spec::bad_mesh_test {
namespace {

TEST(BadMesh, PartsOfSequences) {
  expect_complaints({
      {"", {"mesh.context=2"}, "accepted"},
      {"",
       {"mesh.context=2", "model.family=llama", "model.kv_heads=2", "model.window=32",
        "mesh.context_parallel=all-gather"},
       "accepted"},
      {"", {"mesh.context=4", "mesh.context_parallel=ulysses-ring", "mesh.ulysses_ranks=2"}, "accepted"},
      {"", {"mesh.context=4", "mesh.context_parallel=ulysses", "model.heads=3"}, "accepted"},
      {"", {"mesh.context=7"}, "mesh.context = 7: must divide model.context (256); nearest valid is 8"},
      {"",
       {"mesh.context=4", "model.context=12"},
       "mesh.context = 4: must divide model.context (12) into parts of an even number of tokens when "
       "mesh.context_parallel is \"ring\"; nearest valid is 3"},
      {"", {"mesh.context=4", "model.context=12", "mesh.context_parallel=ulysses"}, "accepted"},
      {"",
       {"mesh.context=4", "mesh.ulysses_ranks=2"},
       "mesh.ulysses_ranks = 2: must be 0 when mesh.context_parallel is not \"ulysses-ring\"; nearest valid is 0"},
      {"",
       {"mesh.context=4", "mesh.context_parallel=ulysses-ring", "mesh.ulysses_ranks=3"},
       "mesh.ulysses_ranks = 3: must divide mesh.context (4); nearest valid is 2"},
      {"", {"mesh.context=2", "model.family=gemma2", "model.kv_heads=2", "model.attention_cap=50"}, "accepted"},
      {"",
       {"mesh.context=3", "model.context=48", "train.reduction=reproducible"},
       "mesh.context = 3: must be a power of two when train.reduction is \"reproducible\"; nearest valid is 2"},
      {"",
       {"mesh.context=2", "sync.replication=local-sgd", "mesh.data=2"},
       "mesh.context = 2: must be 1 with local updates, since a replica is one rank of each stage; nearest valid is 1"},
      {"",
       {"mesh.context=2", "sync.compression=bfloat16", "mesh.data=2", "mesh.context_parallel=rings"},
       "mesh.context = 2: must be 1 with gradient compression, since context ranks sum parts of one gradient, "
       "uncompressed; nearest valid is 1\n"
       "mesh.context_parallel = \"rings\": must be \"ring\", \"all-gather\", \"ulysses\" or \"ulysses-ring\"; nearest "
       "valid is \"ring\""},
  });
}

TEST(BadMesh, SequenceParallelismWithoutEqualPartsOfASequence) {
  expect_complaints({
      {"", {"mesh.tensor=2", "mesh.sequence_parallel=true"}, "accepted"},
      {"",
       {"mesh.sequence_parallel=true"},
       "mesh.sequence_parallel = true: must be false when mesh.tensor is 1: there are no ranks to split tokens over; "
       "nearest "
       "valid is false"},
      {"",
       {"model.heads=6", "model.width=96", "mesh.tensor=3", "mesh.sequence_parallel=true"},
       "mesh.tensor = 3: must divide the 256 tokens of a sequence that a rank has, which sequence parallelism splits; "
       "nearest valid is 2"},
  });
}

TEST(BadMesh, MoreRanksThanTheHostCarries) {
  expect_complaints(
      {
          {"",
           {"mesh.data=32", "train.batch=128"},
           "mesh.data = 32: must leave at most 16 ranks on this host (pipe 1 x data 32 x tensor 1 = 32); "
           "nearest valid is 16"},
          {"",
           {"mesh.data=8", "mesh.pipe=3", "train.batch=64"},
           "mesh.data = 8: must leave at most 16 ranks on this host (pipe 3 x data 8 x tensor 1 = 24); "
           "nearest valid is 4"},
          {"",
           {"mesh.pipe=4", "mesh.tensor=6"},
           "mesh.tensor = 6: must leave at most 16 ranks on this host (pipe 4 x data 1 x tensor 6 = 24); "
           "nearest valid is 3"},
          {"",
           {"mesh.context=32"},
           "mesh.context = 32: must leave at most 16 ranks on this host (pipe 1 x data 1 x tensor 1 x context 32 = "
           "32); "
           "nearest valid is 16"},
          {"",
           {"mesh.pipe=20", "model.layers=20"},
           "mesh.pipe = 20: must leave at most 16 ranks on this host (pipe 20 x data 1 x tensor 1 = 20); "
           "nearest valid is 16"},
      },
      HostLimits{16});
}

}  // namespace
}  // namespace braid::spec::bad_mesh_test
