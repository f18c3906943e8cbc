// Parameters with sparse gradients, and parameters without elements.
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>

#include "tests/module/models_on_disk.h"
#include "tests/module/small_models.h"

namespace braid::modules::odd_parameters_test {
namespace {

using models_on_disk::ModelMemoryTest;

class OddParameters : public ModelMemoryTest {
 protected:
  // Returns the parameters after two steps on two ranks.
  Tensors trained(const std::function<LayerList()>& make, const SyncSpec& sync, const ModelMemory& memory) {
    std::vector<LayerList> all;
    for (int rank = 0; rank < 2; ++rank) {
      torch::manual_seed(1);
      all.push_back(make());
    }
    Tensors found;
    run_ranks(2, [&](Communicator& world) {
      DataParallel model(all[static_cast<size_t>(world.rank())], world, {.sync = sync, .memory = memory});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      for (int step = 0; step < 2; ++step) {
        const at::Tensor words = at::arange(3).add(world.rank() + step);
        model.accumulate(model.forward(words).square().sum());
        model.backward(model.forward(words).sin().sum());
        model.step(disk);
      }
      model.with_whole_parameters([&] {
        if (world.rank() == 0) found = small_models::copies(all[0]);
        std::erase_if(found, [](const at::Tensor& each) { return each.numel() == 0; });
      });
    });
    return found;
  }
  void expect_as_in_memory(const std::function<LayerList()>& make) {
    const Tensors want = trained(make, {}, {});
    for (const int zero : {1, 2, 3}) small_models::expect_near(trained(make, {.zero = zero}, {}), want);
    small_models::expect_near(trained(make, {}, on_disk()), want);
  }
};

LayerList sparse_table() {
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(6, 4).sparse(true));
  table->to(at::kDouble);
  return LayerList().add("table", table).add("twice", [](const at::Tensor& x) { return x * 2; });
}

TEST_F(OddParameters, SparseGradients) { expect_as_in_memory(sparse_table); }

struct NoElements : torch::nn::Module {
  at::Tensor none, some;
  explicit NoElements(at::Tensor shared)
      : none(register_parameter("none", std::move(shared))),
        some(register_parameter("some", at::ones({4}, at::kDouble))) {}
  at::Tensor forward(const at::Tensor& x) const { return x * some + none.sum(); }
};

TEST_F(OddParameters, ATiedOneWithoutElements) {
  expect_as_in_memory([] {
    const at::Tensor none = at::empty({0, 3}, at::kDouble).requires_grad_(true);
    LayerList layers = sparse_table();
    return layers.add("a", std::make_shared<NoElements>(none)).add("b", std::make_shared<NoElements>(none));
  });
}

}  // namespace
}  // namespace braid::modules::odd_parameters_test
