// All families against Hugging Face transformers: logits, loss and every gradient; in bfloat16 by how far each is from
// float64.
#include <gtest/gtest.h>

#include "tests/nn/model_run.h"
#include "tests/nn/reference_numbers.h"

namespace braid::nn::model_parity_test {
namespace {

void expect_parity(const std::string& file, const ModelRun& run, double tolerance) {
  const auto expected = reference_numbers(file);
  ASSERT_FALSE(expected.empty()) << "tests/nn/data is not readable";
  const auto results = model_step(run);
  const at::Tensor logits = results.at("logits").to(at::kDouble).flatten();
  ASSERT_EQ(logits.numel(), static_cast<int64_t>(expected.at("logits").size()));
  for (int64_t i = 0; i < logits.numel(); ++i) {
    EXPECT_NEAR(logits[i].item<double>(), expected.at("logits")[i], tolerance) << "logits [" << i << "]";
  }
  const double loss = expected.at("loss")[0];
  EXPECT_NEAR(results.at("loss0").item<double>(), loss, tolerance * loss);
  for (const auto& [name, gradient] : results) {
    if (!name.starts_with("grad.")) continue;
    const std::string param = name.substr(5);
    ASSERT_TRUE(expected.contains(param)) << param;
    expect_fingerprint(param, gradient, expected.at(param), tolerance);
  }
}

constexpr double kFloat64 = 1e-10, kFloat32 = 2e-5;

TEST(Gpt2Parity, Float64) { expect_parity("gpt2_float64", {tiny_gpt2(), 1, at::kDouble}, kFloat64); }
TEST(Gpt2Parity, Float64OnThreeTensorRanks) { expect_parity("gpt2_float64", {tiny_gpt2(), 3, at::kDouble}, kFloat64); }
TEST(Gpt2Parity, Float32) { expect_parity("gpt2_float32", {tiny_gpt2(), 1, at::kFloat}, kFloat32); }
TEST(Gpt2Parity, UntiedFloat64) {
  ModelRun run{tiny_gpt2()};
  run.spec.output_weights = OutputWeights::Untied;
  expect_parity("gpt2_untied_float64", run, kFloat64);
}

TEST(LlamaParity, Float64) { expect_parity("llama_float64", {tiny_llama(), 1, at::kDouble}, kFloat64); }
TEST(LlamaParity, Float64OnThreeTensorRanks) {
  expect_parity("llama_float64", {tiny_llama(), 3, at::kDouble}, kFloat64);
}
TEST(LlamaParity, Float32) { expect_parity("llama_float32", {tiny_llama(), 1, at::kFloat}, kFloat32); }
TEST(LlamaParity, ScaledAndUntiedFloat64) {
  expect_parity("llama3_float64", {tiny_llama3(), 1, at::kDouble}, kFloat64);
}
TEST(LlamaParity, ScaledAndUntiedFloat32) { expect_parity("llama3_float32", {tiny_llama3(), 1, at::kFloat}, kFloat32); }

TEST(BertParity, Float64) { expect_parity("bert_float64", {tiny_bert(), 1, at::kDouble}, kFloat64); }
TEST(BertParity, Float64OnThreeTensorRanks) { expect_parity("bert_float64", {tiny_bert(), 3, at::kDouble}, kFloat64); }
TEST(BertParity, Float64InHalfBlocks) {
  expect_parity("bert_float64", {.spec = tiny_bert(), .cut = Cut::HalfBlocks}, kFloat64);
}
TEST(BertParity, Float32) { expect_parity("bert_float64", {tiny_bert(), 1, at::kFloat}, kFloat32); }

TEST(MistralParity, Float64) { expect_parity("mistral_float64", {tiny_mistral(), 1, at::kDouble}, kFloat64); }
TEST(MistralParity, Float64OnThreeTensorRanks) {
  expect_parity("mistral_float64", {tiny_mistral(), 3, at::kDouble}, kFloat64);
}
TEST(Qwen2Parity, Float64) { expect_parity("qwen2_float64", {tiny_qwen2(), 1, at::kDouble}, kFloat64); }
TEST(Qwen2Parity, Float64OnThreeTensorRanks) {
  expect_parity("qwen2_float64", {tiny_qwen2(), 3, at::kDouble}, kFloat64);
}
TEST(Qwen3Parity, Float64) { expect_parity("qwen3_float64", {tiny_qwen3(), 1, at::kDouble}, kFloat64); }
TEST(Qwen3Parity, Float64OnThreeTensorRanks) {
  expect_parity("qwen3_float64", {tiny_qwen3(), 3, at::kDouble}, kFloat64);
}
TEST(Gemma2Parity, Float64) { expect_parity("gemma2_float64", {tiny_gemma2(), 1, at::kDouble}, kFloat64); }
TEST(Gemma2Parity, Float64OnThreeTensorRanks) {
  expect_parity("gemma2_float64", {tiny_gemma2(), 3, at::kDouble}, kFloat64);
}
TEST(Gemma2Parity, Float32) { expect_parity("gemma2_float32", {tiny_gemma2(), 1, at::kFloat}, kFloat32); }
TEST(Qwen3Parity, Float32) { expect_parity("qwen3_float32", {tiny_qwen3(), 1, at::kFloat}, kFloat32); }

// Loss and gradients of microbatch `micro`, on one rank.
std::map<std::string, at::Tensor> numbers_of(RunModel& model, const ModelRun& run, int micro) {
  Microbatch m = run_microbatch(run, micro);
  m.micro = 0;
  model.world.sink->begin_step(1);
  const at::Tensor loss = model.forward(m);
  loss.backward();
  model.world.queue.run(0);
  std::map<std::string, at::Tensor> numbers{{"loss", loss.detach()}};
  for (const param::Parameter& p : model.world.store.params()) numbers[p.name] = p.main_grad.clone();
  return numbers;
}

// Root mean square over eight batches of the relative error against float64 at the same weights.
std::map<std::string, double> bfloat16_errors(ModelRun run) {
  std::map<std::string, double> squares;
  run_ranks(1, [&](Communicator& group) {
    run.dtype = at::kBFloat16;
    RunModel narrow(run, group);
    run.dtype = at::kDouble;
    RunModel wide(run, group);
    {
      const at::NoGradGuard no_grad;
      for (param::Parameter& p : wide.world.store.params()) p.data.copy_(narrow.world.store[p.name].data);
    }
    for (int micro = 0; micro < 8; ++micro) {
      const auto got = numbers_of(narrow, run, micro), want = numbers_of(wide, run, micro);
      for (const auto& [name, tensor] : want) {
        const double error = relative_error(got.at(name), tensor);
        squares[name] += error * error / 8;
      }
    }
  });
  for (auto& [name, square] : squares) square = std::sqrt(square);
  return squares;
}

// The error of Hugging Face's model bounds the error of ours.
void expect_bfloat16_parity(const std::string& file, const ModelRun& run) {
  const auto allowed = reference_numbers(file);
  const auto errors = bfloat16_errors(run);
  ASSERT_EQ(errors.size(), allowed.size());
  double sum = 0;
  for (const auto& [name, error] : errors) {
    ASSERT_TRUE(allowed.contains(name)) << name;
    EXPECT_LE(error, 1.5 * allowed.at(name)[0]) << name;
    EXPECT_GT(error, 0) << name << ": computed in a wider type";
    sum += error / allowed.at(name)[0];
  }
  testing::Test::RecordProperty("mean_ratio", std::to_string(sum / static_cast<double>(errors.size())));
}

TEST(Gpt2Parity, Bfloat16) { expect_bfloat16_parity("gpt2_bfloat16_errors", {tiny_gpt2()}); }
TEST(LlamaParity, Bfloat16) { expect_bfloat16_parity("llama_bfloat16_errors", {tiny_llama()}); }
TEST(Gemma2Parity, Bfloat16) { expect_bfloat16_parity("gemma2_bfloat16_errors", {tiny_gemma2()}); }
TEST(Qwen3Parity, Bfloat16) { expect_bfloat16_parity("qwen3_bfloat16_errors", {tiny_qwen3()}); }

}  // namespace
}  // namespace braid::nn::model_parity_test
