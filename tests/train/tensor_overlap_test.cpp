// Overlap of the collectives of tensor ranks changes no bit, and all ranks choose alike.
#include "braid/train/tensor_overlap.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "braid/base/text.h"
#include "braid/train/step_schedule.h"
#include "tests/support/sampled.h"
#include "tests/train/frozen_runs.h"
#include "tests/train/token_parts.h"

namespace braid::train::tensor_overlap_test {
namespace {

using namespace token_parts;
using param::ReductionOverlap;

void full_recompute(RunSpec& spec) { spec.memory.recompute = "full"; }
void selective_recompute(RunSpec& spec) { spec.memory.recompute = "selective"; }
void one_f_one_b(RunSpec& spec) { spec.pipeline.schedule = "1f1b"; }
void zero_bubble(RunSpec& spec) { spec.pipeline.schedule = "zb-h1"; }
void both_directions(RunSpec& spec) { spec.pipeline.schedule = "dualpipe"; }
void zero_2(RunSpec& spec) { spec.sync.zero = 2; }
void zero_3(RunSpec& spec) { spec.sync.zero = 3; }
void reproducible(RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }
void bfloat16(RunSpec& spec) { spec.train.dtype = DType::BFloat16; }
void freezes_first_blocks(RunSpec& spec) {
  spec.optimizer.groups = {frozen("w?e.weight"), frozen("blocks.[01].*")};
  spec.model.output_weights = OutputWeights::Untied;
}
void freezes_products(RunSpec& spec) { spec.optimizer.groups = {frozen("*.attn.*"), frozen("blocks.1.mlp.*")}; }

const std::vector<Layout> kLayouts = {
    {"gpt2", gpt2, {.tensor = 2}, drops, nothing},
    {"gpt2 on four ranks", gpt2, {.tensor = 4}, nothing, nothing},
    {"gpt2, tokens split", gpt2, {.tensor = 2, .sequence_parallel = true}, drops, nothing},
    {"gpt2 on four ranks, tokens split", gpt2, {.tensor = 4, .sequence_parallel = true}, nothing, nothing},
    {"llama", llama, {.tensor = 2}, nothing, nothing},
    {"llama, shared key heads", llama, {.tensor = 4}, nothing, nothing},
    {"llama, tokens split", llama, {.tensor = 4, .sequence_parallel = true}, nothing, nothing},
    {"bert", bert, {.tensor = 2}, drops, nothing},
    {"bert on four ranks, tokens split", bert, {.tensor = 4, .sequence_parallel = true}, nothing, nothing},
    {"gemma2", gemma2, {.tensor = 2}, nothing, nothing},
    {"full recompute", gpt2, {.tensor = 2}, full_recompute, nothing},
    {"full recompute, tokens split", llama, {.tensor = 2, .sequence_parallel = true}, full_recompute, nothing},
    {"selective recompute", llama, {.tensor = 2}, selective_recompute, nothing},
    {"selective recompute, tokens split", gpt2, {.tensor = 2, .sequence_parallel = true}, selective_recompute, nothing},
    {"1f1b", gpt2, {.pipe = 2, .tensor = 2}, one_f_one_b, nothing},
    {"1f1b, tokens split", bert, {.pipe = 2, .tensor = 2, .sequence_parallel = true}, one_f_one_b, nothing},
    {"zero bubble", llama, {.pipe = 2, .tensor = 2, .sequence_parallel = true}, zero_bubble, nothing},
    {"both directions", gpt2, {.pipe = 2, .tensor = 2}, both_directions, nothing},
    {"zero 2", llama, {.data = 2, .tensor = 2}, zero_2, nothing},
    {"zero 3", bert, {.data = 2, .tensor = 2, .sequence_parallel = true}, zero_3, nothing},
    {"reproducible", llama, {.tensor = 2}, reproducible, nothing},
    {"reproducible, tokens split", gpt2, {.tensor = 4, .sequence_parallel = true}, reproducible, nothing},
    {"bfloat16", gpt2, {.tensor = 2}, bfloat16, nothing},
    {"frozen blocks", gpt2, {.tensor = 2}, freezes_first_blocks, nothing},
    {"frozen products", gpt2, {.tensor = 2, .sequence_parallel = true}, freezes_products, nothing},
};

TEST(TensorOverlap, ChangesNoBit) {
  for (const Layout& layout : sampled(kLayouts, 2)) {
    SCOPED_TRACE(layout.name);
    RunSpec spec = layout.model();
    spec.train.dtype = DType::Float32;
    layout.model_change(spec);
    spec.mesh = layout.mesh;
    spec.mesh.tensor_overlap = OverlapChoice::Off;
    const LayoutResult want = train_layout(spec);
    spec.mesh.tensor_overlap = OverlapChoice::On;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
}

ReductionOverlap overlap_of(Trainer& trainer) { return trainer.model().weight_grads(0).overlap(); }

TEST(TensorOverlap, TheSlowestRankDecidesForAll) {
  RunSpec spec = gpt2();
  spec.mesh.tensor = 2;
  on_every_rank(spec, [&](Trainer& trainer) {
    TensorOverlap overlap(spec.mesh, step_schedule(spec), trainer.model());
    const bool first = trainer.groups().world.rank() == 0;  // alone it would overlap
    for (int step = 0; !overlap.done(); ++step) {
      const bool on = overlap_of(trainer) == ReductionOverlap::On;
      const auto choice = overlap.step_over(first ? (on ? 0.001 : 0.002) : (on ? 0.004 : 0.003));
      ASSERT_EQ(choice.has_value(), step == 2 * TensorOverlap::kStepsEach);
      if (!choice) continue;
      EXPECT_EQ(*choice,
                "mesh.tensor_overlap = \"off\": 4.00 ms a step when collectives of tensor ranks travel during products "
                "of backward, 3.00 ms when products wait for them");
    }
    EXPECT_EQ(overlap_of(trainer), ReductionOverlap::Off);
  });
}

TEST(TensorOverlap, IsMeasuredOnlyWhereItIsAskedForAndPossible) {
  struct Case {
    MeshSpec mesh;
    const char* schedule;
    bool measured;
  };
  for (const Case& each : {Case{{.tensor = 2}, "1f1b", true}, Case{{.tensor = 1}, "1f1b", false},
                           Case{{.tensor = 2, .tensor_overlap = OverlapChoice::On}, "1f1b", false},
                           Case{{.tensor = 2, .tensor_overlap = OverlapChoice::Off}, "1f1b", false},
                           Case{{.pipe = 2, .tensor = 2}, "zb-h1", false},
                           Case{{.pipe = 2, .tensor = 2, .sequence_parallel = true}, "zb-h1", true}}) {
    RunSpec spec = gpt2();
    spec.mesh = each.mesh;
    spec.pipeline.schedule = each.schedule;
    on_every_rank(spec, [&](Trainer& trainer) {
      EXPECT_EQ(!TensorOverlap(spec.mesh, step_schedule(spec), trainer.model()).done(), each.measured);
    });
  }
}

// Steps that compare settings of data ranks do not count for tensor ranks.
TEST(TensorOverlap, IsMeasuredAfterTheOverlapOfBuckets) {
  RunSpec spec = gpt2();
  spec.train.steps = 14;
  spec.mesh = {.data = 2, .tensor = 2};
  std::mutex lock;
  std::vector<std::vector<std::string>> choices;  // by rank
  std::vector<ReductionOverlap> used;
  on_every_rank(spec, [&](Trainer& trainer) {
    std::vector<std::string> own;
    for (int step = 1; step <= spec.train.steps; ++step) {
      trainer.step();
      for (const std::string& choice : trainer.take_choices()) {
        own.push_back(cat(step, ": ", choice.substr(0, choice.find(' ')), choice.substr(choice.find(": "))));
      }
    }
    const std::scoped_lock hold(lock);
    choices.push_back(own);
    used.push_back(overlap_of(trainer));
  });
  for (size_t rank = 0; rank < choices.size(); ++rank) {
    ASSERT_EQ(choices[rank].size(), 2u);
    EXPECT_TRUE(choices[rank][0].starts_with("7: sync.overlap")) << choices[rank][0];
    EXPECT_TRUE(choices[rank][1].starts_with("14: mesh.tensor_overlap")) << choices[rank][1];
    EXPECT_EQ(choices[rank][1], choices[0][1]);
    EXPECT_EQ(used[rank], used[0]);
  }
}

}  // namespace
}  // namespace braid::train::tensor_overlap_test
