// Combinations that change semantics by the table do so: with both features on the training is another one, and
// without what the row names it is the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/spec/combine.h"
#include "tests/train/layout_run.h"

namespace braid::train::changed_semantics_test {
namespace {

using enum spec::Feature;

// One rank, nothing on. Plain descent: a difference between gradients is one of weights.
RunSpec plain_spec() {
  RunSpec spec = tiny_spec(6, 8);
  spec.model.layers = 4;
  spec.model.output_weights = OutputWeights::Untied;
  spec.optimizer = {.kind = OptimizerKind::Sgd, .lr = 0.1, .momentum = 0, .weight_decay = 0, .clip_norm = 0};
  spec.train.steps = 2;
  return spec;
}

template <class Change>
RunSpec with(RunSpec spec, const Change& change) {
  change(spec);
  return spec;
}

// The same samples and numbers on one rank.
RunSpec serial(RunSpec spec) {
  spec.mesh = {};
  spec.pipeline = {};
  spec.sync = {};
  return spec;
}

void two_replicas(RunSpec& spec) { spec.mesh.data = 2; }
void clipped(RunSpec& spec) { spec.optimizer.clip_norm = 0.05; }
void narrow_sums(RunSpec& spec) { spec.sync.compression = CompressionKind::BFloat16; }
void local(RunSpec& spec) { two_replicas(spec), spec.sync.replication = ReplicationKind::LocalSgd; }
void served(RunSpec& spec) { two_replicas(spec), spec.sync.replication = ReplicationKind::ParameterServer; }
void asynchronous(RunSpec& spec) { spec.mesh.pipe = 2, spec.pipeline.schedule = "pipedream"; }
void mirrored(RunSpec& spec) { spec.mesh.pipe = 2, spec.pipeline.schedule = "dualpipe"; }
void ranks_that_share_a_key_head(RunSpec& spec) {
  spec.model.family = ModelFamily::Llama, spec.model.kv_heads = 1;
  spec.mesh.tensor = 2, spec.train.reduction = Reduction::Reproducible;
}

void context_ranks(RunSpec& spec) {
  spec.mesh.context = 2, spec.model.context = 8, spec.train.reduction = Reduction::Reproducible;
}

double distance(const RunSpec& a, const RunSpec& b) {
  return largest_difference(train_layout(a).params, train_layout(b).params);
}
void expect_other(const RunSpec& run, const RunSpec& reference) { EXPECT_GT(distance(run, reference), 1e-7); }
void expect_same(const RunSpec& run, const RunSpec& reference) { EXPECT_LT(distance(run, reference), 1e-10); }

void local_updates_on_data_ranks() {
  const RunSpec every_step = with(plain_spec(), local);  // a mean of steps is a step by the mean
  expect_same(every_step, serial(every_step));
  const RunSpec apart = with(every_step, [](RunSpec& spec) { spec.sync.period = 2; });
  expect_other(apart, serial(apart));
  const RunSpec each_clips = with(every_step, clipped);
  expect_other(each_clips, serial(each_clips));
}

void servers_that_clip() {
  const RunSpec unclipped = with(plain_spec(), served);
  expect_same(unclipped, serial(unclipped));
  const RunSpec each_clips = with(unclipped, clipped);
  expect_other(each_clips, serial(each_clips));
}

// On one rank an asynchronous schedule has no delays, and with one microbatch to a step neither.
void asynchronous_pipelines() {
  const RunSpec late = with(plain_spec(), asynchronous);
  expect_other(late, with(late, [](RunSpec& spec) { spec.mesh = {}; }));
  const RunSpec drained = with(late, [](RunSpec& spec) { spec.train.batch = 1; });
  expect_same(drained, serial(drained));
}

void asynchronous_pipelines_that_clip() {
  const RunSpec drained = with(with(plain_spec(), asynchronous), [](RunSpec& spec) { spec.train.batch = 1; });
  const RunSpec each_stage_clips = with(drained, clipped);
  expect_other(each_stage_clips, serial(each_stage_clips));
}

void compressed_sums() {
  const RunSpec alone = with(plain_spec(), narrow_sums);
  expect_same(alone, serial(alone));
  const RunSpec replicas = with(alone, two_replicas);
  expect_other(replicas, serial(replicas));
}

void compressed_pairs() {
  const RunSpec exact = with(plain_spec(), mirrored);
  expect_same(exact, serial(exact));
  const RunSpec rounded = with(exact, narrow_sums);
  expect_other(rounded, serial(rounded));
}

void expect_bits_of(const RunSpec& two, const RunSpec& one) {
  const auto params = [](const RunSpec& spec) { return train_layout(spec).params; };
  EXPECT_TRUE(same_bits(params(two), params(with(two, two_replicas))));
  EXPECT_FALSE(same_bits(params(two), params(one)));
}

void reproducible_with_copied_key_heads() {
  const RunSpec two = with(plain_spec(), ranks_that_share_a_key_head);
  expect_bits_of(two, with(two, [](RunSpec& spec) { spec.mesh.tensor = 1; }));
}

void reproducible_on_context_ranks() {
  const RunSpec two = with(plain_spec(), context_ranks);
  expect_bits_of(two, with(two, [](RunSpec& spec) { spec.mesh.context = 1; }));
}

struct Change {
  spec::Feature a, b;
  void (*look)();
};
const std::vector<Change> kChanges = {
    {LocalUpdates, Data, local_updates_on_data_ranks},
    {ParameterServers, Clipping, servers_that_clip},
    {AsynchronousPipeline, AsynchronousPipeline, asynchronous_pipelines},
    {AsynchronousPipeline, Clipping, asynchronous_pipelines_that_clip},
    {Compression, Data, compressed_sums},
    {Compression, MirroredPipeline, compressed_pairs},
    {Reproducible, CopiedKeyHeads, reproducible_with_copied_key_heads},
    {Reproducible, Context, reproducible_on_context_ranks},
};

TEST(ChangedSemantics, IsWhatTheTableSays) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(spec::text(change.a) + " and " + spec::text(change.b));
    EXPECT_EQ(spec::combination(change.a, change.b).verdict, spec::Verdict::ChangesSemantics);
    change.look();
  }
}

TEST(ChangedSemantics, IsTestedRowByRow) {
  const auto rows =
      std::ranges::count(spec::combinations(), spec::Verdict::ChangesSemantics, &spec::Combination::verdict);
  EXPECT_EQ(static_cast<size_t>(rows), kChanges.size());
}

}  // namespace
}  // namespace braid::train::changed_semantics_test
