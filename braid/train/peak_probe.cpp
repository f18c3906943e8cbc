// The probe. CPU matrices live in memory of its own, past the accounting allocator: a measurement must not show up in
// the peaks of the run.
#include "braid/train/peak_probe.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <new>

#include "braid/base/clock.h"

namespace braid {
namespace {

constexpr int64_t kSmallest = 256, kLargest = 8192;
constexpr double kLongEnough = 0.01;  // seconds of one product: start-up costs and the clock no longer matter
constexpr double kBudget = 0.06;      // seconds of the products that count
constexpr int kMostProducts = 8;
constexpr std::align_val_t kAlignment{64};

class SquareProduct {
 public:
  SquareProduct(int64_t size, at::ScalarType dtype, at::Device device)
      : a_(matrix(size, dtype, device)), b_(matrix(size, dtype, device)), out_(matrix(size, dtype, device)) {
    a_.fill_(0.5);
    b_.fill_(0.25);
  }

  double seconds() {
    const double begin = now_seconds();
    at::mm_out(out_, a_, b_);
    out_.select(0, 0).select(0, 0).item<double>();  // waits for a device that works behind the host's back
    return now_seconds() - begin;
  }

 private:
  static at::Tensor matrix(int64_t size, at::ScalarType dtype, at::Device device) {
    const auto options = at::TensorOptions(dtype).device(device);
    if (!device.is_cpu()) return at::empty({size, size}, options);
    void* block = ::operator new(static_cast<size_t>(size * size) * c10::elementSize(dtype), kAlignment);
    return at::from_blob(
        block, {size, size}, [](void* p) { ::operator delete(p, kAlignment); }, options);
  }

  at::Tensor a_, b_, out_;
};

double all_reduced(double value, ReduceOp op, Communicator& world) {
  auto number = at::full({1}, value, at::kDouble);
  world.all_reduce(number, op).wait_host();
  return number.item<double>();
}

// The same on every rank: the slowest one decides when a product is long enough, so none takes much more than that.
int64_t timed_size(at::ScalarType dtype, at::Device device, Communicator& world) {
  for (int64_t size = kSmallest; size < kLargest; size *= 2) {
    SquareProduct product(size, dtype, device);
    product.seconds();  // the first one also sets up kernels and touches pages
    if (all_reduced(product.seconds(), ReduceOp::Max, world) >= kLongEnough) return size;
  }
  return kLargest;
}

}  // namespace

PeakFlops measured_peak(at::ScalarType dtype, at::Device device, Communicator& world) {
  const c10::AutoGradMode no_grad(false);
  PeakFlops peak{0, PeakSource::Measured, timed_size(dtype, device, world)};
  SquareProduct product(peak.size, dtype, device);
  product.seconds();
  world.barrier().wait_host();
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < kMostProducts && spent < kBudget; ++i) {
    const double seconds = product.seconds();
    best = std::min(best, seconds);
    spent += seconds;
  }
  const double flops = 2.0 * static_cast<double>(peak.size * peak.size * peak.size) / best;
  peak.per_rank = all_reduced(flops, ReduceOp::Sum, world) / world.size();
  return peak;
}

}  // namespace braid
