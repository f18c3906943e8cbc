// Values that are right one by one and wrong together.
#include "tests/spec/complaint.h"

namespace braid::spec::bad_run_test {
namespace {

TEST(BadRun, Shapes) {
  expect_complaints({
      {"", {"model.heads=7"}, "model.heads = 7: must divide model.width (384); nearest valid is 6"},
      {"", {"model.width=100"}, "model.heads = 6: must divide model.width (100); nearest valid is 5"},
      {"", {"mesh.tensor=4"}, "mesh.tensor = 4: must divide model.heads (6); nearest valid is 3"},
      {"", {"mesh.tensor=7"}, "mesh.tensor = 7: must divide model.heads (6); nearest valid is 6"},
      {"",
       {"model.vocab=100"},
       "model.vocab = 100: must be 0 or at least 257, the tokens of data.tokenizer (\"bytes\"); nearest valid is 0"},
      {"",
       {"model.vocab=200"},
       "model.vocab = 200: must be 0 or at least 257, the tokens of data.tokenizer (\"bytes\"); nearest valid is 257"},
  });
}

TEST(BadRun, SchedulesAndTheirKeys) {
  expect_complaints({
      {"",
       {"mesh.pipe=2", "pipeline.weights=vertical"},
       "pipeline.weights = \"vertical\": must be \"own\" unless pipeline.schedule is \"pipedream\""},
      {"",
       {"mesh.pipe=2", "pipeline.schedule=zb-v", "pipeline.chunks=3"},
       "pipeline.chunks = 3: must be 0 or 2, the stages per rank of \"zb-v\"; nearest valid is 2"},
      {"",
       {"mesh.pipe=4", "pipeline.schedule=pipedream-2bw", "pipeline.group=3", "train.reduction=reproducible",
        "model.output_weights=untied", "train.batch=32"},
       "pipeline.group = 3: must be a power of two when train.reduction is \"reproducible\" (0 is mesh.pipe, 4); "
       "nearest "
       "valid is 2"},
      {"",
       {"mesh.pipe=2", "pipeline.schedule=pipedream"},
       "pipeline.schedule = \"pipedream\": must be \"1f1b\" with tied embedding, since the first and the last stage "
       "would update the shared weight at different times (untie it with model.output_weights = \"untied\"); nearest "
       "valid is \"1f1b\""},
  });
}

TEST(BadRun, Stages) {
  expect_complaints({
      {"",
       {"mesh.pipe=8"},
       "mesh.pipe = 8: must be at most model.layers (6), since every stage holds a block; nearest valid is 6"},
      {"",
       {"pipeline.partition=[3, 3]"},
       "pipeline.partition = \"3,3\": must have one entry per stage (mesh.pipe = 1); nearest valid is \"6\""},
      {"",
       {"mesh.pipe=3", "pipeline.partition=3,0,3"},
       "pipeline.partition = \"3,0,3\": must give every stage whole and half blocks, at least 0.5 but for the first "
       "and "
       "the last; nearest valid is \"2,2,2\""},
      {"",
       {"mesh.pipe=3", "pipeline.partition=2.75,1.25,2"},
       "pipeline.partition = \"2.75,1.25,2\": must give every stage whole and half blocks, at least 0.5 but for the "
       "first and the last; nearest valid is \"2,2,2\""},
      {"",
       {"mesh.pipe=2", "pipeline.partition=[4, 4.5]"},
       "pipeline.partition = \"4,4.5\": must add up to model.layers (6), not 8.5; nearest valid is \"3,3\""},
      {"",
       {"mesh.pipe=2", "pipeline.partition=evenly"},
       "pipeline.partition = \"evenly\": must be \"even\" or \"measured\", or numbers with commas between them; "
       "nearest "
       "valid is \"even\""},
      {"",
       {"mesh.pipe=2", "pipeline.partition=\"3,,3\""},
       "pipeline.partition = \"3,,3\": must be \"even\" or \"measured\", or numbers with commas between them; nearest "
       "valid is \"even\""},
      {"",
       {"mesh.pipe=15", "pipeline.partition=measured"},
       "mesh.pipe = 15: must be at most 14, since every stage holds half a block, the embedding or the head; nearest "
       "valid is 14"},
      {"",
       {"mesh.pipe=4", "pipeline.partition=-1,8"},
       "pipeline.partition = \"-1,8\": must have one entry per stage (mesh.pipe = 4); nearest valid is \"1,2,2,1\"\n"
       "pipeline.partition = \"-1,8\": must give every stage whole and half blocks, at least 0.5 but for the first and "
       "the last; nearest valid is \"1,2,2,1\"\n"
       "pipeline.partition = \"-1,8\": must add up to model.layers (6), not 7; nearest valid is \"1,2,2,1\""},
  });
}

TEST(BadRun, WhatOnlyAMeasuredPartitionLooksAt) {
  expect_complaints({
      {"",
       {"mesh.pipe=2", "pipeline.speeds=[1, 2]"},
       "pipeline.speeds = [1, 2]: must be left out when pipeline.partition is \"even\"; nearest valid is []"},
      {"",
       {"mesh.pipe=3", "pipeline.speeds=[1, 0]", "pipeline.partition=measured"},
       "pipeline.speeds = [1, 0]: must be empty or have one entry per pipeline rank (mesh.pipe = 3); nearest valid is "
       "[]\n"
       "pipeline.speeds = [1, 0]: must hold numbers more than 0; nearest valid is []"},
      {"",
       {"mesh.pipe=2", "pipeline.partition=measured", "memory.recompute=full,none"},
       "pipeline.partition = \"measured\": must not be \"measured\" when memory.recompute is \"auto\", lists blocks or "
       "has a word per stage: what is measured depends on it; nearest valid is \"3,3\""},
      {"", {"memory.limit_gb=-1"}, "memory.limit_gb = -1: must be at least 0; nearest valid is 0"},
  });
}

TEST(BadRun, Devices) {
  expect_complaints({
      {"",
       {"train.device=cuda", "mesh.data=2"},
       "train.device = \"cuda\": must be \"cpu\" when there are several ranks (2): as threads they would wait "
       "for each other on a device, as processes they have none"},
      {"",
       {"train.device=cuda", "sync.replication=parameter-server"},
       "sync.replication = \"parameter-server\": needs train.device = \"cpu\": servers are on the host"},
      {"",
       {"train.device=cuda", "memory.optimizer=disk"},
       "memory.optimizer = \"disk\": needs train.device = \"cpu\": updates of states on disk are on the host"},
      {"",
       {"train.device=cuda", "optimizer.state_dtype=bfloat16"},
       "optimizer.state_dtype = \"bfloat16\": needs train.device = \"cpu\": updates of states of fewer bits are not "
       "built for devices yet"},
      {"", {"train.cuda_graph=on"}, "train.cuda_graph = \"on\": must be \"auto\" or \"off\"; nearest valid is \"off\""},
  });
}

TEST(BadRun, Weights) {
  expect_complaints({
      {"",
       {"data.weights=[1.0, 2.0]"},
       "data.weights = [1, 2]: must be empty or have one entry for each of data.paths (1)"},
      {"", {"data.weights=[0.0]"}, "data.weights = [0]: must hold numbers from 1e-9 to 1e9"},
      {"", {"data.weights=[1e308]"}, "data.weights = [1e+308]: must hold numbers from 1e-9 to 1e9"},
  });
}

TEST(BadRun, Batches) {
  expect_complaints({
      {"",
       {"train.batch=10"},
       "train.batch = 10: must be divisible by train.microbatch x mesh.data (4 x 1 = 4); nearest valid is 8"},
      {"",
       {"train.batch=2"},
       "train.batch = 2: must be divisible by train.microbatch x mesh.data (4 x 1 = 4); nearest valid is 4"},
      {"",
       {"mesh.data=4"},
       "train.batch = 8: must be divisible by train.microbatch x mesh.data (4 x 4 = 16); nearest valid is 16"},
      {"",
       {"mesh.data=2", "mesh.batch_shares=[3, 1]"},
       "train.batch = 8: must be divisible by train.microbatch x the sum of mesh.batch_shares (4 x 4 = 16); nearest "
       "valid "
       "is 16"},
      {"",
       {"mesh.data=2", "mesh.batch_shares=3"},
       "mesh.batch_shares = \"3\": must be \"equal\" or have one whole number from 1 for each of mesh.data (2); "
       "nearest "
       "valid is \"equal\""},
      {"",
       {"mesh.data=2", "mesh.batch_shares=1.5,0.5"},
       "mesh.batch_shares = \"1.5,0.5\": must be \"equal\" or have one whole number from 1 for each of mesh.data (2); "
       "nearest valid is \"equal\""},
      {"",
       {"mesh.batch_shares=even"},
       "mesh.batch_shares = \"even\": must be \"equal\", or numbers with commas between them; nearest valid is "
       "\"equal\""},
      {"",
       {"mesh.data=2", "mesh.batch_shares=3,1", "train.batch=16", "sync.zero=3"},
       "mesh.batch_shares = \"3,1\": must be \"equal\" with sharded parameters, since data ranks gather parameters "
       "together for each microbatch (sync.zero = 1 can); nearest valid is \"equal\""},
      {"",
       {"train.reduction=reproducible", "mesh.data=3", "train.batch=24"},
       "mesh.data = 3: must be a power of two when train.reduction is \"reproducible\"; nearest valid is 2"},
      {"",
       {"train.reduction=reproducible", "mesh.tensor=3", "train.tensor_parts=8"},
       "train.tensor_parts = 8: must be mesh.tensor (3) times a power of two when train.reduction is \"reproducible\"; "
       "nearest valid is 6"},
      {"",
       {"train.reduction=reproducible", "train.batch=24"},
       "train.batch = 24: must make a power of two of microbatches per rank when train.reduction is \"reproducible\", "
       "not 6; nearest valid is 16"},
  });
}

TEST(BadRun, Data) {
  expect_complaints({
      {"[data]\n", {}, "data.paths = []: must name at least one file or folder"},
      {"[data]\npaths = [\"\"]\n", {}, "data.paths = [\"\"]: must not hold an empty path"},
      {"",
       {"data.include=[\"*.py\", \"\"]"},
       "data.include = [\"*.py\", \"\"]: must not hold an empty pattern; nearest valid is [\"*.py\"]"},
      {"",
       {"data.validation_fraction=0", "train.eval_every=10"},
       "data.validation_fraction = 0: must be more than 0 when train.eval_every is set (10)"},
      {"",
       {"optimizer.warmup_steps=1000000"},
       "optimizer.warmup_steps = 1000000: must be at most train.steps (100); nearest valid is 100"},
      {"",
       {"optimizer.warmup_steps=60", "optimizer.decay_steps=50"},
       "optimizer.warmup_steps = 60: must be at most optimizer.decay_steps (50); nearest valid is 50"},
      {"", {"optimizer.warmup_steps=200", "optimizer.schedule=constant"}, "accepted"},  // has no end
      {"", {"optimizer.warmup_steps=200", "train.resume=run"}, "accepted"},             // has the end of the checkpoint
  });
}

TEST(BadRun, ExpertsThatArePlanned) {
  const HostLimits limits{.purpose = Purpose::Plan};
  expect_complaints(
      {
          {"", {"model.experts=8", "model.experts_per_token=2", "mesh.expert=4", "train.batch=32"}, "accepted"},
          {"",
           {"model.experts=8", "mesh.expert=3", "train.batch=24"},
           "mesh.expert = 3: must divide model.experts (8); nearest valid is 2"},
          {"",
           {"model.experts=4", "model.experts_per_token=8"},
           "model.experts_per_token = 8: must be at most model.experts (4); nearest valid is 4"},
          {"",
           {"model.experts_per_token=2"},
           "model.experts_per_token = 2: must be 1 where model.experts is 0; nearest valid is 1"},
          {"",
           {"model.experts=8", "mesh.expert=4", "train.batch=24"},
           "train.batch = 24: must be divisible by train.microbatch x mesh.data x mesh.expert (4 x 1 x 4 = 16); "
           "nearest "
           "valid is 16"},
          {"", {"memory.optimizer=host"}, "accepted"},
      },
      limits);
}

TEST(BadRun, FeaturesThatAreNotBuilt) {
  expect_complaints({
      {"",
       {"mesh.expert=8", "train.batch=32"},
       "mesh.expert = 8: must be 1 when model.experts is 0: there are no experts to share; nearest valid is 1\n"
       "mesh.expert = 8: must be 1, since expert parallelism is not built yet; nearest valid is 1"},
      {"",
       {"model.experts=8"},
       "model.experts = 8: must be 0, since a mixture of experts is not built yet; nearest valid is 0"},
      {"",
       {"memory.optimizer=host"},
       "memory.optimizer = \"host\": must be \"auto\", since host memory is the device's memory on CPUs, and for other "
       "devices it is not built yet; nearest valid is \"auto\""},
      {"",
       {"memory.optimizer=disk", "optimizer.kind=muon"},
       "memory.optimizer = \"disk\": must be \"auto\" with updates of whole matrices, since a matrix is updated as a "
       "whole, not in chunks; nearest valid is \"auto\""},
      {"",
       {"optimizer.state_dtype=bfloat16", "optimizer.kind=muon"},
       "optimizer.state_dtype = \"bfloat16\": must be \"float32\" with updates of whole matrices, since momenta of "
       "whole "
       "matrices are float32; nearest valid is \"float32\""},
      {"", {"memory.paths=[\"\"]"}, "memory.paths = [\"\"]: must not hold an empty path; nearest valid is []"},
  });
}

}  // namespace
}  // namespace braid::spec::bad_run_test
