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

double Rounding::of_gradients(int64_t step) const {
  double squares = 0;
  for (const auto& [place, difference] : rounded.all()) {
    if (place.step == step && place.phase == Phase::Gradients) squares += difference.squares;
  }
  return std::sqrt(squares);
}

double Rounding::bound(const Place& place, const Difference& difference) const {
  if (place.phase == Phase::Start || place.phase == Phase::Data) return 0;
  Place serial = place;
  serial.rank = 0;
  if (serial.phase == Phase::Recompute) serial.phase = Phase::Forward;
  const double own = rounding_of(dtype, subjects[place.subject].longest_sum) * difference.scale;
  if (difference.has_slack) return kMargin * own;
  return kMargin *
         (own + (place.phase == Phase::Norm ? of_gradients(place.step) : rounded.at(serial).largest.difference));
}

}  // namespace braid::verify
