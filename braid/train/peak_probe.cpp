// Times products of square matrices.
#include "braid/train/peak_probe.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "braid/base/clock.h"
#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"
#include "braid/nn/kernels/product.h"
#include "braid/param/memory_account.h"
#include "braid/train/measuring.h"

namespace braid::train {
namespace {

// A product of two square matrices that is timed, in unaccounted memory.
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

SquareProduct::SquareProduct(int64_t size, at::ScalarType dtype, at::Device device)
    : a_(uncounted_tensor({size, size}, dtype, device)),
      b_(uncounted_tensor({size, size}, dtype, device)),
      out_(uncounted_tensor({size, size}, dtype, device)) {
  a_.fill_(0.5);
  b_.fill_(0.25);
}

// On some processors LibTorch takes temporary memory for a product of narrow types.
double SquareProduct::seconds() {
  const param::UncountedScope uncounted;
  const double begin = now_seconds();
  at::mm_out(out_, a_, b_);
  wait_for(out_);
  return now_seconds() - begin;
}

double SquareProduct::flops() const {
  const auto size = static_cast<double>(a_.size(0));
  return 2 * size * size * size;
}

constexpr int64_t kSmallest = 256, kLargest = 8192;
constexpr double kLongEnough = 0.01;  // seconds of one product; beyond, start-up costs and the clock do not matter
constexpr double kBudget = 0.06;      // seconds for the products that are timed
constexpr int kMostProducts = 8;

// Returns true if all ranks have memory for the matrices.
bool fits(int64_t size, at::ScalarType dtype, Communicator& world) {
  const auto bytes = 3 * size * size * static_cast<int64_t>(c10::elementSize(dtype));
  return has_memory_for(bytes, world);
}

// Returns the same size on every rank. The slowest rank decides when a product is long enough, so no product takes much
// longer than that.
int64_t timed_size(at::ScalarType dtype, at::Device device, Communicator& world) {
  for (int64_t size = kSmallest; size < kLargest; size *= 2) {
    SquareProduct product(size, dtype, device);
    product.seconds();  // the first one also sets up kernels and touches pages
    if (comm::agree(world, "time of a product", product.seconds(), ReduceOp::Max) >= kLongEnough) return size;
    if (!fits(2 * size, dtype, world)) return size;
  }
  return kLargest;
}

PeakFlops peak_of_type(at::ScalarType dtype, at::Device device, Communicator& world) {
  PeakFlops peak{0, PeakSource::Measured, timed_size(dtype, device, world), dtype};
  SquareProduct product(peak.size, dtype, device);
  product.seconds();
  world.barrier().wait_host();
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < kMostProducts && spent < kBudget; ++i) {
    const double seconds = product.seconds();
    best = std::min(best, seconds);
    spent += seconds;
  }
  peak.per_rank = comm::agree(world, "rate of products", product.flops() / best, ReduceOp::Sum) / world.size();
  return peak;
}

}  // namespace

PeakFlops measured_peak(at::ScalarType dtype, at::Device device, Communicator& world) {
  const c10::AutoGradMode no_grad(false);
  const comm::CallName name("rate of products");
  if (device.is_cpu() && !kernels::multiplies_on_cpu(dtype)) return peak_of_type(at::kFloat, device, world);
  const PeakFlops peak = peak_of_type(dtype, device, world);
  if (device.is_cuda() || at::elementSize(dtype) >= at::elementSize(at::kFloat)) return peak;
  const PeakFlops wide = peak_of_type(at::kFloat, device, world);
  return wide.per_rank > peak.per_rank ? wide : peak;
}

}  // namespace braid::train
