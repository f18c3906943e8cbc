// Frozen parameters of users' modules whose values are replaced during training, and gradients from before they were
// frozen.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::frozen_values_test {
namespace {

constexpr int kSteps = 3;

// The first layer is frozen.
struct Net {
  torch::nn::Linear backbone{6, 6}, head{6, 2};

  Net() {
    torch::manual_seed(5);
    backbone = torch::nn::Linear(6, 6);
    head = torch::nn::Linear(6, 2);
    for (torch::nn::Linear* layer : {&backbone, &head}) (*layer)->to(at::kDouble);
    freeze();
  }
  void freeze() const {
    for (at::Tensor& parameter : backbone->parameters()) parameter.requires_grad_(false);
  }
  void release() const {
    for (at::Tensor& parameter : backbone->parameters()) parameter.requires_grad_(true);
  }
  // Rank 0's values are `values` of 0.
  void load(int values) const { backbone->weight.set_data(at::full({6, 6}, 0.1 + values, at::kDouble)); }
  LayerList layers() const { return LayerList().add("backbone", backbone).add("head", head); }
  at::Tensor forward(const at::Tensor& x) { return head(backbone(x)); }
  Tensors values() const { return {backbone->weight, backbone->bias, head->weight, head->bias}; }
};

at::Tensor inputs_of(int step) { return at::arange(8 * 6, at::kDouble).view({8, 6}).add(step).sin(); }
at::Tensor targets_of(int step) { return at::arange(8 * 2, at::kDouble).view({8, 2}).add(step).cos(); }
at::Tensor error_of(const at::Tensor& y, const at::Tensor& target) { return (y - target).square().mean(); }

void descend(const Tensors& parameters) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& each : parameters) {
    if (each.requires_grad() && each.grad().defined()) each.sub_(each.grad(), 0.1);
    each.mutable_grad().reset();
  }
}

enum class Then { StaysFrozen, IsReleased };

// One rank, which loads before the second step.
Net trained_alone(Then then) {
  Net net;
  for (int step = 0; step < kSteps; ++step) {
    if (step == 1) net.load(0);
    if (step == 1 && then == Then::IsReleased) net.release();
    error_of(net.forward(inputs_of(step)), targets_of(step)).backward();
    descend(net.values());
  }
  return net;
}

void expect_all_are(const std::vector<Net>& nets, const Net& expected) {
  for (const Net& net : nets) {
    for (size_t i = 0; i < net.values().size(); ++i) {
      EXPECT_LT((net.values()[i] - expected.values()[i]).abs().max().item<double>(), 1e-12) << "#" << i;
    }
  }
}

TEST(FrozenValues, LoadedOnAllDataRanksBecomeRankZeros) {
  // Its values are loaded after forward and backward of the first step.
  Net expected = trained_alone(Then::StaysFrozen);
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(cat("zero ", zero));
    std::vector<Net> nets(2);
    run_ranks(2, [&](Communicator& world) {
      Net& net = nets[world.rank()];
      DataParallel parallel(net.layers(), world, {.sync = {.zero = zero}});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      for (int step = 0; step < kSteps; ++step) {
        const auto half = [&](const at::Tensor& rows) { return rows.chunk(2)[world.rank()]; };
        parallel.backward(error_of(parallel.forward(half(inputs_of(step))), half(targets_of(step))));
        if (step == 0) net.load(world.rank());
        parallel.step(optimizer);
      }
      parallel.with_whole_parameters([&] { expect_all_are({net}, expected); });
    });
  }
}

TEST(FrozenValues, LoadedByReplicasThatTrainApartBecomeRankZeros) {
  using enum ReplicationKind;
  for (const SyncSpec& sync : {SyncSpec{.replication = LocalSgd, .period = 2}, SyncSpec{.replication = DiLoCo},
                               SyncSpec{.replication = ParameterServer},
                               SyncSpec{.replication = ParameterServer, .consistency = Consistency::Asp}}) {
    std::vector<Net> nets(2);
    run_ranks(2, [&](Communicator& world) {
      Net& net = nets[world.rank()];
      DataParallel parallel(net.layers(), world, {.sync = sync});
      for (int step = 0; step < kSteps; ++step) {
        if (step == 1) net.load(world.rank());
        parallel.backward(error_of(parallel.forward(inputs_of(world.rank())), targets_of(step)));
        sync.replication == ParameterServer ? parallel.step(0.1) : parallel.step([&] { descend(net.values()); });
      }
    });
    for (const Net& net : nets) EXPECT_EQ(net.backbone->weight.max().item<double>(), 0.1) << cat(sync.replication);
  }
}

TEST(FrozenValues, LoadedOnOneDataRankOnlyEndInAnError) {
  for (const int zero : {0, 1, 2, 3}) {
    std::vector<Net> nets(2);
    const auto train = [&](Communicator& world) {
      Net& net = nets[world.rank()];
      DataParallel parallel(net.layers(), world, {.sync = {.zero = zero}});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      if (world.rank() == 1) net.load(1);
      parallel.backward(error_of(parallel.forward(inputs_of(0)), targets_of(0)));
      parallel.step(optimizer);
    };
    EXPECT_THROW(run_ranks(2, train), CommError) << zero;
  }
}

// On two pipeline ranks the first has frozen parameters only.
TEST(FrozenValues, LoadedInAPipelineBecomeDataRankZeros) {
  for (const Then then : {Then::StaysFrozen, Then::IsReleased}) {
    const Net expected = trained_alone(then);
    for (const int stages : {1, 2}) {
      SCOPED_TRACE(cat(stages, " stages, ", then == Then::IsReleased ? "released" : "frozen"));
      std::vector<Net> nets(2);
      run_ranks(2 * stages, [&](Communicator& world) {
        const int replica = world.rank() / stages, stage = world.rank() % stages;
        const auto pipe = world.split(replica, stage, "pipe"), data = world.split(stage, replica, "data");
        Net& net = nets[replica];
        ModulePipeline pipeline(net.layers(), *pipe,
                                {.schedule = schedule::gpipe(stages, 2), .loss = error_of, .data = data.get()});
        for (int step = 0; step < kSteps; ++step) {
          if (step == 1 && stage == 0) net.load(replica);
          if (step == 1 && stage == 0 && then == Then::IsReleased) net.release();
          if (step == 1 && then == Then::IsReleased) pipeline.retrace();
          pipeline.step({inputs_of(step).chunk(2)[replica]}, {targets_of(step).chunk(2)[replica]});
          descend(pipeline.parameters());
        }
      });
      expect_all_are(nets, expected);
    }
  }
}

// A microbatch before, and the rest that top-k owes, have gradients of the parameters that are frozen since.
TEST(FrozenValues, AnEarlierGradientIsNotInTheNorm) {
  for (const CompressionKind compression : {CompressionKind::None, CompressionKind::TopK}) {
    std::vector<Net> nets(2);
    for (const Net& net : nets) net.release();
    run_ranks(2, [&](Communicator& world) {
      Net& net = nets[world.rank()];
      DataParallel parallel(net.layers(), world, {.sync = {.compression = compression, .compression_fraction = 0.1}});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      const auto error = [&] { return error_of(parallel.forward(inputs_of(world.rank())), targets_of(0)); };
      parallel.backward(error());
      parallel.step(optimizer);
      parallel.accumulate(error());
      net.freeze();
      parallel.backward(error());
      const double norm = parallel.clip_grad_norm(1e9);
      double squares = 0;
      for (const at::Tensor& each : parallel.parameters()) {
        if (each.grad().defined()) squares += each.grad().square().sum().item<double>();
      }
      EXPECT_NEAR(norm, std::sqrt(squares), 1e-12);
    });
  }
}

// A weight that reads another one's values, as a copy of a tied weight that has no gradient.
TEST(FrozenValues, MemoryOfATrainedParameterBelongsToNoOtherTensor) {
  const auto said = [](const auto& alias, int stages) {
    std::vector<Net> nets(2);
    for (Net& net : nets) {
      net.head = torch::nn::Linear(torch::nn::LinearOptions(6, 6).bias(false));
      net.head->to(at::kDouble);
      alias(net);
    }
    try {
      run_ranks(2, [&](Communicator& world) {
        const Net& net = nets[stages == 0 ? static_cast<size_t>(world.rank()) : 0];
        if (stages == 0) DataParallel(net.layers(), world, {.sync = {.replication = ReplicationKind::LocalSgd}});
        if (stages > 0) ModulePipeline(net.layers(), world, {.schedule = schedule::gpipe(2, 2), .loss = error_of});
      });
    } catch (const ConfigError& error) {
      return error.problems().front().key + " " + error.problems().front().rule;
    }
    return std::string("accepted");
  };
  const auto tie = [](Net& net) { net.backbone->weight.set_data(net.head->weight.detach()); };
  const auto keep = [](Net& net) { net.head->register_buffer("rows", net.head->weight.detach().narrow(0, 1, 2)); };
  const auto freeze = [](Net& net) {
    net.backbone->weight.set_data(net.head->weight.detach());
    net.head->weight.requires_grad_(false);
    net.backbone->bias.requires_grad_(true);
  };
  const std::string rule = "must not share memory with ", unless = ", unless both are one tensor";
  EXPECT_EQ(said(tie, 0), "head.0 " + rule + "backbone.0" + unless);
  EXPECT_EQ(said(keep, 0), "head.0 " + rule + "buffer 0 of head" + unless);
  EXPECT_EQ(said(freeze, 0), "accepted");
  EXPECT_EQ(said(tie, 2),
            "layers.head shares a parameter's memory with layer backbone of rank 0, which must be on the "
            "same rank as this one (1)");
}

}  // namespace
}  // namespace braid::modules::frozen_values_test
