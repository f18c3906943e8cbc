// Losses whose mean is not over rows: a pipeline gives the loss and the gradients of the whole batch on one device,
// whatever microbatches and data ranks have of what counts.
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::counted_loss_test {
namespace {

namespace F = torch::nn::functional;

constexpr int64_t kVocabulary = 7, kRaggedRows = 8, kTokens = 6;

// Log-probabilities of classes, (rows, classes, tokens), which CrossEntropyLoss and NLLLoss both take.
struct Tagger {
  Tagger() {
    torch::manual_seed(4);
    embedding = torch::nn::Embedding(kVocabulary, 5), head = torch::nn::Linear(5, kVocabulary);
    embedding->to(at::kDouble), head->to(at::kDouble);
  }
  LayerList layers() {
    LayerList list;
    list.add("embedding", embedding).add("head", head);
    list.add("classes", [](const at::Tensor& x) { return x.transpose(1, 2).log_softmax(1); });
    return list;
  }
  at::Tensor forward(const at::Tensor& tokens) { return head(embedding(tokens)).transpose(1, 2).log_softmax(1); }
  Tensors parameters() const { return {embedding->weight, head->weight, head->bias}; }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear head{nullptr};
};

// Rows have one to six labels; those of the last two rows, a microbatch, have none.
struct Ragged {
  at::Tensor tokens, labels;
};
Ragged ragged() {
  torch::manual_seed(9);
  Ragged made{torch::randint(kVocabulary, {kRaggedRows, kTokens}), torch::randint(kVocabulary, {kRaggedRows, kTokens})};
  for (int64_t row = 0; row < kRaggedRows; ++row) {
    const int64_t length = row < 6 ? 1 + row : 0;
    made.labels[row].slice(0, length).fill_(-100);
  }
  return made;
}

struct Result {
  double loss = 0;
  Tensors gradients;
};

// Returns the result of two batches, the second of which is the first one backwards.
Result whole_batch(const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& loss) {
  Tagger model;
  const Ragged data = ragged();
  Result result;
  for (const at::Tensor& rows : {at::arange(kRaggedRows), at::arange(kRaggedRows - 1, -1, -1)}) {
    const at::Tensor value = loss(model.forward(data.tokens.index_select(0, rows)), data.labels.index_select(0, rows));
    value.backward();
    result.loss = value.item<double>();
  }
  for (const auto& each : model.parameters()) result.gradients.push_back(each.grad());
  return result;
}

// On two data ranks, the first of which has five rows, each a pipeline of two ranks; gradients add up over two steps.
Result piped(const LossFunction& loss, LossKind kind = LossKind::Mean) {
  std::vector<Tagger> replicas(2);
  std::vector<LayerList> layers{replicas[0].layers(), replicas[1].layers()};
  const Ragged data = ragged();
  Result result;
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe"), peers = world.split(2 + world.rank() % 2, 0, "data");
    ModulePipeline pipeline(
        layers[replica], *pipe,
        {.schedule = schedule::one_f_one_b(2, 3), .loss = loss, .loss_kind = kind, .data = peers.get()});
    for (const at::Tensor& rows : {at::arange(kRaggedRows), at::arange(kRaggedRows - 1, -1, -1)}) {
      const at::Tensor own = replica == 0 ? rows.narrow(0, 0, 5) : rows.narrow(0, 5, 3);
      const auto value = pipeline.step({data.tokens.index_select(0, own)}, {data.labels.index_select(0, own)});
      if (value && replica == 0) result.loss = *value;
    }
  });
  for (const auto& each : replicas[1].parameters()) result.gradients.push_back(each.grad());
  return result;
}

// The same on one rank without data ranks, in microbatches of two rows.
Result piped_alone(const LossFunction& loss) {
  Tagger model;
  const Ragged data = ragged();
  Result result;
  run_ranks(1, [&](Communicator& pipe) {
    ModulePipeline pipeline(model.layers(), pipe, {.schedule = schedule::gpipe(1, 4), .loss = loss});
    for (const at::Tensor& rows : {at::arange(kRaggedRows), at::arange(kRaggedRows - 1, -1, -1)}) {
      result.loss = *pipeline.step({data.tokens.index_select(0, rows)}, {data.labels.index_select(0, rows)});
    }
  });
  for (const auto& each : model.parameters()) result.gradients.push_back(each.grad());
  return result;
}

void expect_equal(const Result& found, const Result& expected) {
  EXPECT_NEAR(found.loss, expected.loss, 1e-12);
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    EXPECT_LT((found.gradients[i] - expected.gradients[i]).abs().max().item<double>(), 1e-12) << i;
  }
}

at::Tensor class_weights() { return at::arange(1, kVocabulary + 1, at::kDouble); }

TEST(CountedLoss, ModulesThatSkipRowsCountTheOthers) {
  using torch::nn::CrossEntropyLoss;
  using torch::nn::CrossEntropyLossOptions;
  using torch::nn::NLLLoss;
  using torch::nn::NLLLossOptions;
  for (CrossEntropyLoss loss :
       {CrossEntropyLoss(), CrossEntropyLoss(CrossEntropyLossOptions().weight(class_weights()).ignore_index(-100)),
        CrossEntropyLoss(CrossEntropyLossOptions().weight(class_weights()).label_smoothing(0.1))}) {
    const Result expected = whole_batch([&](const auto& x, const auto& y) { return loss(x, y); });
    expect_equal(piped(loss), expected);
    expect_equal(piped_alone(loss), expected);
  }
  for (NLLLoss loss : {NLLLoss(), NLLLoss(NLLLossOptions().weight(class_weights()))}) {
    const Result expected = whole_batch([&](const auto& x, const auto& y) { return loss(x, y); });
    expect_equal(piped(loss), expected);
    expect_equal(piped_alone(loss), expected);
  }
}

struct TenfoldLossImpl final : torch::nn::CrossEntropyLossImpl {
  at::Tensor forward(const at::Tensor& output, const at::Tensor& target) {
    return 10 * torch::nn::CrossEntropyLossImpl::forward(output, target);
  }
};
TORCH_MODULE(TenfoldLoss);

TEST(CountedLoss, ALossOfTheUsersThatIsMadeOfTorchsIsTheUsers) {
  const at::Tensor output = torch::rand({4, 3}, at::kDouble), target = torch::randint(3, {4});
  TenfoldLoss loss;
  const LossFunction function = loss;
  EXPECT_FALSE(function.counted());
  EXPECT_TRUE(function({output}, {target}).value.equal(loss(output, target)));
}

TEST(CountedLoss, AFunctionMayGiveSumAndCount) {
  const auto sum_of = [](const at::Tensor& x, const at::Tensor& y) {
    return F::cross_entropy(x, y, F::CrossEntropyFuncOptions().reduction(torch::kSum));
  };
  const auto as_pair = [=](const at::Tensor& x, const at::Tensor& y) {
    return std::pair(sum_of(x, y), static_cast<double>(y.ne(-100).sum().item<int64_t>()));
  };
  const auto as_tuple = [=](const Tensors& x, const Tensors& y) {
    return std::tuple(sum_of(x[0], y[0]), y[0].ne(-100).sum());
  };
  const Result expected = whole_batch([](const auto& x, const auto& y) { return F::cross_entropy(x, y); });
  expect_equal(piped(as_pair), expected);
  expect_equal(piped(as_tuple), expected);
  expect_equal(piped_alone(as_tuple), expected);
  expect_equal(piped(as_pair, LossKind::Sum), whole_batch(sum_of));
}

// The recipe of DataParallel's header for such losses.
TEST(CountedLoss, UnderDataParallelASumIsDividedByTheMeanCount) {
  const Result expected = whole_batch([](const auto& x, const auto& y) { return F::cross_entropy(x, y); });
  std::vector<Tagger> replicas(2);
  const Ragged data = ragged();
  run_ranks(2, [&](Communicator& world) {
    Tagger& model = replicas[world.rank()];
    DataParallel parallel(model.layers(), world);
    const auto of_rows = [&](const at::Tensor& rows) {
      const at::Tensor labels = data.labels.index_select(0, rows);
      const auto sum = F::cross_entropy(parallel.forward(data.tokens.index_select(0, rows)), labels,
                                        F::CrossEntropyFuncOptions().reduction(torch::kSum));
      return sum / mean(labels.ne(-100).sum().item<double>(), world);
    };
    const int64_t begin = world.rank() == 0 ? 0 : 5, end = world.rank() == 0 ? 5 : 8;
    parallel.accumulate(of_rows(at::arange(begin, end)));
    parallel.backward(of_rows(kRaggedRows - 1 - at::arange(begin, end)));
    parallel.step([&] {
      for (size_t i = 0; i < expected.gradients.size(); ++i) {
        const at::Tensor off = model.parameters()[i].grad() - expected.gradients[i];
        EXPECT_LT(off.abs().max().item<double>(), 1e-12) << i;
      }
    });
  });
}

// Gradients on disk get the factor that they lack when the update reads them.
TEST(CountedLoss, WithGradientsOnDisk) {
  const auto trained = [](Kept gradients) {
    Tagger model;
    const Ragged data = ragged();
    const std::vector<std::string> folders{testing::TempDir()};
    ModelMemory memory{.gradients = gradients};
    if (memory.has_disk()) memory.folders = folders;
    run_ranks(1, [&](Communicator& pipe) {
      ModulePipeline pipeline(
          model.layers(), pipe,
          {.schedule = schedule::gpipe(1, 4), .loss = torch::nn::CrossEntropyLoss(), .memory = memory});
      torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.5).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {folders});
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grad();
        pipeline.step({data.tokens}, {data.labels});
        pipeline.update(disk);
      }
    });
    return model;
  };
  const Tensors want = trained(Kept::InMemory).parameters(), got = trained(Kept::OnDisk).parameters();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-12) << i;
}

}  // namespace
}  // namespace braid::modules::counted_loss_test
