#include "braid/train/square_product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <new>

#include "braid/base/clock.h"

namespace braid {
namespace {

constexpr std::align_val_t kAlignment{64};

at::Tensor matrix(int64_t size, at::ScalarType dtype, at::Device device) {
  const auto options = at::TensorOptions(dtype).device(device);
  if (!device.is_cpu()) return at::empty({size, size}, options);
  void* block = ::operator new(static_cast<size_t>(size * size) * c10::elementSize(dtype), kAlignment);
  return at::from_blob(
      block, {size, size}, [](void* p) { ::operator delete(p, kAlignment); }, options);
}

}  // namespace

SquareProduct::SquareProduct(int64_t size, at::ScalarType dtype, at::Device device)
    : a_(matrix(size, dtype, device)), b_(matrix(size, dtype, device)), out_(matrix(size, dtype, device)) {
  a_.fill_(0.5);
  b_.fill_(0.25);
}

double SquareProduct::seconds() {
  const double begin = now_seconds();
  at::mm_out(out_, a_, b_);
  out_.select(0, 0).select(0, 0).item<double>();  // waits for a device that works behind the host's back
  return now_seconds() - begin;
}

double SquareProduct::flops() const {
  const auto size = static_cast<double>(a_.size(0));
  return 2 * size * size * size;
}

}  // namespace braid
