// Functions of Lanes (vector.h): exponentials and the sigmoid.
#pragma once

#include <cmath>

#include "braid/nn/kernels/vector.h"

namespace braid::kernels::BRAID_ROWS {

// Returns the exponentials of lanes that are not above zero (NaN stays NaN), to 1 ulp in float. Below -87.3, where the
// result would be denormal, it is zero. Computed as 2^n e^r with |r| <= ln 2 / 2, where e^r is a polynomial of degree
// 6, fitted for the least relative error (3.7e-9).
BRAID_INLINE Lanes<float> exp_of_nonpositive(const Lanes<float>& z) {
  using L = Lanes<float>;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits
  const L shifted = fma(z, L(1.44269504F), L(kRound));
  const L n = shifted - L(kRound);
  L r = fma(n, L(-0.693145751953125F), z);  // ln 2 in two parts; the product of the first with n is exact
  r = fma(n, L(-1.428606820309417e-06F), r);
  L p = fma(r, L(0x1.6a23cep-10F), L(0x1.123a2p-7F));
  p = fma(p, r, L(0x1.5558f2p-5F));
  p = fma(p, r, L(0x1.555492p-3F));
  p = fma(p, r, L(0x1.fffffcp-2F));
  p = fma(p * r, r, r) + L(1.0F);
  L e;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    const L::Part power = (L::Part)(((L::BitPart)shifted.part[i] + 127) << 23);
    e.part[i] = z.part[i] < -87.3F ? L::Part{} : p.part[i] * power;
  }
  return e;
}
BRAID_INLINE Lanes<double> exp_of_nonpositive(Lanes<double> z) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    for (int k = 0; k < Lanes<double>::kPerPart; ++k) z.part[i][k] = std::exp(z.part[i][k]);
  }
  return z;
}

// sigmoid(x) and its complement 1 - sigmoid(x), both computed without cancellation for any x.
template <class M>
struct Sigmoid {
  Lanes<M> value, complement;
};
template <class M>
BRAID_INLINE Sigmoid<M> sigmoid(const Lanes<M>& x) {
  using L = Lanes<M>;
  L negative;  // -|x|, by setting the sign bit
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    const auto sign = (typename L::BitPart)(-typename L::Part{});
    negative.part[i] = (typename L::Part)((typename L::BitPart)x.part[i] | sign);
  }
  const L e = exp_of_nonpositive(negative);
  const L large = L(1) / (L(1) + e), small = e * large;
  Sigmoid<M> s;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    s.value.part[i] = x.part[i] > 0 ? large.part[i] : small.part[i];
    s.complement.part[i] = x.part[i] > 0 ? small.part[i] : large.part[i];
  }
  return s;
}

}  // namespace braid::kernels::BRAID_ROWS
