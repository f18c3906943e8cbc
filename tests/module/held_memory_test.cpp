// In the middle of a step a rank holds the parameters of two layers, and no gradients of layers whose backward has
// ended.
#include <ATen/ops/ones.h>

#include <array>
#include <string>

#include "braid/base/text.h"
#include "braid/module/model_replica.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/module/models_on_disk.h"

namespace braid::modules::held_memory_test {
namespace {

using namespace models_on_disk;

constexpr int kAccount = 11;  // of the first rank; other tests have others
constexpr int kNumLayers = 5;
constexpr int64_t kUnitBytes = 64 << 10;

int64_t parameter_bytes() {
  return param::memory_use(*param::accounted_rank()).bytes[static_cast<size_t>(param::MemoryCategory::Parameters)];
}

// The layers that are in memory when a layer runs. Layer l has 2^l units of parameters, so the bytes are a set of
// layers.
struct Trace {
  int64_t bytes_between_uses = 0;
  std::vector<std::string> events = {};

  void note(const char* pass, int layer) {
    const int64_t units = (parameter_bytes() - bytes_between_uses + kUnitBytes / 2) / kUnitBytes;
    std::string event = cat(pass, layer, ":");
    for (int l = 0; l < kNumLayers; ++l) {
      if (units >> l & 1) event += cat(" ", l);
    }
    events.push_back(event + (units >> kNumLayers ? " and more" : ""));
  }
};

LayerList traced_layers(const std::shared_ptr<Trace>& trace) {
  LayerList layers;
  for (int layer = 0; layer < kNumLayers; ++layer) {
    const at::Tensor weight = at::ones({(kUnitBytes << layer) / 4}).requires_grad_(true);
    const auto run = [weight, layer, trace](const at::Tensor& x) {
      trace->note("forward ", layer);
      const at::Tensor y = x + weight.mean();
      if (y.requires_grad()) y.register_hook([layer, trace](const at::Tensor&) { trace->note("backward ", layer); });
      return y;
    };
    layers.add(cat(layer), run, {.parameters = {weight}});
  }
  return layers;
}

const std::vector<std::string> kForward{"forward 0: 0 1", "forward 1: 1 2", "forward 2: 2 3", "forward 3: 3 4",
                                        "forward 4: 4"};
const std::vector<std::string> kBackward{"backward 4: 3 4", "backward 3: 2 3", "backward 2: 1 2", "backward 1: 0 1",
                                         "backward 0: 0"};

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& passes) {
  std::vector<std::string> all;
  for (const auto& pass : passes) all.insert(all.end(), pass.begin(), pass.end());
  return all;
}

// Returns the layers that were read from disk, in order.
std::vector<int64_t> layers_read(const disk::Disk& disk) {
  std::vector<int64_t> layers;
  for (const disk::Moved& moved : disk.recorded()) {
    if (moved.direction != disk::Direction::Read) continue;
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      if (moved.bytes == kUnitBytes << layer) layers.push_back(layer);
    }
  }
  return layers;
}

using HeldMemory = ModelMemoryTest;

// The one that runs and the next one. Each is read once in a pass, while the one before runs.
TEST_F(HeldMemory, TwoLayersOfParametersFromDisk) {
  const SyncSpec sync;
  const OptimizerSpec none;
  on_accounted_ranks(kAccount, 1, [&](Communicator& world) {
    const auto trace = std::make_shared<Trace>();
    ModelReplica model(traced_layers(trace), world, {sync, none, memory(Kept::OnDisk, Kept::InMemory)}, 0);
    trace->bytes_between_uses = parameter_bytes();
    disk::Disk& disk = model.synced().store().disk()->disk();
    disk.set_recording(disk::Recording::On);
    for (int step = 0; step < 2; ++step) {
      model.backward(model.forward({at::ones({3})})[0].sum(), 1, ModelReplica::Backward::Last);
      model.finish();
      model.updated();
    }
    EXPECT_EQ(trace->events, joined({kForward, kBackward, kForward, kBackward}));
    EXPECT_EQ(layers_read(disk), (std::vector<int64_t>{0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 3, 2, 1, 0}));
    EXPECT_EQ(parameter_bytes(), trace->bytes_between_uses);
  });
}

// Ranks read their parts, and gather the layer.
TEST_F(HeldMemory, TwoLayersOfParametersOnSeveralRanks) {
  const std::array traces{std::make_shared<Trace>(), std::make_shared<Trace>()};
  const std::array layers{traced_layers(traces[0]), traced_layers(traces[1])};
  on_accounted_ranks(kAccount, 2, [&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    DataParallel model(layers[rank], world, {.sync = {.zero = 3}, .memory = on_disk()});
    traces[rank]->bytes_between_uses = parameter_bytes();
    model.backward(model.forward(at::ones({3})).sum());
    const c10::AutoGradMode no_grad(false);
    model.forward(at::ones({3}));
  });
  for (const auto& trace : traces) EXPECT_EQ(trace->events, joined({kForward, kBackward, kForward}));
}

// A stage's last layer and the first one of another stage do not run one after the other.
TEST_F(HeldMemory, TwoLayersOfAStage) {
  const auto trace = std::make_shared<Trace>();
  const LayerList layers = traced_layers(trace);
  const Schedule schedule = make_schedule("interleaved", {.ranks = 1, .microbatches = 1, .chunks = 2});
  const auto loss = [](const at::Tensor& y, const at::Tensor&) { return y.sum(); };
  on_accounted_ranks(kAccount, 1, [&](Communicator& world) {
    ModulePipeline model(layers, world, {.schedule = schedule, .loss = loss, .balance = {3, 2}, .memory = on_disk()});
    trace->bytes_between_uses = parameter_bytes();
    model.step({at::ones({3})}, {at::ones({3})});
  });
  const std::vector<std::string> wanted{"forward 0: 0 1",  "forward 1: 1 2",  "forward 2: 2",  "forward 3: 3 4",
                                        "forward 4: 4",    "backward 4: 3 4", "backward 3: 3", "backward 2: 1 2",
                                        "backward 1: 0 1", "backward 0: 0"};
  ASSERT_GE(trace->events.size(), wanted.size());  // shapes are traced before
  EXPECT_EQ(std::vector(trace->events.end() - std::ssize(wanted), trace->events.end()), wanted);
}

enum class Last { Used, Unused };

constexpr int64_t kFeatures = 320, kLayerBytes = 4 * kFeatures * (kFeatures + 1);

LayerList eight_layers(Last last) {
  LayerList layers;
  for (int layer = 0; layer < 7; ++layer) layers.add(cat(layer), Linear(kFeatures, kFeatures));
  const Linear linear(kFeatures, kFeatures);
  const auto run = [linear, last](const at::Tensor& x) { return last == Last::Used ? Linear(linear)(x) : x * 1.5; };
  return layers.add("last", run, {.parameters = {linear->weight, linear->bias}});
}

// Returns the peak of a rank in the backward of eight layers.
int64_t peak_bytes(Last last, const std::function<void(const LayerList&, Communicator&)>& train) {
  int64_t peak = 0;
  on_accounted_ranks(kAccount, 1, [&](Communicator& world) {
    train(eight_layers(last), world);
    peak = param::memory_use(kAccount).peak_total_bytes;
  });
  return peak;
}

// The gradients of layers are summed in one order on all ranks, so those of a layer that the loss does not depend on
// must not be waited for.
TEST_F(HeldMemory, NoGradientsBehindALayerThatIsNotUsed) {
  const at::Tensor x = at::ones({4, kFeatures});
  const auto replica = [&](const LayerList& layers, Communicator& world) {
    DataParallel model(layers, world, {.memory = on_disk()});
    param::reset_memory_peak(kAccount);
    model.backward(model.forward(x).square().mean());
  };
  const auto pipeline = [&](const LayerList& layers, Communicator& world) {
    const auto loss = [](const at::Tensor& y, const at::Tensor&) { return y.square().mean(); };
    ModulePipeline model(layers, world, {.schedule = schedule::gpipe(1, 2), .loss = loss, .memory = on_disk()});
    param::reset_memory_peak(kAccount);
    model.step({x}, {x});
  };
  EXPECT_LT(peak_bytes(Last::Unused, replica), peak_bytes(Last::Used, replica) + kLayerBytes);
  EXPECT_LT(peak_bytes(Last::Unused, pipeline), peak_bytes(Last::Used, pipeline) + kLayerBytes);
}

// Squares are float64, but only of a part of a layer at a time.
TEST_F(HeldMemory, NormsTakeOneLayerOfGradients) {
  on_accounted_ranks(kAccount, 1, [&](Communicator& world) {
    LayerList layers;
    for (int layer = 0; layer < 2; ++layer) layers.add(cat(layer), Linear(1024, 1024));
    DataParallel model(layers, world, {.memory = on_disk()});
    model.backward(model.forward(at::ones({1, 1024})).square().mean());
    const int64_t before = param::held_bytes(kAccount);
    param::reset_memory_peak(kAccount);
    model.clip_grad_norm(1);
    EXPECT_LT(param::memory_use(kAccount).peak_total_bytes - before, 2 * 4 * 1024 * 1024);
  });
}

}  // namespace
}  // namespace braid::modules::held_memory_test
