// Torch's optimizers with their states on disk: the parameters and states of memory, bit for bit.
#include "braid/module/optimizer_on_disk.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <optional>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/module/torch_state.h"
#include "tests/module/saved_models.h"

namespace braid::modules::optimizer_on_disk_test {
namespace {

using namespace saved_models;
using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;

constexpr int kSteps = 4;

// Parameters of many sizes: smaller than a vector register, not a multiple of one, larger than a chunk, in another
// order of dims. The last one never has a gradient, and the one before has its first in step 2.
Tensors parameters() {
  torch::manual_seed(7);
  Tensors all{torch::randn({3}), torch::randn({301, 77}), torch::randn({1}), torch::randn({20011}), torch::randn({65})};
  all.push_back(torch::randn({8, 5, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast));
  all.push_back(torch::randn({129}));
  all.push_back(torch::randn({10}));
  for (at::Tensor& each : all) each.requires_grad_(true);
  return all;
}

void set_gradients(const Tensors& all, int step) {
  torch::manual_seed(step);
  for (size_t i = 0; i < all.size(); ++i) {
    const at::Tensor gradient = torch::randn_like(all[i].detach());
    all[i].mutable_grad() = i + 1 == all.size() || (i + 2 == all.size() && step < 2) ? at::Tensor() : gradient;
  }
}

// Two groups, of which the second has other options.
template <class Optimizer, class Options>
MakeOptimizer in_groups(const Options& first, const Options& second) {
  return [=](const Tensors& all) {
    const auto middle = all.begin() + std::ssize(all) / 2;
    const auto group = [](Tensors part, const Options& options) {
      return OptimizerParamGroup(std::move(part), std::make_unique<Options>(options));
    };
    const std::vector<OptimizerParamGroup> groups{group({all.begin(), middle}, first),
                                                  group({middle, all.end()}, second)};
    return std::make_unique<Optimizer>(groups, first);
  };
}

struct Kind {
  const char* name;
  MakeOptimizer make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> kinds() {
  using torch::optim::Adam, torch::optim::AdamW, torch::optim::SGD;
  return {{"adamw", in_groups<AdamW>(AdamWOptions(0.01), AdamWOptions(0.1).weight_decay(0.3).betas({0.5, 0.9}))},
          {"adam", in_groups<Adam>(AdamOptions(0.01).amsgrad(true), AdamOptions(0.1).weight_decay(0.3))},
          {"sgd", in_groups<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.5), SGDOptions(0.1))},
          {"plain", in_groups<SGD>(SGDOptions(0.1).weight_decay(0.1), SGDOptions(0.3))},
          {"nesterov", in_groups<SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.1),
                                      SGDOptions(0.1).momentum(0.5))}};
}

// The bits of torch depend on how it divides a tensor among threads.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }

 private:
  const int before_;
};

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
}

// Trains parameters() in memory and on disk, and compares them.
class OnDisk : public ScratchFolder {
 protected:
  explicit OnDisk(const MakeOptimizer& make = adamw) : in_memory_(make(wanted_)), on_disk_(make(got_)) { move(); }
  void move() { disk_.emplace(*on_disk_, OptimizerOnDisk::Options{{folder_}, 16384}); }

  void train(int first, int last) {
    const OneThread one;
    for (int step = first; step < last; ++step) {
      set_gradients(wanted_, step);
      set_gradients(got_, step);
      in_memory_->step();
      disk_->step();
      expect_same(got_, wanted_);
    }
  }
  void expect_same_states() {
    for (size_t i = 0; i < got_.size(); ++i) {
      const auto want = find_state(*in_memory_, wanted_[i]), got = find_state(*on_disk_, got_[i]);
      if (!want || want->numbers.empty()) continue;
      ASSERT_TRUE(got) << i;
      EXPECT_EQ(got->steps, want->steps);
      ASSERT_EQ(got->numbers.size(), want->numbers.size());
      for (const auto& [name, numbers] : want->numbers) {
        EXPECT_TRUE(got->numbers.at(name).equal(numbers)) << name << " of " << i;
        EXPECT_EQ(got->numbers.at(name).strides(), numbers.strides()) << name << " of " << i;
      }
    }
  }
  void set_rate(double lr) {
    for (auto* optimizer : {in_memory_.get(), on_disk_.get()}) {
      for (auto& group : optimizer->param_groups()) group.options().set_lr(lr);
    }
  }

  const Tensors wanted_ = parameters(), got_ = parameters();
  const std::unique_ptr<torch::optim::Optimizer> in_memory_, on_disk_;
  std::optional<OptimizerOnDisk> disk_;
};

class OfKind : public OnDisk, public testing::WithParamInterface<Kind> {
 protected:
  OfKind() : OnDisk(GetParam().make) {}
};
INSTANTIATE_TEST_SUITE_P(Kinds, OfKind, testing::ValuesIn(kinds()));

TEST_P(OfKind, HasTheBitsOfMemory) {
  train(0, 2);
  set_rate(0.003);
  train(2, kSteps);
  expect_same_states();
  EXPECT_EQ(disk_->bytes_written() > 0, !names_of_kept(*on_disk_).empty());
  EXPECT_EQ(disk_->bytes_written(), disk_->bytes_read());
}

// torch::load() gives the optimizer states in memory. The next step moves them.
TEST_P(OfKind, TakesOverLoadedStates) {
  train(0, 2);
  std::stringstream written;
  torch::save(*in_memory_, written);
  train(2, 3);
  torch::load(*on_disk_, written);
  std::stringstream again(written.str());
  torch::load(*in_memory_, again);
  train(3, kSteps);
  train(kSteps, kSteps + 1);
  expect_same_states();
}

TEST_P(OfKind, MovesTheStatesOfAnOptimizerThatHasMadeSteps) {
  for (int step = 0; step < 2; ++step) {
    const OneThread one;
    for (const auto& [all, optimizer] : {std::pair(&wanted_, in_memory_.get()), std::pair(&got_, on_disk_.get())}) {
      set_gradients(*all, step);
      optimizer->step();
    }
  }
  move();
  train(2, kSteps);
  expect_same_states();
}

TEST_F(OnDisk, RefusesOtherParametersAndStatesThanItBeganWith) {
  train(0, 1);
  static_cast<AdamWOptions&>(on_disk_->param_groups()[0].options()).amsgrad(false);
  EXPECT_THROW(disk_->step(), ConfigError);
  static_cast<AdamWOptions&>(on_disk_->param_groups()[0].options()).amsgrad(true);
  train(1, 2);
  Tensors& own = on_disk_->param_groups()[0].params();
  const Tensors before = own;
  own.pop_back();
  EXPECT_THROW(disk_->step(), ConfigError);
  own = before;
  own[3] = torch::zeros({20011}).requires_grad_(true);
  EXPECT_THROW(disk_->step(), ConfigError);
  own = before;
  got_[3].mutable_grad().reset();
  got_[3].set_data(torch::zeros({7}));
  EXPECT_THROW(disk_->step(), ConfigError);
}

TEST_F(OnDisk, RefusesParametersOfAnotherType) {
  train(0, 1);
  got_[1].mutable_grad().reset();
  got_[1].set_data(got_[1].detach().to(at::kDouble));
  EXPECT_THROW(disk_->step(), ConfigError);
}

// torch::load() into a model gives its parameters the strides that were saved.
TEST_F(OnDisk, FollowsParametersOfOtherStrides) {
  train(0, 2);
  for (const Tensors* all : {&wanted_, &got_}) {
    (*all)[1].set_data((*all)[1].detach().t().contiguous().t());
    (*all)[5].set_data((*all)[5].detach().contiguous());
  }
  train(2, kSteps);
}

TEST_F(OnDisk, FollowsOneStateThatIsReplaced) {
  train(0, 3);
  for (const auto& [all, optimizer] : {std::pair(&wanted_, in_memory_.get()), std::pair(&got_, on_disk_.get())}) {
    const auto state = [&](int i) -> auto& { return optimizer->state()[(*all)[i].unsafeGetTensorImpl()]; };
    static_cast<torch::optim::AdamWParamState&>(*state(3)).exp_avg(torch::zeros({20011}));
  }
  train(3, kSteps);
  expect_same_states();
}

TEST_F(OnDisk, FollowsStatesThatAreExchanged) {
  const auto make = [] {
    return Tensors{torch::ones({20000}).requires_grad_(true), torch::ones({20000}).requires_grad_(true)};
  };
  const Tensors want = make(), got = make();
  torch::optim::AdamW in_memory(want, 0.01), kept(got, 0.01);
  OptimizerOnDisk disk(kept, {{folder_}, 16384});
  const OneThread one;
  for (int step = 0; step < 4; ++step) {
    for (int i : {0, 1}) got[i].mutable_grad() = want[i].mutable_grad() = torch::randn({20000});
    in_memory.step();
    disk.step();
    expect_same(got, want);
    for (const auto& [all, optimizer] : {std::pair(&want, &in_memory), std::pair(&got, &kept)}) {
      auto& states = optimizer->state();
      std::swap(states[(*all)[0].unsafeGetTensorImpl()], states[(*all)[1].unsafeGetTensorImpl()]);
    }
  }
}

// A gradient that the program sets may have any strides.
TEST_F(OnDisk, TakesGradientsOfAnyStrides) {
  const OneThread one;
  set_gradients(wanted_, 2);
  set_gradients(got_, 2);
  got_[1].mutable_grad() = got_[1].grad().t().contiguous().t();
  got_[5].mutable_grad() = got_[5].grad().contiguous();
  in_memory_->step();
  disk_->step();
  for (size_t i = 0; i < got_.size(); ++i) EXPECT_TRUE(got_[i].allclose(wanted_[i], 1e-6, 1e-7)) << i;
}

TEST_F(OnDisk, HasTheBitsOfOneThreadOnSeveral) {
  const auto make = [] { return torch::ones({300000}).mul_(0.3).requires_grad_(true); };
  const at::Tensor want = make(), got = make();
  torch::optim::AdamW in_memory(Tensors{want}, 0.01), kept(Tensors{got}, 0.01);
  OptimizerOnDisk disk(kept, {{folder_}});
  for (int step = 0; step < 2; ++step) {
    torch::manual_seed(step);
    want.mutable_grad() = torch::randn({300000});
    got.mutable_grad() = want.grad();
    {
      const OneThread one;
      in_memory.step();
    }
    disk.step();
    EXPECT_TRUE(got.equal(want)) << step;
  }
}

// A bit of the disk is another than was written. Afterwards the states are not to be used.
TEST_F(OnDisk, FindsAFlippedBitAndStops) {
  train(0, 2);
  const at::Tensor on_disk = find_state(*on_disk_, got_[3])->numbers.at("exp_avg");
  on_disk[20000].fill_(1);
  EXPECT_THROW(disk_->step(), RunError);
  EXPECT_EQ(on_disk_->param_groups()[0].params().size(), got_.size());
  EXPECT_TRUE(on_disk_->state().empty());
  EXPECT_THROW(disk_->step(), RunError);
}

}  // namespace
}  // namespace braid::modules::optimizer_on_disk_test
