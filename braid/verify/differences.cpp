// Compares in float64.
#include "braid/verify/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::verify {
namespace {

double or_infinite(double number) { return std::isfinite(number) ? number : std::numeric_limits<double>::infinity(); }

void widen(Difference& all, const Difference& one) {
  if (one.largest.difference > all.largest.difference) all.largest = one.largest;
  if (one.worst.excess() > all.worst.excess()) all.worst = one.worst;
  all.squares += one.squares;
  all.scale = std::max(all.scale, one.scale);
  all.elements += one.elements;
  all.same_bits = all.same_bits && one.same_bits;
  all.has_slack = all.has_slack || one.has_slack;
}

// Returns the number at the largest element of `key`.
Difference::Number at_largest(const at::Tensor& key, const at::Tensor& difference, const at::Tensor& slack) {
  const at::Tensor place = key.argmax();  // of a NaN, if there is one
  const auto number = [&](const at::Tensor& all) { return all.flatten()[place.item<int64_t>()].item<double>(); };
  return {or_infinite(number(difference)), slack.defined() ? number(slack) : 0};
}

}  // namespace

void Differences::add(const Place& place, const at::Tensor& got, const Want& want) {
  const bool comparable = got.sizes() == want.part.sizes();
  Difference one{.scale = want.scale,
                 .elements = static_cast<double>(got.numel()),
                 .same_bits = comparable && got.equal(want.part),
                 .has_slack = want.slack.defined()};
  if (!comparable) {
    one.largest = one.worst = {std::numeric_limits<double>::infinity()};
  } else if (!one.same_bits) {
    const at::Tensor difference = got.to(at::kDouble).sub(want.part.to(at::kDouble)).abs();
    one.largest = at_largest(difference, difference, want.slack);
    one.worst = want.slack.defined() ? at_largest(difference.sub(want.slack), difference, want.slack) : one.largest;
    one.squares = or_infinite(difference.square().sum().item<double>());
  }
  widen(all_[place], one);
}

void Differences::add(const Place& place, double got, double want) {
  const Difference::Number number{got == want ? 0 : or_infinite(std::abs(got - want))};
  widen(all_[place], {.largest = number,
                      .worst = number,
                      .squares = number.difference * number.difference,
                      .scale = std::abs(want),
                      .elements = 1,
                      .same_bits = got == want});
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
