// Sums of squares whose bits depend neither on the order of the numbers nor on their division among ranks: exact sums
// of what each square has in bins of fixed exponents. Source: Demmel & Nguyen, "Parallel Reproducible Summation"
// (2015).
#pragma once

#include <array>
#include <cstdint>

namespace braid::optim {

// Bin k has multiples of u = 2^(kTopExponent - kBinBits (k + 1)); each square adds at most 2^(kBinBits - 1) u to it.
// The sum is that of all bins. Bins of several sums may be added in any order: up to 2^31 squares, each addition is
// exact. Squares of 2^(kTopExponent - 1) or more, and numbers that are not finite, are outside of the bins: the first
// bin then becomes at least as large, or not finite. Squares below the last bin count as zero.
inline constexpr int kBinBits = 22, kTopExponent = 256, kNumBins = 26;
using SquareBins = std::array<double, kNumBins>;

// Adds the squares of `count` numbers, a multiple of 16, to the bins.
void add_squares(const float* values, int64_t count, double* bins);
void add_squares(const double* values, int64_t count, double* bins);

// Returns the sum of the highest three bins that are not zero, of which the first holds the largest square.
double sum_of_bins(const double* bins);

}  // namespace braid::optim
