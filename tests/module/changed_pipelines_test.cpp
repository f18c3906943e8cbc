// Changes of users' modules after a ModulePipeline was made: values loaded, parameters frozen or released. It is
// followed, or refused by name.
#include "braid/base/errors.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/module/changed_models.h"

namespace braid::modules::changed_pipelines_test {
namespace {

using namespace changed_models;

// One of two data ranks of a pipeline of one rank. Both see the same rows.
struct DataRank {
  ModulePipeline& pipeline;
  Twice& net;
  torch::optim::SGD& optimizer;

  void step(int number) {
    const auto& [x, y] = pairs_of(number);
    pipeline.step({x}, {y});
  }
};
using DataRankStep = std::function<void(DataRank, int step)>;

std::vector<Twice> on_two_data_ranks(const SyncSpec& sync, const DataRankStep& each) {
  std::vector<Twice> nets{Twice(1), Twice(2)};
  for (Twice& net : nets) net->head->bias.requires_grad_(false);
  run_ranks(2, [&](Communicator& world) {
    Twice& net = nets[world.rank()];
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline pipeline(net->layers(), *pipe,
                            {.schedule = schedule::gpipe(1, 2), .loss = mean_square_of, .data = &world, .sync = sync});
    Tensors trained;
    for (const at::Tensor& parameter : pipeline.parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    torch::optim::SGD optimizer(trained, 0.1);
    for (int step = 0; step < kStepsOfChange; ++step) each({pipeline, net, optimizer}, step);
  });
  return nets;
}

TEST(ChangedModules, APipelineTakesInWhatIsLoadedLater) {
  const std::string file = checkpoint();
  Twice alone(1);
  torch::optim::SGD serial(alone->parameters(), 0.1);
  alone->head->bias.requires_grad_(false);
  for (int step = 0; step < kStepsOfChange; ++step) {
    if (step == 1) load_into(alone, file);
    serial.zero_grad();
    const auto& [x, y] = pairs_of(step);
    mean_square_of(alone(x), y).backward();
    if (step == 2) load_into(alone, file);
    serial.step();
  }
  for (const SyncSpec& sync :
       {SyncSpec{}, SyncSpec{.zero = 1}, SyncSpec{.zero = 2}, SyncSpec{.replication = ReplicationKind::LocalSgd}}) {
    auto nets = on_two_data_ranks(sync, [&](DataRank rank, int step) {
      if (step == 1) load_into(rank.net, file);
      rank.optimizer.zero_grad();
      rank.step(step);
      if (step == 2) load_into(rank.net, file);
      rank.pipeline.update(rank.optimizer);
    });
    for (Twice& net : nets) expect_close_to(copies_of(net), copies_of(alone));
  }
}

std::string pipeline_said(const SyncSpec& sync, const std::function<void(Twice&)>& change) {
  try {
    on_two_data_ranks(sync, [&](DataRank rank, int step) {
      if (step == 1) change(rank.net);
      rank.step(step);
      rank.pipeline.update(rank.optimizer);
    });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ChangedModules, APipelineRefusesWhatItsReplicasCannotFollow) {
  const auto freeze = [](Twice& net) { net->twice->weight.requires_grad_(false); };
  const auto release = [](Twice& net) { net->head->bias.requires_grad_(true); };
  const std::string frozen = pipeline_said({.zero = 1}, freeze), released = pipeline_said({}, release);
  EXPECT_NE(frozen.find("twice.0 = frozen"), std::string::npos) << frozen;
  EXPECT_NE(released.find("head.1 = released"), std::string::npos) << released;
  EXPECT_NE(released.find("retrace()"), std::string::npos) << released;
  EXPECT_EQ(pipeline_said({}, freeze), "nothing was refused");
}

// Under sync.zero the optimizer's tensors are not the modules'; clearing either clears the same gradients.
TEST(ChangedModules, GradientsOfAPipelineAreClearedByModuleOrOptimizer) {
  const auto trained = [](const std::function<void(DataRank)>& clear) {
    auto nets = on_two_data_ranks({.zero = 1}, [&](DataRank rank, int step) {
      clear(rank);
      rank.step(step);
      rank.pipeline.update(rank.optimizer);
    });
    return copies_of(nets[0]);
  };
  const Tensors expected = trained([](DataRank rank) { rank.optimizer.zero_grad(); });
  expect_close_to(trained([](DataRank rank) { rank.net->zero_grad(); }), expected);
  expect_close_to(trained([](DataRank rank) { rank.net->zero_grad(false); }), expected);
}

}  // namespace
}  // namespace braid::modules::changed_pipelines_test
