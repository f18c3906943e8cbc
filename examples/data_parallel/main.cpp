// A convolutional network and a perceptron on two and on four data ranks, with gradients summed, with everything shared
// out (ZeRO stage 3), and with two parameter servers, beside the same model on one rank:
//
//   build/release/bin/example_data_parallel
//
// It prints the last loss of each, what a rank sent per step, and how far parameters came from those of one rank.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/adamw.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"

namespace {

constexpr int kSteps = 20, kRows = 32, kClasses = 4;

// A bright square in one of four corners of a noisy image.
struct Images {
  at::Tensor pixels, corners;
};

Images images() {
  torch::manual_seed(4);
  Images all{torch::randn({kSteps, kRows, 1, 8, 8}, at::kDouble), torch::randint(kClasses, {kSteps, kRows})};
  for (int step = 0; step < kSteps; ++step) {
    for (int row = 0; row < kRows; ++row) {
      const int64_t corner = all.corners[step][row].item<int64_t>();
      all.pixels[step][row][0].narrow(0, 4 * (corner / 2), 4).narrow(1, 4 * (corner % 2), 4).add_(1);
    }
  }
  return all;
}

torch::nn::Sequential convolutions() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)), torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2), torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)),
                            torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(128, kClasses));
  net->to(at::kDouble);
  return net;
}

torch::nn::Sequential perceptron() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(64, 64), torch::nn::Tanh(),
                            torch::nn::Linear(64, 64), torch::nn::Tanh(), torch::nn::Linear(64, kClasses));
  net->to(at::kDouble);
  return net;
}

// The least there is to write: four ranks, everything shared out.
void train_in_a_few_lines(std::vector<torch::nn::Sequential>& nets, const Images& data) {
  braid::run_ranks(4, [&](braid::Communicator& world) {
    torch::nn::Sequential net = nets[world.rank()];  // a rank's own
    braid::DataParallel model(braid::LayerList().add(net), world, {.sync = {.zero = 3}});
    torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.01));
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor outputs = model.forward(data.pixels[step].chunk(4)[world.rank()]);
      const at::Tensor loss = torch::cross_entropy_loss(outputs, data.corners[step].chunk(4)[world.rank()]);
      model.backward(loss);
      model.step(optimizer);
    }
  });
}

struct Outcome {
  double loss = 0;
  int64_t bytes_per_step = 0;
  std::vector<at::Tensor> parameters;
};

using MakeNet = torch::nn::Sequential (*)();

struct Way {
  const char* name;
  braid::SyncSpec sync;
};

const Way kWays[] = {{"all-reduce", {}},
                     {"ZeRO-3", {.zero = 3}},
                     {"servers", {.replication = braid::ReplicationKind::ParameterServer, .servers = 2}}};

Outcome train(MakeNet make, int ranks, const braid::SyncSpec& sync, const Images& data) {
  constexpr double kRate = 0.01;
  const bool served =
      sync.replication == braid::ReplicationKind::ParameterServer;  // the servers hold the optimizer, AdamW as well
  Outcome outcome;
  std::vector<torch::nn::Sequential> nets;  // made one by one: seeds are of the process
  for (int rank = 0; rank < ranks; ++rank) nets.push_back(make());
  braid::run_ranks(ranks, [&](braid::Communicator& world) {
    torch::nn::Sequential net = nets[static_cast<size_t>(world.rank())];
    braid::DataParallel model(braid::LayerList().add(net), world,
                              {.sync = sync, .optimizer = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0}});
    torch::optim::AdamW optimizer(model.parameters(),
                                  torch::optim::AdamWOptions(kRate).betas({0.9, 0.99}).weight_decay(0));
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor pixels = data.pixels[step].chunk(ranks)[world.rank()];
      const at::Tensor corners = data.corners[step].chunk(ranks)[world.rank()];
      const at::Tensor loss = torch::cross_entropy_loss(model.forward(pixels), corners);
      model.backward(loss);
      served ? model.step(kRate) : model.step(optimizer);
      const double of_all = braid::mean(loss.item<double>(), world);
      if (world.rank() == 0) outcome.loss = of_all;
    }
    model.with_whole_parameters([&] {
      if (world.rank() != 0) return;
      for (const at::Tensor& parameter : net->parameters()) outcome.parameters.push_back(parameter.detach().clone());
    });
    if (world.rank() == 0) outcome.bytes_per_step = model.bytes_sent() / kSteps;
  });
  return outcome;
}

double distance(const Outcome& a, const Outcome& b) {
  double largest = 0;
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    largest = std::max(largest, (a.parameters[i] - b.parameters[i]).abs().max().item<double>());
  }
  return largest;
}

bool compare(const char* name, MakeNet make, const Images& data) {
  bool close = true;
  const Outcome serial = train(make, 1, {}, data);
  std::printf("%-12s 1 rank               loss %.4f\n", name, serial.loss);
  for (const Way& way : kWays) {
    for (const int ranks : {2, 4}) {
      const Outcome outcome = train(make, ranks, way.sync, data);
      const double apart = distance(outcome, serial);
      std::printf("%-12s %d ranks, %-10s  loss %.4f  %7lld bytes per step  apart %.1e\n", name, ranks, way.name,
                  outcome.loss, static_cast<long long>(outcome.bytes_per_step), apart);
      close = close && apart < 1e-9;
    }
  }
  return close;
}

}  // namespace

int main() try {
  const Images data = images();
  std::vector<torch::nn::Sequential> nets = {convolutions(), convolutions(), convolutions(), convolutions()};
  train_in_a_few_lines(nets, data);
  const bool close = compare("convolutions", convolutions, data), also = compare("perceptron", perceptron, data);
  return close && also ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
