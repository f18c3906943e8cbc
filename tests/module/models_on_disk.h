// A model with its parameters and gradients on disk, and what it is trained on.
#pragma once

#include <ATen/ops/embedding.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/model_memory.h"
#include "braid/module/optimizer_on_disk.h"
#include "braid/param/memory_account.h"
#include "tests/support/scratch_folder.h"

namespace braid::models_on_disk {

using torch::nn::Linear;

inline constexpr int kSteps = 3;
inline constexpr int64_t kWidth = 40, kBatchRows = 16, kNumWords = 9;

// A table that is used twice, a layer of no use for the loss, a recomputed layer, dropout.
// Its backward fails in the middle while `fails`.
inline LayerList model(const std::shared_ptr<bool>& fails) {
  torch::manual_seed(7);
  const at::Tensor table = at::randn({kNumWords, kWidth}).requires_grad_(true);
  const Linear unused(3, 5);
  const auto look_up = [table](const at::Tensor& words) { return at::embedding(table, words); };
  const auto logits = [table](const at::Tensor& x) { return x.matmul(table.t()); };
  const auto fail = [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("not today"); };
  const auto ignore = [fails, fail](const at::Tensor& x) {
    const at::Tensor y = x * 1.5;
    if (*fails) y.register_hook(fail);
    return y;
  };
  LayerList layers;
  layers.add("words", look_up, {.parameters = {table}})
      .add("first", Linear(kWidth, kWidth))
      .add("ignore", ignore, {.parameters = {unused->weight, unused->bias}})
      .add("drop", KeyedDropout(0.2))
      .add("second", Linear(kWidth, kWidth), {.activations = Activations::Recomputed})
      .add("tanh", torch::nn::Tanh())
      .add("logits", logits, {.parameters = {table}});
  return layers;
}

// A rank trains a model, with other words in each pass over it.
struct Part {
  std::shared_ptr<bool> fails = std::make_shared<bool>(false);
  LayerList layers = model(fails);
  Tensors words = {};
};
inline std::vector<Part> parts(int ranks) {
  std::vector<Part> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.emplace_back();
    torch::manual_seed(100 + rank);
    for (int pass = 0; pass < 3 * kSteps; ++pass) all.back().words.push_back(at::randint(kNumWords, {kBatchRows}));
  }
  return all;
}

inline at::Tensor loss_of(DataParallel& model, const at::Tensor& words) {
  return torch::cross_entropy_loss(model.forward(words), words.flip(0));
}

// Runs `body` on ranks whose memory is counted, in the accounts from `first` on. Other tests have others.
inline void on_accounted_ranks(int first, int ranks, const std::function<void(Communicator&)>& body) {
  param::install_memory_accounting();
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      run_ranks(ranks, [&](Communicator& world) {
        param::account_memory_to(first + world.rank());
        body(world);
      });
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

class ModelMemoryTest : public ScratchFolder {
 protected:
  ModelMemory memory(Kept parameters, Kept gradients) const {
    return {.parameters = parameters, .gradients = gradients, .folders = {folder_}, .chunk_bytes = 8192};
  }
  ModelMemory on_disk() const { return memory(Kept::OnDisk, Kept::OnDisk); }
};

// A model of one rank, its optimizer, and words.
struct Trained {
  const LayerList& layers;
  DataParallel& model;
  torch::optim::Optimizer& optimizer;
  OptimizerOnDisk& disk;
  const Tensors& words;
  bool& fails;  // the backward

  void backward(int pass) const { model.backward(loss_of(model, words[pass])); }
  void step(int pass) const {
    backward(pass);
    model.step(disk);
  }
};

class OneRank : public ModelMemoryTest {
 protected:
  void on(const ModelMemory& memory, const std::function<void(const Trained&)>& body) {
    const std::vector<Part> all = parts(1);
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(all[0].layers, world, {.memory = memory});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      body({all[0].layers, model, optimizer, disk, all[0].words, *all[0].fails});
    });
  }
};

}  // namespace braid::models_on_disk
