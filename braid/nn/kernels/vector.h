// Vector arithmetic for the row kernels: 64 bytes of numbers at a time, in registers of the target's width.
//
// One source per target includes this header (kernel_sets_baseline.cpp, kernel_sets_avx512.cpp). It defines BRAID_ROWS,
// its own namespace, and BRAID_ROWS_REGISTER, the bytes of a register (64, 32 or, without intrinsics, 16). A Lanes
// value has the same number of lanes on every target, and every operation rounds as IEEE 754 specifies, so all targets
// give the same bits. All functions are inlined, because the linker must not share them between targets.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "braid/nn/kernels/math_type.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BRAID_INLINE inline __attribute__((always_inline))

namespace braid::kernels::BRAID_ROWS {

constexpr int kLaneBytes = 64;
constexpr int kRegisterBytes = BRAID_ROWS_REGISTER;
constexpr int kParts = kLaneBytes / kRegisterBytes;

template <class M>
using Register __attribute__((vector_size(kRegisterBytes))) = M;

// Memory of one register's size, at any address. memcpy is not used, because g++ 12 makes 16-byte copies of it through
// the stack.
template <class R>
struct __attribute__((packed, may_alias)) InMemory {
  R value;
};
template <class R>
BRAID_INLINE R load_register(const void* p) {
  return static_cast<const InMemory<R>*>(p)->value;
}
template <class R>
BRAID_INLINE void store_register(void* p, const R& value) {
  static_cast<InMemory<R>*>(p)->value = value;
}

// A vector of 16 lanes if M is float, or 8 lanes if M is double.
template <class M>
struct Lanes {
  static constexpr int kCount = kLaneBytes / sizeof(M);
  static constexpr int kPerPart = kCount / kParts;
  using Bits = std::conditional_t<sizeof(M) == 4, int32_t, int64_t>;
  using Part = Register<M>;
  using BitPart = Register<Bits>;
  Part part[kParts];

  BRAID_INLINE Lanes() = default;
  BRAID_INLINE Lanes(M all) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) part[i] = all - Part{};
  }
};

#define BRAID_LANES_OPERATOR(op)                                                                 \
  template <class M>                                                                             \
  BRAID_INLINE Lanes<M> operator op(const Lanes<M>& a, const Lanes<M>& b) {                      \
    Lanes<M> r;                                                                                  \
    _Pragma("GCC unroll 4") for (int i = 0; i < kParts; ++i) r.part[i] = a.part[i] op b.part[i]; \
    return r;                                                                                    \
  }
BRAID_LANES_OPERATOR(+)
BRAID_LANES_OPERATOR(-)
BRAID_LANES_OPERATOR(*)
BRAID_LANES_OPERATOR(/)
#undef BRAID_LANES_OPERATOR

// Returns a * b + c, rounded once.
template <class M>
BRAID_INLINE Lanes<M> fma(const Lanes<M>& a, const Lanes<M>& b, const Lanes<M>& c) {
  Lanes<M> r;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
#if BRAID_ROWS_REGISTER == 64
    if constexpr (sizeof(M) == 4)
      r.part[i] = _mm512_fmadd_ps(a.part[i], b.part[i], c.part[i]);
    else
      r.part[i] = _mm512_fmadd_pd(a.part[i], b.part[i], c.part[i]);
#elif BRAID_ROWS_REGISTER == 32
    if constexpr (sizeof(M) == 4)
      r.part[i] = _mm256_fmadd_ps(a.part[i], b.part[i], c.part[i]);
    else
      r.part[i] = _mm256_fmadd_pd(a.part[i], b.part[i], c.part[i]);
#else
    for (int k = 0; k < Lanes<M>::kPerPart; ++k) r.part[i][k] = std::fma(a.part[i][k], b.part[i][k], c.part[i][k]);
#endif
  }
  return r;
}

// Returns the sum of the lanes, added in a fixed tree.
template <class M>
BRAID_INLINE M sum(const Lanes<M>& a) {
  M lanes[Lanes<M>::kCount];
  std::memcpy(lanes, &a, kLaneBytes);
  for (int width = Lanes<M>::kCount / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

template <class T>
constexpr int kLanesOf = Lanes<MathOf<T>>::kCount;

// Half a register of 16-bit numbers.
using Short __attribute__((vector_size(kRegisterBytes / 2))) = uint16_t;

BRAID_INLINE Register<float> widen(const c10::BFloat16* p) {
  const Short bits = load_register<Short>(p);
#if BRAID_ROWS_REGISTER == 64  // g++ 12 warns of an undefined register in the plain intrinsics
  const auto wide = (Register<int32_t>)_mm512_maskz_cvtepu16_epi32(0xFFFF, (__m256i)bits);
#elif BRAID_ROWS_REGISTER == 32
  const auto wide = (Register<int32_t>)_mm256_cvtepu16_epi32((__m128i)bits);
#else
  const auto wide = __builtin_convertvector(bits, Register<int32_t>);
#endif
  return (Register<float>)(wide << 16);
}

// Rounds to nearest even. A NaN stays a NaN.
BRAID_INLINE void narrow(c10::BFloat16* p, const Register<float>& value) {
  const Register<int32_t> bits = (Register<int32_t>)value;
  const Register<int32_t> rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const Register<int32_t> kept = value == value ? rounded : Register<int32_t>{} + 0x7FC00000;
#if BRAID_ROWS_REGISTER == 64
  const __m256i shorts = _mm512_maskz_cvtepi32_epi16(0xFFFF, (__m512i)(kept >> 16));
#elif BRAID_ROWS_REGISTER == 32
  const __m256i high = _mm256_srli_epi32((__m256i)kept, 16);
  const __m128i shorts = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
#else
  const Short shorts = __builtin_convertvector(kept >> 16, Short);
#endif
  store_register(p, shorts);
}

BRAID_INLINE Register<float> widen(const c10::Half* p) {
#if BRAID_ROWS_REGISTER == 64
  return _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif BRAID_ROWS_REGISTER == 32
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  Register<float> value;
  for (int k = 0; k < kRegisterBytes / 4; ++k) value[k] = static_cast<float>(p[k]);
  return value;
#endif
}
BRAID_INLINE void narrow(c10::Half* p, const Register<float>& value) {
#if BRAID_ROWS_REGISTER == 64
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(0xFFFF, value, _MM_FROUND_TO_NEAREST_INT));
#elif BRAID_ROWS_REGISTER == 32
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int k = 0; k < kRegisterBytes / 4; ++k) p[k] = static_cast<c10::Half>(static_cast<float>(value[k]));
#endif
}

template <class T>
BRAID_INLINE Lanes<MathOf<T>> load(const T* p) {
  using L = Lanes<MathOf<T>>;
  L r;
  if constexpr (sizeof(T) >= 4) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) r.part[i] = load_register<typename L::Part>(p + i * L::kPerPart);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) r.part[i] = widen(p + i * L::kPerPart);
  }
  return r;
}

template <class T>
BRAID_INLINE void store(T* p, const Lanes<MathOf<T>>& a) {
  using L = Lanes<MathOf<T>>;
  if constexpr (sizeof(T) >= 4) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) store_register(p + i * L::kPerPart, a.part[i]);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) narrow(p + i * L::kPerPart, a.part[i]);
  }
}

// The lanes of a value that take part: all of them, or only the first ones (a row's tail).
struct Whole {};
struct Head {
  int64_t count;
};
// Loads `head.count` elements. The other lanes are zero.
template <class T>
BRAID_INLINE Lanes<MathOf<T>> load(const T* p, Head head) {
  T full[kLanesOf<T>] = {};
  std::memcpy(full, p, head.count * sizeof(T));
  return load(full);
}
template <class T>
BRAID_INLINE void store(T* p, const Lanes<MathOf<T>>& a, Head head) {
  T full[kLanesOf<T>];
  store(full, a);
  std::memcpy(p, full, head.count * sizeof(T));
}

template <class T>
BRAID_INLINE Lanes<MathOf<T>> load(const T* p, Whole) {
  return load(p);
}
template <class T>
BRAID_INLINE void store(T* p, const Lanes<MathOf<T>>& a, Whole) {
  store(p, a);
}

// Sets the lanes beyond a row's tail to zero.
template <class M>
BRAID_INLINE Lanes<M> zero_beyond(const Lanes<M>& a, Whole) {
  return a;
}
template <class M>
BRAID_INLINE Lanes<M> zero_beyond(const Lanes<M>& a, Head head) {
  M lanes[Lanes<M>::kCount];
  store(lanes, a);
  return load(lanes, head);
}

constexpr int kChains = 4;  // number of independent sums, so that an addition need not wait for the previous one

// Calls body(offset, extent, chain) for each Lanes value of a row of `width` T, with chain in [0, kChains).
template <class T, class Body>
BRAID_INLINE void for_lanes(int64_t width, const Body& body) {
  constexpr int kStep = kLanesOf<T>;
  int64_t j = 0;
  for (; j + kChains * kStep <= width; j += kChains * kStep) {
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) body(j + chain * kStep, Whole{}, chain);
  }
  for (; j + kStep <= width; j += kStep) body(j, Whole{}, 0);
  if (j < width) body(j, Head{width - j}, 0);
}

template <class M>
BRAID_INLINE M sum(const Lanes<M> (&chains)[kChains]) {
  return sum((chains[0] + chains[1]) + (chains[2] + chains[3]));
}

}  // namespace braid::kernels::BRAID_ROWS
