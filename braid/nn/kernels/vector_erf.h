// The normal distribution of Lanes (vector.h), for GELU in its exact form.
#pragma once

#include "braid/nn/kernels/vector_math.h"

namespace braid::kernels::BRAID_ROWS {

// The coefficients of erfc(y) exp(y^2) / t with t = 2 / (2 + y), y >= 0, as a series of Chebyshev polynomials in 2 t
// - 1. Source of the form: Press et al., "Numerical Recipes" (2007), section 6.2.2.
inline constexpr double kScaledErfc[] = {
    1.1540674772329394,      0.35543692127049849,     0.065095158828786525,    0.0036711423958366392,
    -0.0011128447433526325,  -1.6075829915378080e-4,  3.2780315741731371e-5,   5.4424416455050160e-6,
    -1.5154665553171482e-6,  -1.4297608181169865e-7,  8.2346088274194934e-8,   -1.2962846852306563e-9,
    -4.1547216310151983e-9,  6.3470582783628112e-10,  1.4320822712256224e-10,  -6.1603901052045855e-11,
    2.0612138554721696e-12,  3.5714931488477044e-12,  -8.5864228432517965e-13, -6.1456002137906306e-14,
    7.4187257485966171e-14,  -1.2895042755032326e-14, -2.3587263857106324e-15, 1.5729349381685911e-15,
    -2.2782966239546465e-16, -6.3123304507564298e-17, 3.5916763531814923e-17,  -5.0498091498477293e-18};

// The density of the normal distribution and its integral up to x.
template <class M>
struct Normal {
  Lanes<M> density, integral;
};
template <class M>
BRAID_INLINE Normal<M> normal_of(const Lanes<M>& x) {
  using L = Lanes<M>;
  constexpr int kTerms = sizeof(M) == sizeof(float) ? 12 : 28;
  L negative;  // -|x|, by setting the sign bit
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    const auto sign = (typename L::BitPart)(-typename L::Part{});
    negative.part[i] = (typename L::Part)((typename L::BitPart)x.part[i] | sign);
  }
  const L y = negative * L(static_cast<M>(-0.70710678118654752));
  const L t = L(2) / (L(2) + y), twice = fma(t, L(4), L(-2));
  L last(0), before(0);  // Clenshaw's recurrence
#pragma GCC unroll 28
  for (int k = kTerms - 1; k > 0; --k) {
    const L next = fma(twice, last, L(static_cast<M>(kScaledErfc[k])) - before);
    before = last;
    last = next;
  }
  const L scaled = fma(twice * L(static_cast<M>(0.5)), last, L(static_cast<M>(0.5 * kScaledErfc[0])) - before);
  const L power = exp_of_nonpositive(negative * y * L(static_cast<M>(0.70710678118654752)));
  const L tail = L(static_cast<M>(0.5)) * t * scaled * power;
  Normal<M> normal{power * L(static_cast<M>(0.39894228040143268)), {}};
  const L rest = L(1) - tail;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) normal.integral.part[i] = x.part[i] > 0 ? rest.part[i] : tail.part[i];
  return normal;
}

}  // namespace braid::kernels::BRAID_ROWS
