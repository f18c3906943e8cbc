// Three steps of AdamW on all families against Hugging Face's models under torch.optim.AdamW (tools/reference).
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "braid/optim/optimizer.h"
#include "tests/nn/model_run.h"
#include "tests/nn/reference_numbers.h"

namespace braid::train::adamw_parity_test {
namespace {

// The options that tools/reference/model_numbers.py gives to torch.
OptimizerSpec reference_optimizer() {
  OptimizerSpec spec;
  spec.lr = 0.01;
  spec.beta1 = 0.9;
  spec.beta2 = 0.95;
  spec.eps = 1e-5;
  spec.weight_decay = 0.1;
  return spec;
}

double train_one_step(RunModel& model, optim::Optimizer& optimizer, nn::Microbatch microbatch) {
  microbatch.micro = 0;
  model.world.sink->begin_step(1);
  const at::Tensor loss = model.forward(microbatch);
  loss.backward();
  model.world.queue.run(0);
  optimizer.step({.lr = reference_optimizer().lr});
  return loss.item<double>();
}

void expect_parity(const std::string& file, const ModelRun& run, double tolerance) {
  const auto expected = reference_numbers(file);
  ASSERT_FALSE(expected.empty()) << "tests/nn/data is not readable";
  run_ranks(1, [&](Communicator& group) {
    at::get_num_threads();
    at::set_num_threads(1);
    RunModel model(run, group);
    const auto optimizer = optim::make_optimizer(reference_optimizer(), model.world.store);
    const at::Tensor before = model.world.store.flat_master().clone();
    for (int step = 0; step < 3; ++step) {
      const double loss = train_one_step(model, *optimizer, run_microbatch(run, step));
      EXPECT_NEAR(loss, expected.at("adamw.loss")[step], tolerance * loss) << step;
    }
    const at::Tensor change = model.world.store.flat_master().sub(before);
    for (const param::Parameter& p : model.world.store.params()) {
      expect_fingerprint(p.name, change.narrow(0, p.offset, p.num_elements()), expected.at("adamw." + p.name),
                         tolerance);
    }
  });
}

TEST(AdamWParity, Gpt2Float64) { expect_parity("gpt2_float64", {tiny_gpt2()}, 1e-10); }
TEST(AdamWParity, Gpt2Float32) { expect_parity("gpt2_float32", {tiny_gpt2(), 1, at::kFloat}, 1e-4); }
TEST(AdamWParity, LlamaFloat64) { expect_parity("llama_float64", {tiny_llama()}, 1e-10); }
TEST(AdamWParity, LlamaFloat32) { expect_parity("llama_float32", {tiny_llama(), 1, at::kFloat}, 1e-4); }
TEST(AdamWParity, BertFloat64) { expect_parity("bert_float64", {tiny_bert()}, 1e-10); }
TEST(AdamWParity, MistralFloat64) { expect_parity("mistral_float64", {tiny_mistral()}, 1e-10); }
TEST(AdamWParity, Qwen2Float64) { expect_parity("qwen2_float64", {tiny_qwen2()}, 1e-10); }
TEST(AdamWParity, Gemma2Float64) { expect_parity("gemma2_float64", {tiny_gemma2()}, 1e-10); }
TEST(AdamWParity, Qwen3Float64) { expect_parity("qwen3_float64", {tiny_qwen3()}, 1e-10); }
TEST(AdamWParity, UntiedLlamaFloat64) { expect_parity("llama3_float64", {tiny_llama3()}, 1e-10); }
TEST(AdamWParity, UntiedLlamaFloat32) { expect_parity("llama3_float32", {tiny_llama3(), 1, at::kFloat}, 1e-4); }

}  // namespace
}  // namespace braid::train::adamw_parity_test
