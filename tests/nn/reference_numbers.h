// The numbers in tests/nn/data, written by tools/reference/{gpt2,llama}.py, and how tensors are held against them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/nn/formula_values.h"

namespace braid {

using ReferenceNumbers = std::map<std::string, std::vector<double>>;

// Numbers by name, those of repeated names one after another. Empty when the file is not readable.
inline ReferenceNumbers reference_numbers(const std::string& file_name) {
  std::ifstream file(std::string(BRAID_SOURCE_DIR) + "/tests/nn/data/" + file_name + ".txt");
  ReferenceNumbers numbers;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    for (double number; in >> number;) numbers[name].push_back(number);
  }
  return numbers;
}

// Sum, sum of squares, two projections, eight samples; each may be off by `tolerance` of what the tensor's norm makes
// of it.
inline void expect_fingerprint(const std::string& name, const at::Tensor& tensor, const std::vector<double>& expected,
                               double tolerance) {
  ASSERT_EQ(expected.size(), 12u) << name;
  const at::Tensor flat = tensor.to(at::kDouble).flatten();
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

}  // namespace braid
