// Compares in float64.
#include "braid/verify/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::verify {
namespace {

void widen(Difference& all, const Difference& one) {
  const auto or_infinite = [](double number) {
    return std::isfinite(number) ? number : std::numeric_limits<double>::infinity();
  };
  all.largest = std::max(all.largest, or_infinite(one.largest));
  all.excess = std::max(all.excess, or_infinite(one.excess));
  all.slack = std::max(all.slack, one.slack);
  all.scale = std::max(all.scale, one.scale);
  all.elements += one.elements;
  all.same_bits = all.same_bits && one.same_bits;
}

}  // namespace

void Differences::add(const Place& place, const at::Tensor& got, const Want& want) {
  const bool comparable = got.sizes() == want.part.sizes();
  Difference one{0,
                 0,
                 want.slack.defined() ? scale_of(want.slack) : 0,
                 want.scale,
                 static_cast<double>(got.numel()),
                 comparable && got.equal(want.part)};
  if (!one.same_bits) {
    one.largest = one.excess = std::numeric_limits<double>::infinity();
    if (comparable) {
      const at::Tensor difference = got.to(at::kDouble).sub(want.part.to(at::kDouble)).abs();
      one.largest = scale_of(difference);
      one.excess = want.slack.defined() ? scale_of(difference.sub(want.slack).clamp_min(0)) : one.largest;
    }
  }
  widen(all_[place], one);
}

void Differences::add(const Place& place, double got, double want) {
  const double difference = got == want ? 0 : std::abs(got - want);
  widen(all_[place], {difference, difference, 0, std::abs(want), 1, got == want});
}

void Differences::add(const Differences& others) {
  for (const auto& [place, difference] : others.all_) widen(all_[place], difference);
}

Difference Differences::at(const Place& place) const {
  const auto found = all_.find(place);
  return found == all_.end() ? Difference() : found->second;
}

double scale_of(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.abs().max().to(at::kDouble).item<double>();
}

}  // namespace braid::verify
