// The model against PyTorch: tests/nn/data is written by tools/reference/gpt2.py, which describes the format.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/nn/gpt2_run.h"

namespace braid {
namespace {

std::map<std::string, std::vector<double>> reference(const std::string& dtype) {
  std::ifstream file(std::string(BRAID_SOURCE_DIR) + "/tests/nn/data/gpt2_" + dtype + ".txt");
  std::map<std::string, std::vector<double>> numbers;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    for (double number; in >> number;) numbers[name].push_back(number);
  }
  return numbers;
}

// Sum, sum of squares, two projections, eight samples; each may be off by `tolerance` of what the gradient's norm makes
// of it.
void expect_fingerprint(const std::string& name, const at::Tensor& gradient, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(expected.size(), 12u) << name;
  const at::Tensor flat = gradient.to(at::kDouble).flatten();
  const double count = static_cast<double>(flat.numel()), norm = std::sqrt(expected[1]);
  EXPECT_NEAR(flat.sum().item<double>(), expected[0], tolerance * norm * std::sqrt(count)) << name;
  EXPECT_NEAR(flat.square().sum().item<double>(), expected[1], 2 * tolerance * expected[1]) << name;
  for (int k = 0; k < 2; ++k) {
    const at::Tensor onto = formula_tensor(name + "#projection" + std::to_string(k), {flat.numel()});
    const double projection = flat.mul(onto).sum().item<double>();
    EXPECT_NEAR(projection, expected[2 + k], tolerance * norm * onto.norm().item<double>()) << name;
  }
  for (int k = 0; k < 8; ++k) {
    const int64_t at = static_cast<int64_t>(formula_bits(name + "#sample", k) % flat.numel());
    EXPECT_NEAR(flat[at].item<double>(), expected[4 + k], tolerance * norm) << name << " [" << at << "]";
  }
}

void expect_parity(const std::string& dtype_name, const Gpt2Run& run, double tolerance) {
  const auto expected = reference(dtype_name);
  ASSERT_EQ(expected.size(), 2 + 4 + 2 * 12u) << "tests/nn/data is not readable";
  const auto results = gpt2_step(run);
  const at::Tensor logits = results.at("logits").to(at::kDouble).flatten();
  ASSERT_EQ(logits.numel(), static_cast<int64_t>(expected.at("logits").size()));
  for (int64_t i = 0; i < logits.numel(); ++i) {
    EXPECT_NEAR(logits[i].item<double>(), expected.at("logits")[i], tolerance) << "logits [" << i << "]";
  }
  const double loss = expected.at("loss")[0];
  EXPECT_NEAR(results.at("loss0").item<double>(), loss, tolerance * loss);
  for (const auto& [name, fingerprint] : expected) {
    if (name == "logits" || name == "loss") continue;
    ASSERT_TRUE(results.contains("grad." + name)) << name;
    expect_fingerprint(name, results.at("grad." + name), fingerprint, tolerance);
  }
}

TEST(Gpt2Parity, Float64) { expect_parity("float64", {tiny_gpt2(), 1, at::kDouble}, 1e-10); }
TEST(Gpt2Parity, Float64OnThreeTensorRanks) { expect_parity("float64", {tiny_gpt2(), 3, at::kDouble}, 1e-10); }
TEST(Gpt2Parity, Float32) { expect_parity("float32", {tiny_gpt2(), 1, at::kFloat}, 2e-5); }

}  // namespace
}  // namespace braid
