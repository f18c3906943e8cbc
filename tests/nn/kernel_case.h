// How a fused kernel is judged: against the composed operations in float64 on the same (rounded) inputs, and in narrow
// types also against what the composed operations themselves lose there.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <functional>

#include "braid/base/text.h"
#include "tests/nn/rank_world.h"

namespace braid {

using Results = std::map<std::string, at::Tensor>;

// Runs with some number of threads and puts the old number back.
inline Results with_threads(int num_threads, const std::function<Results()>& run) {
  const int before = at::get_num_threads();
  at::set_num_threads(num_threads);
  const Results results = run();
  at::set_num_threads(before);
  return results;
}

// Values in [-size / 2, size / 2) of a dtype.
inline at::Tensor kernel_input(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype, double size = 4) {
  return formula_tensor(name, shape).mul_(size).to(dtype);
}

inline at::Tensor leaf(const at::Tensor& x, at::ScalarType dtype) { return x.detach().to(dtype).requires_grad_(); }

// |a - b| in the Frobenius norm, relative to |b| or, where b nearly vanishes, to its inputs, which are of the order
// of 1.
inline double kernel_error(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  const double floor = std::sqrt(static_cast<double>(b.numel())) / 4;
  return a.to(at::kDouble).sub(b).norm().item<double>() / std::max(b.norm().item<double>(), floor);
}

// `composed(dtype)`: the composed form from leaves of that dtype, made from the same rounded inputs. In 16 bits the
// error is at most the composed form's. Of a few elements, where luck decides, a small multiple of all that.
inline void expect_as_good_as_composed(const Results& fused, at::ScalarType dtype,
                                       const std::function<Results(at::ScalarType)>& composed) {
  const double epsilon = dtype == at::kDouble ? 2e-16 : dtype == at::kFloat ? 1.2e-7 : dtype == at::kHalf ? 5e-4 : 4e-3;
  const Results exact = with_threads(1, [&] { return composed(at::kDouble); });
  const Results same = with_threads(1, [&] { return composed(dtype); });
  for (const auto& [name, value] : exact) {
    ASSERT_TRUE(fused.contains(name)) << name;
    const double error = kernel_error(fused.at(name), value);
    const double peer = dtype == at::kDouble ? 1000 * epsilon : kernel_error(same.at(name), value);
    if (value.numel() < 512) {
      EXPECT_LE(error, 8 * peer + 4 * epsilon) << name;
    } else if (dtype == at::kFloat) {
      EXPECT_LE(error, std::max(2 * epsilon, peer)) << name;
    } else {
      EXPECT_LE(error, 1.01 * peer) << name;
    }
  }
}

inline void expect_same_bits(const Results& a, const Results& b) {
  for (const auto& [name, value] : b) EXPECT_TRUE(a.at(name).equal(value)) << name;
}

}  // namespace braid
