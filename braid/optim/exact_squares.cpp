// A square s is split by additions: (s + m) - m rounds s to the last digit of m. A block adds to three bins, from that
// of its largest square on. The digits below these are in no sum (sum_of_bins()).
#include "braid/optim/exact_squares.h"

#include <algorithm>
#include <cmath>

namespace braid::optim {
namespace {

constexpr int kKept = 3;  // bins
constexpr int64_t kBlock = 1024;

typedef double Doubles __attribute__((vector_size(32)));

template <class T>
Doubles four_squares(const T* values) {
  const Doubles x{static_cast<double>(values[0]), static_cast<double>(values[1]), static_cast<double>(values[2]),
                  static_cast<double>(values[3])};
  return x * x;
}

// Returns 1.5 x 2^52 units of the bin.
double rounder(int bin) { return std::ldexp(1.5, 52 + kTopExponent - kBinBits * (bin + 1)); }

// Returns the first bin that gets a part of `square`. The square is less than half a unit of the bin before, so it is
// rounded to zero there, whichever larger squares are in its block.
int bin_of(double square) {
  int exponent = 0;
  std::frexp(2 * square, &exponent);  // 2 square < 2^exponent
  return std::clamp((kTopExponent - exponent) / kBinBits, 0, kNumBins - 1);
}

double sum(const Doubles& x) { return (x[0] + x[1]) + (x[2] + x[3]); }

template <class T>
double largest_square(const T* values, int64_t count) {
  Doubles largest{}, all{};
  for (int64_t i = 0; i < count; i += 4) {
    const Doubles squares = four_squares(values + i);
    largest = largest < squares ? squares : largest;
    all += squares;
  }
  const double total = sum(all);  // not finite if a number is not
  return std::isfinite(total) ? std::max({largest[0], largest[1], largest[2], largest[3]}) : total;
}

template <class T>
void add_block(const T* values, int64_t count, double* bins) {
  const double largest = largest_square(values, count);
  if (!(largest < std::ldexp(0.5, kTopExponent))) {
    bins[0] += largest;
    return;
  }
  const int first = bin_of(largest);
  Doubles rounders[kKept]{}, sums[kKept]{};
  for (int k = 0; k < kKept; ++k) rounders[k] += first + k < kNumBins ? rounder(first + k) : rounder(kNumBins - 1);
  for (int64_t i = 0; i < count; i += 4) {
    Doubles rest = four_squares(values + i);
#pragma GCC unroll 3
    for (int k = 0; k < kKept; ++k) {
      const Doubles part = (rest + rounders[k]) - rounders[k];
      sums[k] += part;
      rest -= part;
    }
  }
  for (int k = 0; k < kKept && first + k < kNumBins; ++k) bins[first + k] += sum(sums[k]);
}

template <class T>
void add_blocks(const T* values, int64_t count, double* bins) {
  for (int64_t i = 0; i < count; i += kBlock) add_block(values + i, std::min(kBlock, count - i), bins);
}

}  // namespace

void add_squares(const float* values, int64_t count, double* bins) { add_blocks(values, count, bins); }
void add_squares(const double* values, int64_t count, double* bins) { add_blocks(values, count, bins); }

double sum_of_bins(const double* bins) {
  const double* const end = bins + kNumBins;
  const double* const first = std::find_if(bins, end, [](double bin) { return bin != 0; });
  double total = 0;
  for (const double* bin = std::min(first + kKept, end); bin != first;) total += *--bin;
  return total;
}

}  // namespace braid::optim
