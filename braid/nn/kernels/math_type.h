// The type that a kernel computes in for tensors of T.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <type_traits>

namespace braid::kernels {

// float32 for float32, bfloat16 and float16; float64 for float64.
template <class T>
using MathOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace braid::kernels
