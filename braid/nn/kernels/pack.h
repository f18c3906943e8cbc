// Packs: groups of elements, up to 16 bytes, that a device loads and stores together. For host and device.
#pragma once

#include <cstdint>

#include "braid/base/host_device.h"
#include "braid/nn/kernels/math_type.h"

namespace braid::kernels {

template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T at[N];
};

// The number of T that a device can move at once.
template <class T>
constexpr int kPack = 16 / sizeof(T);

// REQUIRES: `from` and `to` are aligned to a pack.
template <int N, class T>
BRAID_HOST_DEVICE inline Pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
BRAID_HOST_DEVICE inline void store_pack(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// Returns true if rows of `width` elements at these addresses can be read in packs. Null pointers are ignored.
template <class T, class... Pointers>
bool fits_packs(int64_t width, const Pointers*... rows) {
  const uintptr_t places = (uintptr_t{0} | ... | reinterpret_cast<uintptr_t>(rows));
  return width % kPack<T> == 0 && places % 16 == 0;
}

}  // namespace braid::kernels
