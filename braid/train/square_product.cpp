// Its values are of no consequence but that none is denormal.
#include "braid/train/square_product.h"

#include <ATen/ops/mm.h>

#include "braid/base/clock.h"
#include "braid/train/uncounted_tensor.h"

namespace braid::train {

SquareProduct::SquareProduct(int64_t size, at::ScalarType dtype, at::Device device)
    : a_(uncounted_tensor({size, size}, dtype, device)),
      b_(uncounted_tensor({size, size}, dtype, device)),
      out_(uncounted_tensor({size, size}, dtype, device)) {
  a_.fill_(0.5);
  b_.fill_(0.25);
}

double SquareProduct::seconds() {
  const double begin = now_seconds();
  at::mm_out(out_, a_, b_);
  wait_for(out_);
  return now_seconds() - begin;
}

double SquareProduct::flops() const {
  const auto size = static_cast<double>(a_.size(0));
  return 2 * size * size * size;
}

}  // namespace braid::train
