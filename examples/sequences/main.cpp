// Sequences of unequal lengths on two data ranks: trained on batches of similar length, which need little padding, and
// judged on samples that the ranks take in turns, each of them once.
//
//   build/release/bin/example_sequences
//
// Of the tokens of a sequence many are the one that is its class, the others any. The program ends with an error when
// the model has not learnt to count them, or when batches are padded by more than was allowed.
#include <ATen/core/Reduction.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/data/length_buckets.h"
#include "braid/data/sharded_sampler.h"
#include "braid/module/data_parallel.h"

namespace {

constexpr int kRanks = 2, kEpochs = 8, kTokens = 12, kPad = kTokens, kClasses = 3, kShortest = 8, kLongest = 40;
constexpr int64_t kMaxTokens = 512;
constexpr double kMaxPadding = 0.2;

struct Sequences {
  std::vector<at::Tensor> tokens;
  std::vector<int64_t> lengths, classes;
};

Sequences sequences(int count) {
  Sequences made;
  for (int i = 0; i < count; ++i) {
    const auto length = torch::randint(kShortest, kLongest + 1, {1}).item<int64_t>();
    made.lengths.push_back(length);
    made.classes.push_back(i % kClasses);
    const at::Tensor any = torch::randint(kTokens, {length}, torch::kLong);
    made.tokens.push_back(any.masked_fill(torch::rand({length}).lt(0.4), i % kClasses));
  }
  return made;
}

struct Batch {
  at::Tensor tokens, classes;
};

Batch padded(const Sequences& all, const std::vector<int64_t>& samples, int64_t length) {
  const auto rows = static_cast<int64_t>(samples.size());
  Batch batch{torch::full({rows, length}, kPad, torch::kLong), torch::empty({rows}, torch::kLong)};
  for (int64_t row = 0; row < rows; ++row) {
    const auto sample = static_cast<size_t>(samples[static_cast<size_t>(row)]);
    batch.tokens[row].narrow(0, 0, all.lengths[sample]).copy_(all.tokens[sample]);
    batch.classes[row] = all.classes[sample];
  }
  return batch;
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    table = register_module("table", torch::nn::Embedding(kTokens + 1, 16));
    head = register_module("head", torch::nn::Linear(16, kClasses));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    return head((table(tokens) * tokens.ne(kPad).unsqueeze(2)).sum(1));  // the padding counts nothing
  }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

// The share of padding in all batches that this rank has seen.
double train(braid::DataParallel& model, const Sequences& all, braid::Communicator& world) {
  const braid::LengthBuckets buckets(all.lengths, {.max_tokens = kMaxTokens, .max_padding = kMaxPadding, .seed = 1},
                                     world.size());
  torch::optim::Adam optimizer(model.parameters(), 0.02);
  double tokens = 0, padding = 0;
  for (int64_t step = 0; step < kEpochs * buckets.steps_per_epoch(); ++step) {
    const auto [samples, length] = buckets.batch(step, world.rank());
    const Batch batch = padded(all, samples, length);
    tokens += static_cast<double>(batch.tokens.numel());
    padding += batch.tokens.eq(kPad).sum().item<double>();
    const at::Tensor sum =
        torch::cross_entropy_loss(model.forward(batch.tokens), batch.classes, {}, at::Reduction::Sum);
    model.backward(sum / braid::mean(static_cast<double>(samples.size()), world));  // ranks have unequal numbers
    model.step(optimizer);
  }
  return padding / tokens;
}

double accuracy(braid::DataParallel& model, const Sequences& all, braid::Communicator& world) {
  const auto count = static_cast<int64_t>(all.tokens.size());
  braid::ShardedSampler sampler(
      {.num_samples = count, .order = braid::SampleOrder::AsGiven, .tail = braid::UnevenTail::Uneven}, world.rank(),
      world.size());
  double hits = 0;
  for (int64_t left = sampler.rounds_left(); left > 0; --left) {
    const auto sample = sampler.next();
    if (!sample) continue;  // the last round has too few for all ranks
    const Batch one = padded(all, {*sample}, all.lengths[static_cast<size_t>(*sample)]);
    hits += model.forward(one.tokens).argmax(1).eq(one.classes).sum().item<double>();
  }
  return braid::mean(hits, world) * world.size() / static_cast<double>(count);
}

}  // namespace

int main() try {
  torch::manual_seed(1);
  const Sequences train_set = sequences(600), test_set = sequences(101);
  std::vector<Net> nets(kRanks);  // a rank's own
  double right = 0, padding = 0;
  braid::run_ranks(kRanks, [&](braid::Communicator& world) {
    braid::DataParallel model(braid::LayerList().add(nets[static_cast<size_t>(world.rank())]), world);
    const double padded_share = braid::mean(train(model, train_set, world), world);
    const double of_all = accuracy(model, test_set, world);
    if (world.rank() == 0) right = of_all, padding = padded_share;
  });
  std::printf("%.1f %% of %zu sequences right, %.1f %% of what was trained on is padding\n", 100 * right,
              test_set.tokens.size(), 100 * padding);
  return right > 0.9 && padding < kMaxPadding ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
