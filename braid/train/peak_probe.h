// Measures this machine's rate of matrix products while every rank computes: the peak for utilisation.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

// The source of the peak.
enum class PeakSource {
  Given,
  Measured,
  Step,  // a step of training has reached more than was given or measured
};

struct PeakFlops {
  double per_rank = 0;  // floating-point operations per second, the mean over ranks; 0: not known
  PeakSource source = PeakSource::Given;
  int64_t size = 0;                  // measured: of the square matrices, the same on every rank
  at::ScalarType type = at::kFloat;  // measured: of the matrices
};

// Times square products of `dtype` on `device` on all ranks at the same time, with the threads the caller has, and
// takes the best of a few on each; on CPUs the better of a 16-bit type and float32, because a processor without
// products of the type multiplies in float32. Sizes grow until a product is long enough to time; all in all about a
// tenth of a second. Draws no random numbers, and its matrices count to no rank's memory on the CPU. Collective.
PeakFlops measured_peak(at::ScalarType dtype, at::Device device, Communicator& world);

// The rate of products of one size.
struct ProductSpeed {
  double flops = 0;  // of one product
  double flops_per_second = 0;
};
template <class Pack>
void members(Pack& pack, ProductSpeed& speed) {
  pack(speed.flops, speed.flops_per_second);
}

// Steps with fewer floating-point operations per rank are over before a measurement would be.
inline constexpr double kFewestFlopsWorthMeasuring = 1e9;

}  // namespace braid::train
