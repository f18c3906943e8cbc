// Functions of Lanes (vector.h): exponentials, the hyperbolic tangent and the sigmoid.
#pragma once

#include <cmath>

#include "braid/nn/kernels/vector.h"

namespace braid::kernels::BRAID_ROWS {

// The two factors of e^z = polynomial * 2^n, where |z - n ln 2| <= ln 2 / 2. The polynomial has degree 6 and is fitted
// for the least relative error (3.7e-9).
struct Exponential {
  Lanes<float> polynomial, power;
};
BRAID_INLINE Exponential exponential(const Lanes<float>& z) {
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
  L power;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) power.part[i] = (L::Part)(((L::BitPart)shifted.part[i] + 127) << 23);
  return {p, power};
}

// Returns the exponentials of lanes that are not above zero (NaN stays NaN), to 1 ulp in float. Below -87.3, where the
// result would be denormal, it is zero.
BRAID_INLINE Lanes<float> exp_of_nonpositive(const Lanes<float>& z) {
  using L = Lanes<float>;
  const Exponential of = exponential(z);
  L e;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i)
    e.part[i] = z.part[i] < -87.3F ? L::Part{} : of.polynomial.part[i] * of.power.part[i];
  return e;
}
BRAID_INLINE Lanes<double> exp_of_nonpositive(Lanes<double> z) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    for (int k = 0; k < Lanes<double>::kPerPart; ++k) z.part[i][k] = std::exp(z.part[i][k]);
  }
  return z;
}

// Returns the exponentials of lanes within +-87, to 1 ulp in float. NaN stays NaN.
BRAID_INLINE Lanes<float> exp_within_range(const Lanes<float>& z) {
  const Exponential of = exponential(z);
  return of.polynomial * of.power;
}
// As in float, with a Taylor polynomial of degree 13, whose error is 4e-18.
BRAID_INLINE Lanes<double> exp_within_range(const Lanes<double>& z) {
  using L = Lanes<double>;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  constexpr double kInverseFactorials[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                           1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                           1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
  const L shifted = fma(z, L(1.4426950408889634), L(kRound));
  const L n = shifted - L(kRound);
  L r = fma(n, L(-0x1.62e42fefa0000p-1), z);  // ln 2 in two parts
  r = fma(n, L(-0x1.cf79abc9e3b39p-40), r);
  L p(kInverseFactorials[0]);
#pragma GCC unroll 16
  for (int i = 1; i < 12; ++i) p = fma(p, r, L(kInverseFactorials[i]));
  p = fma(p * r, r, r) + L(1.0);
  L e;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) e.part[i] = p.part[i] * (L::Part)(((L::BitPart)shifted.part[i] + 1023) << 52);
  return e;
}

template <class M>
BRAID_INLINE Lanes<M> clamped(Lanes<M> x, M most) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    x.part[i] = x.part[i] > most ? most - typename Lanes<M>::Part{} : x.part[i];
    x.part[i] = x.part[i] < -most ? -most - typename Lanes<M>::Part{} : x.part[i];
  }
  return x;
}

// Returns the hyperbolic tangent, to 6 ulp: a quotient of two polynomials. NaN stays NaN. Source: Eigen, ptanh_float.
BRAID_INLINE Lanes<float> tanh(const Lanes<float>& of) {
  using L = Lanes<float>;
  const L x = clamped(of, 7.90531110763549805F), x2 = x * x;
  L p = fma(x2, L(-2.76076847742355e-16F), L(2.00018790482477e-13F));
  p = fma(p, x2, L(-8.60467152213735e-11F));
  p = fma(p, x2, L(5.12229709037114e-08F));
  p = fma(p, x2, L(1.48572235717979e-05F));
  p = fma(p, x2, L(6.37261928875436e-04F));
  p = fma(p, x2, L(4.89352455891786e-03F));
  L q = fma(x2, L(1.19825839466702e-06F), L(1.18534705686654e-04F));
  q = fma(q, x2, L(2.26843463243900e-03F));
  q = fma(q, x2, L(4.89352518554385e-03F));
  return x * p / q;
}
// Computed as 1 - 2 / (e^2x + 1), with an absolute error of 2e-16.
BRAID_INLINE Lanes<double> tanh(const Lanes<double>& of) {
  using L = Lanes<double>;
  return L(1) - L(2) / (exp_within_range(clamped(of, 20.0) * L(2)) + L(1));
}

// Returns the derivative of tanh, 4 e / (1 + e)^2 with e = exp(2x), to 8 ulp at any size: 1 - tanh(x)^2 would cancel.
// Beyond +-43 it is that of 43, 2e-37. NaN stays NaN.
template <class M>
BRAID_INLINE Lanes<M> tanh_slope(const Lanes<M>& x) {
  using L = Lanes<M>;
  const L e = exp_within_range(clamped(x, M(43)) * L(2)), h = L(1) / (L(1) + e);
  return L(4) * (e * h) * h;
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
