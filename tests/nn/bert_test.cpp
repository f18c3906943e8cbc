// BERT as a whole: layouts of its layers, padding, masked tokens alone, and a bias of the logits.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "braid/nn/kernels/activations.h"
#include "tests/nn/model_run.h"

namespace braid::nn::bert_test {
namespace {

ModelRun bert_run(int ranks = 1) {
  ModelRun run{tiny_bert(), ranks};
  run.microbatches = 2;
  return run;
}

TEST(Bert, ParallelIsSerialWithDropout) {
  ModelRun run = bert_run();
  run.spec.dropout = 0.3;
  const auto serial = model_step(run);
  run.ranks = 3;
  expect_equal(model_step(run), serial, 1e-12);
}

// With padding of a document of its own, no token sees it: a sequence of 5 tokens among 8 is as one of 5 alone.
TEST(Bert, APaddedSequenceHasTheLogitsOfTheSequenceAlone) {
  constexpr int64_t kTokens = 5, kPadded = 8;
  const ModelRun run = bert_run();
  run_ranks(1, [&](Communicator& group) {
    const at::NoGradGuard no_grad;
    RunModel model(run, group);
    Microbatch m = run_microbatch(run, 0);
    m.training = false;
    m.targets_bt = m.rows_bj = at::Tensor();
    const at::Tensor tokens_bt = m.tokens_bt.narrow(1, 0, kTokens).contiguous();
    m.documents_bt = at::arange(kPadded).ge(kTokens).to(at::kLong).expand({2, kPadded}).contiguous();
    const at::Tensor padded = model.forward(m).narrow(1, 0, kTokens);
    m.documents_bt = at::Tensor();
    const at::Tensor seen = model.forward(m).narrow(1, 0, kTokens);
    m.tokens_bt = tokens_bt;
    const at::Tensor alone = model.forward(m);
    EXPECT_LT(relative_error(padded, alone), 1e-14);
    EXPECT_GT(relative_error(seen, alone), 1e-4) << "the padding would count";
  });
}

TEST(Bert, MissingTargetsCountAsIfTheyWereNotThere) {
  const ModelRun run = bert_run();
  const auto step = [&](const Microbatch& m) {
    std::map<std::string, at::Tensor> results;
    run_ranks(1, [&](Communicator& group) {
      RunModel model(run, group);
      model.world.sink->begin_step(1);
      const at::Tensor loss = model.forward(m);
      loss.backward();
      model.world.queue.run(0);
      results["loss"] = loss.detach();
      for (const param::Parameter& p : model.world.store.params()) results[p.name] = p.main_grad.clone();
    });
    return results;
  };
  Microbatch m = run_microbatch(run, 0);
  const auto want = step(m);
  m.rows_bj = at::cat({m.rows_bj, at::zeros({2, 3}, at::kLong)}, 1);
  m.targets_bt = at::cat({m.targets_bt, at::full({2, 3}, kNoTarget, at::kLong)}, 1);
  m.num_targets = 4;
  expect_equal(step(m), want, 1e-13);
}

// The Python beside it: torch.nn.functional.gelu. All of the range, and both tails.
TEST(GeluErf, IsTheExactFormInEveryType) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double tolerance = type == at::kDouble ? 4e-15 : 6e-7;
    const at::Tensor x = at::arange(-40, 40, 0.01, at::kDouble).view({-1, 16}), zero = at::zeros({16}, type);
    const at::Tensor y = kernels::bias_gelu(x.to(type), zero, kernels::GeluForm::Erf).to(at::kDouble);
    const at::Tensor want = at::gelu(x.to(type).to(at::kDouble), "none");
    EXPECT_LT(y.sub(want).abs().max().item<double>(), tolerance * 10);
    at::Tensor wide = x.to(type).to(at::kDouble).requires_grad_();
    at::gelu(wide, "none").sum().backward();
    const at::Tensor h = x.to(type).clone();
    kernels::bias_gelu_backward_(h, zero, at::ones(x.sizes(), type), kernels::GeluForm::Erf);
    EXPECT_LT(h.to(at::kDouble).sub(wide.grad()).abs().max().item<double>(), tolerance);
  }
}

}  // namespace
}  // namespace braid::nn::bert_test
