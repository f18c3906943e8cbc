// Blocks in the middle of a model that hand in a loss and counts: every layout trains the serial model and reports its
// numbers, in float64 to rounding, in reproducible float32 bit for bit.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/layout/parameters.h"
#include "braid/nn/linear.h"
#include "braid/schedule/generators.h"
#include "tests/train/layout_run.h"

namespace braid::train::auxiliary_layouts_test {
namespace {

constexpr int kMicrobatches = 4;  // per data rank
constexpr int64_t kExperts = 5;

bool is_routed(const ModelSpec& spec, int block) { return block > 0 && block < spec.layers && block % 2 == 0; }
std::string router(int block) { return cat("blocks.", block - 1, ".router"); }

layout::ModelParams routed_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  layout::ModelParams all = layout::model_params(spec, tensor_rank, tensor_size);
  for (int block = 0; block <= spec.layers + 1; ++block) {
    if (!is_routed(spec, block)) continue;
    const std::string name = router(block);
    all[block].params.push_back({name + ".weight",
                                 mesh::replicated({kExperts, spec.width}),
                                 {model::Init::Kind::Normal, 0.5},
                                 model::WeightDecay::Yes});
    all[block].auxiliaries = {{name + ".squares"}, {{name + ".tokens", kExperts}}};
  }
  return all;
}

// A piece's output, scaled by a router's outputs. It contributes the mean of their squares, and for each expert
// for how many tokens it is the largest.
class Routed final : public nn::Block {
 public:
  struct Options {
    std::string name;
    nn::ParamUse weight;
    double coefficient;
  };
  Routed(std::unique_ptr<nn::Block> inner, Options options, const nn::RankContext& rank)
      : inner_(std::move(inner)), options_(std::move(options)), rank_(rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const nn::Microbatch& m) override {
    const at::Tensor y_btc = inner_->forward(x_btc, m);
    const at::Tensor routes_bte = nn::linear(y_btc, {options_.weight, nullptr, &rank_.weight_grads, m.micro});
    if (m.auxiliaries) {
      m.auxiliaries->losses.push_back({options_.name + ".squares", routes_bte.square().mean(), options_.coefficient});
      m.auxiliaries->counts.push_back(
          {options_.name + ".tokens", routes_bte.argmax(-1).flatten().bincount({}, kExperts)});
    }
    return y_btc.mul(routes_bte.tanh().mean({-1}, /*keepdim=*/true).mul(0.1).add(1));
  }

 private:
  std::unique_ptr<nn::Block> inner_;
  Options options_;
  nn::RankContext rank_;
};

template <int kPercent>
std::unique_ptr<nn::Block> routed_block(const ModelSpec& spec, nn::ModelPiece piece, param::ParamStore& store,
                                        const nn::RankContext& rank) {
  auto inner = nn::model_block(spec, piece, store, rank);
  if (!is_routed(spec, piece.block) || piece.end != nn::ModelPiece::kLast) return inner;
  const std::string name = router(piece.block);
  const Routed::Options options{name, {&store[name + ".weight"], 0}, kPercent / 100.0};
  return std::make_unique<Routed>(std::move(inner), options, rank);
}

constexpr nn::ModelMaker kRouted{routed_params, routed_block<70>};
constexpr nn::ModelMaker kRoutedWithoutLoss{routed_params, routed_block<0>};

std::vector<ScheduleOnMesh> layouts() {
  return {{"1f1b", {.pipe = 2}},
          {"1f1b", {.pipe = 4}},
          {"zb-v", {.pipe = 2}},
          {"dualpipe", {.pipe = 2}},
          {"gpipe", {.pipe = 1, .data = 2}},
          {"zb-h1", {.pipe = 2, .data = 2, .context = 1, .expert = 1, .tensor = 2}}};
}

RunSpec spec_for(const ScheduleOnMesh& layout, const std::string& recompute) {
  RunSpec spec = tiny_spec(6, kMicrobatches * layout.mesh.data);
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  spec.memory.recompute = recompute;
  return spec;
}

class AuxiliaryLayouts : public testing::TestWithParam<ScheduleOnMesh> {};
INSTANTIATE_TEST_SUITE_P(SomeSchedules, AuxiliaryLayouts, testing::ValuesIn(layouts()),
                         [](const auto& info) { return cat(info.param); });

void expect_near(const LayoutResult& got, const LayoutResult& want) {
  EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
  EXPECT_EQ(got.auxiliary_counts, want.auxiliary_counts);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10);
    ASSERT_EQ(got.auxiliary_losses[step].size(), 3u);
    for (const auto& [name, value] : want.auxiliary_losses[step]) {
      EXPECT_NEAR(got.auxiliary_losses[step].at(name), value, 1e-10) << name;
    }
  }
}

// One rank, the whole batch in one microbatch: the loss handed in is a mean over tokens.
TEST_P(AuxiliaryLayouts, TrainTheSerialModelAndReportItsNumbers) {
  RunSpec alone = tiny_spec(6, kMicrobatches * GetParam().mesh.data);
  alone.train.microbatch = alone.train.batch;
  const LayoutResult want = train_layout(alone, kRouted);
  for (const char* recompute : {"none", "full"}) {
    SCOPED_TRACE(recompute);
    expect_near(train_layout(spec_for(GetParam(), recompute), kRouted), want);
  }
  if (GetParam().mesh.data == 1) return;
  RunSpec sharded = spec_for(GetParam(), "every:2");
  sharded.sync.zero = 3;
  expect_near(train_layout(sharded, kRouted), want);
}

TEST_P(AuxiliaryLayouts, HaveTheBitsOfOneRank) {
  RunSpec alone = spec_for(GetParam(), "none");
  alone.train.dtype = DType::Float32;
  alone.train.reduction = Reduction::Reproducible;
  alone.mesh = {.tensor = GetParam().mesh.tensor};
  alone.pipeline.schedule = "gpipe";
  const LayoutResult want = train_layout(alone, kRouted);
  for (const char* recompute : {"none", "selective", "full", "every:2"}) {
    SCOPED_TRACE(recompute);
    RunSpec spec = alone;
    spec.mesh = GetParam().mesh;
    spec.pipeline.schedule = GetParam().schedule;
    spec.memory.recompute = recompute;
    const LayoutResult got = train_layout(spec, kRouted);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    EXPECT_EQ(got.auxiliary_losses, want.auxiliary_losses);
    EXPECT_EQ(got.auxiliary_counts, want.auxiliary_counts);
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
}

TEST(AuxiliaryReports, CountEveryTokenOnce) {
  const RunSpec spec = spec_for({"1f1b", {.pipe = 2, .data = 2}}, "full");
  for (const auto& counts : train_layout(spec, kRouted).auxiliary_counts) {
    EXPECT_EQ(counts.size(), 3u);
    for (const auto& [name, tokens] : counts) {
      double sum = 0;
      for (const double number : tokens) sum += number;
      EXPECT_EQ(sum, spec.train.batch * spec.model.context) << name;
    }
  }
}

// Nothing of them is carried from step to step but what is in the weights.
TEST(AuxiliaryReports, AreThoseOfTheUninterruptedRunWhenItGoesOn) {
  const RunSpec spec = spec_for({"1f1b", {.pipe = 2, .data = 2}}, "none");
  const LayoutResult want = train_layout(spec, kRouted);
  const std::string folder = (std::filesystem::temp_directory_path() / cat("braid_auxiliary_", ::getpid())).string();
  on_every_rank(spec, kRouted, [&](Trainer& trainer) {
    while (trainer.num_steps() < 2) trainer.step();
    trainer.save(folder, "");
  });
  on_every_rank(spec, kRouted, [&](Trainer& trainer) {
    trainer.load(folder);
    const StepReport report = trainer.step();
    EXPECT_EQ(report.auxiliary_losses, want.auxiliary_losses[2]);
    EXPECT_EQ(report.auxiliary_counts, want.auxiliary_counts[2]);
  });
  std::filesystem::remove_all(folder);
}

TEST(AuxiliaryReports, AreOnlyThereWhereABlockHandsInSomething) {
  const LayoutResult plain = train_layout(spec_for({"gpipe", {}}, "none"));
  for (const auto& losses : plain.auxiliary_losses) EXPECT_TRUE(losses.empty());
  for (const auto& counts : plain.auxiliary_counts) EXPECT_TRUE(counts.empty());
}

// The coefficient moves the weights, neither what is reported of the first step nor what is evaluated.
TEST(AuxiliaryReports, ReportAndEvaluationHaveNoCoefficient) {
  const RunSpec spec = spec_for({"gpipe", {}}, "none");
  const LayoutResult with = train_layout(spec, kRouted), without = train_layout(spec, kRoutedWithoutLoss);
  EXPECT_EQ(with.losses[0], without.losses[0]);
  EXPECT_EQ(with.auxiliary_losses[0], without.auxiliary_losses[0]);
  EXPECT_GT(largest_difference(with.first_gradients, without.first_gradients), 1e-2);
  double evaluated[2] = {};
  on_every_rank(spec, kRouted, [&](Trainer& trainer) { evaluated[0] = trainer.evaluate(); });
  on_every_rank(spec, kRoutedWithoutLoss, [&](Trainer& trainer) { evaluated[1] = trainer.evaluate(); });
  EXPECT_EQ(evaluated[0], evaluated[1]);
}

TEST(AuxiliaryReports, AreNotRecorded) {
  const RunSpec spec = spec_for({"gpipe", {}}, "none");
  const data::Corpus corpus = tiny_corpus();
  run_ranks(1, [&](Communicator& world) {
    const Groups groups(mesh::DeviceMesh(spec.mesh), StageLayout::single(), world);
    RankModel model(spec, groups, kRouted);
    const BatchSource batches(spec, {corpus.train, 1}, groups);
    BlockExecutor executor(
        spec, model, batches,
        {ExecutorMode::Training, schedule::VersionPlan(schedule::gpipe(1, kMicrobatches), schedule::VersionRule::Own)});
    EXPECT_THROW(executor.record_with(nullptr), InternalError);
  });
}

TEST(AuxiliaryNames, AreListedAndUnique) {
  StepAuxiliaries step(layout::AuxiliarySpec{{"balance"}, {{"tokens", 2}}});
  step.begin_step(1, at::kDouble);
  EXPECT_THROW(step.add(0, {{{"other", at::zeros({}), 1}}, {}}), InternalError);
  EXPECT_THROW(step.add(0, {{}, {{"balance", at::zeros({2})}}}), InternalError);
  EXPECT_THROW(StepAuxiliaries(layout::AuxiliarySpec{{"balance", "balance"}, {}}).begin_step(1, at::kDouble),
               InternalError);
}

}  // namespace
}  // namespace braid::train::auxiliary_layouts_test
