// DataParallel with other ways of keeping ranks in step than sums: servers, local SGD.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "tests/module/small_models.h"

namespace braid::modules::data_parallel_ways_test {
namespace {

using namespace small_models;

// Servers under bsp are the serial training with the optimizer they hold, here AdamW, which decays no vectors.
TEST(DataParallel, ServersUnderBspTrainWhatOneRankTrains) {
  const Model& model = kModels[0];
  const ServerOptimizer spec{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  const LayerList alone = model.make();
  Tensors matrices, vectors;
  for (const at::Tensor& parameter : all_parameters(alone))
    (parameter.dim() > 1 ? matrices : vectors).push_back(parameter);
  const auto options = torch::optim::AdamWOptions(0.01).betas({spec.beta1, spec.beta2}).eps(spec.eps);
  const auto group = [&](const Tensors& parameters, double decay) {
    auto own = torch::optim::AdamWOptions(options).weight_decay(decay);
    return torch::optim::OptimizerParamGroup(parameters, std::make_unique<torch::optim::AdamWOptions>(own));
  };
  torch::optim::AdamW optimizer({group(matrices, spec.weight_decay), group(vectors, 0)}, options);
  const std::vector<Minibatch> batches = minibatches(model.row_shape);
  for (const Minibatch& batch : batches) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(forward(alone, batch.inputs), batch.classes).backward();
    optimizer.step();
  }
  std::vector<LayerList> made = {model.make(), model.make(), model.make()};
  Tensors got;
  run_ranks(3, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    DataParallel parallel(layers, world,
                          {.sync = {.replication = ReplicationKind::ParameterServer, .servers = 2}, .optimizer = spec});
    for (const Minibatch& batch : batches) {
      const at::Tensor outputs = parallel.forward(share(batch.inputs, world.rank(), 3));
      parallel.backward(torch::cross_entropy_loss(outputs, share(batch.classes, world.rank(), 3)));
      parallel.step(0.01);
    }
    parallel.with_whole_parameters([&] {
      if (world.rank() == 1) got = copies(layers);
    });
  });
  expect_near(got, copies(alone));
}

// One local step between two averages, by SGD, is the average of the gradients.
TEST(DataParallel, LocalSgdOfOneStepIsSummingGradients) {
  const Model& model = kModels[0];
  const std::vector<Minibatch> batches = minibatches(model.row_shape);
  const auto train = [&](const SyncSpec& sync) {
    std::vector<LayerList> made = {model.make(), model.make()};
    run_ranks(2, [&](Communicator& world) {
      DataParallel parallel(made[static_cast<size_t>(world.rank())], world, {.sync = sync});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      for (const Minibatch& batch : batches) {
        const at::Tensor outputs = parallel.forward(share(batch.inputs, world.rank(), 2));
        parallel.backward(torch::cross_entropy_loss(outputs, share(batch.classes, world.rank(), 2)));
        parallel.step(optimizer);
      }
    });
    return copies(made[1]);
  };
  expect_near(train({.replication = ReplicationKind::LocalSgd}), train({}));
}

}  // namespace
}  // namespace braid::modules::data_parallel_ways_test
