// A product of two square matrices that is timed, in unaccounted memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::train {

class SquareProduct {
 public:
  SquareProduct(int64_t size, at::ScalarType dtype, at::Device device);

  // Returns the time of one product. The first one also sets up kernels and touches pages.
  double seconds();
  // Floating-point operations, a multiply-add being two.
  double flops() const;

 private:
  at::Tensor a_, b_, out_;
};

}  // namespace braid::train
