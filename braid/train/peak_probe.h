// Measures this machine's rate of matrix products while every rank computes. The rate is the peak for utilisation.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

// The source of the peak.
enum class PeakSource {
  Given,
  Measured,
  Step,  // a step of training was faster than the given or measured peak
};

struct PeakFlops {
  double per_rank = 0;  // floating-point operations per second, the mean over ranks; 0: not known
  PeakSource source = PeakSource::Given;
  int64_t size = 0;                  // if measured: size of the square matrices, the same on every rank
  at::ScalarType type = at::kFloat;  // if measured: type of the matrices
};

// Times square products of `dtype` on `device` on all ranks at the same time, with the threads that the caller has.
// Takes the best of a few on each rank, and the mean over ranks. For a 16-bit type on CPUs, returns the better of that
// type and float32, because a processor without 16-bit products multiplies in float32. Sizes grow until a product is
// long enough to time; in all this takes about a tenth of a second. Draws no random numbers. On the CPU, no account of
// memory counts the matrices. Collective.
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

// A step with fewer floating-point operations per rank takes less time than the measurement.
inline constexpr double kFewestFlopsWorthMeasuring = 1e9;

}  // namespace braid::train
