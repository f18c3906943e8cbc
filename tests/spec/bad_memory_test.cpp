// Values of [memory], and types of optimizer states, that are right one by one and wrong together.
#include "tests/spec/complaint.h"

namespace braid::spec::bad_memory_test {
namespace {

TEST(BadMemory, Recompute) {
  const std::string known =
      ": must be \"none\", \"selective\", \"full\", \"every:K\" with K from 1 to 4096 or \"blocks:LIST\", or one of "
      "them per "
      "stage, separated by commas, or \"auto\": ";
  const std::string nearest = "; nearest valid is ", unknown = " is none of them" + nearest;
  expect_complaints({
      {"", {"memory.recompute=fll"}, "memory.recompute = \"fll\"" + known + "\"fll\"" + unknown + "\"full\""},
      {"", {"memory.recompute="}, "memory.recompute = \"\"" + known + "\"\"" + unknown + "\"none\""},
      {"",
       {"memory.recompute=everything else"},
       "memory.recompute = \"everything else\"" + known + "\"everything else\"" + unknown + "\"none\""},
      {"",
       {"memory.recompute=every:0"},
       "memory.recompute = \"every:0\"" + known + "\"every:0\"" + unknown + "\"every:1\""},
      {"",
       {"memory.recompute=every:-3"},
       "memory.recompute = \"every:-3\"" + known + "\"every:-3\"" + unknown + "\"every:1\""},
      {"",
       {"memory.recompute=every:4097"},
       "memory.recompute = \"every:4097\"" + known + "\"every:4097\"" + unknown + "\"every:4096\""},
      {"",
       {"memory.recompute=every:99999999999999999999"},
       "memory.recompute = \"every:99999999999999999999\"" + known + "\"every:99999999999999999999\"" + unknown +
           "\"every:4096\""},
      {"",
       {"mesh.pipe=2", "memory.recompute=selectve,,full"},
       "memory.recompute = \"selectve,,full\"" + known + "\"selectve\" is none of them; \"\"" + unknown +
           "\"selective,none\""},
      {"",
       {"mesh.pipe=3", "memory.recompute=full,none"},
       "memory.recompute = \"full,none\": must have one entry for all stages or one for each of 3; nearest "
       "valid is \"full,none,none\""},
      {"",
       {"mesh.pipe=2", "pipeline.schedule=interleaved", "memory.recompute=full,none"},
       "memory.recompute = \"full,none\": must have one entry for all stages or one for each of 4; nearest valid is "
       "\"full,none,none,none\""},
      {"",
       {"memory.recompute=full,none"},
       "memory.recompute = \"full,none\": must have one entry for all stages or one for each of 1; nearest "
       "valid is \"full\""},
      {"",
       {"memory.recompute=blocks:3-1+0"},
       "memory.recompute = \"blocks:3-1+0\"" + known + "of \"blocks:3-1+0\" 3-1 ends before it begins" + nearest +
           "\"blocks:0\""},
      {"",
       {"mesh.pipe=2", "model.layers=5", "memory.recompute=blocks:0-4+6,blocks:2"},
       "memory.recompute = \"blocks:0-4+6,blocks:2\": must list blocks that stages have, from 0, not 0-4, 6 of stage "
       "0, "
       "which has 3 blocks; 2 of stage 1, which has 2 blocks" +
           nearest + "\"blocks:0-2,none\""},
      {"",
       {"mesh.pipe=2", "memory.recompute=auto,none"},
       "memory.recompute = \"auto,none\"" + known + "\"auto\" is for all stages together" + nearest + "\"none,none\""},
  });
}

TEST(BadMemory, TiersOnDisk) {
  expect_complaints({
      {"", {"memory.optimizer=disk", "memory.gradients=disk", "memory.parameters=disk"}, "accepted"},
      {"",
       {"memory.gradients=disk"},
       "memory.gradients = \"disk\": needs memory.optimizer = \"disk\": the update reads both together"},
      {"",
       {"memory.parameters=disk", "memory.optimizer=resident"},
       "memory.parameters = \"disk\": needs memory.optimizer = \"disk\": the update writes both together"},
      {"",
       {"memory.optimizer=disk", "memory.gradients=disk", "sync.zero=1", "mesh.data=2", "train.batch=16",
        "mesh.batch_shares=[3, 1]"},
       "sync.zero = 1: must be 0 where gradients or parameters are on disk and mesh.batch_shares are not equal: data "
       "ranks move shards together for each microbatch; nearest valid is 0"},
      {"",
       {"memory.optimizer=disk", "memory.parameters=disk", "sync.zero=1", "mesh.data=2", "mesh.pipe=2",
        "pipeline.schedule=dualpipe"},
       "sync.zero = 1: must be 0 where parameters are on disk in a bidirectional pipeline: the two ranks of a stage "
       "gather shards in different orders; nearest valid is 0"},
  });
}

TEST(BadMemory, BlocksWhoseActivationsAreOnDisk) {
  const std::string known =
      ": must be \"all\", a number of blocks, or one for each stage, separated by commas; nearest valid is \"all\"";
  expect_complaints({
      {"", {"memory.activations=disk", "memory.activation_blocks=2"}, "accepted"},
      {"", {"memory.activations=disk", "memory.activation_blocks=\"1,0\"", "mesh.pipe=2"}, "accepted"},
      {"", {"memory.activations=disk", "memory.activation_blocks=some"}, "memory.activation_blocks = \"some\"" + known},
      {"", {"memory.activations=disk", "memory.activation_blocks=1.5"}, "memory.activation_blocks = \"1.5\"" + known},
      {"", {"memory.activations=disk", "memory.activation_blocks=-1"}, "memory.activation_blocks = \"-1\"" + known},
      {"",
       {"memory.activations=disk", "memory.activation_blocks=\"1,0\"", "mesh.pipe=3"},
       "memory.activation_blocks = \"1,0\": must have one number for all stages or one for each of 3; nearest valid is "
       "\"all\""},
      {"",
       {"memory.activation_blocks=2"},
       "memory.activation_blocks = \"2\": needs memory.activations = \"disk\"; nearest valid is \"all\""},
      {"",
       {"memory.activations=disk", "memory.activation_blocks=2", "memory.recompute=auto"},
       "memory.activation_blocks = \"2\": must be \"all\" when memory.recompute is \"auto\", which chooses it; nearest "
       "valid is \"all\""},
  });
}

TEST(BadMemory, TypesOfOptimizerStates) {
  expect_complaints({
      {"", {"optimizer.state_dtype=bfloat16", "train.dtype=bfloat16"}, "accepted"},
      {"",
       {"optimizer.state_dtype=bfloat16", "memory.optimizer=disk", "memory.gradients=disk", "memory.parameters=disk"},
       "accepted"},
      {"", {"optimizer.state_dtype=float32", "train.dtype=float64"}, "accepted"},
      {"",
       {"optimizer.state_dtype=bfloat16", "train.dtype=float64"},
       "optimizer.state_dtype = \"bfloat16\": must be \"float32\" when train.dtype is \"float64\", whose states are "
       "float64"},
      {"", {"optimizer.state_dtype=int8", "memory.optimizer=disk"}, "accepted"},
      {"",
       {"optimizer.state_dtype=int4"},
       "optimizer.state_dtype = \"int4\": must be \"float32\", \"bfloat16\" or \"int8\"; nearest valid is \"int8\""},
      {"",
       {"optimizer.state_dtype=int8", "optimizer.kind=muon"},
       "optimizer.state_dtype = \"int8\": must be \"float32\" with updates of whole matrices, since momenta of whole "
       "matrices are float32; nearest valid is \"float32\""},
      {"",
       {"optimizer.state_dtype=bfloat16", "sync.replication=parameter-server"},
       "optimizer.state_dtype = \"bfloat16\": must be \"float32\" with parameter server, since the servers have the "
       "optimizer's states, in the type of masters; nearest valid is \"float32\""},
  });
}

}  // namespace
}  // namespace braid::spec::bad_memory_test
