// Unit roundoffs of the types.
#include "braid/verify/rounding.h"

#include <cmath>

namespace braid::verify {
namespace {

constexpr double kUnit64 = 0x1p-53, kUnit32 = 0x1p-24, kUnitBFloat16 = 0x1p-8, kUnitFloat16 = 0x1p-11;
constexpr double kRoundingsOfPartialSums = 2;

}  // namespace

double rounding_of(DType dtype, double terms) {
  switch (dtype) {
    case DType::Float64:
      return kUnit64 * std::sqrt(terms);
    case DType::Float32:
      return kUnit32 * std::sqrt(terms);
    case DType::BFloat16:
      return kRoundingsOfPartialSums * kUnitBFloat16 + kUnit32 * std::sqrt(terms);
    case DType::Float16:
      break;
  }
  return kRoundingsOfPartialSums * kUnitFloat16 + kUnit32 * std::sqrt(terms);
}

double Rounding::bound(const Place& place, const Difference& difference) const {
  if (place.phase == Phase::Start || place.phase == Phase::Data) return 0;
  Place serial = place;
  serial.rank = 0;
  if (serial.phase == Phase::Recompute) serial.phase = Phase::Forward;
  const double own = rounding_of(dtype, subjects[place.subject].longest_sum) * difference.scale;
  return kMargin * (own + (difference.slack > 0 ? 0 : rounded.at(serial).largest));
}

}  // namespace braid::verify
