// Layouts that are right are reported equal.
#include <gtest/gtest.h>

#include "braid/verify/verify_layout.h"
#include "tests/verify/small_run.h"

namespace braid::verify::sound_layouts_test {
namespace {

struct Layout {
  const char* name;
  void (*change)(RunSpec& run);
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

const std::vector<Layout> kLayouts = {
    {"data", [](RunSpec& run) { run.mesh.data = 2; }},
    {"three_data_ranks", [](RunSpec& run) { run.mesh.data = 3, run.train.batch = 6; }},
    {"tensor", [](RunSpec& run) { run.mesh.tensor = 2; }},
    {"sequence_parallel",
     [](RunSpec& run) {
       run.mesh.tensor = 2;
       run.mesh.sequence_parallel = true;
       run.model.dropout = 0.2;
     }},
    {"pipe", [](RunSpec& run) { run.mesh.pipe = 2; }},
    {"zero_bubble_with_documents",
     [](RunSpec& run) {
       run.mesh = {.pipe = 2, .tensor = 2};
       run.pipeline.schedule = "zb-h1";
       run.data.attention = AttentionMask::Document;
     }},
    {"zero_3",
     [](RunSpec& run) {
       run.mesh = {.data = 2, .tensor = 2};
       run.sync.zero = 3;
       run.model.dropout = 0.2;
       run.memory.recompute = "full";
     }},
    {"bfloat16",
     [](RunSpec& run) {
       run.mesh = {.data = 2, .tensor = 2};
       run.train.dtype = DType::BFloat16;
     }},
    {"key_heads_on_several_ranks",
     [](RunSpec& run) {
       run.model.family = ModelFamily::Llama;
       run.model.kv_heads = 2;
       run.model.qk_norm = true;
       run.mesh.tensor = 4;
       run.memory.recompute = "selective";
     }},
    {"within_a_layer",
     [](RunSpec& run) {
       run.mesh.pipe = 2;
       run.pipeline.partition = "1.5,0.5";
     }},
    {"both_directions",
     [](RunSpec& run) {
       run.mesh.pipe = 2;
       run.pipeline.schedule = "dualpipe";
     }},
    {"servers",
     [](RunSpec& run) {
       run.mesh = {.pipe = 2, .data = 2};
       run.sync.replication = ReplicationKind::ParameterServer;
       run.sync.servers_on = ServersOn::Own;
       run.optimizer.clip_norm = 0;
     }},
    {"frozen",
     [](RunSpec& run) {
       run.mesh = {.pipe = 2, .data = 2};
       run.sync.zero = 1;
       run.optimizer.groups = {{.match = "blocks.0.*", .frozen = true}};
     }},
    {"masked",
     [](RunSpec& run) {
       run.model.family = ModelFamily::Bert;
       run.mesh = {.pipe = 2, .tensor = 2, .sequence_parallel = true};
     }},
    {"ring_with_documents",
     [](RunSpec& run) {
       run.mesh = {.data = 2, .context = 2};
       run.sync.zero = 1;
       run.data.attention = AttentionMask::Document;
     }},
    {"all_gather_of_tensor_ranks",
     [](RunSpec& run) {
       run.mesh = {.context = 2, .tensor = 2, .context_parallel = ContextParallel::AllGather};
       run.mesh.sequence_parallel = true;
       run.model.dropout = 0.2;
       run.sync.zero = 3;
     }},
    {"ulysses_in_a_pipeline",
     [](RunSpec& run) {
       run.model.family = ModelFamily::Llama;
       run.model.layers = 4;
       run.mesh = {.pipe = 2, .context = 2, .context_parallel = ContextParallel::Ulysses};
       run.pipeline.schedule = "zb-v";
       run.memory.recompute = "full";
       run.data.attention = AttentionMask::Document;
     }},
    {"ulysses_ring",
     [](RunSpec& run) {
       run.mesh = {.context = 4, .context_parallel = ContextParallel::UlyssesRing, .ulysses_ranks = 2};
       run.memory.recompute = "selective";
     }},
    {"context_in_bfloat16",
     [](RunSpec& run) {
       run.mesh = {.data = 2, .context = 2};
       run.train.dtype = DType::BFloat16;
     }},
    {"masked_on_context_ranks",
     [](RunSpec& run) {
       run.model.family = ModelFamily::Bert;
       run.model.context = 24;
       run.mesh = {.pipe = 2, .context = 2, .tensor = 2, .sequence_parallel = true};
     }},
    {"masked_documents_on_context_ranks",
     [](RunSpec& run) {
       run.model.family = ModelFamily::Bert;
       run.model.context = 16;
       run.data.sequences = SequenceCut::Documents;
       run.mesh = {.context = 4, .context_parallel = ContextParallel::AllGather};
     }},
};

class SoundLayouts : public testing::TestWithParam<Layout> {};

TEST_P(SoundLayouts, AreEqual) {
  RunSpec run = small_run();
  GetParam().change(run);
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, 2));
  EXPECT_FALSE(verdict.first_divergence) << text_of(verdict);
  EXPECT_GT(verdict.rows.size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(All, SoundLayouts, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

TEST(SoundLayouts, DataRanksOfReproducibleSumsAreBitwiseEqual) {
  RunSpec run = small_run();
  run.mesh.data = 2;
  run.train.reduction = Reduction::Reproducible;
  EXPECT_TRUE(verify_layout(run, synthetic_corpus(run, 2)).same_bits());
}

}  // namespace
}  // namespace braid::verify::sound_layouts_test
