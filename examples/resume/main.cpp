// A training that ends and goes on: a perceptron on a pipeline of two stages with two replicas, four ranks in all. The
// program trains up to a step and saves; started again it loads what is there and goes on.
//
//   build/release/bin/example_resume FOLDER STEPS     trains up to step STEPS; again, with more of them, it goes on
//   build/release/bin/example_resume                  starts itself: once through, and in three parts
//
// Without arguments it compares what the two trainings leave, weights.safetensors, which plain torch reads too
// (safetensors.torch.load_file): every byte is the same, dropout and Adam's moments included.
#include <spawn.h>
#include <sys/wait.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/adam.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace {

constexpr int kStages = 2, kReplicas = 2, kRows = 32, kFeatures = 8;

// Two replicas begin alike: data rank 0's weights become those of all.
braid::LayerList perceptron() {
  braid::LayerList layers;
  layers.add("in", torch::nn::Linear(kFeatures, 32)).add("tanh", torch::nn::Tanh());
  layers.add("drop", braid::KeyedDropout(0.1)).add("out", torch::nn::Linear(32, 1));
  return layers;
}

struct Batch {
  at::Tensor x, y;
};

// Returns the batch of a step, a pure function of it.
Batch batch(int64_t step) {
  torch::manual_seed(100 + step);
  const at::Tensor x = torch::randn({kRows, kFeatures});
  return {x, x.sin().sum(1, true)};
}

void train(const std::string& folder, int64_t steps) {
  torch::manual_seed(1);
  const std::vector<braid::LayerList> layers{perceptron(), perceptron()};
  const std::string checkpoint = folder + "/checkpoint";
  const bool goes_on = std::filesystem::exists(checkpoint);
  const int64_t first = goes_on ? braid::ckpt::read_checkpoint_info(checkpoint).step : 0;
  std::vector<Batch> batches;
  for (int64_t step = first; step < steps; ++step) batches.push_back(batch(step));

  braid::run_ranks(kStages * kReplicas, [&](braid::Communicator& world) {
    const int replica = world.rank() / kStages;
    const auto pipe = world.split(replica, 0, "pipe"), data = world.split(world.rank() % kStages, 0, "data");
    braid::ModulePipeline pipeline(layers[replica], *pipe,
                                   {.schedule = braid::make_schedule("1f1b", {.ranks = kStages, .microbatches = 4}),
                                    .loss = torch::nn::MSELoss(),
                                    .data = data.get(),
                                    .sync = {.zero = 1},
                                    .world = &world});
    torch::optim::Adam optimizer(pipeline.parameters(), 0.01);
    if (goes_on) pipeline.load(checkpoint, optimizer);
    double loss = 0;
    for (const Batch& rows : batches) {
      optimizer.zero_grad();
      loss = pipeline.step({rows.x.chunk(kReplicas)[replica]}, {rows.y.chunk(kReplicas)[replica]}).value_or(0);
      pipeline.update(optimizer);
    }
    pipeline.save(checkpoint, optimizer);
    pipeline.export_weights(folder + "/weights.safetensors");
    if (world.rank() == kStages - 1) std::printf("steps %2ld to %2ld  loss %.6f\n", first, steps, loss);
  });
}

// This program again, as a process of its own.
void start_again(const std::string& folder, int64_t steps) {
  std::string program = "/proc/self/exe", into = folder, until = std::to_string(steps);
  char* words[] = {program.data(), into.data(), until.data(), nullptr};
  pid_t process = 0;
  int status = 0;
  std::fflush(stdout);
  if (posix_spawn(&process, program.c_str(), nullptr, nullptr, words, environ) != 0 ||
      waitpid(process, &status, 0) != process || status != 0) {
    throw std::runtime_error("the training in " + folder + " failed");
  }
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int compare() {
  const std::string folder = std::filesystem::temp_directory_path() / ("example_resume." + std::to_string(::getpid()));
  const std::string whole = folder + "/whole", parts = folder + "/parts";
  std::filesystem::create_directories(whole);
  std::filesystem::create_directories(parts);
  start_again(whole, 30);
  for (const int64_t steps : {10, 17, 30}) start_again(parts, steps);
  const std::string weights = content(whole + "/weights.safetensors");
  const bool same = !weights.empty() && weights == content(parts + "/weights.safetensors");
  std::filesystem::remove_all(folder);
  std::printf("weights %s\n", same ? "are the same, bit for bit" : "differ");
  return same ? 0 : 1;
}

}  // namespace

int main(int count, char** words) try {
  if (count == 1) return compare();
  if (count != 3) throw std::runtime_error("usage: example_resume [FOLDER STEPS]");
  std::filesystem::create_directories(words[1]);
  train(words[1], std::stol(words[2]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
