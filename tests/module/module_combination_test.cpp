// Every feature that a program can ask for with modules of its own: DataParallel, a pipeline, and a pipeline on data
// ranks are really made, and refuse what the table of combinations refuses, by its words; the rest trains a step.
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/spec/combine.h"

namespace braid::modules::module_combination_test {
namespace {

using enum spec::Feature;
using torch::nn::Linear;

struct Asked {
  SyncSpec sync;
  ServerOptimizer servers;
  Schedule schedule = schedule::one_f_one_b(2, 4);
  at::ScalarType type = at::kDouble;
  bool ties = false, drops = false, clips = false, moves = false;
};

// Eight layers, two for each of four stages, of which the first two may be one module.
LayerList model(const Asked& asked) {
  torch::manual_seed(1);
  const Linear first(4, 4), second(4, 4);
  LayerList layers;
  layers.add("first", first).add("second", asked.ties ? first : second);
  asked.drops ? layers.add("drop", KeyedDropout(0.5)) : layers.add("tanh", torch::nn::Tanh());
  for (int i = 3; i < 8; ++i) layers.add(Linear(4, 4));
  for (int l = 0; l < layers.size(); ++l) layers[l].module->to(asked.type);
  return layers;
}

void train_parallel(const Asked& asked) {
  const std::vector<LayerList> lists{model(asked), model(asked)};
  run_ranks(2, [&](Communicator& world) {
    DataParallel parallel(lists[static_cast<size_t>(world.rank())], world,
                          {.sync = asked.sync, .optimizer = asked.servers});
    parallel.backward(parallel.forward(at::ones({8, 4}, asked.type)).square().mean());
    if (asked.clips) parallel.clip_grad_norm(0.1);
    if (asked.sync.replication == ReplicationKind::ParameterServer) return parallel.step(0.1);
    torch::optim::SGD sgd(parallel.parameters(), 0.1);
    parallel.step(sgd);
  });
}

at::Tensor mean_square(const at::Tensor& output, const at::Tensor& target) { return (output - target).square().mean(); }

void train_pipeline(const Asked& asked, int num_replicas) {
  const std::vector<LayerList> lists{model(asked), model(asked)};
  run_ranks(2 * num_replicas, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe"), peers = world.split(2 + world.rank() % 2, 0, "data");
    const ActivationsOnDisk activations({.folders = {"."}, .bytes = 1 << 20});
    ModulePipeline pipeline(lists[static_cast<size_t>(replica)], *pipe,
                            {.schedule = asked.schedule,
                             .loss = mean_square,
                             .data = num_replicas > 1 ? peers.get() : nullptr,
                             .sync = asked.sync,
                             .activations = asked.moves ? &activations : nullptr});
    const at::Tensor rows = at::ones({8, 4}, asked.type);
    pipeline.step({rows}, {rows});
    pipeline.update([] {});
  });
}

struct Driver {
  const char* name;
  std::vector<spec::Feature> features;
  void (*train)(const Asked& asked);
};
const std::vector<Driver> kDrivers = {
    {"DataParallel", {UserModules}, train_parallel},
    {"ModulePipeline", {UserPipeline}, [](const Asked& asked) { train_pipeline(asked, 1); }},
    {"ModulePipeline on data ranks", {UserModules, UserPipeline}, [](const Asked& asked) { train_pipeline(asked, 2); }},
};
using Drivers = std::vector<size_t>;
const Drivers kParallel{0}, kReplicas{0, 2}, kPipes{1, 2}, kAll{0, 1, 2};

struct Switch {
  spec::Feature feature;
  const char* option;  // two features of one option are not on together
  void (*on)(Asked& asked);
  Drivers drivers;
};

void follow(Asked& asked, const char* name) { asked.schedule = make_schedule(name, {.ranks = 2, .microbatches = 4}); }

const std::vector<Switch> kSwitches = {
    {FlushPipeline, "schedule", [](Asked& asked) { follow(asked, "gpipe"); }, kPipes},
    {ChunkedPipeline, "schedule", [](Asked& asked) { follow(asked, "interleaved"); }, kPipes},
    {ZeroBubblePipeline, "schedule", [](Asked& asked) { follow(asked, "zb-h1"); }, kPipes},
    {VShapedPipeline, "schedule", [](Asked& asked) { follow(asked, "zb-v"); }, kPipes},
    {MirroredPipeline, "schedule", [](Asked& asked) { follow(asked, "dualpipe"); }, kPipes},
    {AsynchronousPipeline, "schedule", [](Asked& asked) { follow(asked, "pipedream"); }, kPipes},
    {TablePipeline, "schedule",
     [](Asked& asked) { asked.schedule = schedule::from_csv(schedule::to_csv(asked.schedule), "mine"); }, kPipes},
    {SegmentRecompute, "schedule",
     [](Asked& asked) { asked.schedule = schedule::with_recompute(schedule::with_comms(asked.schedule), {0}); },
     kPipes},
    {TiedEmbedding, "module", [](Asked& asked) { asked.ties = true; }, kAll},
    {Dropout, "dropout", [](Asked& asked) { asked.drops = true; }, kAll},
    {NarrowWeights, "type", [](Asked& asked) { asked.type = at::kBFloat16; }, kAll},
    {Clipping, "clip", [](Asked& asked) { asked.clips = true; }, kParallel},
    {Data, "world", [](Asked&) {}, kReplicas},
    {Compression, "compression", [](Asked& asked) { asked.sync.compression = CompressionKind::BFloat16; }, kReplicas},
    {ShardedOptimizer, "zero", [](Asked& asked) { asked.sync.zero = 1; }, kReplicas},
    {ShardedGradients, "zero", [](Asked& asked) { asked.sync.zero = 2; }, kReplicas},
    {ShardedParameters, "zero", [](Asked& asked) { asked.sync.zero = 3; }, kReplicas},
    {LocalUpdates, "replication", [](Asked& asked) { asked.sync.replication = ReplicationKind::LocalSgd; }, kReplicas},
    {ParameterServers, "replication", [](Asked& asked) { asked.sync.replication = ReplicationKind::ParameterServer; },
     kReplicas},
    {DiskActivations, "activations", [](Asked& asked) { asked.moves = true; }, kPipes},
    {MatrixUpdates, "kind", [](Asked& asked) { asked.servers.kind = OptimizerKind::Muon; }, kParallel},
};

// There is no option for them: modules say themselves what of this they are.
const std::vector<spec::Feature> kNotOffered = {DocumentAttention, LossScaling,     SelectiveRecompute,
                                                Experts,           HostOptimizer,   DiskOptimizer,
                                                HostGradients,     DiskGradients,   HostParameters,
                                                DiskParameters,    HostActivations, UnequalShares,
                                                Context,           Expert,          Tensor,
                                                SequenceParallel,  CopiedKeyHeads,  Reproducible,
                                                RatesByName,       NarrowStates,    ProcessRanks};

// The reasons of all rows that refuse something among `on`.
std::vector<std::string> reasons(const std::vector<spec::Feature>& on) {
  std::vector<std::string> all;
  for (size_t i = 0; i < on.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const spec::Combination pair = spec::combination(on[i], on[j]);
      if (spec::refused(pair.verdict)) all.push_back(pair.why);
    }
  }
  return all;
}

void expect_verdict(const Driver& driver, std::vector<spec::Feature> on, const Asked& asked) {
  on.insert(on.end(), driver.features.begin(), driver.features.end());
  const auto expected = reasons(on);
  std::string said;
  try {
    driver.train(asked);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) said += problem.rule + "\n";
  }
  const bool told = std::ranges::any_of(expected, [&](const auto& why) { return said.find(why) != said.npos; });
  EXPECT_EQ(told, !expected.empty()) << said;
  EXPECT_EQ(said.empty(), expected.empty()) << said;
}

TEST(ModuleCombinations, EveryCellIsAsTheTableSays) {
  int num_cells = 0;
  for (const Switch& a : kSwitches) {
    for (const Switch& b : kSwitches) {
      const bool alone = a.feature == b.feature;
      if (a.feature > b.feature || (!alone && std::string_view(a.option) == b.option)) continue;
      for (const size_t d : a.drivers) {
        if (std::ranges::find(b.drivers, d) == b.drivers.end()) continue;
        SCOPED_TRACE(cat(spec::text(a.feature), " and ", spec::text(b.feature), " in ", kDrivers[d].name));
        Asked asked;
        a.on(asked);
        if (!alone) b.on(asked);
        expect_verdict(kDrivers[d], {a.feature, b.feature}, asked);
        ++num_cells;
      }
    }
  }
  EXPECT_GT(num_cells, 200);
}

TEST(ModuleCombinations, EveryFeatureIsSwitchedOrNotOffered) {
  const auto switched = [](spec::Feature feature) {
    return std::ranges::any_of(kSwitches, [&](const Switch& known) { return known.feature == feature; });
  };
  const auto of_modules = [](spec::Feature feature) { return feature == UserModules || feature == UserPipeline; };
  for (int i = 0; i < spec::kNumFeatures; ++i) {
    const auto feature = static_cast<spec::Feature>(i);
    const bool elsewhere = of_modules(feature) || std::ranges::find(kNotOffered, feature) != kNotOffered.end();
    EXPECT_NE(switched(feature), elsewhere) << spec::text(feature);
  }
  for (const spec::Combination& row : spec::combinations()) {
    EXPECT_TRUE(!of_modules(row.b) || switched(row.a)) << spec::text(row.a) << ": a row that no program can meet";
    EXPECT_FALSE(of_modules(row.a)) << spec::text(row.b) << ": the first feature has the key that is at fault";
  }
}

}  // namespace
}  // namespace braid::modules::module_combination_test
